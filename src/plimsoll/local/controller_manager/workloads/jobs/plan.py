"""The plan of a job: which pods to create or delete, whether the job has finished and why. Pure.

`plan_job` decides about pods; `tracking` counts their endings, in two steps around the removal of finalizers.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

import msgspec

from plimsoll.core.durations import add_seconds
from plimsoll.core.values import Value
from plimsoll.kube.controlled_objects.pod_control import BURST
from plimsoll.kube.controlled_objects.pod_readiness import is_active
from plimsoll.local.controller_manager.workloads.controlled_objects.deletion_order import choose_pods_to_delete
from plimsoll.local.controller_manager.workloads.jobs.failed_indexes import (
    build_failure_annotations,
    compute_index_backoff_s,
    find_failed_indexes,
    find_held_pods,
    has_limits,
)
from plimsoll.local.controller_manager.workloads.jobs.indexes import read_completion_index
from plimsoll.local.controller_manager.workloads.jobs.policies import FAIL_JOB, find_success_message, match
from plimsoll.local.controller_manager.workloads.jobs.tracking import (
    count_pods,
    find_end_time,
    get_completions,
    is_failed,
    is_indexed,
)
from plimsoll.objects.api.pods import (
    Pod,
    is_pod_ready,
)
from plimsoll.objects.api.workloads import Job, JobCondition

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

COMPLETE: Final = "Complete"
FAILED: Final = "Failed"
SUCCESS_CRITERIA_MET: Final = "SuccessCriteriaMet"
FAILURE_TARGET: Final = "FailureTarget"
SUSPENDED: Final = "Suspended"
_FIRST_BACKOFF_S: Final = 10.0
_LONGEST_BACKOFF_S: Final = 600.0


class JobOutcome(Value):
    """The outcome of a job: `final` is the condition it ends with, `interim` the one before the clean-up."""

    final: str
    reason: str
    message: str

    @property
    def interim(self) -> str:
        return SUCCESS_CRITERIA_MET if self.final == COMPLETE else FAILURE_TARGET


COMPLETED: Final = JobOutcome(
    final=COMPLETE, reason="CompletionsReached", message="Reached expected number of succeeded pods"
)
_BACKOFF_LIMIT: Final = JobOutcome(
    final=FAILED, reason="BackoffLimitExceeded", message="Job has reached the specified backoff limit"
)
_DEADLINE: Final = JobOutcome(
    final=FAILED, reason="DeadlineExceeded", message="Job was active longer than specified deadline"
)
_MAX_FAILED_INDEXES: Final = JobOutcome(
    final=FAILED,
    reason="MaxFailedIndexesExceeded",
    message="Job has exceeded the specified maximal number of failed indexes",
)
_FAILED_INDEXES: Final = JobOutcome(final=FAILED, reason="FailedIndexes", message="Job has failed indexes")


class JobView(Value):
    """A job and its pods at one moment."""

    job: Job
    pods: tuple[Pod, ...]
    now: datetime

    @property
    def active(self) -> list[Pod]:
        return [pod for pod in self.pods if is_active(pod)]

    @property
    def terminating(self) -> int:
        ended = {"Succeeded", "Failed"}
        return sum(pod.metadata.deletion_timestamp is not None and pod.status.phase not in ended for pod in self.pods)


class JobPlan(Value):
    """Pods to make (one for each of `indexes` where the job has them), or pods to delete; and the verdict, if any.

    `delete` of a finished job keep their finalizers, because they are counted; the others lose them first.
    """

    create: int = 0
    indexes: tuple[int, ...] = ()
    annotations: tuple[dict[str, str], ...] = ()
    """Annotations of the pods of `indexes`, where the job counts failures per index."""
    delete: tuple[Pod, ...] = ()
    verdict: JobOutcome | None = None
    wait_s: float | None = None
    is_managed: bool = False
    """Whether the number of pods was looked at: only then the job is suspended or resumed."""


def is_finished(job: Job) -> bool:
    return find_finish_time(job) is not None


def find_finish_time(job: Job) -> datetime | None:
    """When the job finished; None while it runs."""
    ends = [
        job_condition
        for job_condition in job.status.conditions
        if job_condition.type in {COMPLETE, FAILED} and job_condition.status == "True"
    ]
    return ends[0].last_transition_time or job.metadata.creation_timestamp if ends else None


def plan_job(view: JobView) -> JobPlan:
    verdict = _decide_outcome(view)
    if verdict is not None:
        return JobPlan(verdict=verdict, delete=tuple(view.active))
    wait_s = _compute_deadline_s(view)
    if view.job.metadata.deletion_timestamp is not None:
        return JobPlan(wait_s=wait_s)
    plan = _plan_pods(view)
    waits = [item for item in (wait_s, plan.wait_s) if item is not None]
    plan = msgspec.structs.replace(plan, wait_s=min(waits, default=None), is_managed=True)
    if not plan.create and not plan.delete and _is_complete(view):
        return msgspec.structs.replace(plan, verdict=COMPLETED)
    return plan


def set_condition(conditions: tuple[JobCondition, ...], new: JobCondition) -> tuple[JobCondition, ...]:
    """Put in or changed in place; a condition that is false and was not there is left out."""
    for number, old in enumerate(conditions):
        if old.type == new.type:
            if (old.status, old.reason, old.message) == (new.status, new.reason, new.message):
                return conditions
            return (*conditions[:number], new, *conditions[number + 1 :])
    return conditions if new.status == "False" else (*conditions, new)


def build_condition(type_: str, status: str, reason: str, message: str, *, now: datetime) -> JobCondition:
    moment = now.replace(microsecond=0)
    return JobCondition(
        type=type_,
        status=status,
        last_probe_time=moment,
        last_transition_time=moment,
        reason=reason,
        message=message,
    )


# ---- is it over?


def _decide_outcome(view: JobView) -> JobOutcome | None:
    """The outcome is decided once: an existing condition is kept."""
    job = view.job
    for final, interim in ((COMPLETE, SUCCESS_CRITERIA_MET), (FAILED, FAILURE_TARGET)):
        failure_condition = next(
            (
                job_condition
                for job_condition in job.status.conditions
                if job_condition.type == interim and job_condition.status == "True"
            ),
            None,
        )
        if failure_condition is not None:
            return JobOutcome(final=final, reason=failure_condition.reason, message=failure_condition.message)
    if message := _fail_job_message(view):
        return JobOutcome(final=FAILED, reason="PodFailurePolicy", message=message)
    limit = 6 if job.spec.backoff_limit is None else job.spec.backoff_limit
    if count_pods(job, view.pods).failed > limit or _has_restarted_too_often(view, limit):
        return _BACKOFF_LIMIT
    deadline_s = _compute_deadline_s(view)
    if deadline_s is not None and deadline_s <= 0:
        return _DEADLINE
    return _decide_outcome_by_indexes(view) if is_indexed(job) else None


def _fail_job_message(view: JobView) -> str:
    """The pod failure policy's message about a pod that fails the whole job."""
    if view.job.spec.pod_failure_policy is None:
        return ""
    found = (match(view.job, pod) for pod in view.pods if is_failed(view.job, pod))
    return next((item.message for item in found if item is not None and item.action == FAIL_JOB), "")


def _decide_outcome_by_indexes(view: JobView) -> JobOutcome | None:
    job = view.job
    if not has_limits(job) and job.spec.success_policy is None:
        return None
    failed, done = find_failed_indexes(job, view.pods), count_pods(job, view.pods).indexes
    if job.spec.max_failed_indexes is not None and len(failed) > job.spec.max_failed_indexes:
        return _MAX_FAILED_INDEXES
    if failed and len(failed) + len(done) >= get_completions(job):
        return _FAILED_INDEXES
    if message := find_success_message(job, done):
        return JobOutcome(final=COMPLETE, reason="SuccessPolicy", message=message)
    return None


def _is_complete(view: JobView) -> bool:
    done = count_pods(view.job, view.pods).succeeded
    if view.active:
        return False
    return done > 0 if view.job.spec.completions is None else done >= get_completions(view.job)


def _has_restarted_too_often(view: JobView, limit: int) -> bool:
    """Containers that a kubelet restarts count as well."""
    if view.job.spec.template.spec.restart_policy != "OnFailure":
        return False
    running = [pod.status for pod in view.pods if pod.status.phase in {"Running", "Pending"}]
    statuses = [
        container_status
        for status in running
        for container_status in (*status.init_container_statuses, *status.container_statuses)
    ]
    restarts = sum(container_status.restart_count for container_status in statuses)
    return restarts > 0 if limit == 0 else restarts >= limit


def _compute_deadline_s(view: JobView) -> float | None:
    spec = view.job.spec
    if spec.active_deadline_seconds is None or spec.suspend:
        return None
    started = view.job.status.start_time or view.now
    return (add_seconds(started, spec.active_deadline_seconds) - view.now).total_seconds()


# ---- how many pods


def _plan_pods(view: JobView) -> JobPlan:
    job, active = view.job, view.active
    if job.spec.suspend:
        return JobPlan(delete=tuple(active))
    wanted = _count_wanted_active(view)
    surplus = _select_surplus(view, max(0, len(active) - wanted))
    if surplus:
        return JobPlan(delete=surplus[:BURST])
    waiting_for = view.terminating if job.spec.pod_replacement_policy == "Failed" else 0
    missing = wanted - waiting_for - len(active)
    if missing <= 0:
        return JobPlan()
    missing = min(missing, BURST)
    if has_limits(job):
        return _plan_pods_of_limited_indexes(view, missing)
    wait_s = compute_backoff_s(job, view.pods, view.now)
    if wait_s > 0:
        return JobPlan(wait_s=wait_s)
    if not is_indexed(job):
        return JobPlan(create=missing)
    indexes = _find_free_indexes(view, missing)
    return JobPlan(create=len(indexes), indexes=indexes)


def _plan_pods_of_limited_indexes(view: JobView, missing: int) -> JobPlan:
    """Each index waits for itself after a failure; those that may begin do."""
    held = list_held(view)
    waits = {index: compute_index_backoff_s(index, held, view.now) for index in _find_free_indexes(view, missing)}
    indexes = tuple(index for index, wait_s in waits.items() if wait_s <= 0)
    return JobPlan(
        create=len(indexes),
        indexes=indexes,
        annotations=tuple(build_failure_annotations(view.job, held.get(index)) for index in indexes),
        wait_s=min((wait_s for wait_s in waits.values() if wait_s > 0), default=None),
    )


def list_held(view: JobView) -> dict[int, Pod]:
    """Failed pods that wait for their successors, by index."""
    if not has_limits(view.job):
        return {}
    done = count_pods(view.job, view.pods).indexes | find_failed_indexes(view.job, view.pods)
    return find_held_pods(view.job, view.pods, done=done)


def _count_wanted_active(view: JobView) -> int:
    spec = view.job.spec
    parallelism = 1 if spec.parallelism is None else spec.parallelism
    done = count_pods(view.job, view.pods).succeeded
    if spec.completions is None:
        # A work queue: once one has succeeded the others run out, and no new one starts.
        return len(view.active) if done else parallelism
    return max(0, min(parallelism, spec.completions - done))


def _select_surplus(view: JobView, at_least: int) -> tuple[Pod, ...]:
    """Pods without an index of their own, and as many more as are too many."""
    active = view.active
    misplaced = _find_misplaced(view) if is_indexed(view.job) else []
    gone = {pod.metadata.uid for pod in misplaced}
    left = [pod for pod in active if pod.metadata.uid not in gone]
    more = max(0, at_least - len(misplaced))
    return (*misplaced, *(choose_pods_to_delete(left, more, related=active, now=view.now) if more else ()))


def _find_misplaced(view: JobView) -> list[Pod]:
    by_index: dict[int, list[Pod]] = defaultdict(list)
    misplaced: list[Pod] = []
    for pod in view.active:
        index = read_completion_index(pod, below=get_completions(view.job))
        if index is None:
            misplaced.append(pod)
        else:
            by_index[index].append(pod)
    for pods in by_index.values():
        if len(pods) > 1:
            misplaced += choose_pods_to_delete(pods, len(pods) - 1, related=pods, now=view.now)
    return misplaced


def _find_free_indexes(view: JobView, count: int) -> tuple[int, ...]:
    """The lowest indexes without a pod that are not done."""
    below = get_completions(view.job)
    waits_for_leaving = view.job.spec.pod_replacement_policy == "Failed"
    busy = [pod for pod in view.pods if is_active(pod) or (waits_for_leaving and _is_leaving(pod))]
    taken = {read_completion_index(pod, below=below) for pod in busy} | count_pods(view.job, view.pods).indexes
    taken |= find_failed_indexes(view.job, view.pods)
    free = (index for index in range(below) if index not in taken)
    return tuple(index for index, _ in zip(free, range(count), strict=False))


def _is_leaving(pod: Pod) -> bool:
    return pod.metadata.deletion_timestamp is not None and pod.status.phase not in {"Succeeded", "Failed"}


def compute_backoff_s(job: Job, pods: Iterable[Pod], now: datetime) -> float:
    """How long no new pod may be made: twice as long after each failure since the last success."""
    ended = [(end, pod) for pod in pods if (end := find_end_time(pod)) is not None]
    successes = [end for end, pod in ended if pod.status.phase == "Succeeded"]
    since = max(successes, default=None)
    failures = [end for end, pod in ended if is_failed(job, pod) and (since is None or end > since)]
    if not failures:
        return 0.0
    wait_s = min(_FIRST_BACKOFF_S * 2 ** min(len(failures) - 1, 16), _LONGEST_BACKOFF_S)
    return max(0.0, (add_seconds(max(failures), wait_s) - now).total_seconds())


def count_ready(pods: Sequence[Pod]) -> int:
    return sum(map(is_pod_ready, pods))
