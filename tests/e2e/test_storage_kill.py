from __future__ import annotations

from typing import TYPE_CHECKING

from tests.effort import share_of
from tests.local.apiserver.storage.drivers.crash_rounds import crash_rounds

if TYPE_CHECKING:
    from pathlib import Path

ROUNDS = share_of(50)


def test_kills_under_load_lose_nothing_that_was_acknowledged(tmp_path: Path):
    assert crash_rounds(tmp_path, seed=50, rounds=ROUNDS) > 20 * ROUNDS
