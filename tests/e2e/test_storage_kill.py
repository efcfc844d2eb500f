from __future__ import annotations

from typing import TYPE_CHECKING

from tests.local.apiserver.storage.crash_rounds import crash_rounds

if TYPE_CHECKING:
    from pathlib import Path


def test_fifty_kills_under_load_lose_nothing_that_was_acknowledged(tmp_path: Path):
    assert crash_rounds(tmp_path, seed=50, rounds=50) > 1_000
