"""Pod failure policies, limits of failures for each index, and success policies, as Kubernetes has them."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from plimsoll.local.controller_manager.workloads.jobs.controller import build_job_services
from plimsoll.local.controller_manager.workloads.jobs.policies import match
from plimsoll.objects.api.meta import ObjectMeta
from plimsoll.objects.api.pods import (
    ContainerState,
    ContainerStateTerminated,
    ContainerStatus,
    Pod,
    PodCondition,
    PodStatus,
)
from plimsoll.objects.api.workloads import (
    Job,
    JobSpec,
    PodFailurePolicy,
    PodFailurePolicyOnExitCodesRequirement,
    PodFailurePolicyOnPodConditionsPattern,
    PodFailurePolicyRule,
)
from tests.local.controller_manager.workloads.builders import (
    JOBS,
    PODS,
    CrashingWorkloadCluster,
    WorkloadCluster,
    job,
    sweep_crashes,
)

FAILURES = "batch.kubernetes.io/job-index-failure-count"
IGNORED = "batch.kubernetes.io/job-index-ignored-failure-count"
TRACKING = "batch.kubernetes.io/job-tracking"
DISRUPTED = {"onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}


def _status(world: WorkloadCluster) -> Any:
    return world.get(f"{JOBS}/j")["status"]


def _conditions(world: WorkloadCluster) -> list[tuple[str, str, str]]:
    reported = _status(world).get("conditions", [])
    return [(item["type"], item["reason"], item["message"]) for item in reported if item["status"] == "True"]


def _unended(world: WorkloadCluster) -> dict[int, Any]:
    """By index; of a job without indexes all count as 0."""
    key = "batch.kubernetes.io/job-completion-index"
    pods = [pod for pod in world.pods if pod["status"]["phase"] not in {"Succeeded", "Failed"}]
    return {int(pod["metadata"].get("annotations", {}).get(key, 0)): pod for pod in pods}


def _ends(world: WorkloadCluster, index: int = 0, *, code: int = 1, disrupted: bool = False, after_s: float = 2) -> str:
    name: str = _unended(world)[index]["metadata"]["name"]
    now = "2026-01-01T00:00:00Z"
    terminated = {"exitCode": code, "startedAt": now, "finishedAt": now}
    status: dict[str, Any] = {
        "phase": "Failed" if code else "Succeeded",
        "conditions": [{"type": "DisruptionTarget", "status": "True"}] if disrupted else [],
        "containerStatuses": [
            {
                "name": "c",
                "image": "i",
                "imageID": "",
                "ready": False,
                "restartCount": 0,
                "state": {"terminated": terminated},
            }
        ],
    }
    world.patch(f"{PODS}/{name}/status", {"status": status})
    world.run.advance_by(after_s)
    return name


def _policy(*rules: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return job(podFailurePolicy={"rules": list(rules)}, **spec)


def _on_codes(action: str, *codes: int, operator: str = "In") -> dict[str, Any]:
    return {"action": action, "onExitCodes": {"operator": operator, "values": list(codes)}}


# ---- pod failure policy


def test_an_exit_code_that_fails_the_job_ends_it_at_once():
    with WorkloadCluster() as world:
        world.make(JOBS, _policy(_on_codes("FailJob", 42), completions=2, parallelism=2))
        name = _ends(world, code=42, after_s=60)
        message = f"Container c for pod here/{name} failed with exit code 42 matching FailJob rule at index 0"
        assert _conditions(world) == [
            ("FailureTarget", "PodFailurePolicy", message),
            ("Failed", "PodFailurePolicy", message),
        ]
        assert _unended(world) == {}
        assert not any(TRACKING in pod["metadata"].get("finalizers", []) for pod in world.pods)


def test_another_exit_code_is_retried():
    with WorkloadCluster() as world:
        world.make(JOBS, _policy(_on_codes("FailJob", 42)))
        _ends(world, code=1, after_s=60)
        assert _conditions(world) == []
        assert len(_unended(world)) == 1
        assert _status(world)["failed"] == 1


def test_an_ignored_failure_is_not_counted_and_is_made_up_for():
    with WorkloadCluster() as world:
        world.make(JOBS, _policy({"action": "Ignore", **DISRUPTED}, backoffLimit=0))
        _ends(world, disrupted=True, after_s=60)
        assert "failed" not in _status(world)
        assert _conditions(world) == []
        _ends(world, code=0, after_s=60)
        assert _conditions(world)[-1][:2] == ("Complete", "CompletionsReached")


def test_the_first_rule_that_matches_decides():
    with WorkloadCluster() as world:
        world.make(JOBS, _policy(_on_codes("Count", 42), _on_codes("FailJob", 42), backoffLimit=3))
        _ends(world, code=42, after_s=60)
        assert _conditions(world) == []
        assert _status(world)["failed"] == 1


def _failed(code: int, *, container: str = "c", condition: str = "") -> Pod:
    ended = ContainerState(terminated=ContainerStateTerminated(exit_code=code))
    return Pod(
        metadata=ObjectMeta(name="p", namespace="ns"),
        status=PodStatus(
            phase="Failed",
            conditions=(PodCondition(type=condition, status="True"),) if condition else (),
            container_statuses=(ContainerStatus(name=container, state=ended),),
        ),
    )


def _one_rule(rule: PodFailurePolicyRule) -> Job:
    return Job(spec=JobSpec(pod_failure_policy=PodFailurePolicy(rules=(rule,))))


@pytest.mark.parametrize(
    ("requirement", "pod", "is_matched"),
    [
        (PodFailurePolicyOnExitCodesRequirement(operator="In", values=(3,)), _failed(3), True),
        (PodFailurePolicyOnExitCodesRequirement(operator="In", values=(3,)), _failed(4), False),
        (PodFailurePolicyOnExitCodesRequirement(operator="NotIn", values=(3,)), _failed(4), True),
        (PodFailurePolicyOnExitCodesRequirement(operator="NotIn", values=(3,)), _failed(3), False),
        (PodFailurePolicyOnExitCodesRequirement(operator="NotIn", values=(3,)), _failed(0), False),
        (PodFailurePolicyOnExitCodesRequirement(operator="In", values=(3,), container_name="other"), _failed(3), False),
        (PodFailurePolicyOnExitCodesRequirement(operator="Odd", values=(3,)), _failed(3), False),
    ],
)
def test_exit_codes(requirement: PodFailurePolicyOnExitCodesRequirement, pod: Pod, is_matched: bool):
    found = match(_one_rule(PodFailurePolicyRule(action="FailJob", on_exit_codes=requirement)), pod)
    assert (found is not None) is is_matched


def test_the_sentence_about_a_condition():
    rule = PodFailurePolicyRule(
        action="FailJob", on_pod_conditions=(PodFailurePolicyOnPodConditionsPattern(type="ConfigIssue"),)
    )
    found = match(_one_rule(rule), _failed(1, condition="ConfigIssue"))
    assert found is not None
    assert found.message == "Pod ns/p has condition ConfigIssue matching FailJob rule at index 0"


# ---- limits of failures for each index


def _limited(**spec: Any) -> dict[str, Any]:
    whole = {"completionMode": "Indexed", "backoffLimitPerIndex": 1, "completions": 2, "parallelism": 2}
    return job(**{**whole, **spec})


def test_an_index_that_fails_once_too_often_fails_alone():
    with WorkloadCluster() as world:
        world.make(JOBS, _limited())
        assert _status(world)["failedIndexes"] == ""
        _ends(world, 0, after_s=60)
        assert _unended(world)[0]["metadata"]["annotations"][FAILURES] == "1"
        assert _status(world)["failed"] == 1
        _ends(world, 0, after_s=60)
        assert (_status(world)["failedIndexes"], _status(world)["failed"]) == ("0", 2)
        assert (list(_unended(world)), _conditions(world)) == ([1], [])
        _ends(world, 1, code=0, after_s=60)
        assert _status(world)["completedIndexes"] == "1"
        assert _conditions(world) == [
            ("FailureTarget", "FailedIndexes", "Job has failed indexes"),
            ("Failed", "FailedIndexes", "Job has failed indexes"),
        ]


def test_a_failed_pod_is_held_until_its_successor_is_there():
    with WorkloadCluster() as world:
        world.make(JOBS, _limited())
        name = _ends(world, 0, after_s=2)
        world.delete(f"{PODS}/{name}")
        world.run.advance_by(5)
        assert name in world.names


def test_an_index_waits_for_itself_alone():
    with WorkloadCluster() as world:
        world.make(JOBS, _limited(completions=3, backoffLimitPerIndex=5))
        world.phase(_unended(world)[0]["metadata"]["name"], "Failed")
        world.run.advance_by(3)
        assert sorted(_unended(world)) == [1]
        _ends(world, 1, code=0, after_s=2)
        assert 0 not in _unended(world)
        world.run.advance_by(10)
        assert sorted(_unended(world)) == [0, 2]


def test_too_many_failed_indexes_fail_the_job():
    with WorkloadCluster() as world:
        world.make(JOBS, _limited(completions=4, backoffLimitPerIndex=0, maxFailedIndexes=1))
        _ends(world, 0, after_s=60)
        assert _conditions(world) == []
        _ends(world, 1, after_s=60)
        message = "Job has exceeded the specified maximal number of failed indexes"
        assert _conditions(world) == [
            ("FailureTarget", "MaxFailedIndexesExceeded", message),
            ("Failed", "MaxFailedIndexesExceeded", message),
        ]
        assert (_status(world)["failedIndexes"], _unended(world)) == ("0,1", {})


def test_a_rule_fails_an_index_whatever_its_limit():
    with WorkloadCluster() as world:
        limits = {"completionMode": "Indexed", "backoffLimitPerIndex": 5, "completions": 2, "parallelism": 2}
        world.make(JOBS, _policy(_on_codes("FailIndex", 42), **limits))
        _ends(world, 1, code=42, after_s=60)
        assert (_status(world)["failedIndexes"], list(_unended(world))) == ("1", [0])


def test_ignored_failures_of_an_index_are_counted_apart():
    with WorkloadCluster() as world:
        limits = {"completionMode": "Indexed", "backoffLimitPerIndex": 0, "completions": 1, "parallelism": 1}
        world.make(JOBS, _policy({"action": "Ignore", **DISRUPTED}, **limits))
        _ends(world, disrupted=True, after_s=60)
        annotations = _unended(world)[0]["metadata"]["annotations"]
        assert (annotations[FAILURES], annotations[IGNORED]) == ("0", "1")
        assert _status(world)["failedIndexes"] == ""


def test_a_crash_after_any_call_counts_the_failures_of_an_index_once():
    def story(world: CrashingWorkloadCluster) -> None:
        world.surviving(lambda: world.ask("POST", JOBS, _limited(completions=1, parallelism=1)))
        world.surviving(lambda: world.run.advance_by(10))
        for _ in range(2):
            (name,) = [pod["metadata"]["name"] for pod in _unended(world).values()]
            world.surviving(partial(world.phase, name, "Failed"))
            world.surviving(lambda: world.run.advance_by(40))
        status = _status(world)
        assert (status["failedIndexes"], status["failed"], status.get("active", 0)) == ("0", 2, 0)
        assert _conditions(world)[-1][:2] == ("Failed", "FailedIndexes")
        assert len(world.pods) == 2

    assert sweep_crashes(build_job_services, story) > 15


# ---- success policy


@pytest.mark.parametrize(
    ("rules", "leaders", "index"),
    [
        ([{"succeededCount": 2}], (0, 2), 0),
        ([{"succeededIndexes": "3"}, {"succeededIndexes": "0,2"}], (0, 2), 1),
        ([{"succeededIndexes": "0-2", "succeededCount": 1}], (1,), 0),
    ],
)
def test_a_success_policy_ends_a_job_before_all_is_done(rules: list[Any], leaders: tuple[int, ...], index: int):
    with WorkloadCluster() as world:
        spec: dict[str, Any] = {
            "completionMode": "Indexed",
            "completions": 4,
            "parallelism": 4,
            "successPolicy": {"rules": rules},
        }
        world.make(JOBS, job(**spec))
        for number in leaders:
            assert _conditions(world) == []
            _ends(world, number, code=0, after_s=60)
        message = f"Matched rules at index {index}"
        assert _conditions(world) == [
            ("SuccessCriteriaMet", "SuccessPolicy", message),
            ("Complete", "SuccessPolicy", message),
        ]
        assert (_status(world)["succeeded"], _status(world).get("failed", 0)) == (len(leaders), 0)
        assert _unended(world) == {}
