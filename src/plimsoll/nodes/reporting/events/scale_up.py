"""Events about scale-up: on the status ConfigMap and on each pending pod. Pure.

Reasons and messages are Cluster Autoscaler's (docs/design/nodes.md 11), so that tools that read its Events work.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from plimsoll.nodes.config.expander_priorities import CONFIG_MAP, compile_pattern
from plimsoll.nodes.config.policy import PRIORITY
from plimsoll.nodes.model.reasons import (
    CONSUMING,
    DELETE_UNREGISTERED,
    IN_BACKOFF,
    MAX_NODES_REACHED,
    MAX_NODES_TOTAL,
    MAX_SIZE_REACHED,
    NEW_LABEL,
    NO_PRIORITY,
    NOT_READY,
)
from plimsoll.nodes.reporting.events.messages import (
    WARNING,
    EventMessage,
    build_config_map_reference,
    build_pod_reference,
    build_status_map_reference,
)
from plimsoll.nodes.reporting.events.pod_outcomes import PodEventGroups, find_pod_outcomes
from plimsoll.nodes.reporting.min_size_enforcement import find_raised_groups, is_min_size_repair
from plimsoll.objects.api.provisioning_requests import CONSUME_ANNOTATIONS

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator

    from plimsoll.core.plans import Reason
    from plimsoll.nodes.loop_result import LoopResult
    from plimsoll.nodes.model.call_outcomes import CallFailed
    from plimsoll.nodes.model.results import FilteredPod, GroupRepair, ScaleUpResult
    from plimsoll.objects.api.meta import ObjectReference

TRIGGERED: Final = "TriggeredScaleUp"
NOT_TRIGGERED: Final = "NotTriggerScaleUp"
IGNORED: Final = "IgnoredInScaleUp"
_IGNORED_PODS: Final = 50
"""The number per loop; the next loop reports others."""
# Cluster Autoscaler's words where the planner is shorter.
_WORDS: Final = {
    MAX_SIZE_REACHED: "max node group size reached",
    IN_BACKOFF: "in backoff after failed scale-up",
    NOT_READY: "not ready for scale-up",
}


def build_scale_up_events(loop: LoopResult, recent: Container[EventMessage] = ()) -> Iterator[EventMessage]:
    """`recent`: Events that need no repetition."""
    yield from _build_repair_events(loop)
    yield from _build_group_events(loop)
    yield from _build_limit_events(loop)
    yield from _build_priority_events(loop)
    yield from _build_pod_events(loop)
    yield from islice((message for message in _build_ignored_events(loop) if message not in recent), _IGNORED_PODS)


# ---- the status ConfigMap


def _build_repair_events(loop: LoopResult) -> Iterator[EventMessage]:
    status = build_status_map_reference(loop.policy)
    for failed in loop.changes.failed:
        yield EventMessage(about=status, type=WARNING, reason=failed.reason.code, message=failed.reason.message)
    for repaired in loop.repairs:
        if repaired.reason.code == DELETE_UNREGISTERED:
            yield from _build_unregistered_events(repaired, loop)
        elif not is_min_size_repair(repaired) and not repaired.instances and repaired.failure is not None:
            message = f"Failed to revert scale-up of group {repaired.group}: {repaired.failure.message}"
            yield EventMessage(about=status, type=WARNING, reason="FailedToRevertScaleUp", message=message)


def _build_unregistered_events(repair: GroupRepair, loop: LoopResult) -> Iterator[EventMessage]:
    status = build_status_map_reference(loop.policy)
    for name in repair.instances:
        if repair.failure is None:
            yield EventMessage(about=status, reason="DeleteUnregistered", message=f"Removed unregistered node {name}")
        else:
            message = f"Failed to remove node {name}: {repair.failure.message}"
            yield EventMessage(about=status, type=WARNING, reason="DeleteUnregisteredFailed", message=message)


def _build_group_events(loop: LoopResult) -> Iterator[EventMessage]:
    for result in loop.scale_up_results:
        if result.held_back is None:
            yield from _build_result_events(result, loop)
    for raised in find_raised_groups(loop):
        sizes = _Sizes(raised.before, raised.after, raised.max_size)
        yield from _build_resize_events(
            raised.group, sizes, raised.failure, about=build_status_map_reference(loop.policy)
        )


def _build_result_events(result: ScaleUpResult, loop: LoopResult) -> Iterator[EventMessage]:
    status = build_status_map_reference(loop.policy)
    if result.created:
        message = f"NodeAutoprovisioning: created new node group {result.group}"
        yield EventMessage(about=status, reason="CreatedNodeGroup", message=message)
        for cause in result.scale_up.reason.because:
            if cause.code == NEW_LABEL:
                message = f"NodeAutoprovisioning: {result.group}: {cause.message}"
                yield EventMessage(about=status, reason=NEW_LABEL, message=message)
    elif not result.scale_up.option.exists and result.failure is not None:
        message = f"NodeAutoprovisioning: attempt to create node group {result.group} failed: {result.failure.message}"
        yield EventMessage(about=status, type=WARNING, reason="FailedToCreateNodeGroup", message=message)
        return
    sizes = _Sizes(result.before, result.after, result.scale_up.option.max_size)
    yield from _build_resize_events(result.group, sizes, result.failure, about=status)


class _Sizes(NamedTuple):
    before: int
    after: int
    most: int

    def __str__(self) -> str:
        return f"{self.after} instead of {self.before} (max: {self.most})"


def _build_resize_events(
    group: str, sizes: _Sizes, failure: CallFailed | None, *, about: ObjectReference
) -> Iterator[EventMessage]:
    """Events before and after the call."""
    yield EventMessage(about=about, reason="ScaledUpGroup", message=f"Scale-up: setting group {group} size to {sizes}")
    if failure is None:
        yield EventMessage(about=about, reason="ScaledUpGroup", message=f"Scale-up: group {group} size set to {sizes}")
    else:
        message = f"Scale-up failed for group {group}: {failure.message}"
        yield EventMessage(about=about, type=WARNING, reason="FailedToScaleUpGroup", message=message)


def _build_limit_events(loop: LoopResult) -> Iterator[EventMessage]:
    part = loop.scale_up
    is_short = any(
        reason.code == MAX_NODES_TOTAL for unschedulable in part.plan.unschedulable for reason in unschedulable.reasons
    )
    if is_short or _is_full(loop):
        message = f"Max total nodes in cluster reached: {loop.policy.limits.max_nodes_total}"
        yield EventMessage(
            about=build_status_map_reference(loop.policy), type=WARNING, reason=MAX_NODES_REACHED, message=message
        )


def _build_priority_events(loop: LoopResult) -> Iterator[EventMessage]:
    about = build_config_map_reference(loop.policy, CONFIG_MAP)
    if loop.priority_problem is not None:
        yield EventMessage(
            about=about, type=WARNING, reason=loop.priority_problem.code, message=loop.priority_problem.message
        )
    for not_offered in loop.scale_up.plan.skipped_groups:
        if not_offered.code == NO_PRIORITY:
            message = (
                f"Priority expander: node group {not_offered.group} not found in priority expander configuration. "
                "The group won't be used."
            )
            yield EventMessage(about=about, type=WARNING, reason="PriorityConfigMapNotMatchedGroup", message=message)
    if _lacks_priority_match(loop):
        message = "Priority expander: no priorities info found for any of the expansion options. No options filtered."
        yield EventMessage(about=about, type=WARNING, reason="PriorityConfigMapNoGroupMatched", message=message)


def _lacks_priority_match(loop: LoopResult) -> bool:
    """Whether no group has a priority: only then does the planner use groups without one."""
    policy, scale_ups = loop.policy, loop.scale_up.plan.scale_ups
    if not scale_ups or not policy.priorities or PRIORITY not in policy.planning.expander:
        return False
    patterns = [compile_pattern(text) for texts in policy.priorities.values() for text in texts]
    return not any(pattern.search(scale_up.option.group) for scale_up in scale_ups for pattern in patterns)


# ---- pods


def _build_pod_events(loop: LoopResult) -> Iterator[EventMessage]:
    pod_events = PodEventGroups()
    texts: dict[int, str] = {}
    for pod_outcome in find_pod_outcomes(loop):
        pod = pod_outcome.pending.pod
        if pod_outcome.helped:
            words = f"triggered scale-up: [{' '.join(pod_outcome.scale_ups)}]"
            pod_events.add(pod, pod_outcome.helped, reason=TRIGGERED, text=words)
        if pod_outcome.remaining:
            words = texts.get(id(pod_outcome.reasons)) or _explain_not_triggered(pod_outcome.reasons, loop)
            texts[id(pod_outcome.reasons)] = words
            pod_events.add(pod, pod_outcome.remaining, reason=NOT_TRIGGERED, text=words)
    yield from pod_events.build_events(build_status_map_reference(loop.policy))


def _explain_not_triggered(reasons: Iterable[Reason], loop: LoopResult) -> str:
    return (
        f"didn't trigger scale-up: {'max total nodes in cluster reached' if _is_full(loop) else count_reasons(reasons)}"
    )


def _is_full(loop: LoopResult) -> bool:
    return loop.scale_up.skipped is not None and loop.scale_up.skipped.code == MAX_NODES_REACHED


def count_reasons(reasons: Iterable[Reason]) -> str:
    """`<n> <reason>` joined by ", ": the number of groups or machine types per reason."""
    found: dict[str, int] = {}
    for reason in reasons:
        for words, groups in _count_words(reason).items():
            found[words] = found.get(words, 0) + groups
    return ", ".join(f"{groups} {words}" for words, groups in found.items())


def _count_words(reason: Reason) -> dict[str, int]:
    """The scheduler's words and the number of groups they hold for; names and facts that follow them are left out."""
    groups = reason.facts.get("groups") or 1
    if reason.code in _WORDS:
        return {_WORDS[reason.code]: groups}
    counts = reason.facts.get("counts")
    if counts:
        return dict(counts)
    return {reason.message.rpartition(" (")[0] if reason.facts.get("groups") else reason.message: groups}


def _build_ignored_events(loop: LoopResult) -> Iterator[EventMessage]:
    """Pods that consume a request. Problems of the pod or the request are reported by `build_request_events`."""
    for filtered in (filtered for filtered in loop.filtered_pods if filtered.reason.code == CONSUMING):
        request = find_consumed_request(filtered)
        message = f"Unschedulable pod didn't trigger scale-up, because it's consuming ProvisioningRequest {request}"
        yield EventMessage(about=build_pod_reference(filtered.pod), reason=IGNORED, message=message)


def find_consumed_request(filtered: FilteredPod) -> str:
    """NAMESPACE/NAME of the request that a pod consumes."""
    meta = filtered.pod.metadata
    name = next((meta.annotations[key] for key in CONSUME_ANNOTATIONS if meta.annotations.get(key)), "")
    return f"{meta.namespace}/{name}"
