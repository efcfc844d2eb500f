"""Recordings that an earlier version made are replayed: the same plan, but for sentences that were reworded since."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from plimsoll.journal.recordings import read_recording
from plimsoll.nodes.recording.replay import encode_result, find_differences, replay_recording

RECORDINGS = sorted((Path(__file__).parents[2] / "fixtures" / "recordings").glob("*.json.gz"))
SENTENCES = re.compile(r"\.(message|what|reason|reasons\[\d+\])$")
"""Paths whose values are sentences of ours."""
ADDED = (".concerns", ".facts.counts")
"""Ends of the paths that later versions add: the workloads of pods, and how many nodes have which obstacle."""
ANNOUNCED = "NewNodeLabel"
"""The code of a reason that later versions add to groups with labels that no node carries yet."""


@pytest.mark.parametrize("file", RECORDINGS, ids=lambda file: file.name.removesuffix(".json.gz"))
def test_the_plan_of_an_old_recording_is_made_again(file: Path):
    recording = read_recording(file.read_bytes())
    planned = encode_result(replay_recording(recording))
    changed = [
        path
        for path, _, after in find_differences(recording.get_part("plan"), planned)
        if not SENTENCES.search(path) and not path.endswith(ADDED) and ANNOUNCED not in str(after)
    ]
    assert not changed
