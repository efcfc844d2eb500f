"""The controllers' process dies after any of its calls; the next one finishes, and nothing is there twice."""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING, Any

from tests.effort import choose_calls
from tests.faults.crashes import CrashAfter
from tests.local.controller_manager.workloads.replica_sets.builders import (
    DEPLOYMENTS,
    SETS,
    ReplicaSetCluster,
    deployment,
    with_image,
)

if TYPE_CHECKING:
    from collections.abc import Callable


class _CrashingReplicaSetCluster(ReplicaSetCluster):
    def __init__(self, crash: CrashAfter) -> None:
        self._crash = crash
        self._is_new_process = False
        super().__init__(through=self._port)

    def _port(self, port: Any) -> Any:
        return port if self._is_new_process else self._crash.wrap(port)

    def surviving(self, step: Callable[[], object]) -> None:
        """Take a step; if the process dies on the way, start another and take it again."""
        try:
            step()
        except BaseException:
            if self._crash.struck is None or self._is_new_process:
                raise
            self._is_new_process = True
            self.start()
            step()

    def start(self) -> None:
        try:
            super().start()
        except BaseException:
            if self._crash.struck is None or self._is_new_process:
                raise
            self._is_new_process = True
            super().start()


def _reported_with_crash_after(n: int) -> bool:
    """Whether the crash struck."""
    crash = CrashAfter(n)
    with _CrashingReplicaSetCluster(crash) as w:
        w.surviving(lambda: w.ask("POST", DEPLOYMENTS, deployment(replicas=2)))
        w.surviving(lambda: w.run.advance_by(1))
        w.surviving(w.make_all_ready)
        w.surviving(lambda: w.patch(DEPLOYMENTS, "d", with_image("nginx:2")))
        w.surviving(lambda: w.run.advance_by(1))
        for _ in range(6):
            w.surviving(w.make_all_ready)
        w.surviving(lambda: w.run.advance_by(20))
        assert w.sizes() == {"nginx:2": 2}, n
        assert len(w.all(SETS)) == 2, n
        assert [pod["spec"]["containers"][0]["image"] for pod in w.pods] == ["nginx:2"] * 2, n
        status = w.get(DEPLOYMENTS, "d")["status"]
        assert (status["updatedReplicas"], status["availableReplicas"]) == (2, 2), n
    return crash.struck is not None


def test_a_crash_after_any_call_loses_nothing_and_makes_nothing_twice():
    struck = list(takewhile(_reported_with_crash_after, choose_calls(1000)))
    assert struck[-1] > 27
