"""What an autoscaler that runs by itself did, in the `loops` of a live scenario."""

from __future__ import annotations

from typing import Any

from plimsoll.simulation.worlds.loop_log import LoopLog
from tests.simulation.builders import group, outcome, template

PODS = {"name": "web", "count": 6, "template": template()}


def lived(*steps: dict[str, Any]) -> list[dict[str, Any]]:
    found = outcome(*steps, world="live", nodeGroups=[group(bootSeconds=20)], pods=[PODS])
    loops: list[dict[str, Any]] = found["loops"]
    return loops


def test_the_turn_that_scaled_up_reports_its_plan_and_its_time():
    loops = lived({"advance": "1m"})

    growing = [loop for loop in loops if loop["scaleUp"]["plan"]]
    assert [(loop["scaleUp"]["plan"][0]["from"], loop["scaleUp"]["plan"][0]["to"]) for loop in growing] == [(0, 2)]
    assert "2025-01-01T00:00:00Z" < growing[0]["time"] <= "2025-01-01T00:00:20Z"
    assert [loop["time"] for loop in loops] == sorted(loop["time"] for loop in loops)


def test_turns_that_say_the_same_are_one_entry():
    loops = lived({"advance": "1h"})

    assert len(loops) < 10
    assert sum(loop.get("turns", 1) for loop in loops) > 300
    assert loops[-1]["last"] > "2025-01-01T00:59:40"


def test_loops_of_a_process_that_crashed_stay_reported():
    crash = {"crash": {"component": "cluster-autoscaler"}}
    before = lived({"advance": "1m"})
    after = lived({"advance": "1m"}, crash, {"advance": "1m"})

    assert after[: len(before) - 1] == before[:-1]
    assert sum(loop.get("turns", 1) for loop in after) > sum(loop.get("turns", 1) for loop in before)


def test_only_the_latest_entries_are_kept():
    log = LoopLog(most=2)
    for number in range(4):
        log.add(f"t{number}", {"said": number})
    log.add("t4", {"said": 3})

    assert log.list_entries() == [{"time": "t2", "said": 2}, {"time": "t3", "said": 3, "turns": 2, "last": "t4"}]


def test_what_was_given_out_does_not_change_any_more():
    log = LoopLog()
    log.add("t0", {"said": 0})
    given = log.list_entries()
    log.add("t1", {"said": 0})

    assert given == [{"time": "t0", "said": 0}]
