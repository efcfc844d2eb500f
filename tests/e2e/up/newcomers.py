"""A newcomer who follows a page: types its commands into a shell, and compares what is printed with the page."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from tests.e2e.timeouts import PATIENCE_S, speaking_in_time
from tests.e2e.up.documented_commands import DocumentedCommand, read_commands
from tests.e2e.up.up_processes import REPOSITORY, CommandResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

FAILS = ("kubectl drain workers-0 --timeout=10s", "kubectl taint nodes --all ")
"""The page says that these fail."""
READS = ("kubectl get", "kubectl describe", "plimsoll why", "plimsoll nodes status", "plimsoll kafka status")
"""What they print changes until the cluster is as the page says."""
POD = re.compile(r"\b(web|big)-[0-9a-f]{8,10}-[a-z0-9]{5}\b")


class StartedCommand(NamedTuple):
    """A command that goes on printing."""

    process: subprocess.Popen[str]
    printed: list[str]

    def read_until(self, is_it: Callable[[str], bool]) -> str:
        """The first line that is it; lines before are kept."""
        assert self.process.stdout is not None
        with speaking_in_time(self.process):
            for line in self.process.stdout:
                self.printed.append(line)
                if is_it(line):
                    return line
        raise AssertionError(f"it ended or went silent: {self.printed}")


class Newcomer:
    """Types commands into a shell in a folder that looks like the repository."""

    def __init__(self, folder: Path, data: Path) -> None:
        self._folder = folder
        self._pods: list[str] = []
        """The pods that the last list showed, instead of those of the page."""
        binaries = folder / "bin"
        binaries.mkdir(parents=True)
        (binaries / "plimsoll").write_text(f'#!/bin/sh\nexec {sys.executable} -m plimsoll "$@"\n')
        (binaries / "plimsoll").chmod(0o755)
        for name in (".plimsoll", "cluster"):
            (folder / name).symlink_to(data)
        for name in ("examples", "deploy"):
            (folder / name).symlink_to(REPOSITORY / name)
        self._environment = {
            **os.environ,
            "PATH": f"{binaries}:{os.environ['PATH']}",
            "PYTHONPATH": str(REPOSITORY / "src"),
            "KUBECONFIG": str(data / "kubeconfig"),
            "HOME": str(folder),
        }

    def follow(self, page: str, *, heading: str = "") -> int:
        """Type every command of the page; how many there were."""
        commands = [documented for documented in read_commands(page, heading=heading) if is_typed(documented.command)]
        for documented in commands:
            self.compare(documented)
        return len(commands)

    def compare(self, documented: DocumentedCommand, *, patience_s: float = PATIENCE_S) -> None:
        command = self._name_pods(documented.command.replace(".venv/bin/", ""))
        # The cluster is at work: how many machines boot at the moment of a list is not what the page is about.
        counts = "get nodegroups" not in command
        until_s = time.monotonic() + patience_s
        while True:
            answer = self.run(command)
            missing = documented.find_missing(answer.out + answer.err, counts=counts)
            if not missing or not command.startswith(READS) or time.monotonic() > until_s:
                break
            time.sleep(0.3)
        assert not missing, f"{command}: not printed: {missing}; printed: {answer.out}{answer.err}"
        assert (answer.code != 0) == command.startswith(FAILS), f"{command}: {answer}"

    def run(self, command: str) -> CommandResult:
        ended = subprocess.run(
            ["bash", "-c", command],
            cwd=self._folder,
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=2 * PATIENCE_S,
        )
        if command.startswith("kubectl get pods"):
            self._pods = [match[0] for match in POD.finditer(ended.stdout)]
        return CommandResult(ended.returncode, ended.stdout, ended.stderr)

    def write(self, name: str, text: str) -> None:
        (self._folder / name).write_text(text)

    @contextmanager
    def started(self, command: str) -> Iterator[StartedCommand]:
        """A command that runs until Ctrl-C; what it prints may be no traceback."""
        process = subprocess.Popen(
            ["bash", "-c", f"exec {command}"],
            cwd=self._folder,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            preexec_fn=_heed_interrupts,  # noqa: PLW1509 - the child only resets a signal
        )
        printed: list[str] = []
        try:
            yield StartedCommand(process, printed)
        finally:
            process.send_signal(signal.SIGINT)
            rest, _ = process.communicate(timeout=PATIENCE_S)
        assert "Traceback" not in "".join((*printed, rest)), f"{command}: {printed}{rest}"

    def _name_pods(self, command: str) -> str:
        return POD.sub(lambda _match: self._pods[0], command)


def _heed_interrupts() -> None:
    """A suite that runs in the background of a shell ignores Ctrl-C, and its children would too."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def is_typed(command: str) -> bool:
    return not command.startswith(("make ", "export ", "…")) and "--address" not in command


def read_page(name: str) -> str:
    return (REPOSITORY / name).read_text()
