"""What a turn came to for every pod that waits: a place already, nodes on their way, or nothing and why. Pure.

A plan counts pods by entry, because those of one entry are alike. Here they get their names back: the first of an entry
are those with a place, the next are helped by growth, the last are left. Events and the journal both read it.

What is told to pods, so that ten thousand of them alike do not make ten thousand Events. Pure.

Pods of one owner that are told the same are a class. So many of a class are told by themselves; if there are more, the
owner is told how many they are in all (specs/nodes.md 11), or, for pods that stand alone, the status ConfigMap is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from plimsoll.nodes.reporting.events.messages import NORMAL, EventMessage, owner_reference, pod_reference
from plimsoll.objects.owners import controller_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from plimsoll.core.plans import Reason
    from plimsoll.nodes.loop_result import LoopResult
    from plimsoll.nodes.model.results import ScaleUpResult
    from plimsoll.nodes.model.snapshot import PendingPods
    from plimsoll.objects.api.meta import ObjectReference
    from plimsoll.objects.api.pods import Pod


@dataclass(frozen=True, slots=True, kw_only=True)
class PodOutcome:
    """Of one entry, by names of pods; pods that are no objects have none."""

    pending: PendingPods
    placed: tuple[str, ...]
    """There is room for them on nodes that are there, or on their way already."""
    helped: tuple[str, ...]
    scale_ups: tuple[str, ...]
    """What was grown for them, as Cluster Autoscaler prints it; empty where none of it was done."""
    remaining: tuple[str, ...]
    reasons: tuple[Reason, ...]


def find_pod_outcomes(turn: LoopResult) -> Iterator[PodOutcome]:
    """Nothing where nobody planned."""
    plan = turn.scale_up.plan
    if turn.snapshot is None or not (plan.scale_ups or plan.existing or plan.unschedulable):
        return
    housed = _counts(plan.existing.values())
    planned = _counts(
        {key: pods * pattern.nodes for key, pods in pattern.pods.items()}
        for growth in plan.scale_ups
        for pattern in growth.patterns
    )
    growths = _growths_by_key(turn.scale_up.results)
    why = {key: unschedulable.reasons for unschedulable in plan.unschedulable for key in unschedulable.keys}
    for pending in turn.snapshot.pending:
        first = housed.get(pending.key, 0)
        after = first + planned.get(pending.key, 0)
        done = growths.get(pending.key, {})
        yield PodOutcome(
            pending=pending,
            placed=pending.names[:first],
            helped=pending.names[first:after] if done else (),
            scale_ups=tuple(done),
            remaining=pending.names[after:] if pending.key in why else (),
            reasons=why.get(pending.key, ()),
        )


def _growths_by_key(grown: Iterable[ScaleUpResult]) -> dict[str, dict[str, None]]:
    """By entry, the growths that were done for it, in the order of the plan."""
    found: dict[str, dict[str, None]] = {}
    for result in grown:
        if result.is_done:
            printed = f"{{{result.group} {result.before}->{result.after} (max: {result.scale_up.option.max_size})}}"
            for pattern in result.scale_up.patterns:
                for key in pattern.pods:
                    found.setdefault(key, {})[printed] = None
    return found


def _counts(parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for part in parts:
        for key, pods in part.items():
            found[key] = found.get(key, 0) + pods
    return found


PODS_PER_GROUP: Final = 50
_PODS_OF_A_TURN: Final = 700
"""With many classes fewer of each are told: a recorder holds a thousand Events, and drops the oldest beyond that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodEventGroup:
    """Pods of one owner with one fate."""

    owner: ObjectReference | None
    reason: str
    text: str
    """What follows "pod" or "7 pods"."""
    pods: list[tuple[Pod, str]] = field(default_factory=list)


class PodEventGroups:
    """Grows pod by pod; `build_events` gives the Events, classes in the order in which they came."""

    def __init__(self) -> None:
        self._classes: dict[tuple[str, str, str], PodEventGroup] = {}

    def add(self, pod: Pod, names: Sequence[str], *, reason: str, text: str) -> None:
        """Pods like this one, by name. Pods that are no objects have no names, and are not told anything."""
        if not names:
            return
        owner = controller_of(pod.metadata)
        key = (reason, text, "" if owner is None else f"{pod.metadata.namespace}/{owner.kind}/{owner.name}")
        known = self._classes.get(key)
        if known is None:
            known = self._classes[key] = PodEventGroup(owner=owner_reference(pod), reason=reason, text=text)
        known.pods.extend((pod, name) for name in names)

    def build_events(self, fallback: ObjectReference) -> Iterator[EventMessage]:
        """`fallback` is told of pods without an owner."""
        if not self._classes:
            return
        share = max(1, min(PODS_PER_GROUP, _PODS_OF_A_TURN // len(self._classes)))
        for pod_class in self._classes.values():
            for pod, name in pod_class.pods[:share]:
                yield EventMessage(
                    about=pod_reference(pod, name),
                    type=NORMAL,
                    reason=pod_class.reason,
                    message=f"pod {pod_class.text}",
                )
            if len(pod_class.pods) > share:
                message = f"{len(pod_class.pods)} pods {pod_class.text}"
                yield EventMessage(
                    about=pod_class.owner or fallback, type=NORMAL, reason=pod_class.reason, message=message
                )
