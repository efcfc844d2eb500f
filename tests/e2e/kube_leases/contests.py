"""Contender processes around one Lease of a real server, and what their journal shows. Benchmarks use it, too.

A contest has a namespace of its own, which goes with it: nothing is left on a cluster that was lent to us.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
import uuid
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tests.e2e.kube.clusters import access_of, cluster_kubeconfig, delete_namespace, make_namespace
from tests.e2e.timeouts import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CONTENDER = Path(__file__).with_name("contender.py")


class JournalLine(NamedTuple):
    kind: str
    pid: int
    at_s: float
    allowed_s: float


class Actuation(NamedTuple):
    """One actuation: it ends when it is over, at the latest when its timeout ends it."""

    begin_s: float
    end_s: float
    pid: int


def now_s() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Contest:
    """Processes are started with `enter` and killed at the end. Makes its namespace."""

    def __init__(self, kubeconfig: Path, folder: Path, *, duration_s: int = 1) -> None:
        self._kubeconfig = kubeconfig
        self._access = access_of(kubeconfig)
        self._namespace = asyncio.run(make_namespace(self._access))
        self._journal = folder / "journal"
        self._name = f"contest-{uuid.uuid4().hex[:8]}"
        self.duration_s = duration_s
        self.processes: dict[int, subprocess.Popen[bytes]] = {}

    def enter(self, **environment: str) -> int:
        arguments = [str(self._kubeconfig), self._name, self._namespace, str(self._journal), str(self.duration_s)]
        errors = (self._journal.parent / "errors").open("ab")
        with errors:
            process = subprocess.Popen(
                [sys.executable, str(CONTENDER), *arguments],
                stdout=errors,
                stderr=errors,
                env={**os.environ, **environment},
            )
        self.processes[process.pid] = process
        return process.pid

    def send(self, pid: int, number: signal.Signals) -> None:
        self.processes[pid].send_signal(number)
        if number == signal.SIGKILL:
            self.processes.pop(pid).wait()

    def end(self) -> None:
        for process in self.processes.values():
            process.kill()
            process.wait()

    def delete_namespace(self) -> None:
        asyncio.run(delete_namespace(self._access, self._namespace))

    # -- the journal

    def lines(self) -> list[JournalLine]:
        if not self._journal.exists():
            return []
        texts = self._journal.read_text().splitlines()
        return [
            JournalLine(kind, int(pid), float(at_s), float(allowed))
            for kind, pid, at_s, allowed in map(str.split, texts)
        ]

    def acts(self) -> list[Actuation]:
        begun: dict[int, JournalLine] = {}
        acts = []
        for line in self.lines():
            if line.kind == "begin":
                begun[line.pid] = line
            elif line.kind == "end" and line.pid in begun:
                begin = begun.pop(line.pid)
                acts.append(Actuation(begin.at_s, min(line.at_s, begin.at_s + begin.allowed_s), line.pid))
        # A process that was killed in the middle: its call may go on until its timeout.
        acts += [Actuation(begin.at_s, begin.at_s + begin.allowed_s, begin.pid) for begin in begun.values()]
        return sorted(acts)

    def overlaps(self) -> list[tuple[Actuation, Actuation]]:
        return [(act, two) for act, two in pairwise(self.acts()) if act.pid != two.pid and two.begin_s < act.end_s]

    def await_leader(self, moment_s: float, *, but_not: int = 0) -> JournalLine:
        """The first act after `moment_s` by another process."""

        def first() -> JournalLine | None:
            acts = (line for line in self.lines() if line.kind == "begin" and line.at_s > moment_s)
            return next((line for line in acts if line.pid != but_not), None)

        return self.awaited(first)

    def await_contender(self, pid: int) -> JournalLine:
        """From here on it looks at the Lease."""
        return self.awaited(
            lambda: next((line for line in self.lines() if (line.kind, line.pid) == ("contends", pid)), None)
        )

    def awaited(self, look: Callable[[], JournalLine | None]) -> JournalLine:
        deadline_s = now_s() + PATIENCE_S
        while now_s() < deadline_s:
            found = look()
            if found is not None:
                return found
            time.sleep(0.02)
        raise AssertionError(f"nothing within {PATIENCE_S} s: {(self._journal.parent / 'errors').read_text()[-2000:]}")


@contextmanager
def contest(folder: Path, *, duration_s: int = 1) -> Iterator[Contest]:
    """On the cluster that PLIMSOLL_E2E_KUBECONFIG names, else on an API server of our own."""
    with cluster_kubeconfig(folder / "data") as kubeconfig, ExitStack() as stack:
        one = Contest(kubeconfig, folder, duration_s=duration_s)
        stack.callback(one.delete_namespace)
        stack.callback(one.end)
        yield one
