"""The outcome of a loop for every pending pod, and the Events about it. Pure.

A plan counts pods by entry, because the pods of an entry are equal. Here they get names: the first pods of an entry
have room already, the next ones trigger the scale-up, the last ones remain unschedulable.

Ten thousand equal pods must not cause ten thousand Events. Pods of one owner with the same message form a group. A
limited number of each group gets its own Event; if there are more, the owner gets one Event with their number
(docs/design/nodes.md 11), or the status ConfigMap for pods without an owner.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from plimsoll.core.formatting import format_limit
from plimsoll.core.plans import Reason
from plimsoll.nodes.reporting.events.messages import NORMAL, EventMessage, build_owner_reference, build_pod_reference
from plimsoll.objects.owners import find_controller

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from plimsoll.nodes.loop_result import LoopResult
    from plimsoll.nodes.model.results import ScaleUpResult
    from plimsoll.nodes.model.snapshot import PendingPods
    from plimsoll.objects.api.meta import ObjectReference
    from plimsoll.objects.api.pods import Pod


@dataclass(frozen=True, slots=True, kw_only=True)
class PodOutcome:
    """The outcome of one entry, by names of pods; pods that do not exist yet have no names."""

    pending: PendingPods
    placed: tuple[str, ...]
    """Pods with room on existing or upcoming nodes."""
    helped: tuple[str, ...]
    scale_ups: tuple[str, ...]
    """The executed scale-ups that help them, as Cluster Autoscaler prints them."""
    remaining: tuple[str, ...]
    reasons: tuple[Reason, ...]
    waiting: tuple[str, ...] = ()
    """Pods whose scale-up was held back or failed."""
    obstacle: Reason | None = None
    """Why it was."""


def find_pod_outcomes(loop: LoopResult) -> Iterator[PodOutcome]:
    """The outcome of each pending entry; empty if nothing was planned."""
    plan = loop.scale_up.plan
    if loop.snapshot is None or not (plan.scale_ups or plan.existing or plan.unschedulable):
        return
    on_existing = _count_parts(plan.existing.values())
    planned = _count_parts(
        {key: pods * pattern.nodes for key, pods in pattern.pods.items()}
        for scale_up in plan.scale_ups
        for pattern in scale_up.patterns
    )
    scale_ups = _group_scale_ups_by_key(loop.scale_up.results)
    obstacles = _find_obstacles(loop.scale_up.results)
    why = {key: unschedulable.reasons for unschedulable in plan.unschedulable for key in unschedulable.keys}
    for pending in loop.snapshot.pending:
        first = on_existing.get(pending.key, 0)
        after = first + planned.get(pending.key, 0)
        done = scale_ups.get(pending.key, {})
        yield PodOutcome(
            pending=pending,
            placed=pending.names[:first],
            helped=pending.names[first:after] if done else (),
            scale_ups=tuple(done),
            remaining=pending.names[after:] if pending.key in why else (),
            reasons=why.get(pending.key, ()),
            waiting=pending.names[first:after] if not done and pending.key in obstacles else (),
            obstacle=obstacles.get(pending.key),
        )


def _group_scale_ups_by_key(results: Iterable[ScaleUpResult]) -> dict[str, dict[str, None]]:
    """By entry: the executed scale-ups for it, in plan order."""
    found: dict[str, dict[str, None]] = {}
    for result in results:
        if result.is_done:
            printed = format_scale_up(result)
            for pattern in result.scale_up.patterns:
                for key in pattern.pods:
                    found.setdefault(key, {})[printed] = None
    return found


def format_scale_up(result: ScaleUpResult) -> str:
    """As Cluster Autoscaler prints it."""
    most = format_limit(result.scale_up.option.max_size)
    return f"{{{result.group} {result.before}->{result.after} (max: {most})}}"


def _find_obstacles(results: Iterable[ScaleUpResult]) -> dict[str, Reason]:
    """By entry: why the first scale-up for it was not carried out."""
    found: dict[str, Reason] = {}
    for result in results:
        obstacle = _describe_obstacle(result)
        if obstacle is not None:
            for pattern in result.scale_up.patterns:
                for key in pattern.pods:
                    found.setdefault(key, obstacle)
    return found


def _describe_obstacle(result: ScaleUpResult) -> Reason | None:
    would = f"{result.group} would grow from {result.before} to {result.after}"
    if result.held_back is not None:
        return Reason(code=result.held_back.code, message=f"held back: {result.held_back}; {would}")
    if result.failure is not None:
        message = f"the scale-up failed: {result.failure.message}; {would}"
        return Reason(code=result.failure.kind.value, message=message)
    return None


def _count_parts(parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for part in parts:
        for key, pods in part.items():
            found[key] = found.get(key, 0) + pods
    return found


PODS_PER_GROUP: Final = 50
_PODS_OF_A_TURN: Final = 700
"""With many groups, fewer pods of each get an Event: a recorder holds a thousand Events and drops the oldest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodEventGroup:
    """Pods of one owner with the same outcome."""

    owner: ObjectReference | None
    reason: str
    text: str
    """The text after "pod" or "7 pods"."""
    pods: list[tuple[Pod, str]] = field(default_factory=list)


class PodEventGroups:
    """Collects pods; `build_events` returns the Events, groups in order of arrival."""

    def __init__(self) -> None:
        self._classes: dict[tuple[str, str, str], PodEventGroup] = {}

    def add(self, pod: Pod, names: Sequence[str], *, reason: str, text: str) -> None:
        """Add equal pods by name; pods that do not exist yet have no names and get no Event."""
        if not names:
            return
        owner = find_controller(pod.metadata)
        key = (reason, text, "" if owner is None else f"{pod.metadata.namespace}/{owner.kind}/{owner.name}")
        known = self._classes.get(key)
        if known is None:
            known = self._classes[key] = PodEventGroup(owner=build_owner_reference(pod), reason=reason, text=text)
        known.pods.extend((pod, name) for name in names)

    def build_events(self, fallback: ObjectReference) -> Iterator[EventMessage]:
        """The Events; `fallback` is the object for pods without an owner."""
        if not self._classes:
            return
        share = max(1, min(PODS_PER_GROUP, _PODS_OF_A_TURN // len(self._classes)))
        for pod_class in self._classes.values():
            for pod, name in pod_class.pods[:share]:
                yield EventMessage(
                    about=build_pod_reference(pod, name),
                    type=NORMAL,
                    reason=pod_class.reason,
                    message=f"pod {pod_class.text}",
                )
            if len(pod_class.pods) > share:
                message = f"{len(pod_class.pods)} pods {pod_class.text}"
                yield EventMessage(
                    about=pod_class.owner or fallback, type=NORMAL, reason=pod_class.reason, message=message
                )
