"""The job planner and its books: nothing is counted twice whatever is interrupted, and a job comes to its end."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.local.controller_manager.workloads.jobs.indexes import (
    INDEX_KEY,
    format_indexes,
    read_completion_index,
    read_indexes,
)
from plimsoll.local.controller_manager.workloads.jobs.plan import COMPLETE, JobView, compute_backoff_s, plan_job
from plimsoll.local.controller_manager.workloads.jobs.tracking import (
    TRACKING,
    count_pods,
    is_tracked,
    move_to_counters,
    track_endings,
)
from plimsoll.objects.api.meta import ObjectMeta
from plimsoll.objects.api.pods import Pod, PodCondition, PodStatus
from plimsoll.objects.api.workloads import Job, JobSpec

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def _pod(number: int, phase: str = "Running", *, index: int | None = None, ended_s: float = 0) -> Pod:
    moment = NOW - timedelta(seconds=ended_s)
    metadata = ObjectMeta(
        name=f"p{number}",
        uid=f"u{number}",
        finalizers=(TRACKING,),
        annotations={} if index is None else {INDEX_KEY: str(index)},
        creation_timestamp=moment,
    )
    condition = PodCondition(type="Ready", status="False", last_transition_time=moment)
    return Pod(metadata=metadata, status=PodStatus(phase=phase, conditions=(condition,)))


def _job(**spec: object) -> Job:
    whole = {"completions": 1, "parallelism": 1, "backoff_limit": 6, **spec}
    return Job(metadata=ObjectMeta(name="j", uid="j"), spec=JobSpec(**whole))  # type: ignore[arg-type] # fields by name


def _released(pod: Pod) -> Pod:
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, finalizers=()))


@given(
    phases=st.lists(st.sampled_from(["Running", "Succeeded", "Failed"]), max_size=8),
    interruptions=st.lists(st.integers(0, 3), max_size=6),
    are_deleted=st.booleans(),
)
@settings(max_examples=300, deadline=None)
def test_every_pod_that_ended_is_counted_once_wherever_a_turn_is_cut_short(
    phases: list[str], interruptions: list[int], are_deleted: bool
):
    job = _job(completions=20, parallelism=20, backoff_limit=100)
    pods = [_pod(number, phase) for number, phase in enumerate(phases)]
    truth = (phases.count("Succeeded"), phases.count("Failed"))
    for last_step in [*interruptions, 3, 3]:
        found = count_pods(job, pods)
        assert (found.succeeded, found.failed) == truth
        book = track_endings(job, pods)
        if last_step >= 1:
            status = msgspec.structs.replace(job.status, uncounted_terminated_pods=book.uncounted)
            tracked = {pod.metadata.uid for pod in pods if is_tracked(pod)}
            job = msgspec.structs.replace(job, status=move_to_counters(status, tracked=tracked))
        if last_step >= 2:
            gone = {pod.metadata.uid for pod in book.release}
            pods = [_released(pod) if pod.metadata.uid in gone else pod for pod in pods]
            if are_deleted:
                pods = [pod for pod in pods if is_tracked(pod)]
        if last_step >= 3:
            tracked = {pod.metadata.uid for pod in pods if is_tracked(pod)}
            job = msgspec.structs.replace(job, status=move_to_counters(job.status, tracked=tracked))
    assert (job.status.succeeded, job.status.failed) == truth
    assert job.status.uncounted_terminated_pods is not None
    assert not job.status.uncounted_terminated_pods.succeeded


@given(completions=st.integers(0, 6), parallelism=st.integers(0, 4), indexed=st.booleans(), fails=st.data())
@settings(max_examples=150, deadline=None)
def test_a_job_comes_to_its_end_and_never_has_too_many_pods_or_two_of_an_index(
    completions: int, parallelism: int, indexed: bool, fails: st.DataObject
):
    mode = "Indexed" if indexed else "NonIndexed"
    job = _job(completions=completions, parallelism=parallelism, backoff_limit=50, completion_mode=mode)
    pods: list[Pod] = []
    for number in range(60):
        # Long enough after the last failure for the wait to be over.
        view = JobView(job=job, pods=tuple(pods), now=NOW + timedelta(hours=number))
        plan = plan_job(view)
        if plan.verdict is not None or not (plan.create or view.active):
            break
        news = [_pod(100 * number + item, index=plan.indexes[item] if indexed else None) for item in range(plan.create)]
        active = [*view.active, *news]
        assert len(active) <= min(parallelism, completions)
        if indexed:
            indexes = [pod.metadata.annotations[INDEX_KEY] for pod in active]
            assert len(indexes) == len(set(indexes))
        ends = [fails.draw(st.sampled_from(["Succeeded", "Succeeded", "Failed"])) for _ in active]
        ended = [
            msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, phase=end))
            for pod, end in zip(active, ends, strict=True)
        ]
        names = {pod.metadata.name for pod in ended}
        pods = [*(pod for pod in pods if pod.metadata.name not in names), *ended]
    if parallelism or not completions:
        assert plan.verdict is not None
        if plan.verdict.final == COMPLETE:
            assert count_pods(job, pods).succeeded == completions


@pytest.mark.parametrize(
    ("ended_s", "wait_s"), [([], 0), ([0], 10), ([4], 6), ([30, 0], 20), ([90, 60, 0], 40), ([1] * 12, 599), ([700], 0)]
)
def test_the_wait_doubles_with_each_failure_up_to_ten_minutes(ended_s: list[float], wait_s: float):
    pods = [_pod(number, "Failed", ended_s=item) for number, item in enumerate(ended_s)]
    assert compute_backoff_s(_job(), pods, NOW) == wait_s


def test_a_success_ends_the_wait():
    pods = [_pod(1, "Failed", ended_s=5), _pod(2, "Succeeded", ended_s=1)]
    assert compute_backoff_s(_job(), pods, NOW) == 0


@given(st.frozensets(st.integers(0, 40)))
def test_indexes_are_read_as_they_were_written(indexes: frozenset[int]):
    assert read_indexes(format_indexes(indexes), below=41) == indexes


@pytest.mark.parametrize(("indexes", "text"), [((), ""), ((0,), "0"), ((1, 3, 4, 5, 7), "1,3-5,7"), ((0, 1), "0,1")])
def test_runs_of_three_indexes_and_more_are_written_as_ranges(indexes: tuple[int, ...], text: str):
    assert format_indexes(indexes) == text


@pytest.mark.parametrize(
    ("text", "index"), [("3", 3), ("4", None), ("", None), ("-1", None), ("²", None), ("9" * 5_000, None)]
)
def test_an_index_is_a_number_below_that_of_completions_whatever_the_annotation_says(text: str, index: int | None):
    pod = Pod(metadata=ObjectMeta(name="p", annotations={INDEX_KEY: text}))
    assert read_completion_index(pod, below=4) == index


@pytest.mark.parametrize("nonsense", ["x", "9" * 5_000, f"0-{'9' * 5_000}"])
def test_what_is_no_index_is_left_out_of_those_read(nonsense: str):
    assert read_indexes(f"1,{nonsense},3", below=4) == {1, 3}
