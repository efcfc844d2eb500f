"""What stands beside the status, as annotations of its ConfigMap: the last turn in a sentence, the options in force.

Readers of Cluster Autoscaler's status read the document alone; `plimsoll nodes status` and `configure` read these too.
Pure.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from plimsoll.nodes.policy_flags import flags_of_policy
from plimsoll.nodes.telling.sentences import sentence_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.nodes.turns import Turn

LAST_TURN: Final = "plimsoll.io/last-turn"
OPTIONS: Final = "plimsoll.io/options"
_LONGEST_SENTENCE: Final = 2_000
_LONGEST_OPTIONS: Final = 64 * 1024
"""All annotations of an object together may have four times as much."""
_PRIVATE: Final = ("kubeconfig", "cloud-config")
"""Paths on the machine it runs on: of no use to others."""


def notes_of(turn: Turn) -> dict[str, str]:
    sentence = sentence_of(turn)
    notes = {LAST_TURN: sentence if len(sentence) <= _LONGEST_SENTENCE else f"{sentence[: _LONGEST_SENTENCE - 1]}…"}
    in_force = {name: value for name, value in flags_of_policy(turn.policy).items() if name not in _PRIVATE}
    written = json.dumps(in_force, ensure_ascii=False)
    # Said empty rather than left as it was: options of an earlier turn are not in force.
    notes[OPTIONS] = written if len(written.encode()) <= _LONGEST_OPTIONS else ""
    return notes


def options_in(annotations: Mapping[str, str]) -> dict[str, Any] | None:
    """The options in force; None where nobody said, or somebody wrote over it."""
    try:
        found = json.loads(annotations.get(OPTIONS, ""))
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
