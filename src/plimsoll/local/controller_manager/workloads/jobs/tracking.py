"""Job tracking: which pods have ended and how, counted so that none is counted twice. Pure.

A pod that ends still has the job's finalizer, so it cannot vanish. Its uid goes into `uncountedTerminatedPods`; then
the finalizer is removed; then, in one write, the uid leaves that list and the number beside it grows. A crash between
any two of these steps is recovered: a uid in the list whose pod has no finalizer (or is gone) is counted, once. For
completions of an indexed job the index itself is the proof, and no uid is kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from plimsoll.core.values import Value
from plimsoll.local.controller_manager.workloads.jobs.indexes import read_completion_index, read_indexes
from plimsoll.local.controller_manager.workloads.jobs.policies import is_counted
from plimsoll.objects.api.pods import Pod  # noqa: TC001 -- msgspec resolves the annotations of Values at run time
from plimsoll.objects.api.workloads import Job, JobStatus, UncountedTerminatedPods

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from datetime import datetime

TRACKING: Final = "batch.kubernetes.io/job-tracking"
MOST_UNCOUNTED: Final = 500
"""So many uids in a status at most; the rest waits for the next turn."""


class PodCounts(Value):
    """How many pods have succeeded and failed, those not in the status yet included; indexes where the job has them."""

    succeeded: int
    failed: int
    indexes: frozenset[int] = frozenset()


class TrackedEndings(Value):
    """The new status of ended pods, and the pods whose finalizer may be removed once it is written."""

    uncounted: UncountedTerminatedPods
    indexes: frozenset[int]
    release: tuple[Pod, ...]
    is_full: bool = False


def is_indexed(job: Job) -> bool:
    return job.spec.completion_mode == "Indexed"


def get_completions(job: Job) -> int:
    return job.spec.completions or 0


def is_tracked(pod: Pod) -> bool:
    return TRACKING in pod.metadata.finalizers


def is_failed(job: Job, pod: Pod) -> bool:
    """A pod on its way out counts as failed, unless replacements have to wait until it is really over."""
    if pod.status.phase == "Failed":
        return True
    if job.spec.pod_replacement_policy == "Failed":
        return False
    return pod.metadata.deletion_timestamp is not None and pod.status.phase != "Succeeded"


def read_uncounted(job: Job) -> UncountedTerminatedPods:
    return job.status.uncounted_terminated_pods or UncountedTerminatedPods()


def count_pods(job: Job, pods: Iterable[Pod]) -> PodCounts:
    """The numbers as they will be when everything that has ended is counted."""
    uncounted = read_uncounted(job)
    status = job.status
    tracked = [pod for pod in pods if is_tracked(pod) and _has_place(job, pod)]
    new_failed = [pod for pod in tracked if is_failed(job, pod) and pod.metadata.uid not in uncounted.failed]
    failed = [pod for pod in new_failed if is_counted(job, pod)]
    ended = [pod for pod in tracked if pod.status.phase == "Succeeded"]
    indexes = frozenset[int]()
    if is_indexed(job):
        below = get_completions(job)
        found = (read_completion_index(pod, below=below) for pod in ended)
        indexes = read_indexes(status.completed_indexes, below=below) | {item for item in found if item is not None}
        succeeded = len(indexes)
    else:
        new = [pod for pod in ended if pod.metadata.uid not in uncounted.succeeded]
        succeeded = status.succeeded + len(new) + len(uncounted.succeeded)
    return PodCounts(
        succeeded=succeeded,
        failed=status.failed + len(failed) + len(uncounted.failed),
        indexes=indexes,
    )


def track_endings(job: Job, pods: Sequence[Pod], *, finish: str = "", held: Collection[str] = ()) -> TrackedEndings:
    """Record the pods that have ended. When the job finishes (`finish` is the condition) every pod is released.

    Those whose uid is in `held` failed, and wait for their successors before they are counted.

    A job that failed, or that is deleted, counts pods it cuts short as failed; one that succeeded does not count them.
    """
    uncounted = read_uncounted(job)
    succeeded, failed = list(uncounted.succeeded), list(uncounted.failed)
    below = get_completions(job)
    indexes = set(read_indexes(job.status.completed_indexes, below=below)) if is_indexed(job) else set[int]()
    release: list[Pod] = []
    new = 0
    for pod in (
        pods if not is_indexed(job) else sorted(pods, key=lambda pod: read_completion_index(pod, below=below) or 0)
    ):
        is_let_go = bool(finish) or job.metadata.deletion_timestamp is not None
        uid = pod.metadata.uid
        is_over = pod.status.phase == "Succeeded" or (is_failed(job, pod) and uid not in held)
        if not is_tracked(pod) or not (is_let_go or is_over):
            continue
        release.append(pod)
        if pod.status.phase == "Succeeded" and uid not in failed:
            index = read_completion_index(pod, below=below) if is_indexed(job) else None
            if index is not None and index not in indexes:
                indexes.add(index)
                new += 1
            elif not is_indexed(job) and uid not in succeeded:
                succeeded.append(uid)
        elif (is_failed(job, pod) or finish == "Failed") and uid not in failed and _has_place(job, pod):
            failed += [uid] if is_counted(job, pod) else []
        if new + len(succeeded) + len(failed) >= MOST_UNCOUNTED:
            break
    return TrackedEndings(
        uncounted=UncountedTerminatedPods(succeeded=tuple(succeeded), failed=tuple(failed)),
        indexes=frozenset(indexes),
        release=tuple(release),
        is_full=new + len(succeeded) + len(failed) >= MOST_UNCOUNTED,
    )


def move_to_counters(status: JobStatus, *, tracked: Collection[str]) -> JobStatus:
    """Uids whose pods have no finalizer any more (`tracked` are those that have) leave the list and are counted."""
    uncounted = status.uncounted_terminated_pods or UncountedTerminatedPods()
    succeeded = tuple(uid for uid in uncounted.succeeded if uid in tracked)
    failed = tuple(uid for uid in uncounted.failed if uid in tracked)
    return msgspec.structs.replace(
        status,
        succeeded=status.succeeded + len(uncounted.succeeded) - len(succeeded),
        failed=status.failed + len(uncounted.failed) - len(failed),
        uncounted_terminated_pods=UncountedTerminatedPods(succeeded=succeeded, failed=failed),
    )


def set_uncounted(status: JobStatus, book: TrackedEndings, *, tracked: Collection[str]) -> JobStatus:
    """The status to write before finalizers come off: earlier entries whose pods have none are counted by now."""
    status = move_to_counters(status, tracked=tracked)
    return msgspec.structs.replace(
        status,
        uncounted_terminated_pods=UncountedTerminatedPods(
            succeeded=tuple(uid for uid in book.uncounted.succeeded if uid in tracked),
            failed=tuple(uid for uid in book.uncounted.failed if uid in tracked),
        ),
    )


def find_end_time(pod: Pod) -> datetime | None:
    """When a pod ended, if known."""
    statuses = pod.status.container_statuses
    ends = [
        container_status.state.terminated.finished_at
        for container_status in statuses
        if container_status.state.terminated is not None
    ]
    known = [end for end in ends if end is not None]
    if known and len(known) == len(statuses):
        return max(known)
    unready = [
        condition.last_transition_time
        for condition in pod.status.conditions
        if condition.type == "Ready" and condition.status != "True"
    ]
    if unready and unready[0] is not None:
        return unready[0]
    return pod.metadata.deletion_timestamp or pod.metadata.creation_timestamp


def _has_place(job: Job, pod: Pod) -> bool:
    return not is_indexed(job) or read_completion_index(pod, below=get_completions(job)) is not None
