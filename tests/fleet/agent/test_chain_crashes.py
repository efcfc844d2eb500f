"""Every program of the chain ends right after any of its writes, and the chain comes to the same end.

A Kafka comes, grows, shrinks, and another one comes and goes. The run is made once: at each write that is struck the
process forks, and the copy plays on with a program killed. Fleet manager, agent and Kafka operator are killed alone.
The node autoscaler and the cloud die with everything else that runs the clusters, as in `plimsoll up`.

Only in `make test-long`: 600 writes, each of which costs seconds. `WRITES_APART=200` strikes a few.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from tests.effort import IS_LONG
from tests.faults import Branches, Call, Strike
from tests.fleet.agent.chain_world import MANAGED, ChainWorld
from tests.fleet.agent.j01_story import REBALANCES, TOPICS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

# Tasks of a process that crashed never end: their exceptions are not retrieved.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not IS_LONG, reason="NOT TESTED: an hour, only in make test-long"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]
WRITES_APART = int(os.environ.get("WRITES_APART", "1"))
FIRST = min(WRITES_APART, 101)
ROOMY = 9
"""Nodes of a pool in which the larger size fits beside the smaller one: no second cluster is needed."""


class Cluster(NamedTuple):
    """What is left of a cluster."""

    status: str
    claimed: int
    managed: tuple[str, ...]
    machines: int
    namespaces: int
    rebalances: int


class End(NamedTuple):
    """What is left. Clusters in the order of their claimed units: which of two empty ones is left may differ."""

    kafkas: dict[str, tuple[str, str]]
    clusters: tuple[Cluster, ...]
    provided: int
    replicas: dict[int, int]
    problems: tuple[str, ...]


class CrashedChain:
    """A story that waits for what was asked for, however long that takes."""

    def __init__(self, chain: ChainWorld) -> None:
        self._chain = chain

    def play(self) -> End:
        """A region that is full with one cluster."""
        chain = self._chain
        chain.offer(standard={"limit": 2})
        chain.start()
        self.wait_until(lambda: self.count_settled() == 1)
        self.create("orders", "standard.x1")
        self.add_topics("orders")
        self.change_plan("orders", "standard.x2", brokers=6)
        self.change_plan("orders", "standard.x1", brokers=3)
        self.create("bills", "standard.x1")
        self.delete("bills")
        self.wait_until(lambda: self.count_settled() == 1)
        chain.pass_by(900)
        return self.read_end()

    # ---- steps

    def create(self, name: str, plan: str) -> None:
        assert self._chain.create_kafka(name, plan).status in {202, 409}
        self.wait_until(lambda: self._chain.get_status(name) == "ready")

    def delete(self, name: str) -> None:
        row = self._chain.list_kafkas()[name]
        answer = self._chain.call("DELETE", f"/kafkas/{row['id']}", query="async=true")
        assert answer.status in {202, 404}, answer
        self.wait_until(lambda: name not in self._chain.list_kafkas())

    def add_topics(self, name: str) -> None:
        cluster_id, namespace = self.find(name)
        path = f"/apis/kafka.strimzi.io/v1/namespaces/{namespace}/kafkas/{name}"
        body = {"metadata": {"annotations": {"simulated.plimsoll.io/topics": TOPICS}}}
        self._chain.ask(cluster_id, "PATCH", path, body)
        self.wait_until(lambda: sum(self.count_replicas(name).values()) == 180)

    def change_plan(self, name: str, plan: str, *, brokers: int) -> None:
        cluster_id, namespace = self.find(name)
        row = self._chain.list_kafkas()[name]
        answer = self._chain.call("PATCH", f"/kafkas/{row['id']}", {"plan": plan})
        assert answer.status == 200, answer

        def has_changed() -> bool:
            return (
                sorted(found for found, count in self.count_replicas(name).items() if count) == [*range(brokers)]
                and len(self._chain.list_pods(cluster_id, namespace)) == brokers
                and self._chain.get_claims(cluster_id) == {namespace: brokers // 3}
                and not self._chain.list_items(cluster_id, REBALANCES)
            )

        self.wait_until(has_changed)
        self.wait_until(lambda: self._chain.get_status(name) == "ready")

    # ---- looks

    def wait_until(self, is_so: Callable[[], Any]) -> None:
        self._chain.pass_until(is_so, minutes=120, step_s=30)

    def count_settled(self) -> int:
        """The clusters, if all of them are ready."""
        rows = self._chain.list_clusters()
        return len(rows) if all(row["status"] == "ready" for row in rows) else 0

    def find(self, name: str) -> tuple[str, str]:
        """The cluster of a Kafka, and its namespace there."""
        row = self._chain.get_row(self._chain.list_kafkas()[name]["id"])
        return row["cluster_id"], row["namespace"]

    def count_replicas(self, name: str) -> dict[int, int]:
        cluster_id, namespace = self.find(name)
        kafkas = self._chain.get(cluster_id).cluster.local.kafka
        assert kafkas is not None
        if kafkas.clusters.find(namespace, name) is None:
            return {}
        return self._chain.count_replicas(cluster_id, namespace, name)

    def read_end(self) -> End:
        chain = self._chain
        rows = chain.list_clusters()
        problems = [f"{row['id']}: {problem}" for row in rows for problem in row.get("problems", ())]
        problems += chain.call_admin("GET", "/admin/clusters").document.get("problems", [])
        return End(
            kafkas={name: (kafka["status"], kafka["size_id"]) for name, kafka in chain.list_kafkas().items()},
            clusters=tuple(sorted((self.read_cluster(row) for row in rows), key=lambda found: found.claimed)),
            provided=len(chain.ocm.clusters.list_clusters()),
            replicas=self.count_replicas("orders"),
            problems=tuple(problems),
        )

    def read_cluster(self, row: dict[str, Any]) -> Cluster:
        chain, cluster_id = self._chain, row["cluster_id"]
        names = [found["metadata"]["name"] for found in chain.list_items(cluster_id, "/api/v1/namespaces")]
        return Cluster(
            status=row["status"],
            claimed=sum(chain.get_claims(cluster_id).values()),
            managed=tuple(found["metadata"]["name"] for found in chain.list_items(cluster_id, MANAGED)),
            machines=chain.count_pool_machines(cluster_id),
            namespaces=sum(name.startswith("kafka-") for name in names),
            rebalances=len(chain.list_items(cluster_id, REBALANCES)),
        )


def test_whichever_program_ends_after_whichever_write_the_chain_comes_to_the_same_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    def picks(call: Call, strike: Strike) -> bool:
        return strike is Strike.CRASH and call.number >= FIRST and (call.number - FIRST) % WRITES_APART == 0

    fault = Branches(picks)
    with ChainWorld(tmp_path, most=ROOMY, fault=fault) as chain:
        expected = fault.run(CrashedChain(chain).play)
    assert expected.kafkas == {"orders": ("ready", "x1")}
    assert [(found.managed, found.machines) for found in expected.clusters] == [(("orders",), 3)]
    assert not expected.problems
    assert fault.ended
    problems = [
        f"{branch}: {branch.end.problem or branch.end.result}"
        for branch in fault.ended
        if branch.end.problem or branch.end.result != expected
    ]
    assert not problems, "\n".join(problems[:10])
    programs = Counter(branch.call.method.partition(":")[0] for branch in fault.ended)
    with capsys.disabled():
        sys.stdout.write(f"\n{len(fault.ended)} of {fault.completed} writes struck: {dict(programs)}\n")
