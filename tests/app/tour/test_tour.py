"""The tour proves its story: it ends with 0 only if every step happened, and a step that cannot happen is named."""

from __future__ import annotations

import json

import pytest

from plimsoll.cli.commands.tour import Fault
from tests.cli.runner import plimsoll

STEPS = (
    *("first-cluster", "gang", "stock-out", "tidb-out", "tidb-in", "first-kafka", "second-kafka", "spare-cluster"),
    *("grow", "shrink", "second-look", "last-cluster"),
)


def test_the_whole_story_happens_in_virtual_time():
    done = plimsoll("tour", "--fast", "-o", "json")
    assert done.returncode == 0, done.stderr
    steps = json.loads(done.stdout)["steps"]
    assert [step["name"] for step in steps] == list(STEPS)
    assert all(step["happened"] for step in steps)
    by_name = {step["name"]: step for step in steps}
    # Three brokers more need three machines; the gangs' machines came and went.
    assert by_name["grow"]["machinesAdded"] == 3
    assert by_name["shrink"]["machinesRemoved"] == 3
    assert by_name["gang"]["machinesAdded"] == by_name["gang"]["machinesRemoved"] > 0
    assert all(step["costPerHour"] >= step["lowerBoundPerHour"] >= 0 for step in steps)
    assert all(step["decisions"] for step in steps)
    codes = {decision["code"] for step in steps for decision in step["decisions"]}
    assert {"BiggestDoesNotFit", "FirstWithRoom", "NoRoom", "ScaleUpWouldFollow", "CapacityNeeded"} <= codes


@pytest.mark.parametrize(
    ("fault", "step"), [(Fault.NO_KAFKA_OPERATOR, "first-cluster"), (Fault.ENDLESS_STOCK_OUT, "stock-out")]
)
@pytest.mark.slow
def test_a_broken_story_ends_with_1_and_the_name_of_the_step(fault: Fault, step: str):
    done = plimsoll("tour", "--fast", "--break", fault)
    assert done.returncode == 1
    assert f"failed  {step}: " in done.stdout
    assert f"The tour ended at step {step}: " in done.stdout
