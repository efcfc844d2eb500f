"""A file that cannot be read is named once, whichever command was given it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.cli.runner import REPOSITORY, plimsoll

if TYPE_CHECKING:
    from pathlib import Path

EXAMPLES = REPOSITORY / "examples" / "tidb"
COMMANDS = {
    "strategy": ("plan", "--strategy", "nope.json", "--snapshot", "snapshot.json"),
    "snapshot": ("plan", "--strategy", "strategy.json", "--snapshot", "nope.json"),
    "seed": ("name", "--seed", "nope.json"),
    "autoscaler": ("validate", "-f", "nope.json", "--tc", "tc.json"),
    "load": ("simulate", "--load", "nope.json", "-f", f"{EXAMPLES}/tac.yaml", "--tc", f"{EXAMPLES}/tc.yaml"),
}
SNAPSHOT = '{"time": "2026-01-01T00:00:00Z", "window_seconds": 60, "component": "tikv", "instances": []}'


@pytest.mark.parametrize("what", COMMANDS)
def test_it_is_named_once(tmp_path: Path, what: str) -> None:
    (tmp_path / "snapshot.json").write_text(SNAPSHOT)
    ended = plimsoll("tidb", *COMMANDS[what], cwd=tmp_path)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "nope.json: cannot be read" in ended.stderr
    assert ended.stderr.count("nope.json") == 1
