"""Queues, leases, informers and recorders on /metrics, under the names that operators know."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from plimsoll.kube.controller.controller import ControllerStatus
from plimsoll.kube.controller.workqueue import QueueStatus, WorkQueue
from plimsoll.kube.informer.factory import SharedInformerFactory
from plimsoll.kube.leases.lease_holder import LeaseStatus, Phase
from plimsoll.kube.recorder.recorder import RecorderStatus
from plimsoll.objects.api.nodes import Node
from plimsoll.operator.metrics import ControllerMetrics
from tests.kube.embedded_api import EmbeddedApi

QUEUE = QueueStatus(
    depth=2, working=1, delayed=4, oldest_age_s=1.5, longest_work_s=0.5, adds=9, retries=3, is_closed=False
)


def lines_of(metrics: ControllerMetrics) -> set[str]:
    return set(metrics.expose().decode().splitlines())


def controller(name: str) -> Any:
    results = {"done": 5, "again": 2, "failed": 1, "conflict": 1}
    return SimpleNamespace(status=ControllerStatus(name=name, has_started=True, results=results, queue=QUEUE))


def test_a_queue_and_its_controller():
    metrics = ControllerMetrics()
    metrics.add_controller(controller("tidb"))
    assert lines_of(metrics) >= {
        'workqueue_depth{controller="tidb",name="tidb"} 2.0',
        'workqueue_adds_total{controller="tidb",name="tidb"} 9.0',
        'workqueue_retries_total{controller="tidb",name="tidb"} 3.0',
        'workqueue_longest_running_processor_seconds{controller="tidb",name="tidb"} 0.5',
        'controller_runtime_active_workers{controller="tidb"} 1.0',
        'controller_runtime_reconcile_total{controller="tidb",result="success"} 5.0',
        'controller_runtime_reconcile_total{controller="tidb",result="requeue_after"} 2.0',
        'controller_runtime_reconcile_total{controller="tidb",result="error"} 2.0',
        'controller_runtime_reconcile_errors_total{controller="tidb"} 2.0',
    }


def test_only_the_leader_is_master():
    metrics = ControllerMetrics()
    phases = {"one": Phase.LEADING, "two": Phase.CONTENDING}
    for name, phase in phases.items():
        status = LeaseStatus(
            lease=name,
            identity="me",
            phase=phase,
            valid_for_s=1.0,
            renewals=7,
            failures=0,
            observed_holder="",
            last_error="",
        )
        holder: Any = SimpleNamespace(get_status=lambda status=status: status)
        metrics.add_lease(name, holder)
    lines = lines_of(metrics)
    assert 'leader_election_master_status{name="one"} 1.0' in lines
    assert 'leader_election_master_status{name="two"} 0.0' in lines
    assert 'plimsoll_lease_renewals_total{name="one"} 7.0' in lines


def test_events_are_counted_with_the_cause_of_those_not_written():
    metrics = ControllerMetrics()
    recorder: Any = SimpleNamespace(status=RecorderStatus(recorded=9, written=6, pending=1, dropped={"overflow": 2}))
    metrics.add_recorder(recorder)
    assert lines_of(metrics) >= {
        "plimsoll_events_written_total 6.0",
        "plimsoll_events_pending 1.0",
        'plimsoll_events_dropped_total{cause="overflow"} 2.0',
    }


def test_informers_are_read_when_the_page_is_asked_for():
    with EmbeddedApi() as world:
        informers = SharedInformerFactory(world.client, clock=world.clock, entropy=world.entropy)
        metrics = ControllerMetrics()
        metrics.add_informers(informers)
        informers.get_informer(Node)
        lines = lines_of(metrics)
        assert 'plimsoll_informer_synced{name="nodes"} 0.0' in lines
        assert 'reflector_lists_total{name="nodes"} 0.0' in lines


def test_how_long_keys_wait_and_are_worked_on():
    with EmbeddedApi() as world:
        queue: WorkQueue[str] = WorkQueue(clock=world.clock, entropy=world.entropy)
        queue.add("a")
        world.run.advance_by(2)
        key = world.do(queue.get())
        world.run.advance_by(30)
        assert queue.status.unfinished_work_s == 30
        queue.mark_done(key)  # type: ignore[arg-type]
        metrics = ControllerMetrics()
        status = ControllerStatus(name="tidb", has_started=True, results={}, queue=queue.status)
        metrics.add_controller(SimpleNamespace(status=status))  # type: ignore[arg-type] # it has a status
        labels = 'controller="tidb",name="tidb"'
        assert lines_of(metrics) >= {
            'workqueue_queue_duration_seconds_bucket{controller="tidb",le="1.0",name="tidb"} 0.0',
            'workqueue_queue_duration_seconds_bucket{controller="tidb",le="10.0",name="tidb"} 1.0',
            f"workqueue_queue_duration_seconds_sum{{{labels}}} 2.0",
            'workqueue_work_duration_seconds_bucket{controller="tidb",le="+Inf",name="tidb"} 1.0',
            f"workqueue_work_duration_seconds_count{{{labels}}} 1.0",
            f"workqueue_work_duration_seconds_sum{{{labels}}} 30.0",
        }
