"""No number that the API lets in stops a controller of the local cluster, or the server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from structlog.testing import capture_logs

from plimsoll.local.components import KUBELET, SCHEDULER
from plimsoll.local.controller_manager.pod_gc import PodGcSettings
from plimsoll.local.controller_manager.services import (
    build_garbage_collector_services,
    build_namespace_services,
    build_node_lifecycle_services,
    build_pod_gc_services,
)
from plimsoll.local.controller_manager.workloads.daemon_sets.controller import build_daemon_set_services
from plimsoll.local.controller_manager.workloads.deployments.controller import build_deployment_services
from plimsoll.local.controller_manager.workloads.jobs.controller import build_job_services
from plimsoll.local.controller_manager.workloads.replica_sets.controller import build_replica_set_services
from plimsoll.local.controller_manager.workloads.stateful_sets.controller import build_stateful_set_services
from plimsoll.local.kubelet import Kubelet, KubeletSettings
from plimsoll.local.liveness import ReportedLiveness
from plimsoll.local.scheduler import Scheduler, SchedulerSettings
from tests.local.apiserver.builders import MERGE, STRATEGIC
from tests.local.kubelet.builders import a_node
from tests.local.local_cluster import LocalClusterHarness

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plimsoll.local.components import Components
    from plimsoll.runtime.supervisor import Service

LARGEST = 2**63 - 1
LARGEST_INT32 = 2**31 - 1
PODS = "/api/v1/namespaces/default/pods"
NODES = "/api/v1/nodes"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
APPS = "/apis/apps/v1/namespaces/default"
END_OF_TIME = "9999-12-31T23:59:59Z"


class WholeCluster(LocalClusterHarness):
    """All controllers, the scheduler and the kubelet."""

    def __init__(self) -> None:
        super().__init__(self._services)

    def _services(self, components: Components) -> list[Service]:
        liveness = ReportedLiveness(clock=self.run.clock)
        workloads = (
            build_deployment_services,
            build_stateful_set_services,
            build_daemon_set_services,
            build_job_services,
        )
        made = [service for services_of in workloads for service in services_of(components)]
        kubelet = Kubelet(
            components.build_component("kubelet", manager=KUBELET),
            settings=KubeletSettings(boot_s=0, start_s=1, stop_s=1),
            liveness=liveness,
            writes=True,
        )
        scheduler = Scheduler(components.build_component("default-scheduler", manager=SCHEDULER), SchedulerSettings())
        return [
            *made,
            *build_replica_set_services(components),
            *build_namespace_services(components),
            *build_garbage_collector_services(components),
            *build_pod_gc_services(components, PodGcSettings()),
            *build_node_lifecycle_services(components, liveness),
            *kubelet.list_services(),
            scheduler.build_service(),
        ]

    def pod_phase(self, name: str) -> str:
        return str(self.ask("GET", f"{PODS}/{name}").body["status"]["phase"])


@pytest.fixture
def world() -> Iterator[WholeCluster]:
    with WholeCluster() as made, capture_logs() as logs:
        made.ask("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
        made.made(NODES, a_node("n1"))
        made.run.advance_by(10)
        yield made
        made.run.advance_by(60)
    assert [log for log in logs if log["log_level"] in {"error", "critical"} or "failed" in log["event"]] == []


def template(**spec: Any) -> dict[str, Any]:
    containers = [{"name": "c", "image": "i"}]
    return {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": containers, **spec}}


def pod(name: str, **spec: Any) -> dict[str, Any]:
    return {**template(**spec), "metadata": {"name": name}}


@pytest.mark.parametrize("grace_s", [LARGEST, 10**11])
def test_a_pod_with_an_endless_grace_period_can_be_deleted(world: WholeCluster, grace_s: int):
    world.made(PODS, pod("p", terminationGracePeriodSeconds=grace_s))
    world.run.advance_by(10)
    assert world.pod_phase("p") == "Running"
    deleted = world.ask("DELETE", f"{PODS}/p")
    assert (deleted.status, deleted.body["metadata"]["deletionGracePeriodSeconds"]) == (200, grace_s)
    assert deleted.body["metadata"]["deletionTimestamp"] >= "5000"
    world.run.advance_by(60)
    assert world.ask("GET", f"{PODS}/p").status == 404


def test_a_second_deletion_shortens_an_endless_grace_period(world: WholeCluster):
    finalized = pod("p", terminationGracePeriodSeconds=LARGEST)
    finalized["metadata"]["finalizers"] = ["example.com/kept"]
    world.made(PODS, finalized)
    world.run.advance_by(10)
    world.ask("PATCH", f"{PODS}/p", {"metadata": {"annotations": {"plimsoll.io/stop-seconds": "1000"}}})
    world.ask("DELETE", f"{PODS}/p")
    now = world.run.clock.now()
    again = world.ask("DELETE", f"{PODS}/p?gracePeriodSeconds=30")
    assert again.status == 200
    assert again.body["metadata"]["deletionTimestamp"][:13] == now.isoformat()[:13]


def test_a_deletion_with_an_endless_grace_period_of_its_own(world: WholeCluster):
    world.made(PODS, pod("p"))
    world.run.advance_by(10)
    assert world.ask("DELETE", f"{PODS}/p?gracePeriodSeconds={LARGEST}").status == 200


def test_a_pod_with_an_endless_deadline_runs(world: WholeCluster):
    world.made(PODS, pod("p", activeDeadlineSeconds=LARGEST_INT32))
    refused = world.ask("POST", PODS, pod("q", activeDeadlineSeconds=LARGEST))
    assert refused.status == 422
    world.run.advance_by(10)
    assert world.pod_phase("p") == "Running"


def test_a_job_with_an_endless_deadline_runs(world: WholeCluster):
    spec = {"activeDeadlineSeconds": LARGEST, "ttlSecondsAfterFinished": LARGEST_INT32}
    made = world.ask(
        "POST", JOBS, {"metadata": {"name": "j"}, "spec": {**spec, "template": template(restartPolicy="Never")}}
    )
    assert made.status == 201, made
    world.run.advance_by(20)
    assert world.ask("GET", f"{JOBS}/j").body["status"]["active"] == 1


def test_workloads_that_wait_for_ever_to_be_available_are_reconciled(world: WholeCluster):
    selector = {"matchLabels": {"app": "a"}}
    common = {"selector": selector, "template": template(), "minReadySeconds": LARGEST_INT32 - 1}
    deployment = {**common, "progressDeadlineSeconds": LARGEST_INT32}
    for plural, spec in {
        "deployments": deployment,
        "statefulsets": {**common, "serviceName": "s"},
        "daemonsets": common,
        "replicasets": common,
    }.items():
        world.made(f"{APPS}/{plural}", {"metadata": {"name": plural}, "spec": spec})
    world.run.advance_by(60)
    for plural in ("deployments", "statefulsets", "daemonsets", "replicasets"):
        status = world.ask("GET", f"{APPS}/{plural}/{plural}").body["status"]
        assert status.get("readyReplicas", status.get("numberReady")) == 1


def test_times_at_the_end_of_time_are_only_late(world: WholeCluster):
    world.made(PODS, pod("p"))
    world.run.advance_by(10)
    late = {"status": "True", "lastTransitionTime": END_OF_TIME}
    conditions = [{"type": name, **late} for name in ("PodScheduled", "Ready")]
    patch = {"status": {"startTime": END_OF_TIME, "conditions": conditions}}
    assert world.ask("PATCH", f"{PODS}/p/status", patch, content=STRATEGIC).status == 200
    ready = {"type": "Ready", "lastHeartbeatTime": END_OF_TIME, **late}
    assert (
        world.ask("PATCH", f"{NODES}/n1/status", {"status": {"conditions": [ready]}}, content=STRATEGIC).status == 200
    )
    world.run.advance_by(600)
    assert world.ask("DELETE", f"{PODS}/p").status == 200


def test_endless_tolerations(world: WholeCluster):
    forever = [{"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": LARGEST}]
    brief = [{"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": -LARGEST}]
    world.made(PODS, pod("stays", tolerations=forever))
    world.made(PODS, pod("goes", tolerations=brief))
    world.run.advance_by(10)
    taint = {"spec": {"taints": [{"key": "k", "effect": "NoExecute", "value": ""}]}}
    assert world.ask("PATCH", f"{NODES}/n1", taint, content=MERGE).status == 200
    world.run.advance_by(120)
    assert world.pod_phase("stays") == "Running"
    assert world.ask("GET", f"{PODS}/goes").status == 404
