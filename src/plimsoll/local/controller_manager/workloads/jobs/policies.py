"""Pod failure policies and success policies of a job. Pure.

The first rule of a pod failure policy that matches a failed pod decides whether the job fails with it, only its index,
or whether the failure counts at all. A success policy ends an indexed job before all its indexes are done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.core.values import Value
from plimsoll.local.controller_manager.workloads.jobs.indexes import read_indexes

if TYPE_CHECKING:
    from collections.abc import Collection

    from plimsoll.objects.api.pods import ContainerStatus, Pod
    from plimsoll.objects.api.workloads import Job, PodFailurePolicyOnExitCodesRequirement, PodFailurePolicyRule

FAIL_JOB: Final = "FailJob"
FAIL_INDEX: Final = "FailIndex"
IGNORE: Final = "Ignore"
COUNT: Final = "Count"
_ACTIONS: Final = (FAIL_JOB, FAIL_INDEX, IGNORE, COUNT)


class Match(Value):
    """The rule a pod came under: what is to be done, and the sentence about it."""

    action: str
    message: str


def match(job: Job, pod: Pod) -> Match | None:
    """The first rule for this pod. Rules with an unknown action are skipped."""
    policy = job.spec.pod_failure_policy
    for number, rule in enumerate(policy.rules if policy is not None else ()):
        why = _format_failure(rule, pod) if rule.action in _ACTIONS else ""
        if why:
            return Match(action=rule.action, message=f"{why} matching {rule.action} rule at index {number}")
    return None


def is_counted(job: Job, pod: Pod) -> bool:
    """Whether a failure of this pod is one of the job."""
    found = match(job, pod) if job.spec.pod_failure_policy is not None else None
    return found is None or found.action != IGNORE


def find_success_message(job: Job, succeeded: Collection[int]) -> str:
    """The rule by which enough indexes have succeeded; empty: none."""
    policy = job.spec.success_policy
    if policy is None or not succeeded:
        return ""
    for number, rule in enumerate(policy.rules):
        count = rule.succeeded_count
        if rule.succeeded_indexes is None:
            is_met = count is not None and len(succeeded) >= count
        else:
            wanted = read_indexes(rule.succeeded_indexes, below=job.spec.completions or 0)
            done = len(wanted.intersection(succeeded))
            is_met = bool(wanted) and (done == len(wanted) or (count is not None and done >= count))
        if is_met:
            return f"Matched rules at index {number}"
    return ""


def _format_failure(rule: PodFailurePolicyRule, pod: Pod) -> str:
    name = f"{pod.metadata.namespace}/{pod.metadata.name}"
    if rule.on_exit_codes is not None:
        found = _find_container(rule.on_exit_codes, pod)
        if found is None or found.state.terminated is None:
            return ""
        return f"Container {found.name} for pod {name} failed with exit code {found.state.terminated.exit_code}"
    wanted = {(pattern.type, pattern.status) for pattern in rule.on_pod_conditions}
    matching_condition = next(
        (condition for condition in pod.status.conditions if (condition.type, condition.status) in wanted), None
    )
    return "" if matching_condition is None else f"Pod {name} has condition {matching_condition.type}"


def _find_container(wanted: PodFailurePolicyOnExitCodesRequirement, pod: Pod) -> ContainerStatus | None:
    for container_status in (*pod.status.container_statuses, *pod.status.init_container_statuses):
        ended = container_status.state.terminated
        if ended is None or not ended.exit_code or wanted.container_name not in {None, container_status.name}:
            continue
        if wanted.operator in {"In", "NotIn"} and (ended.exit_code in wanted.values) == (wanted.operator == "In"):
            return container_status
    return None
