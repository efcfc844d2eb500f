"""`plimsoll why` about pods and their workloads, from the result of a loop to the command's output."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from msgspec import structs

from plimsoll.core.plans import Reason
from plimsoll.journal.journal_file import JOURNAL_FILE, JournalFile
from plimsoll.nodes.model.results import ScaleUpPart
from plimsoll.nodes.reporting.journal.plan_entries import build_plan_and_outcomes
from tests.cli.runner import plimsoll
from tests.nodes.reporting.loop_results import (
    STOCKOUT,
    group_reason,
    loop_result,
    option,
    planned,
    replicas,
    scale_up,
    scale_up_result,
    unschedulable_loop,
    waiting,
)

if TYPE_CHECKING:
    from pathlib import Path

    from plimsoll.nodes.loop_result import LoopResult
    from tests.golden.reviewed_sentences import ReviewedSentences

PAUSED = Reason(code="Paused", message="paused: change freeze")


def why(directory: Path, loop: LoopResult, thing: str) -> list[str]:
    journal = JournalFile(directory / JOURNAL_FILE)
    journal.append(*build_plan_and_outcomes(loop))
    journal.close()
    ended = plimsoll("why", thing, "--data", directory)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.splitlines()[2:]


def test_a_paused_autoscaler_answers_that_it_is_held_back(tmp_path: Path, reviewed: ReviewedSentences):
    grown = scale_up(option("g", size=1), waiting("p"))
    part = ScaleUpPart(plan=planned(grown), results=(scale_up_result(grown, held_back=PAUSED),))
    reviewed(*why(tmp_path, loop_result(waiting("p"), scale_up=part), "pod/p"))


def test_a_scale_up_that_failed_is_the_answer_too(tmp_path: Path):
    grown = scale_up(option("g", size=1), waiting("p"))
    part = ScaleUpPart(plan=planned(grown), results=(scale_up_result(grown, failure=STOCKOUT),))
    [_, reason] = why(tmp_path, loop_result(waiting("p"), scale_up=part), "pod/p")
    assert reason.startswith("    the scale-up failed: ")


def test_pods_are_found_by_the_workload_that_owns_them(tmp_path: Path, reviewed: ReviewedSentences):
    reason = group_reason("Unschedulable", "Insufficient cpu", "g")
    loop = unschedulable_loop(*replicas("web", 3), waiting("alone"), reasons=(reason,))
    reviewed(*why(tmp_path, loop, "rs/web"))


def test_a_label_that_no_node_carries_yet_and_a_zone_that_cannot_be_had_are_announced(
    tmp_path: Path, reviewed: ReviewedSentences
):
    causes = (
        Reason(code="NewNodeLabel", message="no node carries team=red yet"),
        Reason(code="ZoneNotAvailable", message="zone c cannot be had"),
        Reason(code="NewGroupNeeded", message="max size reached (g)"),
    )
    plain = scale_up(option("g", size=1), waiting("p"))
    grown = replace(plain, reason=structs.replace(plain.reason, because=causes))
    part = ScaleUpPart(plan=planned(grown), results=(scale_up_result(grown),))
    reviewed(*why(tmp_path, loop_result(waiting("p"), scale_up=part), "pod/p"))
