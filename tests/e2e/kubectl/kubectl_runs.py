"""kubectl as a process, the way the recorded commands were run: each with a directory and a cache of its own."""

from __future__ import annotations

import os
import shlex
import subprocess
from typing import TYPE_CHECKING, NamedTuple

from tests.e2e.timeouts import PATIENCE_S, speaking_in_time

if TYPE_CHECKING:
    from pathlib import Path


class KubectlResult(NamedTuple):
    exit_code: int | str
    stdout: str
    stderr: str


class Kubectl:
    """Runs commands in a directory of their own, with an empty discovery cache each."""

    def __init__(self, kubeconfig: Path, directory: Path) -> None:
        self._kubeconfig = kubeconfig
        self._directory = directory
        self._runs = 0

    def __call__(self, command: str, *, files: dict[str, str] | None = None, stdin: str = "") -> KubectlResult:
        done = subprocess.run(
            shlex.split(command),
            cwd=self._work_directory(files or {}),
            env=self._environment(),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        return KubectlResult(done.returncode, done.stdout, done.stderr)

    def watch(self, command: str, changes: list[str], *, lines: int) -> KubectlResult:
        """A command that ends only when it is stopped: `changes` are made while it runs, until `lines` have come."""
        process = subprocess.Popen(
            shlex.split(command),
            cwd=self._work_directory({}),
            env=self._environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        with speaking_in_time(process):
            # The header and what is there already: then it watches.
            seen = [process.stdout.readline() for _ in range(lines - len(changes))]
            for change in changes:
                assert self(change).exit_code == 0, change
            seen += [process.stdout.readline() for _ in changes]
        process.terminate()
        rest, stderr = process.communicate(timeout=PATIENCE_S)
        return KubectlResult("terminated", "".join(seen) + rest, stderr)

    def _work_directory(self, files: dict[str, str]) -> Path:
        self._runs += 1
        directory = self._directory / f"run-{self._runs}"
        directory.mkdir()
        for name, text in files.items():
            (directory / name).write_text(text)
        return directory

    def _environment(self) -> dict[str, str]:
        home = self._directory / f"home-{self._runs}"
        return {"PATH": os.environ["PATH"], "HOME": str(home), "KUBECONFIG": str(self._kubeconfig), "TZ": "UTC"}
