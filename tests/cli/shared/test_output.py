"""Tables and colours: plain text through a pipe, rich on a terminal unless `NO_COLOR` is set."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from plimsoll.cli.shared.output import Table, uses_colour

ROOT = Path(__file__).resolve().parents[3]
COMMAND = [sys.executable, "-m", "plimsoll", "plan", "-f", "examples/plans/mixed.yaml"]
ESCAPE = b"\x1b["


def environment(**variables: str) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if name not in {"NO_COLOR", "FORCE_COLOR"}}
    return {**inherited, "TERM": "xterm-256color", "COLUMNS": "200", **variables}


def run_on_terminal(*words: str, **variables: str) -> bytes:
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*COMMAND, *words], cwd=ROOT, stdout=theirs, stderr=subprocess.DEVNULL, env=environment(**variables)
    ):
        os.close(theirs)
        output = bytearray()
        while True:
            try:
                chunk = os.read(ours, 65_536)
            except OSError:  # Linux reports the closed terminal as an input/output error
                break
            if not chunk:
                break
            output += chunk
    os.close(ours)
    return bytes(output).replace(b"\r\n", b"\n")


def run_through_pipe() -> bytes:
    return subprocess.run(COMMAND, cwd=ROOT, capture_output=True, env=environment(), check=True).stdout


def test_a_terminal_gets_colour_and_a_pipe_or_no_color_gets_plain_text() -> None:
    plain = run_through_pipe()
    assert ESCAPE not in plain
    assert plain.startswith(b"NODE GROUP")
    assert run_on_terminal(NO_COLOR="1") == plain
    coloured = run_on_terminal()
    assert ESCAPE in coloured
    assert b"NODE GROUP" in coloured


@pytest.mark.parametrize("colour", [{}, {"TERM": "dumb"}])
def test_tables_fit_the_terminal(colour: dict[str, str]) -> None:
    printed = run_on_terminal("--explain", "default/report", COLUMNS="60", **colour).decode()
    table = re.sub(r"\x1b\[[0-9;]*m", "", printed).split("\n\n")[1].splitlines()
    assert table[0].split() == ["NODE", "GROUP", "MACHINE", "TYPE", "ZONE", "PER", "HOUR", "VERDICT"]
    assert max(map(len, table)) <= 60
    words = " ".join(line[table[0].index("VERDICT") :].strip() for line in table)
    assert "Insufficient cpu" in words


def test_without_rows_nothing_is_printed() -> None:
    assert list(Table(("NAME", "AGE"), []).format_lines()) == []


def test_columns_are_aligned_and_an_empty_line_follows() -> None:
    table = Table(("NAME", "AGE"), [("a-long-name", 1), ("b", 20)])
    assert list(table.format_lines()) == ["NAME          AGE", "a-long-name   1", "b             20", ""]


def test_a_file_has_no_colour(tmp_path: Path) -> None:
    assert not uses_colour(None)
    with (tmp_path / "output").open("w") as file:
        assert not uses_colour(file)
