"""Whatever the world: limits hold, what cannot move stays, nothing goes before its time, and it all comes to rest."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.nodes.autoscaler.loop_scenarios import FinishedScenario, containers, group, lived, replica_set

UNNEEDED = timedelta(seconds=60)
MAX_CPU = 40

groups = st.lists(
    st.builds(
        lambda kind, target, most, least: {"machineType": kind, "target": target, "max": most, "min": least},
        st.sampled_from(["n1-standard-2", "n1-standard-4", "n1-standard-8"]),
        st.integers(0, 3),
        st.integers(3, 5),
        st.integers(0, 1),
    ),
    min_size=1,
    max_size=3,
)
loads = st.lists(st.tuples(st.integers(1, 6), st.sampled_from(["300m", "1", "1900m", "3500m"])), max_size=3)


BOTH_LIMITS_REACHED: dict[str, Any] = {
    "groups": [
        {"machineType": "n1-standard-2", "target": 3, "max": 3, "min": 1},
        {"machineType": "n1-standard-2", "target": 1, "max": 4, "min": 1},
    ],
    "before": [(4, "300m"), (1, "3500m"), (3, "3500m")],
    "after": [(5, "1"), (6, "1900m")],
    "nap": True,
    "unmovable": False,
}
"""Pods wait for what the limits allow: each node that is drained makes room for a better one, six minutes long."""


@given(groups=groups, before=loads, after=loads, nap=st.booleans(), unmovable=st.booleans())
@example(**BOTH_LIMITS_REACHED)
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_random_worlds(groups: list[Any], before: list[Any], after: list[Any], *, nap: bool, unmovable: bool):
    named = [group(f"g{number}", **settings) for number, settings in enumerate(groups)]
    named = [{**settings, "target": max(settings["target"], settings["min"])} for settings in named]
    bare = [pod_without_controller("bare-0", cpu="200m")] if unmovable else []
    sets = [replica_set(f"before{number}", count, cpu=cpu) for number, (count, cpu) in enumerate(before)]
    ended = lived(
        {"schedule": True},
        {"loop": 3},
        {"apply": [replica_set(f"after{number}", count, cpu=cpu) for number, (count, cpu) in enumerate(after)]},
        *([dict[str, Any](loop=4), {"schedule": True}] * 6),
        {"loop": 24},
        options={
            "node-autoprovisioning": nap,
            "max-cpu": MAX_CPU,
            "scale-down-unneeded-time": "60s",
            "scale-down-delay-after-add": "10s",
        },
        nodeGroups=named,
        objects=[*sets, *bare],
    )
    _limits_hold(ended)
    _nothing_went_early(ended)
    if unmovable:
        home = ended.outcome["pods"]["default/bare-0"]
        assert home is None or home in ended.outcome["nodes"], "no controller would recreate it"
    assert _last_call(ended) <= datetime.fromisoformat(ended.outcome["loops"][-8]["time"]), "it came to rest"


def pod_without_controller(name: str, *, cpu: str) -> dict[str, Any]:
    """Pods of `pods` count as having a controller, so this one is an object."""
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": containers(cpu, "1Gi")}


def _limits_hold(ended: FinishedScenario) -> None:
    for state in ended.outcome["nodeGroups"].values():
        assert state["target"] <= state["max"]
    grown = any(call["ok"] for call in ended.calls("IncreaseSize"))
    cores = sum(int(node["status"]["capacity"]["cpu"]) for node in ended.nodes)
    assert cores <= MAX_CPU or not grown


def _nothing_went_early(ended: FinishedScenario) -> None:
    began = datetime.fromisoformat(ended.outcome["loops"][0]["time"])
    for call in ended.calls("DeleteNodes"):
        assert datetime.fromisoformat(call["time"]) - began > UNNEEDED


def _last_call(ended: FinishedScenario) -> datetime:
    times = [datetime.fromisoformat(call["time"]) for call in ended.outcome["providerCalls"]]
    return max(times, default=datetime.fromisoformat(ended.outcome["loops"][0]["time"]))
