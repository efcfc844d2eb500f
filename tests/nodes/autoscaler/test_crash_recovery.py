"""The autoscaler dies after every single write it makes, in turn, and another one goes on from the world alone.

No growth comes twice, no node is lost, nothing stays marked, no group stays behind empty.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.local.cloud.faults.call_log import NOBODY_WAITED
from tests.nodes.autoscaler.loop_scenarios import crash_after, group, lived, pods, replica_set

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.nodes.autoscaler.loop_scenarios import FinishedScenario, Json

FAST = {"scale-down-unneeded-time": "30s", "scale-down-delay-after-add": "10s"}
MOST_WRITES = 100


def growing(*crash: Json) -> FinishedScenario:
    """One more node in a group that has one, and two groups that are made because pods tolerate their taints."""
    return lived(
        {"schedule": True},
        {"apply": [replica_set("plain", 2, cpu="1500m")]},
        *crash,
        {"loop": 3, "every": "10s"},
        {"schedule": True},
        {"loop": 1, "every": "10s"},
        options={"node-autoprovisioning": True, "nodes": ["0:10:g"]},
        nodeGroups=[group("g", target=1)],
        objects=[replica_set("full", 1, cpu="3500m")],
        pods=[
            pods("red", 1, **dedicated("red")),
            pods("blue", 1, cpu="2", **dedicated("blue")),
        ],
    )


def shrinking(*crash: Json) -> FinishedScenario:
    """Three nodes: one is full, one has a pod that fits on the first, one is empty."""
    return lived(
        {"schedule": True},
        *crash,
        {"loop": 2, "every": "40s"},
        {"schedule": True},
        {"loop": 3, "every": "40s"},
        {"schedule": True},
        {"loop": 1, "every": "40s"},
        options=FAST,
        nodeGroups=[group("g", target=3)],
        objects=[replica_set("large", 1, cpu="2500m"), replica_set("small", 1, cpu="1")],
    )


def passing(*crash: Json) -> FinishedScenario:
    """A group is made for a pod, and deleted some time after the pod was."""
    return lived(
        *crash,
        {"loop": 2, "every": "10s"},
        {"schedule": True},
        {"delete": {"kind": "ReplicaSet", "name": "guest"}},
        {"loop": 6, "every": "40s"},
        options={"node-autoprovisioning": True, **FAST},
        objects=[replica_set("guest", 1, cpu="3500m")],
    )


def dedicated(value: str) -> Json:
    toleration = {"key": "dedicated", "operator": "Equal", "value": value, "effect": "NoSchedule"}
    return {"nodeSelector": {"dedicated": value}, "tolerations": [toleration]}


def swept(story: Callable[..., FinishedScenario]) -> list[tuple[int, FinishedScenario]]:
    """The story once for each write after which it can die."""
    found: list[Any] = []
    for writes in range(1, MOST_WRITES):
        ended = story(crash_after(writes))
        if ended.story.warnings:
            assert ".crash did not happen" in ended.story.warnings[0]
            return found
        found.append((writes, ended))
    raise AssertionError("is there an end to these writes?")


def kinds_of_nodes(ended: FinishedScenario) -> Counter[tuple[Any, ...]]:
    """By machine type and taints of their group: ids of created groups contain the time of their creation."""
    groups = ended.outcome["nodeGroups"]
    return Counter(
        (node["machineType"], *(taint["value"] for taint in groups[node["group"]]["taints"]))
        for node in ended.outcome["nodes"].values()
    )


def wanted(ended: FinishedScenario) -> int:
    return sum(group["target"] for group in ended.outcome["nodeGroups"].values())


def empty_made_groups(ended: FinishedScenario) -> list[str]:
    groups = ended.outcome["nodeGroups"].items()
    return [name for name, settings in groups if settings["autoprovisioned"] and settings["target"] == 0]


@pytest.mark.slow
def test_growth_comes_once_wherever_the_autoscaler_dies():
    undisturbed = growing()
    assert kinds_of_nodes(undisturbed) == {
        ("n1-standard-4",): 2,
        ("n1-standard-1", "red"): 1,
        ("n1-standard-2", "blue"): 1,
    }
    crashes = swept(growing)
    assert len(crashes) > len(undisturbed.calls("IncreaseSize", "Create")) == 5
    for writes, ended in crashes:
        assert kinds_of_nodes(ended) == kinds_of_nodes(undisturbed), f"after write {writes}"
        assert wanted(ended) == 4, f"after write {writes}"
        assert (ended.waiting_pods, ended.marked_nodes, empty_made_groups(ended)) == ([], [], []), f"write {writes}"


@pytest.mark.slow
def test_what_was_to_go_goes_and_nothing_else_wherever_the_autoscaler_dies():
    undisturbed = shrinking()
    (left,) = undisturbed.outcome["nodes"]
    crashes = swept(shrinking)
    assert len(crashes) > 6
    for writes, ended in crashes:
        assert list(ended.outcome["nodes"]) == [left], f"after write {writes}"
        assert wanted(ended) == 1, f"after write {writes}"
        assert (ended.waiting_pods, ended.marked_nodes) == ([], []), f"after write {writes}"


@pytest.mark.slow
def test_a_group_that_was_made_is_used_and_deleted_wherever_the_autoscaler_dies():
    assert len(passing().calls("Create", "IncreaseSize", "DeleteNodes", "Delete")) == 4
    for writes, ended in swept(passing):
        assert ended.outcome["nodes"] == {}, f"after write {writes}"
        assert ended.outcome["nodeGroups"] == {}, f"after write {writes}"
        took_effect = [call for call in ended.calls("IncreaseSize") if call["ok"] or call["message"] == NOBODY_WAITED]
        assert sum(call["arg"] for call in took_effect) == 1, f"after write {writes}"
