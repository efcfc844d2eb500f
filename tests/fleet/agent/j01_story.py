"""J01 (docs/design/fleet.md 18), step by step, each checked from outside: by requests, OCM's log, each cluster's API.

`python -m tests.fleet.agent.j01_story [STEPS]` plays it and prints what was seen after each step, for comparisons.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import structlog

from plimsoll.journal.entries import Query, encode_entry
from tests.fleet.agent.chain_world import GROUPS, MACHINES, MANAGED, POOL, ChainWorld

if TYPE_CHECKING:
    from collections.abc import Iterator

Json = dict[str, Any]

TOPICS = '[{"name": "orders", "partitions": 60, "replicationFactor": 3, "partitionSize": "512Mi"}]'
KAFKAS = "/apis/kafka.strimzi.io/v1"
REBALANCES = f"{KAFKAS}/kafkarebalances"
_SEEN = (MANAGED, GROUPS, MACHINES, REBALANCES, f"{KAFKAS}/kafkas", f"{KAFKAS}/kafkanodepools")
_SEEN_OF_CORE = ("namespaces", "nodes", "pods", "configmaps", "events")


class J01:
    """The story. Clusters are named in the order in which they are made: A, B, C."""

    def __init__(self, chain: ChainWorld) -> None:
        self.chain = chain
        self.clusters: dict[str, Json] = {}

    def play(self) -> Iterator[str]:
        """The name of each step, after it."""
        for step in (
            self.make_the_first_cluster,
            self.run_the_first_kafka,
            self.run_the_second_kafka_on_a_second_cluster,
            self.keep_a_third_cluster_empty,
            self.let_the_first_kafka_grow,
            self.let_it_shrink,
            self.delete_the_second_kafka,
            self.keep_the_cluster_that_is_needed_again,
            self.remove_the_cluster_that_is_not_needed,
            self.check_the_end,
        ):
            step()
            yield step.__name__

    def get_id(self, letter: str) -> str:
        """The id of a cluster at the provider."""
        return str(self.clusters[letter]["cluster_id"])

    def name_new(self, letter: str) -> Json:
        """The row that is ready and has no name yet."""
        known = {row["id"] for row in self.clusters.values()}
        (row,) = [row for row in self.chain.list_ready() if row["id"] not in known]
        self.clusters[letter] = row
        return row

    def wait_for_ready(self, number: int) -> None:
        self.chain.pass_until(lambda: len(self.chain.list_ready()) == number, minutes=30)

    def list_reasons(self, subject: str) -> set[str]:
        return {item["reason"] for item in self.chain.list_decisions(subject)}

    # ---- steps

    def make_the_first_cluster(self) -> None:
        chain = self.chain
        chain.start()
        (row,) = chain.list_clusters()
        assert "BiggestDoesNotFit" in self.list_reasons("capacity/aws.us-east-1.standard")
        chain.pass_by(60)
        (call,) = chain.ocm.list_calls("clusters.create")
        assert call.body["name"].startswith("mk-")
        assert call.body["nodes"]["autoscale_compute"] == {
            "kind": "MachinePoolAutoscaling",
            "min_replicas": 3,
            "max_replicas": 18,
        }
        self.wait_for_ready(1)
        assert self.name_new("A")["id"] == row["id"]
        assert chain.list_clusters() == [self.clusters["A"]]
        groups = {item["metadata"]["name"]: item["spec"] for item in chain.list_items(self.get_id("A"), GROUPS)}
        bounds = {name: (spec["min"], spec["max"]) for name, spec in groups.items()}
        assert bounds == {f"default-{zone}": (1, 6) for zone in "abc"} | {f"{POOL}-{zone}": (1, 2) for zone in "abc"}
        pool = groups[f"{POOL}-a"]["template"]
        assert pool["labels"] == {"bf2.org/kafkaInstanceProfileType": "standard"}
        assert pool["taints"][0]["effect"] == "NoExecute"
        assert self.clusters["A"]["dynamic_capacity_info"]["standard"]["max_units"] == 2

    def run_the_first_kafka(self) -> None:
        chain = self.chain
        orders = chain.create_and_wait("orders")
        assert orders["cluster_id"] == self.get_id("A")
        assert orders["bootstrap_server_host"].endswith(":443")
        assert "FirstWithRoom" in self.list_reasons(f"kafka/{orders['id']}")
        (managed,) = chain.list_items(self.get_id("A"), MANAGED)
        assert managed["metadata"]["name"] == "orders"
        assert chain.get_claims(self.get_id("A")) == {orders["namespace"]: 1}
        assert chain.count_pool_machines(self.get_id("A")) == 3
        nodes = chain.list_pool_nodes(self.get_id("A"))
        brokers = chain.list_pods(self.get_id("A"), orders["namespace"])
        assert Counter(nodes[pod["spec"]["nodeName"]] for pod in brokers) == Counter(nodes.values())
        assert len(chain.list_pods(self.get_id("A"), orders["namespace"], "controller")) == 3
        self.orders = orders

    def run_the_second_kafka_on_a_second_cluster(self) -> None:
        chain = self.chain
        chain.pass_until(lambda: len(chain.list_clusters()) == 2, minutes=2)
        assert chain.create_kafka("bills", "standard.x2").status == 202
        chain.pass_by(60)
        assert chain.get_status("bills") == "accepted"
        bills_id = chain.list_kafkas()["bills"]["id"]
        assert "NoRoom" in self.list_reasons(f"kafka/{bills_id}")
        self.wait_for_ready(2)
        self.name_new("B")
        chain.pass_until(lambda: chain.get_status("bills") == "ready", minutes=20)
        self.bills = chain.get_row(bills_id)
        assert self.bills["cluster_id"] == self.get_id("B")
        assert len(chain.list_pods(self.get_id("B"), self.bills["namespace"])) == 6
        assert chain.count_pool_machines(self.get_id("B")) == 6
        nodes = chain.list_pool_nodes(self.get_id("B"))
        assert sorted(Counter(nodes.values()).values()) == [2, 2, 2]

    def keep_a_third_cluster_empty(self) -> None:
        chain = self.chain
        self.wait_for_ready(3)
        self.name_new("C")
        chain.run_passes(4)
        assert len(chain.list_ready()) == 3
        assert "ScaleUpWouldFollow" in self.list_reasons(f"cluster/{self.clusters['C']['id']}")

    def let_the_first_kafka_grow(self) -> None:
        chain, cluster_id, namespace = self.chain, self.get_id("A"), self.orders["namespace"]
        path = f"/apis/kafka.strimzi.io/v1/namespaces/{namespace}/kafkas/orders"
        chain.ask(cluster_id, "PATCH", path, {"metadata": {"annotations": {"simulated.plimsoll.io/topics": TOPICS}}})
        chain.pass_by(60)
        assert chain.count_replicas(cluster_id, namespace, "orders") == {0: 60, 1: 60, 2: 60}
        answer = chain.call("PATCH", f"/kafkas/{self.orders['id']}", {"plan": "standard.x2"})
        assert answer.status == 200, answer
        chain.pass_until(lambda: chain.get_claims(cluster_id) == {namespace: 2}, minutes=2)
        seen: set[str] = set()

        def is_rebalanced() -> bool:
            """A rebalance was there, and is gone."""
            present = {item["metadata"]["name"] for item in chain.list_items(cluster_id, REBALANCES)}
            seen.update(present)
            return bool(seen) and not present

        chain.pass_until(is_rebalanced, minutes=40)
        assert seen == {"orders-auto-rebalancing-add-brokers"}
        replicas = chain.count_replicas(cluster_id, namespace, "orders")
        assert sorted(replicas) == [0, 1, 2, 3, 4, 5]
        assert sum(replicas.values()) == 180
        assert all(27 <= count <= 33 for count in replicas.values()), replicas
        assert chain.count_pool_machines(cluster_id) == 6
        assert len(chain.list_clusters()) == 3

    def let_it_shrink(self) -> None:
        chain, cluster_id, namespace = self.chain, self.get_id("A"), self.orders["namespace"]
        answer = chain.call("PATCH", f"/kafkas/{self.orders['id']}", {"plan": "standard.x1"})
        assert answer.status == 200, answer
        order: list[str] = []

        def is_small() -> bool:
            replicas = chain.count_replicas(cluster_id, namespace, "orders")
            kafkas = chain.get(cluster_id).cluster.local.kafka
            assert kafkas is not None
            kafka = kafkas.clusters.find(namespace, "orders")
            assert kafka is not None
            assert all(len(found.replicas) >= 3 for found in kafka.catch_up().iterate_partitions())
            is_so = {
                "emptied": sorted(broker for broker, count in replicas.items() if count) == [0, 1, 2],
                "pods gone": len(chain.list_pods(cluster_id, namespace)) == 3,
                "claim lowered": chain.get_claims(cluster_id) == {namespace: 1},
                "machines gone": chain.count_pool_machines(cluster_id) == 3,
            }
            order.extend(step for step, holds in is_so.items() if holds and step not in order)
            return all(is_so.values())

        chain.pass_until(is_small, minutes=60)
        assert order == ["emptied", "pods gone", "claim lowered", "machines gone"]

    def delete_the_second_kafka(self) -> None:
        chain = self.chain
        answer = chain.call("DELETE", f"/kafkas/{self.bills['id']}", query="async=true")
        assert answer.status == 202, answer
        chain.pass_until(lambda: "bills" not in chain.list_kafkas(), minutes=10)
        assert chain.list_items(self.get_id("B"), MANAGED) == []
        assert chain.get_claims(self.get_id("B")) == {}

    def keep_the_cluster_that_is_needed_again(self) -> None:
        """B is marked; a Kafka that comes before the next tick makes it needed, and nothing was deleted."""
        chain, marked = self.chain, self.clusters["B"]["id"]

        def is_marked() -> bool:
            return chain.get_cluster_status(marked) == "deprovisioning"

        chain.pass_until(is_marked, minutes=5, step_s=1)
        assert chain.create_kafka("late", "standard.x2").status == 202
        chain.run_passes(1)
        chain.pass_by(15)
        assert chain.get_cluster_status(marked) == "ready"
        assert chain.ocm.list_calls("clusters.delete") == ()
        assert "CapacityNeeded" in self.list_reasons(f"cluster/{marked}")
        chain.pass_until(lambda: chain.get_status("late") == "ready", minutes=20)
        late = chain.get_row(chain.list_kafkas()["late"]["id"])
        assert late["cluster_id"] == self.get_id("C")
        assert len(chain.list_clusters()) == 3

    def remove_the_cluster_that_is_not_needed(self) -> None:
        chain = self.chain
        late = chain.list_kafkas()["late"]["id"]
        assert chain.call("DELETE", f"/kafkas/{late}", query="async=true").status == 202
        chain.pass_until(lambda: len(chain.list_clusters()) == 2, minutes=30)
        assert chain.ocm.list_calls("clusters.delete")
        assert chain.embedded.find(self.get_id("B")) is None

    def check_the_end(self) -> None:
        chain = self.chain
        chain.pass_by(1800)
        assert {row["id"] for row in chain.list_clusters()} == {self.clusters["A"]["id"], self.clusters["C"]["id"]}
        assert set(chain.embedded.list_ids()) == {self.get_id("A"), self.get_id("C")}
        assert [chain.count_pool_machines(self.get_id(letter)) for letter in "AC"] == [3, 3]
        managed = [item for letter in "AC" for item in chain.list_items(self.get_id(letter), MANAGED)]
        assert [item["metadata"]["name"] for item in managed] == ["orders"]
        assert chain.get_claims(self.get_id("C")) == {}
        assert self.list_reasons(f"cluster/{self.clusters['B']['id']}")


def read_state(chain: ChainWorld) -> Json:
    """What can be seen from outside, journals included. Tokens and keys are random and are not in it."""
    decisions = chain.call_admin("GET", "/admin/scaling/decisions", query="size=65500")
    assert decisions.status == 200, decisions
    return {
        "at": chain.clock.now().isoformat(),
        "clusters": chain.list_clusters(),
        "kafkas": chain.call_admin("GET", "/admin/kafkas").document["items"],
        "decisions": decisions.document["items"],
        "OCM": [(call.call, call.path, call.status) for call in chain.ocm.list_calls() if call.call != "token"],
        "data planes": {cluster_id: read_data_plane(chain, cluster_id) for cluster_id in chain.embedded.list_ids()},
        "journals": {
            cluster_id: [
                encode_entry(entry).decode() for entry in chain.run.run_until(journal.list_entries(Query(limit=None)))
            ]
            for cluster_id, journal in chain.stores.journals.items()
        },
    }


def read_data_plane(chain: ChainWorld, cluster_id: str) -> Json:
    paths = [*_SEEN, *(f"/api/v1/{resource}" for resource in _SEEN_OF_CORE)]
    return {path: chain.list_items(cluster_id, path) for path in paths}


def play_and_record(folder: Path) -> Iterator[bytes]:
    """A line per step."""
    with ChainWorld(folder) as chain:
        for step in J01(chain).play():
            yield json.dumps({"step": step, **read_state(chain)}).encode()


def main(steps: int) -> None:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    with tempfile.TemporaryDirectory() as folder:
        for line in islice(play_and_record(Path(folder)), steps):
            sys.stdout.buffer.write(line + b"\n")
            sys.stdout.buffer.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
