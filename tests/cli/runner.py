"""Runs the command line as a user does, in this process: only the start of Python is saved."""

from __future__ import annotations

import io
import os
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple
from unittest import mock

from plimsoll.cli.main import main

REPOSITORY = Path(__file__).parents[2]


class CommandResult(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


def plimsoll(*arguments: str | Path, stdin: str = "", cwd: Path = REPOSITORY) -> CommandResult:
    out, err, given = io.StringIO(), io.StringIO(), io.TextIOWrapper(io.BytesIO(stdin.encode()))
    with (
        mock.patch.object(sys, "stdin", given),
        mock.patch.dict(os.environ, {"COLUMNS": "120"}),
        redirect_stdout(out),
        redirect_stderr(err),
        chdir(cwd),
    ):
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as ended:
            return CommandResult(int(ended.code or 0), out.getvalue(), err.getvalue())
