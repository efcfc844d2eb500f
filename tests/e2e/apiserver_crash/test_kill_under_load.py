"""kill -9 under write load, through HTTPS, with watchers that resume; and the same for a clean stop.

What is checked after each restart stands in `ledger` and `watchers`; here is only that the rounds were worth it.
"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

from tests.e2e.apiserver_crash.rounds import ACKNOWLEDGED, rounds_of_load

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

# Fewer rounds might meet no kill between a commit and its answer.
ROUNDS = 50


def test_kills_lose_no_acknowledged_write_and_no_event(
    tmp_path: Path, record_testsuite_property: Callable[[str, object], None]
):
    figures = rounds_of_load(tmp_path, seed=3, ends=[signal.SIGKILL] * ROUNDS)
    for name, value in figures._asdict().items():
        record_testsuite_property(name, value)
    assert figures.acknowledged >= ROUNDS * ACKNOWLEDGED[0]
    assert figures.kept_unanswered, "no kill fell between a commit and its answer"
    assert figures.lost_unanswered, "no kill fell before a commit"


def test_a_clean_stop_under_load_answers_whatever_it_carries_out(tmp_path: Path):
    figures = rounds_of_load(tmp_path, seed=4, ends=[signal.SIGTERM] * 3)
    assert figures.kept_unanswered == 0
