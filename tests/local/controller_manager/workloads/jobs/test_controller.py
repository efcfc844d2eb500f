"""Jobs: how many pods, when they are over, and that every pod is counted exactly once."""

from __future__ import annotations

from typing import Any

from plimsoll.local.controller_manager.workloads.jobs.controller import build_job_services
from tests.local.controller_manager.workloads.builders import (
    JOBS,
    PODS,
    CrashingWorkloadCluster,
    WorkloadCluster,
    job,
    sweep_crashes,
)

_TRACKING = "batch.kubernetes.io/job-tracking"


def _status(world: WorkloadCluster, name: str = "j") -> Any:
    return world.get(f"{JOBS}/{name}")["status"]


def _conditions(world: WorkloadCluster) -> list[tuple[str, str]]:
    return [
        (condition["type"], condition["reason"])
        for condition in _status(world).get("conditions", [])
        if condition["status"] == "True"
    ]


def _unended(world: WorkloadCluster) -> list[str]:
    pods = [pod for pod in world.pods if pod["status"]["phase"] not in {"Succeeded", "Failed"}]
    return sorted(pod["metadata"]["name"] for pod in pods)


def _end_all(world: WorkloadCluster, phase: str = "Succeeded") -> None:
    for name in _unended(world):
        world.phase(name, phase)
    world.run.advance_by(2)


def test_a_job_never_runs_more_pods_than_are_missing():
    with WorkloadCluster() as world:
        world.make(JOBS, job(completions=3, parallelism=2))
        assert len(_unended(world)) == 2
        _end_all(world)
        assert len(_unended(world)) == 1
        _end_all(world)
        assert _status(world)["succeeded"] == 3
        assert _conditions(world) == [
            ("SuccessCriteriaMet", "CompletionsReached"),
            ("Complete", "CompletionsReached"),
        ]
        assert not any(_TRACKING in pod["metadata"].get("finalizers", []) for pod in world.pods)


def test_a_work_queue_is_done_when_one_has_succeeded_and_the_others_have_ended():
    with WorkloadCluster() as world:
        world.make(JOBS, {**job(), "spec": {**job()["spec"], "parallelism": 2, "completions": None}})
        first, second = _unended(world)
        world.phase(first, "Succeeded")
        world.run.advance_by(2)
        assert _unended(world) == [second]
        assert _conditions(world) == []
        _end_all(world)
        assert ("Complete", "CompletionsReached") in _conditions(world)


def test_after_a_failure_the_next_pod_waits_longer_each_time():
    with WorkloadCluster() as world:
        world.make(JOBS, job())
        _end_all(world, "Failed")
        assert _unended(world) == []
        world.run.advance_by(9)
        assert len(_unended(world)) == 1
        _end_all(world, "Failed")
        world.run.advance_by(15)
        assert _unended(world) == []
        world.run.advance_by(5)
        assert len(_unended(world)) == 1
        assert _status(world)["failed"] == 2


def test_too_many_failures_end_the_job_and_the_pods_that_still_run():
    with WorkloadCluster() as world:
        world.make(JOBS, job(parallelism=2, completions=2, backoffLimit=0))
        world.phase(_unended(world)[0], "Failed")
        world.run.advance_by(5)
        assert _unended(world) == []
        assert _conditions(world) == [
            ("FailureTarget", "BackoffLimitExceeded"),
            ("Failed", "BackoffLimitExceeded"),
        ]
        assert _status(world)["failed"] == 2
        assert ("BackoffLimitExceeded", "Job has reached the specified backoff limit") in world.reported("Job")


def test_a_job_past_its_deadline_fails():
    with WorkloadCluster() as world:
        world.make(JOBS, job(activeDeadlineSeconds=30))
        world.run.advance_by(29)
        assert _conditions(world) == []
        world.run.advance_by(5)
        assert ("Failed", "DeadlineExceeded") in _conditions(world)
        assert world.names == []


def test_a_suspended_job_gives_its_pods_up_without_counting_them_and_goes_on_when_resumed():
    with WorkloadCluster() as world:
        world.make(JOBS, job(parallelism=2, completions=2))
        world.run.advance_by(10)
        world.patch(f"{JOBS}/j", {"spec": {"suspend": True}})
        world.run.advance_by(5)
        assert world.names == []
        assert _conditions(world) == [("Suspended", "JobSuspended")]
        assert "failed" not in _status(world)
        world.patch(f"{JOBS}/j", {"spec": {"suspend": False}})
        world.run.advance_by(5)
        assert len(_unended(world)) == 2
        assert _status(world)["startTime"] == "2026-01-01T00:00:15Z"
        assert [reason for reason, _ in world.reported("Job") if reason in {"Suspended", "Resumed"}] == [
            "Suspended",
            "Resumed",
        ]


def test_less_parallelism_takes_pods_away():
    with WorkloadCluster() as world:
        world.make(JOBS, job(parallelism=3, completions=5))
        world.run.advance_by(2)
        world.patch(f"{JOBS}/j", {"spec": {"parallelism": 1}})
        world.run.advance_by(2)
        assert len(_unended(world)) == 1
        assert _status(world)["active"] == 1
        assert "failed" not in _status(world)


def test_an_index_that_failed_is_tried_again_and_one_that_succeeded_is_not():
    with WorkloadCluster() as world:
        world.make(JOBS, job(parallelism=3, completions=3, completionMode="Indexed"))
        zero, one, two = _unended(world)
        assert [name[:3] for name in (zero, one, two)] == ["j-0", "j-1", "j-2"]
        world.phase(zero, "Succeeded")
        world.phase(two, "Succeeded")
        world.phase(one, "Failed")
        world.run.advance_by(2)
        assert (_status(world)["completedIndexes"], _status(world)["failed"]) == ("0,2", 1)
        world.run.advance_by(15)
        assert [name[:3] for name in _unended(world)] == ["j-1"]
        _end_all(world)
        assert (_status(world)["completedIndexes"], _status(world)["succeeded"]) == ("0-2", 3)


def test_a_finished_job_is_deleted_when_its_time_is_up():
    with WorkloadCluster() as world:
        world.make(JOBS, job(ttlSecondsAfterFinished=60))
        _end_all(world)
        world.run.advance_by(50)
        assert "deletionTimestamp" not in world.get(f"{JOBS}/j")["metadata"]
        world.run.advance_by(20)
        left = world.get(f"{JOBS}/j")
        assert left["kind"] == "Status" or left["metadata"]["deletionTimestamp"]


def test_pods_of_a_job_that_is_gone_are_let_go():
    with WorkloadCluster() as world:
        world.make(JOBS, job())
        world.ask("DELETE", f"{JOBS}/j", {"propagationPolicy": "Background"})
        world.run.advance_by(5)
        assert not any(_TRACKING in pod["metadata"].get("finalizers", []) for pod in world.pods)


def test_a_pod_that_is_deleted_counts_as_failed_once():
    with WorkloadCluster() as world:
        world.make(JOBS, job())
        world.run.advance_by(2)
        world.delete(f"{PODS}/{world.names[0]}")
        world.run.advance_by(30)
        assert _status(world)["failed"] == 1
        assert len(_unended(world)) == 1


def test_a_job_of_another_controller_is_left_alone():
    with WorkloadCluster() as world:
        world.make(JOBS, job(managedBy="example.com/other"))
        world.run.advance_by(5)
        assert world.names == []


def test_a_job_without_labels_of_its_own_shares_those_of_its_template():
    with WorkloadCluster() as world:
        made = world.make(JOBS, job(suspend=True))
        labels = made["metadata"]["labels"]
        assert labels == made["spec"]["template"]["metadata"]["labels"]
        assert labels["job-name"] == "j"


def test_a_crash_after_any_call_counts_every_pod_once():
    def story(world: CrashingWorkloadCluster) -> None:
        wanted = job(parallelism=2, completions=2)
        world.surviving(lambda: world.ask("POST", JOBS, wanted))
        world.surviving(lambda: world.run.advance_by(10))
        first = _unended(world)[0]
        world.surviving(lambda: world.phase(first, "Failed"))
        world.surviving(lambda: world.run.advance_by(20))
        world.surviving(lambda: _end_all(world))
        world.surviving(lambda: world.run.advance_by(20))
        status = _status(world)
        assert (status["succeeded"], status["failed"], status.get("active", 0)) == (2, 1, 0)
        assert ("Complete", "CompletionsReached") in _conditions(world)
        assert len(world.pods) == 3

    assert sweep_crashes(build_job_services, story) > 15
