"""Guarding, with an operator that takes stores out in its own time: one `replicas` at a time is all that we lower."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from tests.tidb.actuation.draining_clusters import DrainingCluster
from tests.tidb.autoscaled_clusters import AUTO, EmbeddedServer, FakeServer, group

if TYPE_CHECKING:
    from collections.abc import Iterator


class OperatedCluster(DrainingCluster):
    """Its operator begins a pass after `replicas` fell, and lets a pod go when PD has buried the store."""

    def __init__(self, server: Any) -> None:
        super().__init__(server)
        self.settings = msgspec.structs.replace(self.settings, drains_actively=False)
        self.pods: dict[str, int] = {}
        self.noticed: dict[str, int] = {}

    def operate(self) -> None:
        self.pd.breathe()
        there = self.server.names("tidbclusters")
        self._stop([pod for pod in self.pd.running if pod.rsplit("-", 2)[0] not in there])
        for name in there:
            own = self.tc(name)["spec"]["tikv"]
            self.pods[name] = max(self._shrunk(name), own["replicas"])
            self.noticed[name] = own["replicas"]
            labels = (own.get("config") or {}).get("server", {}).get("labels", {})
            stores = [self.pd.register(f"{name}-tikv-{index}", labels=labels) for index in range(self.pods[name])]
            reported = {
                str(breathing_store.id): {
                    "id": str(breathing_store.id),
                    "state": breathing_store.body["store"]["state_name"],
                }
                for breathing_store in stores
            }
            status = {"phase": "Normal", "statefulSet": {"replicas": self.pods[name]}, "stores": reported}
            if self.tc(name).get("status", {}).get("tikv") != status:
                self.server.edit("tidbclusters", name, {"status": None}, sub="status")
                self.server.edit("tidbclusters", name, {"status": {"tikv": status}}, sub="status")

    def _shrunk(self, name: str) -> int:
        """How many pods there are after one more step towards what was asked for a pass ago."""
        pods = self.pods.get(name, 0)
        if pods <= self.noticed.get(name, pods):
            return pods
        last = self.pd.running[f"{name}-tikv-{pods - 1}"]
        if last.state == 2:
            self._stop([last.pod])
            return pods - 1
        last.state = 1
        self.pd.together = max(self.pd.together, len(self.pd.offline))
        return pods


@pytest.fixture(params=[FakeServer, EmbeddedServer], ids=["played", "embedded"])
def world(request: pytest.FixtureRequest) -> Iterator[OperatedCluster]:
    with OperatedCluster(request.param) as made:
        made.autoscaler().cluster().planner.says(group(3))
        made.once()
        made.pass_by(20)
        assert len(made.stores) == 3
        yield made


def test_t26_stores_leave_one_after_the_other_and_we_send_pd_nothing(world: OperatedCluster) -> None:
    world.server.delete("tidbclusterautoscalers", "as1")
    world.pass_by(300)
    assert (world.clusters, world.server.names("tidbclusterautoscalers")) == (["db"], [])
    assert (world.lost, world.pd.together, world.pd.wrote) == ([], 1, [])


def test_t25_a_base_store_that_is_down_keeps_replicas_where_they_are(world: OperatedCluster) -> None:
    world.pd.stores[1].heard = "Down"
    world.server.delete("tidbclusterautoscalers", "as1")
    world.pass_by(100)
    assert world.tc()["spec"]["tikv"]["replicas"] == 3
    assert world.condition("ScaleInBlocked")[0] == "True"


def test_a_group_that_is_wanted_again_gets_its_store_back(world: OperatedCluster) -> None:
    """Raising `replicas` alone would leave the store Offline, and the operator with a pod that cannot go on."""
    world.run.advance_by(700)
    world.planner.says(group(2))
    world.pass_by(30)
    assert world.tc()["spec"]["tikv"]["replicas"] == 2
    assert world.pd.offline == [world.stores[2].id]
    world.pd.stores[world.stores[2].id].regions = 10_000
    world.planner.says(group(3))
    world.pass_by(400, every_s=20)
    assert world.tc()["spec"]["tikv"]["replicas"] == 3
    assert (world.pd.offline, world.lost, AUTO in world.clusters) == ([], [], True)
