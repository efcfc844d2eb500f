"""The job controller: pods until enough of them have succeeded, and an exact count of their outcomes.

One reconciliation: read the job and its pods, create or delete pods, record ended pods in the status, remove their
finalizers, count them. Nothing is done while an earlier write, to a pod or to the job, is missing in the cache: so it
never counts from an old status, and its writes carry the version they were computed from.

Changes of pods are handled together after a second: a job of many pods would otherwise write its status for each.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import msgspec

from plimsoll.core.durations import add_seconds
from plimsoll.kube.controlled_objects.controller_refs import (
    ControllerRefManager,
    index_by_controller,
    list_candidates,
)
from plimsoll.kube.controlled_objects.pod_control import build_event_subject
from plimsoll.kube.controller.controller import Again, Controller, Done
from plimsoll.kube.controller.enqueue import build_owner_keys
from plimsoll.kube.errors import NotFound
from plimsoll.kube.informer.events import Added, Key, Updated, get_key, get_view
from plimsoll.kube.informer.own_writes import RECHECK_S, Expectations
from plimsoll.kube.recorder import EventType
from plimsoll.kube.requests.options import DeleteOptions
from plimsoll.local.controller_manager.workloads.controlled_objects.status_patches import count_fields, encode_condition
from plimsoll.local.controller_manager.workloads.jobs.failed_indexes import find_failed_indexes, has_limits
from plimsoll.local.controller_manager.workloads.jobs.indexes import format_indexes
from plimsoll.local.controller_manager.workloads.jobs.plan import (
    COMPLETE,
    FAILED,
    SUSPENDED,
    JobView,
    build_condition,
    count_ready,
    find_finish_time,
    list_held,
    plan_job,
    set_condition,
)
from plimsoll.local.controller_manager.workloads.jobs.pods import JobPods
from plimsoll.local.controller_manager.workloads.jobs.tracking import (
    is_indexed,
    is_tracked,
    move_to_counters,
    read_uncounted,
    set_uncounted,
    track_endings,
)
from plimsoll.objects.api.meta import format_time
from plimsoll.objects.api.pods import Pod
from plimsoll.objects.api.workloads import Job
from plimsoll.objects.owners import find_controller
from plimsoll.runtime.supervisor import Service
from plimsoll.scheduling.selectors import parse_label_selector

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from plimsoll.core.errors import PlimsollError
    from plimsoll.kube.informer.events import Change
    from plimsoll.local.components import Component, Components
    from plimsoll.local.controller_manager.workloads.jobs.plan import JobOutcome, JobPlan
    from plimsoll.objects.api.workloads import JobStatus
    from plimsoll.objects.codec.decoding import RawObject

NAME: Final = "job-controller"
_OURSELVES: Final = "kubernetes.io/job-controller"
_TRACKED_BY_JOB: Final = "workloads/jobs/tracked-by-job"
_TOGETHER_S: Final = 1.0


def build_job_services(components: Components) -> list[Service]:
    controller = JobController(components.build_component(NAME)).controller
    return [Service(name=controller.name, run=controller.run)]


class JobController:
    """Reconciles through `controller`, which the supervisor runs."""

    def __init__(self, component: Component) -> None:
        self._client = component.client
        self._clock = component.clock
        self._recorder = component.recorder
        self._resource = component.client.calls.get_resource(Job)
        self._jobs = component.informers.get_raw_informer(Job)
        self._informer = component.informers.get_informer(Pod)
        index_by_controller(self._informer)
        self._informer.add_index(_TRACKED_BY_JOB, _list_job_of_tracked)
        self._written = Expectations(self._jobs, clock=component.clock)
        self._pods = JobPods(component, self._resource)
        self._adoption = ControllerRefManager(component.client, Pod, self._resource)
        self.controller: Controller[Key] = Controller(
            NAME,
            self.reconcile,
            clock=component.clock,
            entropy=component.entropy,
            all_keys=lambda: [get_key(raw) for raw in self._jobs.cache],
        )
        self.controller.add_source(self._jobs)
        self.controller.add_source(self._informer)
        self._jobs.add_handler(self._on_job_change, name=NAME)
        self._informer.add_handler(self._on_pod_change, name=NAME)

    async def reconcile(self, key: Key) -> Done | Again:
        await self._release_orphans(key)
        found = self._jobs.cache.get(key.name, key.namespace)
        if found is None or found.view.spec.managed_by not in {"", _OURSELVES}:
            return Done()
        job = found.view
        metadata = job.metadata
        if not (self._written.are_fulfilled(metadata.uid) and self._pods.own_writes.are_fulfilled(metadata.uid)):
            return Again(after_s=RECHECK_S)
        if (end := find_finish_time(job)) is not None:
            return await self._delete_when_expired(job, add_seconds(end, job.spec.ttl_seconds_after_finished or 0))
        selector = parse_label_selector(job.spec.selector)
        pods = await self._adoption.claim(metadata, selector, list_candidates(self._informer, metadata))
        view = JobView(job=job, pods=tuple(pods), now=self._clock.now())

        plan = plan_job(view)
        turn = _Reconciliation(view, plan)
        error = await self._apply_plan(found, turn)
        await self._count(turn)
        if error is not None:
            raise error
        return Done() if plan.wait_s is None else Again(after_s=plan.wait_s)

    # ---- pods

    async def _apply_plan(self, found: RawObject[Job], turn: _Reconciliation) -> PlimsollError | None:
        """Create and delete pods; `turn` records the new counts."""
        plan, metadata = turn.plan, found.view.metadata
        if plan.create:
            made, error = await self._pods.create(found, plan)
            turn.active += made
            return error
        first_error = None
        for pod in plan.delete:
            error = await self._pods.delete(pod, metadata, keep_tracking=plan.verdict is not None)
            first_error = first_error or error
            if error is None:
                turn.record_deletion(pod)
        if first_error is not None:
            turn.verdict = None
        return first_error

    async def _release_orphans(self, key: Key) -> None:
        """Remove the tracking finalizer of pods whose job is gone."""
        found = self._jobs.cache.get(key.name, key.namespace)
        uid = "" if found is None else found.view.metadata.uid
        for pod in self._informer.cache.list_by_index(_TRACKED_BY_JOB, key):
            owner = find_controller(pod.metadata)
            if owner is not None and owner.uid != uid:
                await self._pods.release(pod, owner.uid)

    # ---- counting

    async def _count(self, turn: _Reconciliation) -> None:
        """Enter what ended, let it go, count it: two writes, the second one after the finalizers are off."""
        view, verdict = turn.view, turn.verdict
        held = {pod.metadata.uid for pod in list_held(view).values()}
        endings = track_endings(view.job, view.pods, finish="" if verdict is None else verdict.final, held=held)
        tracked = {pod.metadata.uid for pod in view.pods if is_tracked(pod)}
        status = set_uncounted(turn.build_status(), endings, tracked=tracked)
        if is_indexed(view.job):
            status = msgspec.structs.replace(
                status,
                completed_indexes=format_indexes(endings.indexes),
                failed_indexes=format_indexes(find_failed_indexes(view.job, view.pods))
                if has_limits(view.job)
                else None,
                succeeded=len(endings.indexes),
            )
        job = await self._update_status(view.job, status)
        reason, message = turn.suspension
        if reason:
            self._record_event(view.job, EventType.NORMAL, reason, message)
        for pod in endings.release:
            await self._pods.release(pod, view.job.metadata.uid)
            tracked.discard(pod.metadata.uid)
        status = move_to_counters(status, tracked=tracked)
        is_clean = not endings.is_full and not turn.terminating and not any(_list_uids(status))
        if verdict is None or not is_clean:
            await self._update_status(job, status)
            return
        status = _end(status, verdict, view)
        await self._update_status(job, status)
        self._record_end(job, status, verdict)

    async def _update_status(self, job: Job, status: JobStatus) -> Job:
        """Write the status, if it is another; gives the job as it is then."""
        if status == job.status:
            return job
        metadata = job.metadata
        body = {
            "metadata": {"uid": metadata.uid, "resourceVersion": metadata.resource_version},
            "status": _encode_status(status),
        }
        written = await self._client.merge_patch(
            Job, metadata.name, body, namespace=metadata.namespace, subresource="status"
        )
        self._written.expect_write(metadata.uid, written)
        return written

    def _record_end(self, job: Job, status: JobStatus, verdict: JobOutcome) -> None:
        if verdict.final == FAILED:
            self._record_event(job, EventType.WARNING, verdict.reason, verdict.message)
            return
        if job.spec.completions is not None and status.succeeded > job.spec.completions:
            message = "Too many succeeded pods running after completion count reached"
            self._record_event(job, EventType.WARNING, "TooManySucceededPods", message)
        self._record_event(job, EventType.NORMAL, "Completed", "Job completed")

    def _record_event(self, job: Job, event_type: EventType, reason: str, message: str) -> None:
        subject = build_event_subject(self._resource, job.metadata)
        self._recorder.record(subject, event_type, reason=reason, message=message)

    async def _delete_when_expired(self, job: Job, expiry: datetime) -> Done | Again:
        """Delete it when its time is up."""
        metadata = job.metadata
        if job.spec.ttl_seconds_after_finished is None or metadata.deletion_timestamp is not None:
            return Done()
        left_s = (expiry - self._clock.now()).total_seconds()
        if left_s > 0:
            return Again(after_s=left_s)
        options = DeleteOptions(uid=metadata.uid, propagation="Foreground")
        with suppress(NotFound):
            await self._client.delete(Job, metadata.name, namespace=metadata.namespace, options=options)
        return Done()

    # ---- what to look at

    def _on_job_change(self, change: Change[RawObject[Job]]) -> None:
        is_news = isinstance(change, Added) or (
            isinstance(change, Updated)
            and get_view(change.old).metadata.generation != get_view(change.new).metadata.generation
        )
        if is_news:
            self.controller.queue.add(change.key)
        else:
            self.controller.queue.add_after(change.key, _TOGETHER_S)

    def _on_pod_change(self, change: Change[Pod]) -> None:
        for key in build_owner_keys(self._resource)(change):
            self.controller.queue.add_after(key, _TOGETHER_S)


class _Reconciliation:
    """The state of a job during one reconciliation."""

    def __init__(self, view: JobView, plan: JobPlan) -> None:
        self.view = view
        self.plan = plan
        self.verdict = plan.verdict
        self.active = len(view.active)
        self.ready = count_ready(view.active)
        self.terminating = view.terminating
        self.suspension = ("", "")
        """Reason and message of the event, if the job was suspended or goes on."""

    def record_deletion(self, pod: Pod) -> None:
        self.active -= 1
        self.ready -= count_ready([pod])
        self.terminating += 1

    def build_status(self) -> JobStatus:
        """The status with everything but the counts of ended pods."""
        job, now = self.view.job, self.view.now.replace(microsecond=0)
        status = msgspec.structs.replace(
            job.status,
            active=self.active,
            ready=self.ready,
            terminating=self.terminating,
            start_time=job.status.start_time or (None if job.spec.suspend else now),
            uncounted_terminated_pods=read_uncounted(job),
        )
        if self.verdict is not None:
            interim = build_condition(self.verdict.interim, "True", self.verdict.reason, self.verdict.message, now=now)
            return msgspec.structs.replace(status, conditions=set_condition(status.conditions, interim))
        if not self.plan.is_managed:
            return status
        reason, message, value = ("JobSuspended", "Job suspended", "True")
        if not job.spec.suspend:
            reason, message, value = ("JobResumed", "Job resumed", "False")
        conditions = set_condition(status.conditions, build_condition(SUSPENDED, value, reason, message, now=now))
        if conditions == status.conditions:
            return status
        self.suspension = ("Suspended" if job.spec.suspend else "Resumed", message)
        # The deadline counts from when the job goes on.
        started = status.start_time if job.spec.suspend else now
        return msgspec.structs.replace(status, conditions=conditions, start_time=started)


def _end(status: JobStatus, verdict: JobOutcome, view: JobView) -> JobStatus:
    now = view.now.replace(microsecond=0)
    final = build_condition(verdict.final, "True", verdict.reason, verdict.message, now=now)
    return msgspec.structs.replace(
        status,
        conditions=set_condition(status.conditions, final),
        completion_time=now if verdict.final == COMPLETE else None,
    )


def _list_uids(status: JobStatus) -> tuple[str, ...]:
    uncounted = status.uncounted_terminated_pods
    return () if uncounted is None else (*uncounted.succeeded, *uncounted.failed)


def _list_job_of_tracked(pod: Pod) -> Iterable[Key]:
    owner = find_controller(pod.metadata)
    if owner is None or owner.kind != "Job" or not is_tracked(pod):
        return ()
    return (Key(pod.metadata.namespace, owner.name),)


def _encode_status(status: JobStatus) -> dict[str, Any]:
    uncounted = status.uncounted_terminated_pods
    counts = {"active": status.active, "succeeded": status.succeeded, "failed": status.failed}
    return {
        **count_fields(counts),
        "ready": status.ready,
        "terminating": status.terminating,
        "completedIndexes": status.completed_indexes or None,
        "failedIndexes": status.failed_indexes,
        "startTime": None if status.start_time is None else format_time(status.start_time),
        "completionTime": None if status.completion_time is None else format_time(status.completion_time),
        "uncountedTerminatedPods": {
            "succeeded": (list(uncounted.succeeded) or None) if uncounted is not None else None,
            "failed": (list(uncounted.failed) or None) if uncounted is not None else None,
        },
        "conditions": [encode_condition(job_condition) for job_condition in status.conditions] or None,
    }
