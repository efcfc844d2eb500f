from __future__ import annotations

from typing import TYPE_CHECKING

from tests.local.apiserver.storage.drivers.crash_rounds import crash_rounds

if TYPE_CHECKING:
    from pathlib import Path


def test_five_kills_under_load_lose_nothing_that_was_acknowledged(tmp_path: Path):
    assert crash_rounds(tmp_path, seed=5, rounds=5) > 100
