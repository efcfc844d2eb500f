"""TiDB in `plimsoll up`, but for its sockets: the planner that others may ask, and which ports are needed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.app.embedded_tidb import EmbeddedTidb, EmbeddedTidbDependencies
from plimsoll.journal.memory import MemoryJournal
from plimsoll.local.tidb.load.cluster_loads import LOAD
from plimsoll.runtime.entropy import SeededEntropy
from tests.local.tidb.builders import CLUSTERS, LocalTidbCluster, base_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator, MutableMapping, Sequence

    from plimsoll.local.components import Components
    from plimsoll.runtime.supervisor import Service

TOKEN = "knock-knock"
SCALERS = "/apis/pingcap.com/v1alpha1/namespaces/prod/tidbclusterautoscalers"
SIZE = {"cpu": 4000, "memory": 17179869184, "storage": 107374182400}
QUESTION = {
    "rules": [
        {
            "component": "tikv",
            "cpu_rule": {
                "max_threshold": 0.8,
                "min_threshold": 0.2,
                "resource_types": ["default_homogeneous_tikv"],
            },
        }
    ],
    "resources": [{"resource_type": "default_homogeneous_tikv", **SIZE}],
    "node_count": 10,
}


class UpTidbCluster(LocalTidbCluster):
    """With what `plimsoll up` adds to a simulated TiDB."""

    embedded: EmbeddedTidb

    def _made_of(self, components: Components) -> Sequence[Service]:
        services = super()._made_of(components)
        tools = EmbeddedTidbDependencies(
            tidb=self.tidb,
            clock=self.run.clock,
            entropy=SeededEntropy("up"),
            journal=MemoryJournal(),
            adds_nodes=False,
        )
        self.embedded = EmbeddedTidb(components, tools)
        return [*services, *self.embedded.list_services()]

    def asked(self, path: str, *, token: str = TOKEN, question: Any = QUESTION, method: str = "POST") -> Any:
        """Status and body of what the planner says."""
        sent: list[MutableMapping[str, Any]] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": json.dumps(question).encode(), "more_body": False}

        async def send(message: MutableMapping[str, Any]) -> None:
            sent.append(message)

        headers = [(b"host", b"127.0.0.1"), (b"authorization", f"Bearer {token}".encode())]
        scope = {"type": "http", "method": method, "path": path, "query_string": b"", "headers": headers}
        self.run.run_until(self.embedded.build_planner_app(token=TOKEN)(scope, receive, send))
        return sent[0]["status"], json.loads(sent[1]["body"])


@pytest.fixture
def world() -> Iterator[UpTidbCluster]:
    """Three stores at 0.9 of their cores."""
    with UpTidbCluster() as world:
        world.load("seconds,tikv_cores\n0,10.8\n")
        world.make(base_cluster(annotations={LOAD: "load"}))
        world.after(240)
        yield world


@pytest.mark.parametrize("path", ["/autoscaling", "/prod/db/autoscaling"])
def test_the_planner_answers_from_what_is_simulated(world: UpTidbCluster, path: str) -> None:
    status, plans = world.asked(path)

    assert status == 200
    assert plans == [{"component": "tikv", "count": 6, "resource_type": "default_homogeneous_tikv", "labels": {}}]


def test_with_two_clusters_one_has_to_be_named(world: UpTidbCluster) -> None:
    world.make(base_cluster("other", tikv=0, tidb=0))
    world.after(10)

    assert world.asked("/autoscaling")[0] == 404
    assert world.asked("/prod/db/autoscaling")[0] == 200


def test_clusters_that_are_not_there_have_no_planner(world: UpTidbCluster) -> None:
    status, stated = world.asked("/prod/nothing/autoscaling")

    assert (status, stated["error"]) == (404, "not_found")


def test_a_planner_is_well_even_without_a_cluster() -> None:
    with UpTidbCluster() as world:
        assert world.asked("/healthz", method="GET") == (200, {"status": "ok"})


def test_the_planner_asks_for_the_token(world: UpTidbCluster) -> None:
    assert world.asked("/autoscaling", token="wrong")[0] == 401


def test_a_new_autoscaler_is_reconciled(world: UpTidbCluster) -> None:
    rules = {"cpu": {"max_threshold": 0.8, "min_threshold": 0.2}}
    spec = {"cluster": {"name": "db"}, "tikv": {"rules": rules}}
    kind = {"apiVersion": "pingcap.com/v1alpha1", "kind": "TidbClusterAutoScaler"}
    world.made(SCALERS, {**kind, "metadata": {"name": "as1", "namespace": "prod"}, "spec": spec})
    world.after(30)

    assert world.get(f"{CLUSTERS}/db")["spec"]["tikv"]["replicas"] == 6
