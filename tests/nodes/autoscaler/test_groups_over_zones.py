"""A group whose machines lie in several zones, and pods that spread over them."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from plimsoll.nodes.providers.simulated.groups import SimulatedGroup
from tests.nodes.autoscaler.loop_scenarios import FinishedScenario, Json, group, lived, replica_set

SPREAD = [
    {
        "maxSkew": 1,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
]


SOLD_OUT_IN_ZB: Json = {
    "apiVersion": "cloud.plimsoll.io/v1alpha1",
    "kind": "Cloud",
    "metadata": {"name": "cloud"},
    "spec": {"stock": [{"name": "zb", "machineType": "n1-standard-4", "zone": "zb", "machines": 1}]},
}


def web(replicas: int) -> Json:
    """One pod per node."""
    return replica_set("web", replicas, cpu="3500m", topologySpreadConstraints=SPREAD)


def spread(replicas: int, *steps: Json, loops: int, **more: Any) -> FinishedScenario:
    return lived(
        *steps,
        {"apply": [web(replicas)]},
        {"loop": loops, "every": "10s"},
        {"schedule": True},
        {"loop": 1, "every": "10s"},
        objects=[],
        options={"scale-down-enabled": False},
        **more,
    )


def list_refusals(ended: FinishedScenario) -> list[str]:
    return [event["message"] for event in ended.outcome["events"] if event["reason"] == "NotTriggerScaleUp"]


def count_zones(ended: FinishedScenario) -> Counter[str]:
    return Counter(node["metadata"]["labels"]["topology.kubernetes.io/zone"] for node in ended.nodes)


@pytest.mark.parametrize("target", [0, 1, 2, 3])
def test_it_grows_where_its_next_machines_come_from(target: int):
    ended = spread(6, loops=7, nodeGroups=[group("g", zones=["za", "zb", "zc"], target=target)])
    assert ended.waiting_pods == []
    assert count_zones(ended) == {"za": 2, "zb": 2, "zc": 2}


def test_no_machine_is_requested_for_a_zone_that_the_provider_says_it_does_not_come_from():
    ended = spread(
        6,
        {"apply": SOLD_OUT_IN_ZB},
        loops=8,
        nodeGroups=[group("g", zones=["za", "zb"], target=2)],
    )
    assert count_zones(ended) == {"za": 2, "zb": 1}, "za may be one ahead of zb"
    assert len(ended.waiting_pods) == 3
    assert any("the next machine of g is expected in za" in message for message in list_refusals(ended))


@pytest.mark.parametrize(("target", "waits"), [(0, True), (2, False)])
def test_a_pod_of_one_zone_gets_the_machine_that_comes_there_and_otherwise_the_reason(*, target: int, waits: bool):
    pinned = replica_set("db", 1, cpu="3500m", nodeSelector={"topology.kubernetes.io/zone": "zc"})
    ended = lived(
        {"apply": [pinned]},
        {"loop": 3, "every": "10s"},
        {"schedule": True},
        objects=[],
        options={"scale-down-enabled": False},
        nodeGroups=[group("g", zones=["za", "zb", "zc"], target=target)],
    )
    assert bool(ended.waiting_pods) == waits
    expected = "the next machine of g is expected in za, and its machines in zone zc would take the pod"
    assert any(expected in message for message in list_refusals(ended)) == waits


async def know_nothing(_: SimulatedGroup) -> tuple[str, ...]:
    return ()


def test_machines_that_come_in_another_zone_do_not_make_it_grow_for_ever(monkeypatch: pytest.MonkeyPatch):
    """The second zone is sold out for good, which nothing but the machines that come can show."""
    monkeypatch.setattr(SimulatedGroup, "forecast_zones", know_nothing)
    ended = spread(
        6,
        {"apply": SOLD_OUT_IN_ZB},
        loops=20,
        nodeGroups=[group("g", zones=["za", "zb"], target=2)],
    )
    assert count_zones(ended) == {"za": 4, "zb": 1}, "two machines were requested for zb, and none after they came"
    assert ended.waiting_pods != []
    assert any("the next machine of g is expected in za" in message for message in list_refusals(ended))
