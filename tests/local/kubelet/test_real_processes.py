"""Pods that a runtime runs for real: their status follows the process, and the object stays until the process ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.kube.informer.events import Key
from plimsoll.local.kubelet.process_status import ContainerProcess
from tests.local.kubelet.builders import KubeletCluster

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from plimsoll.local.components import Components
    from plimsoll.objects.api.pods import Pod
    from plimsoll.runtime.supervisor import Service

REAL = {"real": "true"}
"""An annotation."""
STARTING = ContainerProcess(message="waits for its quorum")
UP = ContainerProcess(is_running=True)
READY = ContainerProcess(is_running=True, is_ready=True)


class ScriptedRuntime:
    """Processes that are what the test says."""

    address = "127.0.0.1"

    def __init__(self) -> None:
        self.process: ContainerProcess | None = None
        self.calls: list[str] = []
        self._report: Callable[[Key], None]

    def can_run(self, pod: Pod) -> bool:
        return pod.metadata.annotations.get("plimsoll.io/real") == "true"

    def find_process(self, pod: Pod) -> ContainerProcess | None:
        return self.process if self.can_run(pod) else None

    def start(self, pod: Pod) -> None:
        self._record("start", pod)
        self.process = STARTING

    def stop(self, pod: Pod) -> None:
        if self.calls[-1:] != ["stop"]:
            self._record("stop", pod)

    def remove(self, pod: Pod) -> None:
        self._record("remove", pod)

    def _record(self, call: str, pod: Pod) -> None:
        assert self.can_run(pod)
        self.calls.append(call)

    def subscribe(self, on_change: Callable[[Key], None]) -> None:
        self._report = on_change

    def become(self, process: ContainerProcess) -> None:
        self.process = process
        self._report(Key("default", "p"))


class RealKubeletCluster(KubeletCluster):
    """With a runtime for pods with the annotation `real`."""

    def _kubelet(self, parts: Components) -> list[Service]:
        services = super()._kubelet(parts)
        self.runtime = ScriptedRuntime()
        self.kubelet.pods.use_runtime(self.runtime)
        return services

    def become(self, process: ContainerProcess) -> Any:
        """The pod after its process changed."""
        self.runtime.become(process)
        self.run.settle()
        return self.get_pod()


@pytest.fixture
def world() -> Iterator[RealKubeletCluster]:
    with RealKubeletCluster() as world:
        world.node()
        world.pod(pace=REAL)
        yield world


def get_container(pod: Any) -> Any:
    return pod["status"]["containerStatuses"][0]


def test_a_pod_is_ready_when_its_process_is(world: RealKubeletCluster):
    assert world.runtime.calls == ["start"]
    world.run.advance_by(60)
    pending = world.become(STARTING)
    assert pending["status"]["phase"] == "Pending"
    assert get_container(pending)["state"]["waiting"]["message"] == "waits for its quorum"
    running = world.become(UP)
    assert (running["status"]["phase"], get_container(running)["ready"]) == ("Running", False)
    ready = world.become(READY)
    assert (get_container(ready)["ready"], ready["status"]["podIP"]) == (True, "127.0.0.1")
    assert get_container(world.become(UP))["ready"] is False
    assert world.runtime.calls == ["start"]


def test_a_process_that_ends_is_started_again_with_the_kubelets_backoff(world: RealKubeletCluster):
    world.become(READY)
    again = world.become(ContainerProcess(exit_code=1))
    assert (get_container(again)["restartCount"], get_container(again)["ready"]) == (1, False)
    assert world.runtime.calls == ["start", "start"]
    world.become(UP)
    crashed = world.become(ContainerProcess(exit_code=1))
    assert get_container(crashed)["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    assert get_container(crashed)["lastState"]["terminated"]["exitCode"] == 1
    world.run.advance_by(11)
    assert world.runtime.calls == ["start", "start", "start"]
    assert get_container(world.become(READY))["restartCount"] == 2


def test_a_kubelet_that_finds_a_running_pod_without_a_process_starts_it_again(world: RealKubeletCluster):
    world.become(READY)
    world.runtime.process = None
    world.runtime._report(Key("default", "p"))
    world.run.settle()
    assert world.runtime.calls == ["start", "start"]
    assert get_container(world.become(READY))["restartCount"] == 1


def test_a_deleted_pod_stays_until_its_process_has_ended(world: RealKubeletCluster):
    world.become(READY)
    world.delete_pod()
    world.run.advance_by(300)
    assert world.get_pod()["metadata"]["deletionTimestamp"]
    assert world.runtime.calls == ["start", "stop"]
    assert world.become(ContainerProcess(exit_code=143)) is None
    assert world.runtime.calls == ["start", "stop", "remove"]


def test_a_pod_that_is_deleted_by_force_leaves_nothing(world: RealKubeletCluster):
    world.become(READY)
    world.delete_pod(gracePeriodSeconds=0)
    assert world.get_pod() is None
    assert world.runtime.calls[-1] == "remove"


def test_other_pods_are_run_by_the_clock(world: RealKubeletCluster):
    world.pod("q")
    world.run.advance_by(5)
    assert world.get_pod("q")["status"]["phase"] == "Running"
    assert world.runtime.calls == ["start"]
