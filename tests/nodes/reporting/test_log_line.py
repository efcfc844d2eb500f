"""The log line of a loop iteration."""

import pytest

from plimsoll.core.plans import Reason
from plimsoll.nodes.loop_result import LoopResult, ScaleDownPart
from plimsoll.nodes.model.results import DeletedGroup, RemovalResult, ScaleUpPart
from plimsoll.nodes.reporting.log_line import build_log_line
from tests.nodes.reporting.loop_results import (
    STOCKOUT,
    ended,
    loop_result,
    option,
    planned,
    removal,
    scale_down,
    scale_up,
    scale_up_result,
    scaled_up_loop,
    unneeded,
    unschedulable_loop,
    waiting,
)

LIMIT = Reason(code="CpuResourceLimit", message="max cluster cpu limit reached")
BAD = scale_up(option("g"))
COOLDOWN = Reason(code="ScaleDownInCooldown", message="in cooldown")
NEEDED = Reason(code="NeededAgain", message="pods came")


@pytest.mark.parametrize(
    ("one", "sentence"),
    [
        (loop_result(), "nothing to do"),
        (
            loop_result(scale_down=ScaleDownPart(postponed=("n1", "n2"))),
            "2 nodes not looked at, which come first in the next turn",
        ),
        (scaled_up_loop(scale_up(option("g", size=1), waiting("p"), nodes=2)), "scaled up g 1->3 for 2 pods"),
        (scaled_up_loop(scale_up(option("n", exists=False), waiting("p"))), "scaled up new n 0->1 for 1 pod"),
        (
            loop_result(scale_up=ScaleUpPart(plan=planned(BAD), results=(scale_up_result(BAD, failure=STOCKOUT),))),
            "could not scale up g: no more machines of this type",
        ),
        (
            unschedulable_loop(waiting("p"), reasons=(LIMIT,)),
            "1 pod unschedulable: max cluster cpu limit reached",
        ),
        (loop_result(scale_down=scale_down(removal("n1"), removal("n2", "p"))), "removing empty n1; draining n2"),
        (
            loop_result(scale_down=ScaleDownPart(unneeded=(unneeded("n1"),), skipped=COOLDOWN)),
            "1 unneeded node not gone yet, in cooldown",
        ),
        (loop_result(scale_down=scale_down(finished=(ended(removal("n1")),))), "removed n1"),
        (
            loop_result(
                scale_down=scale_down(finished=(ended(removal("n1"), RemovalResult.OVERTAKEN, reason=NEEDED),))
            ),
            "n1 was not removed: pods came",
        ),
        (loop_result(deleted_groups=(DeletedGroup(group="nap-1"),)), "deleted empty nap-1"),
        (loop_result(ended_early=Reason(code="CannotSee", message="no answer")), "stopped early, no answer"),
    ],
)
def test_a_turn_in_one_sentence(one: LoopResult, sentence: str):
    assert build_log_line(one) == sentence


def test_many_names_are_few_and_a_number():
    assert build_log_line(loop_result(scale_down=scale_down(*(removal(f"n{number}") for number in range(10))))) == (
        "removing empty n0, n1, n2 and 7 more"
    )


def test_a_turn_that_could_not_look_is_no_success():
    assert loop_result().is_success
    assert loop_result(ended_early=Reason(code="ClusterUnhealthy", message="x")).is_success
    assert not loop_result(ended_early=Reason(code="CannotSee", message="x")).is_success
