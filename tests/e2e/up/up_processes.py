"""`plimsoll up` as a process of its own, and kubectl for it, both as a person uses them."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

import pytest

from tests.e2e.timeouts import PATIENCE_S, speaking_in_time

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

REPOSITORY = Path(__file__).parents[3]
_LAST_WORDS = "Ctrl-C stops it."


class CommandResult(NamedTuple):
    """What a command answered."""

    code: int
    out: str
    err: str


class UpProcess(NamedTuple):
    """One that has shown its first screen."""

    process: subprocess.Popen[str]
    data: Path
    screen: str
    ready_after_s: float
    held_up_s: float
    """How much of that it would have worked, had the machine not been busy with something else."""
    errors: Path

    def kubectl(self, *arguments: str, code: int | None = 0, stdin: str = "") -> str:
        """What it prints; its exit code must be the given one, None for any."""
        stated = self.stated(*arguments, stdin=stdin)
        assert code is None or stated.code == code, f"kubectl {' '.join(arguments)}: {stated}"
        return stated.out

    def stated(self, *arguments: str, stdin: str = "") -> CommandResult:
        ended = subprocess.run(
            ["kubectl", *arguments],
            env={**os.environ, "KUBECONFIG": str(self.data / "kubeconfig"), "HOME": str(self.data)},
            cwd=REPOSITORY,
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )
        return CommandResult(ended.returncode, ended.stdout, ended.stderr)

    def objects(self, *arguments: str) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = json.loads(self.kubectl("get", *arguments, "-o", "json"))["items"]
        return items

    def until(self, is_so: Callable[[], Any], what: str) -> None:
        """Asks again and again, as a person would."""
        until_s = time.monotonic() + PATIENCE_S
        while not is_so():
            assert time.monotonic() < until_s, f"not within {PATIENCE_S} s: {what}"
            time.sleep(0.2)

    def stop(self, number: signal.Signals = signal.SIGINT) -> int:
        self.process.send_signal(number)
        return self.process.wait(timeout=PATIENCE_S)

    def die(self) -> None:
        """At this very moment, without a chance to tidy up."""
        self.process.kill()
        self.process.wait(timeout=PATIENCE_S)


def needs_kubectl() -> None:
    if shutil.which("kubectl") is None:
        pytest.skip("NOT TESTED: there is no kubectl on PATH", allow_module_level=True)


_WITHOUT_FLEET = ("--only", "nodes", "--only", "tidb", "--only", "kafka")


def command(data: Path, *options: str) -> list[str]:
    """Without a fleet, unless the options say which parts run: the tests of one cluster need no second one."""
    if "--only" not in options:
        options = (*_WITHOUT_FLEET, *options)
    return [sys.executable, "-m", "plimsoll", "up", "--data", str(data), *options]


@contextmanager
def running(data: Path, *options: str) -> Iterator[UpProcess]:
    """On free ports; killed at the end if it still runs, and none of its words may be a traceback."""
    with running_command(command(data, "--port-base", "0", *options), data) as started:
        yield started


@contextmanager
def running_command(words: list[str], data: Path) -> Iterator[UpProcess]:
    """A command that runs a cluster until Ctrl-C; see `running`."""
    errors = data.with_name(f"{data.name}.stderr")
    began_s = time.monotonic()
    with errors.open("a") as sink:
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=sink, text=True)
    try:
        assert process.stdout is not None
        screen = _first_screen(process, process.stdout)  # type: ignore[arg-type]
        assert screen.endswith(f"{_LAST_WORDS}\n"), errors.read_text()[-2000:]
        yield UpProcess(process, data, screen, time.monotonic() - began_s, _held_up_s(process.pid), errors)
    finally:
        process.kill()
        process.communicate()
    assert "Traceback" not in errors.read_text()


def _first_screen(process: subprocess.Popen[str], out: TextIO) -> str:
    lines: list[str] = []
    with speaking_in_time(process):
        for line in out:
            lines.append(line)
            if line.strip().endswith(_LAST_WORDS):
                break
    return "".join(lines)


def _held_up_s(pid: int) -> float:
    """How long its main thread was ready to run and did not; systems that do not count it have no such time."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9
    except FileNotFoundError:
        return 0.0


def named(text: str, pattern: str) -> str:
    found = re.search(pattern, text)
    assert found, text
    return found[1]
