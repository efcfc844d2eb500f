"""Turns of whole scenarios, recorded: what the running autoscaler planned is what its recording gives."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from plimsoll.core.plans import encode
from plimsoll.journal.recordings import About, read_recording, write_recording
from plimsoll.nodes.autoscaler import Autoscaler
from plimsoll.nodes.model.results import ScaleUpPart
from plimsoll.nodes.planning.scaledown.eligibility import ScaleDownState
from plimsoll.nodes.recording.replay import build_recording, encode_result, is_same, replay_recording
from plimsoll.nodes.reporting.plan_json import encode_plan
from plimsoll.simulation.files.scenario_reader import read_scenario
from plimsoll.simulation.runner import run_scenario

if TYPE_CHECKING:
    from plimsoll.journal.recordings import Recording
    from plimsoll.nodes.loop_result import LoopResult

SCENARIOS = Path(__file__).parents[2] / "scenarios"
STORIES = (
    "f01-stock-out-of-the-cheapest.yaml",
    "f09-consolidation.yaml",
    "n24a.yaml",
    "n28-compatible.yaml",
    "n30.yaml",
    "n36-priority.yaml",
    "n36-least-waste.yaml",
    "n39.yaml",
    "n39-not-safe.yaml",
)


def turns_of(story: str, monkeypatch: pytest.MonkeyPatch) -> list[LoopResult]:
    seen: list[LoopResult] = []
    run_once = Autoscaler.run_once

    async def watched(autoscaler: Autoscaler) -> LoopResult:
        turn = await run_once(autoscaler)
        seen.append(turn)
        return turn

    monkeypatch.setattr(Autoscaler, "run_once", watched)
    file = SCENARIOS / story
    run_scenario(read_scenario(file.read_bytes(), source=story))
    return [turn for turn in seen if turn.snapshot is not None]


def recorded(turn: LoopResult, salt: str | None) -> Recording:
    assert turn.snapshot is not None
    about = About(subsystem="nodes", made_at=turn.at, plimsoll="0")
    known = turn.scale_down.known or ScaleDownState()
    return read_recording(write_recording(build_recording(turn.snapshot, turn.policy, known, about=about, salt=salt)))


@pytest.mark.parametrize("story", STORIES)
def test_every_turn_is_planned_again_as_it_was(story: str, monkeypatch: pytest.MonkeyPatch):
    turns = turns_of(story, monkeypatch)
    planned = [turn for turn in turns if turn.scale_up.plan != ScaleUpPart().plan]
    looked_at = [turn for turn in turns if turn.scale_down.known is not None]
    assert planned or looked_at, "the story has nothing to compare"
    for turn in planned:
        again = replay_recording(recorded(turn, None)).scale_up.plan
        assert encode(encode_plan(again)) == encode(encode_plan(turn.scale_up.plan))  # type: ignore[arg-type]
    for turn in looked_at:
        unneeded = replay_recording(recorded(turn, None)).scale_down.unneeded
        assert [unneeded_node.node for unneeded_node in unneeded] == [node.node for node in turn.scale_down.unneeded]


@pytest.mark.parametrize("story", STORIES)
def test_every_turn_can_be_replayed_without_its_names(story: str, monkeypatch: pytest.MonkeyPatch):
    for turn in turns_of(story, monkeypatch):
        recording = recorded(turn, "salt")
        assert is_same(recording.get_part("plan"), encode_result(replay_recording(recording)))
