"""Failed indexes of a job with a limit of failures per index (`backoffLimitPerIndex`). Pure.

The pods carry the number of failures of their index: each has that of its predecessors. So the last failed pod is held,
uncounted and with its finalizer, until there is a successor with the next number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.core.durations import add_seconds
from plimsoll.kube.controlled_objects.pod_readiness import is_active
from plimsoll.local.controller_manager.workloads.jobs.indexes import read_completion_index, read_indexes
from plimsoll.local.controller_manager.workloads.jobs.policies import FAIL_INDEX, IGNORE, match
from plimsoll.local.controller_manager.workloads.jobs.tracking import (
    find_end_time,
    get_completions,
    is_failed,
    is_indexed,
    is_tracked,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from datetime import datetime

    from plimsoll.objects.api.pods import Pod
    from plimsoll.objects.api.workloads import Job


FAILURES: Final = "batch.kubernetes.io/job-index-failure-count"
IGNORED_FAILURES: Final = "batch.kubernetes.io/job-index-ignored-failure-count"
_FIRST_BACKOFF_S: Final = 10.0
_LONGEST_BACKOFF_S: Final = 600.0
_MOST_FAILURES: Final = (1 << 31) - 1


def has_limits(job: Job) -> bool:
    return is_indexed(job) and job.spec.backoff_limit_per_index is not None


def find_failed_indexes(job: Job, pods: Iterable[Pod]) -> frozenset[int]:
    """Those the status has, and those that have failed once too often since."""
    if not has_limits(job):
        return frozenset()
    below = get_completions(job)
    found = (read_completion_index(pod, below=below) for pod in pods if is_tracked(pod) and _is_last_failure(job, pod))
    known = read_indexes(job.status.failed_indexes or "", below=below)
    return known | {index for index in found if index is not None}


def find_held_pods(job: Job, pods: Sequence[Pod], *, done: Collection[int]) -> dict[int, Pod]:
    """By index: the last pod that failed, where no other runs and one is still to come (the index is not in `done`)."""
    if not has_limits(job):
        return {}
    below = get_completions(job)
    settled = {*done, *(read_completion_index(pod, below=below) for pod in pods if is_active(pod))}
    held: dict[int, Pod] = {}
    for pod in pods:
        index = read_completion_index(pod, below=below)
        if index is None or index in settled or not is_tracked(pod) or not is_failed(job, pod):
            continue
        if index not in held or _order(held[index]) <= _order(pod):
            held[index] = pod
    return held


def build_failure_annotations(job: Job, replaced: Pod | None) -> dict[str, str]:
    """The annotations of a new pod about the failures before it."""
    failures, ignored = (0, 0) if replaced is None else (_count(replaced, FAILURES), _count(replaced, IGNORED_FAILURES))
    if replaced is not None:
        found = match(job, replaced)
        is_ignored = found is not None and found.action == IGNORE
        failures, ignored = failures + (not is_ignored), ignored + is_ignored
    return {FAILURES: str(failures), **({IGNORED_FAILURES: str(ignored)} if ignored else {})}


def compute_index_backoff_s(index: int, held: Mapping[int, Pod], now: datetime) -> float:
    """How long there may be no new pod of an index: twice as long after each failure of its own."""
    pod = held.get(index)
    end = None if pod is None else find_end_time(pod)
    if pod is None or end is None:
        return 0.0
    wait_s = min(_FIRST_BACKOFF_S * 2 ** min(_get_absolute_count(pod), 16), _LONGEST_BACKOFF_S)
    return max(0.0, (add_seconds(end, wait_s) - now).total_seconds())


def _is_last_failure(job: Job, pod: Pod) -> bool:
    if not is_failed(job, pod):
        return False
    found = match(job, pod)
    if found is not None and found.action in {FAIL_INDEX, IGNORE}:
        return found.action == FAIL_INDEX
    return _count(pod, FAILURES) >= (job.spec.backoff_limit_per_index or 0)


def _order(pod: Pod) -> tuple[int, float]:
    end = find_end_time(pod)
    return _get_absolute_count(pod), 0.0 if end is None else end.timestamp()


def _get_absolute_count(pod: Pod) -> int:
    return _count(pod, FAILURES) + _count(pod, IGNORED_FAILURES)


def _count(pod: Pod, annotation: str) -> int:
    """Users may write it: anything but a 32-bit number is 0."""
    text = pod.metadata.annotations.get(annotation, "")
    number = int(text) if text.isascii() and text.isdigit() and len(text) <= len(str(_MOST_FAILURES)) else 0
    return number if number <= _MOST_FAILURES else 0
