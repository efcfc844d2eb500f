"""The autoscaler dies after every single write, or hears nothing of what it asked for, while it serves a request.

Two groups that exist and one that is made grow for one atomic request: in the end all of them have, or none has, and
nothing grew twice.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.local.cloud.faults.call_log import NOBODY_WAITED
from tests.nodes.autoscaler.loop_scenarios import containers, crash_after, group
from tests.nodes.requests.request_scenarios import (
    CHECK,
    conditions,
    faults,
    of_request,
    request,
    served,
    targets,
    template,
)

if TYPE_CHECKING:
    from tests.nodes.autoscaler.loop_scenarios import FinishedScenario, Json

MOST_WRITES = 60
GROWTH = {"a": 2, "b": 1, "made": 1}
BEGAN = {"a": 1, "b": 0}


def three_groups(*before: Json, loops: int = 6, **options: Any) -> FinishedScenario:
    """`a` and `b` are chosen by a label, and a third group has to be made for the pods of the last pod set."""
    return served(
        *before,
        {"loop": loops, "every": "10s"},
        options={"node-autoprovisioning": True, "nodes": ["0:10:a", "0:10:b"], **options},
        nodeGroups=[
            group("a", target=1, template={"labels": {"pool": "a"}}),
            group("b", target=0, template={"labels": {"pool": "b"}}),
        ],
        objects=[
            template("for-a", cpu="3500m", nodeSelector={"pool": "a"}),
            template("for-b", cpu="3500m", nodeSelector={"pool": "b"}),
            template("for-made", cpu="7500m", nodeSelector={"pool": "c"}),
            request("r", {"for-a": 3, "for-b": 1, "for-made": 1}),
        ],
    )


def took_effect(ended: FinishedScenario, *names: str) -> list[Json]:
    return [call for call in ended.calls(*names) if call["ok"] or call.get("message") == NOBODY_WAITED]


def kinds(ended: FinishedScenario) -> Counter[str]:
    """Targets; groups that were made go by one name, since their ids contain the time."""
    return Counter({name if name in "ab" else "made": 0 for name in targets(ended)}) + Counter(
        name if name in "ab" else "made" for name, size in targets(ended).items() for _ in range(size)
    )


def assert_whole(ended: FinishedScenario, where: str) -> None:
    assert kinds(ended) == {"a": 3, "b": 1, "made": 1}, where
    assert conditions(ended)["Provisioned"] == ("True", "CapacityIsProvisioned"), where
    assert "intent" not in of_request(ended)["details"], where
    assert len(ended.outcome["nodes"]) == 5, where


def assert_nothing(ended: FinishedScenario, where: str) -> None:
    assert {name: size for name, size in targets(ended).items() if size} == {"a": 1}, where
    assert set(targets(ended)) == {"a", "b"}, where
    assert conditions(ended)["Provisioned"] == ("False", "CapacityIsNotFound"), where
    assert "intent" not in of_request(ended)["details"], where
    assert len(ended.outcome["nodes"]) == 1, where


def test_all_groups_grow_for_a_request_with_one_call_each():
    ended = three_groups()
    assert_whole(ended, "undisturbed")
    assert Counter(call["call"] for call in ended.outcome["providerCalls"]) == {"Create": 1, "IncreaseSize": 3}
    assert of_request(ended)["details"]["attempts"] == "1"


@pytest.mark.slow
def test_a_request_gets_its_nodes_once_wherever_the_autoscaler_dies():
    for writes in range(1, MOST_WRITES):
        ended = three_groups(crash_after(writes))
        if ended.story.warnings:
            assert writes > 5
            return
        assert_whole(ended, f"after write {writes}")
        assert len(took_effect(ended, "IncreaseSize")) == 3, f"after write {writes}"
    raise AssertionError("is there an end to these writes?")


FAILING = {"name": "no", "kind": "Fail", "call": "IncreaseSize", "group": "b", "message": "no quota"}


def test_what_was_added_is_taken_back_when_one_group_fails():
    ended = three_groups(faults(FAILING), loops=2)
    assert_nothing(ended, "undisturbed")
    details = of_request(ended)["details"]
    assert details["attempts"] == "1"
    assert "no quota" in ended.outcome["requests"]["default/r"]["conditions"][-1]["message"]


@pytest.mark.slow
def test_everything_is_taken_back_wherever_the_autoscaler_dies_on_the_way():
    for writes in range(1, MOST_WRITES):
        ended = three_groups(faults(FAILING), crash_after(writes))
        if ended.story.warnings:
            assert writes > 6
            return
        assert_nothing(ended, f"after write {writes}")
    raise AssertionError("is there an end to these writes?")


@pytest.mark.parametrize("call", ["IncreaseSize", "Create"])
@pytest.mark.parametrize("times", [1, 2, 3])
def test_an_answer_that_is_lost_causes_no_second_scale_up(call: str, times: int):
    lost = {"name": "lost", "kind": "TimeOut", "call": call, "seconds": 1, "times": times}
    ended = three_groups(faults(lost))
    assert_whole(ended, f"{times} answers to {call} lost")


@pytest.mark.slow
def test_lost_answers_and_a_crash_wherever_it_comes():
    lost = {"name": "lost", "kind": "TimeOut", "call": "IncreaseSize", "seconds": 1, "times": 2}
    for writes in range(1, MOST_WRITES):
        ended = three_groups(faults(lost), crash_after(writes))
        if ended.story.warnings:
            assert writes > 5
            return
        assert_whole(ended, f"after write {writes}")
    raise AssertionError("is there an end to these writes?")


def test_a_lost_answer_beside_a_failure_leaves_nothing():
    lost = {"name": "lost", "kind": "TimeOut", "call": "IncreaseSize", "seconds": 1, "group": "a"}
    assert_nothing(three_groups(faults(lost, FAILING)), "a lost, b failed")


def freed(*crash: Json) -> FinishedScenario:
    """A check and a scale-up wait for room; then two nodes become free, one of them by a request that is cancelled."""
    return served(
        {"loop": 3, "every": "10s"},
        {"delete": {"kind": "Pod", "name": "p", "namespace": "default"}},
        {"delete": {"kind": "ProvisioningRequest", "name": "first", "namespace": "default"}},
        *crash,
        {"loop": 7, "every": "10s"},
        nodeGroups=[group("g", target=2, max=2)],
        objects=[
            template("t", cpu="900m"),
            pod_on("g-0"),
            request("first", {"t": 4}),
            request("second", {"t": 4}),
            request("third", {"t": 4}, kind=CHECK),
        ],
    )


def pod_on(node: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "default"},
        "spec": {"nodeName": node, **containers("3500m")},
        "status": {"phase": "Running"},
    }


def test_freed_room_is_promised_once_wherever_the_autoscaler_dies():
    """Both get room, and never the same. A new process keeps the back-off of the scale-up, which lasts one minute."""
    for writes in range(1, MOST_WRITES):
        ended = freed(crash_after(writes))
        assert [conditions(ended, name)["Provisioned"] for name in ("second", "third")] == [
            ("True", "CapacityIsFound"),
            ("True", "CapacityIsFound"),
        ], f"after write {writes}"
        assert ended.calls("IncreaseSize") == [], f"after write {writes}"
        if ended.story.warnings:
            assert writes > 2
            return
    raise AssertionError("is there an end to these writes?")
