"""One sentence a turn, and whether there are turns at all."""

import pytest

from plimsoll.core.plans import Reason
from plimsoll.nodes.config.policy import Operation
from plimsoll.nodes.controller import health_timeouts
from plimsoll.nodes.loop_result import LoopResult, ScaleDownPart
from plimsoll.nodes.model.results import DeletedGroup, RemovalResult, ScaleUpPart
from plimsoll.nodes.reporting.log_line import build_log_line
from plimsoll.operator.health import Health
from tests.nodes.reporting.loop_results import (
    STOCKOUT,
    ended,
    grew,
    grown,
    growth,
    offer,
    planned,
    removal,
    shrinking,
    stuck,
    turn,
    unneeded,
    waiting,
)

LIMIT = Reason(code="CpuResourceLimit", message="max cluster cpu limit reached")
BAD = growth(offer("g"))
COOLDOWN = Reason(code="ScaleDownInCooldown", message="in cool-down")
NEEDED = Reason(code="NeededAgain", message="pods came")


@pytest.mark.parametrize(
    ("one", "sentence"),
    [
        (turn(), "nothing to do"),
        (grew(growth(offer("g", size=1), waiting("p"), nodes=2)), "scaled up g 1->3 for 2 pods"),
        (grew(growth(offer("n", exists=False), waiting("p"))), "scaled up new n 0->1 for 1 pod"),
        (
            turn(scale_up=ScaleUpPart(plan=planned(BAD), results=(grown(BAD, failure=STOCKOUT),))),
            "could not scale up g: no more machines of this type",
        ),
        (stuck(waiting("p"), reasons=(LIMIT,)), "1 pod left without a place: max cluster cpu limit reached"),
        (turn(scale_down=shrinking(removal("n1"), removal("n2", "p"))), "removing empty n1; draining n2"),
        (
            turn(scale_down=ScaleDownPart(unneeded=(unneeded("n1"),), skipped=COOLDOWN)),
            "1 unneeded node not gone yet, in cool-down",
        ),
        (turn(scale_down=shrinking(ended=(ended(removal("n1")),))), "removed n1"),
        (
            turn(scale_down=shrinking(ended=(ended(removal("n1"), RemovalResult.OVERTAKEN, reason=NEEDED),))),
            "n1 was not removed: pods came",
        ),
        (turn(groups_gone=(DeletedGroup(group="nap-1"),)), "deleted empty nap-1"),
        (turn(ended_early=Reason(code="CannotSee", message="no answer")), "stopped early, no answer"),
    ],
)
def test_a_turn_in_one_sentence(one: LoopResult, sentence: str):
    assert build_log_line(one) == sentence


def test_many_names_are_few_and_a_number():
    assert build_log_line(turn(scale_down=shrinking(*(removal(f"n{number}") for number in range(10))))) == (
        "removing empty n0, n1, n2 and 7 more"
    )


# ---- health


@pytest.fixture
def health() -> Health:
    return Health(health_timeouts(Operation()))


def test_who_does_not_lead_is_well(health: Health):
    assert health.problem(1e9) == ""


def test_a_start_without_success_has_twenty_minutes(health: Health):
    health.begin(0)
    for second in range(0, 1300, 10):
        health.loop_finished(second, is_success=False)
    assert health.problem(1200) == ""
    assert health.problem(1201) == "no success since the start 20m1s ago, more than 20m0s"


def test_ten_minutes_without_any_activity_are_too_many(health: Health):
    health.begin(0)
    health.loop_finished(5, is_success=True)
    assert health.problem(605) == ""
    assert health.problem(606) == "last activity 10m1s ago, more than 10m0s"


def test_fifteen_minutes_without_success_are_too_many(health: Health):
    health.begin(0)
    health.loop_finished(0, is_success=True)
    for second in range(10, 1000, 10):
        health.loop_started(second)
    assert health.problem(900) == ""
    assert health.problem(901) == "last success 15m1s ago, more than 15m0s"


def test_who_stopped_leading_is_well_again(health: Health):
    health.begin(0)
    health.end()
    assert health.problem(10_000) == ""


def test_a_turn_that_could_not_look_is_no_success():
    assert turn().is_success
    assert turn(ended_early=Reason(code="ClusterUnhealthy", message="x")).is_success
    assert not turn(ended_early=Reason(code="CannotSee", message="x")).is_success
