"""A cluster that the tests of a worker share: one that does not start, or cannot be made as new, is replaced.

On a slow or busy machine a start may fail, and a test that failed may leave a cluster behind that no longer recovers.
Either would fail every later test of the worker. A replacement has another directory and other ports; if it does not
start either, the message has what the processes of both wrote.
"""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from kafka.errors import KafkaError

from plimsoll.core.errors import PlimsollError

if TYPE_CHECKING:
    from collections.abc import Callable

STARTS = 2
_FAILURES = (AssertionError, KafkaError, PlimsollError, OSError, subprocess.SubprocessError)


class Cluster(Protocol):
    """What a test needs to share a cluster."""

    def start(self) -> None: ...
    def close(self) -> None: ...
    def describe_processes(self) -> str: ...


C = TypeVar("C", bound=Cluster)


class ClusterNotStarted(Exception):
    """No cluster came up. The message has the causes, with the logs of the processes."""


class SharedCluster(Generic[C]):
    """`build` makes a cluster that was not started yet, for the number of the start."""

    def __init__(self, build: Callable[[int], C]) -> None:
        self._build = build
        self._started = 0
        self._cluster: C | None = None

    def get(self, restore: Callable[[C], object] = lambda _: None) -> C:
        """The running cluster, restored; a new one if there is none yet, or if it cannot be restored."""
        cluster = self._cluster
        if cluster is not None:
            try:
                restore(cluster)
            except _FAILURES as error:
                _report(self._give_up(cluster, error))
            else:
                return cluster
        self._cluster = self._start()
        return self._cluster

    def close(self) -> None:
        if self._cluster is not None:
            self._cluster.close()
            self._cluster = None

    def _start(self) -> C:
        problems = []
        for _ in range(STARTS):
            self._started += 1
            cluster = self._build(self._started)
            try:
                cluster.start()
            except _FAILURES as error:
                problems.append(self._give_up(cluster, error))
                _report(problems[-1])
            except BaseException:
                cluster.close()
                raise
            else:
                return cluster
        raise ClusterNotStarted("\n".join(problems))

    def _give_up(self, cluster: C, error: BaseException) -> str:
        self._cluster = None
        described = f"cluster {self._started} is given up: {error}\n{cluster.describe_processes()}"
        cluster.close()
        return described


def _report(problem: str) -> None:
    """pytest shows it with the test that fails next; a run in which everything passes says nothing."""
    sys.stdout.write(f"{problem}\n")
