"""The one word that sums a pod up, and what stands beside it."""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll.local.apiserver.presentation.pod_rows import build_pod_cells, build_row_conditions
from tests.local.apiserver.presentation.recordings import NOW, ago

Json = dict[str, Any]

RUNNING = {"state": {"running": {}}, "ready": True}
SIDECAR = {"name": "side", "restartPolicy": "Always"}


def waiting(reason: str, **more: Any) -> Json:
    return {"state": {"waiting": {"reason": reason}}, **more}


def ended(reason: str = "", **state: Any) -> Json:
    return {"state": {"terminated": {"reason": reason, **state}}}


def pod(*containers: Json, phase: str = "Running", init: list[Json] | None = None, **more: Any) -> Json:
    """A pod whose containers have these statuses; `init` likewise. `spec`, `status`, `metadata` add to the parts."""
    spec = {"containers": [{"name": f"c{at}"} for at in range(len(containers) or 1)], **more.get("spec", {})}
    status = {"phase": phase, "containerStatuses": list(containers), "initContainerStatuses": init or []}
    return {
        "metadata": {"name": "p", "creationTimestamp": ago(hours=5), **more.get("metadata", {})},
        "spec": spec,
        "status": {**status, **more.get("status", {})},
    }


def cells(obj: Json) -> dict[str, Any]:
    names = ("name", "ready", "status", "restarts", "age", "ip", "node", "nominated", "gates")
    return dict(zip(names, build_pod_cells(obj, NOW), strict=True))


INIT_SPEC = {"initContainers": [{"name": "i0"}, {"name": "i1"}]}

WORDS = [
    ("a phase alone", pod(phase="Pending"), "Pending"),
    ("running", pod(RUNNING), "Running"),
    ("a reason of the pod", pod(phase="Failed", status={"reason": "Evicted"}), "Evicted"),
    (
        "waiting at a gate",
        pod(phase="Pending", status={"conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}]}),
        "SchedulingGated",
    ),
    ("creating", pod(waiting("ContainerCreating"), phase="Pending"), "ContainerCreating"),
    ("crashing", pod(waiting("CrashLoopBackOff"), RUNNING), "CrashLoopBackOff"),
    (
        "the first container has the last word",
        pod(waiting("ErrImagePull"), waiting("CrashLoopBackOff")),
        "ErrImagePull",
    ),
    ("completed", pod(ended("Completed"), phase="Succeeded"), "Completed"),
    ("failed", pod(ended("Error", exitCode=1), phase="Failed"), "Error"),
    ("failed without a reason", pod(ended(exitCode=3), phase="Failed"), "ExitCode:3"),
    ("killed by a signal", pod(ended(signal=9), phase="Failed"), "Signal:9"),
    ("one of two has ended", pod(ended("Completed"), RUNNING), "NotReady"),
    (
        "one of two has ended and the pod is ready",
        pod(ended("Completed"), RUNNING, status={"conditions": [{"type": "Ready", "status": "True"}]}),
        "Running",
    ),
    (
        "the first init container runs",
        pod(phase="Pending", init=[{"state": {"running": {}}}], spec=INIT_SPEC),
        "Init:0/2",
    ),
    (
        "the second init container waits for its turn",
        pod(phase="Pending", init=[ended("Completed"), waiting("PodInitializing")], spec=INIT_SPEC),
        "Init:1/2",
    ),
    (
        "an init container crashes",
        pod(phase="Pending", init=[waiting("CrashLoopBackOff")], spec=INIT_SPEC),
        "Init:CrashLoopBackOff",
    ),
    ("an init container failed", pod(phase="Pending", init=[ended("Error", exitCode=1)], spec=INIT_SPEC), "Init:Error"),
    ("an init container exited", pod(phase="Pending", init=[ended(exitCode=2)], spec=INIT_SPEC), "Init:ExitCode:2"),
    (
        "an init container was killed",
        pod(phase="Pending", init=[ended(exitCode=137, signal=9)], spec=INIT_SPEC),
        "Init:Signal:9",
    ),
    ("being deleted", pod(RUNNING, metadata={"deletionTimestamp": ago(seconds=1)}), "Terminating"),
    (
        "being deleted after its end",
        pod(ended("Completed"), phase="Succeeded", metadata={"deletionTimestamp": ago(seconds=1)}),
        "Completed",
    ),
    (
        "being deleted from a lost node",
        pod(RUNNING, metadata={"deletionTimestamp": ago(seconds=1)}, status={"reason": "NodeLost"}),
        "Unknown",
    ),
]


@pytest.mark.parametrize(("obj", "word"), [case[1:] for case in WORDS], ids=[case[0] for case in WORDS])
def test_status(obj: Json, word: str):
    assert cells(obj)["status"] == word


def test_ready_counts_running_containers_that_are_ready():
    assert cells(pod(RUNNING, {"state": {"running": {}}, "ready": False}))["ready"] == "1/2"


def test_a_sidecar_counts_as_a_container():
    started = {"name": "side", "started": True, "ready": True, "state": {"running": {}}}
    assert cells(pod(RUNNING, init=[started], spec={"initContainers": [SIDECAR]}))["ready"] == "2/2"


def test_restarts_say_when_the_last_one_was():
    crashed = {**RUNNING, "restartCount": 3, "lastState": {"terminated": {"finishedAt": ago(minutes=4)}}}
    assert cells(pod(crashed))["restarts"] == "3 (4m ago)"


def test_restarts_of_init_containers_are_forgotten_once_the_pod_runs():
    restarted = {**ended("Completed"), "restartCount": 4}
    assert cells(pod(RUNNING, init=[restarted], spec=INIT_SPEC))["restarts"] == "0"


def test_restarts_of_sidecars_are_not_forgotten():
    side = {"name": "side", "started": True, "state": {"running": {}}, "restartCount": 2}
    assert cells(pod(RUNNING, init=[side], spec={"initContainers": [SIDECAR]}))["restarts"] == "2"


def test_restarts_during_initialisation_are_those_of_init_containers():
    crashing = waiting("CrashLoopBackOff", restartCount=7)
    assert cells(pod(phase="Pending", init=[crashing], spec=INIT_SPEC))["restarts"] == "7"


def test_wide_columns():
    obj = pod(RUNNING, spec={"nodeName": "n1"}, status={"podIPs": [{"ip": "10.0.0.1"}], "nominatedNodeName": "n2"})
    assert [cells(obj)[name] for name in ("age", "ip", "node", "nominated")] == ["5h", "10.0.0.1", "n1", "n2"]


def test_readiness_gates():
    gates = {"readinessGates": [{"conditionType": "a"}, {"conditionType": "b"}]}
    assert cells(pod(RUNNING, spec=gates, status={"conditions": [{"type": "a", "status": "True"}]}))["gates"] == "1/2"


@pytest.mark.parametrize(("phase", "reason"), [("Succeeded", "Succeeded"), ("Failed", "Failed")])
def test_a_row_of_an_ended_pod_says_so(phase: str, reason: str):
    assert [row_condition["reason"] for row_condition in build_row_conditions(pod(phase=phase))] == [reason]


def test_a_row_of_a_running_pod_says_nothing():
    assert build_row_conditions(pod(RUNNING)) == []
