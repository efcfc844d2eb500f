"""The log line of a loop iteration."""

import pytest

from plimsoll.core.plans import Reason
from plimsoll.nodes.loop_result import LoopResult, ScaleDownPart
from plimsoll.nodes.model.results import DeletedGroup, RemovalResult, ScaleUpPart
from plimsoll.nodes.reporting.log_line import build_log_line
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
        (turn(scale_down=shrinking(finished=(ended(removal("n1")),))), "removed n1"),
        (
            turn(scale_down=shrinking(finished=(ended(removal("n1"), RemovalResult.OVERTAKEN, reason=NEEDED),))),
            "n1 was not removed: pods came",
        ),
        (turn(deleted_groups=(DeletedGroup(group="nap-1"),)), "deleted empty nap-1"),
        (turn(ended_early=Reason(code="CannotSee", message="no answer")), "stopped early, no answer"),
    ],
)
def test_a_turn_in_one_sentence(one: LoopResult, sentence: str):
    assert build_log_line(one) == sentence


def test_many_names_are_few_and_a_number():
    assert build_log_line(turn(scale_down=shrinking(*(removal(f"n{number}") for number in range(10))))) == (
        "removing empty n0, n1, n2 and 7 more"
    )


def test_a_turn_that_could_not_look_is_no_success():
    assert turn().is_success
    assert turn(ended_early=Reason(code="ClusterUnhealthy", message="x")).is_success
    assert not turn(ended_early=Reason(code="CannotSee", message="x")).is_success
