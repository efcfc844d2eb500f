"""An unreadable pod: its node counts as occupied, and everything else goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from structlog.testing import capture_logs

from plimsoll.local.apiserver.storage.objects import Key
from tests.nodes.autoscaler.faulty_clusters import FaultyCluster
from tests.nodes.autoscaler.loop_scenarios import group, pods, replica_set

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.nodes.autoscaler.loop_scenarios import Json


def spoil(body: Json) -> None:
    body["spec"]["nodeSelector"] = ["not", "a", "map"]


@pytest.mark.parametrize("kind", ["live", "stepped"])
def test_the_node_of_an_odd_pod_stays_and_the_others_go(kind: str):
    odd = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "odd", "namespace": "default"},
        "spec": {"nodeName": "g-1", "containers": [{"name": "c", "image": "app"}]},
    }
    options = {"scale-down-unneeded-time": "1m", "scale-down-delay-after-add": "1s"}
    with (
        capture_logs() as logs,
        FaultyCluster(world=kind, nodeGroups=[group("g", target=3)], objects=[odd], options=options) as world,
    ):
        world.change_body(Key("pods", "default", "odd"), spoil)
        world.take({"apply": [replica_set("more", 3, cpu="3500m")]})
        for _ in range(4):
            world.take(*([{"advance": "1m"}] if kind == "live" else [{"schedule": True}, {"loop": 6}]))
        assert "g-1" in world.outcome()["nodes"], "somebody is on it, whoever that is"
        assert len(world.calls("IncreaseSize")) <= 1
        assert sum(name.startswith("default/more") and node is not None for name, node in _pods(world)) == 3
        reported = times_reported(logs)
        assert reported > 0
        world.take({"delete": {"kind": "ReplicaSet", "name": "more"}})
        for _ in range(4):
            world.take(*([{"advance": "1m"}] if kind == "live" else [{"schedule": True}, {"loop": 6}]))
        assert list(world.outcome()["nodes"]) == ["g-1"]
        assert times_reported(logs) == reported, "each informer once"


def times_reported(logs: Sequence[Mapping[str, Any]]) -> int:
    return sum(log["event"] == "informer.bad_object" and "odd" in log["object"] for log in logs)


def _pods(world: FaultyCluster) -> list[tuple[str, str | None]]:
    return [*world.outcome()["pods"].items()]


def test_an_odd_pod_that_waits_is_not_planned_for():
    with FaultyCluster(nodeGroups=[group("g", target=0)], pods=[pods("fine", 1), pods("odd", 1)]) as world:
        world.change_body(Key("pods", "default", "odd-0"), spoil)
        world.take({"loop": 2}, {"schedule": True}, {"loop": 2})
        assert world.outcome()["nodeGroups"]["g"]["target"] == 1
        assert world.outcome()["pods"]["default/fine-0"] == "g-0"
