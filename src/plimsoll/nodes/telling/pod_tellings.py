"""What is told to pods, so that ten thousand of them alike do not make ten thousand Events. Pure.

Pods of one owner that are told the same are a class. So many of a class are told by themselves; if there are more, the
owner is told how many they are in all (specs/nodes.md 11), or, for pods that stand alone, the status ConfigMap is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from plimsoll.nodes.telling.told import NORMAL, Told, about_owner, about_pod
from plimsoll.objects.owners import controller_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from plimsoll.objects.meta import ObjectReference
    from plimsoll.objects.pods import Pod

PODS_OF_A_CLASS: Final = 50
_PODS_OF_A_TURN: Final = 700
"""With many classes fewer of each are told: a recorder holds a thousand Events, and drops the oldest beyond that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Class:
    """Pods of one owner with one fate."""

    owner: ObjectReference | None
    reason: str
    words: str
    """What follows "pod" or "7 pods"."""
    pods: list[tuple[Pod, str]] = field(default_factory=list)


class PodTellings:
    """Grows pod by pod; `told` gives the Events, classes in the order in which they came."""

    def __init__(self) -> None:
        self._classes: dict[tuple[str, str, str], Class] = {}

    def add(self, pod: Pod, names: Sequence[str], *, reason: str, words: str) -> None:
        """Pods like this one, by name. Pods that are no objects have no names, and are not told anything."""
        if not names:
            return
        owner = controller_of(pod.metadata)
        key = (reason, words, "" if owner is None else f"{pod.metadata.namespace}/{owner.kind}/{owner.name}")
        known = self._classes.get(key)
        if known is None:
            known = self._classes[key] = Class(owner=about_owner(pod), reason=reason, words=words)
        known.pods.extend((pod, name) for name in names)

    def told(self, otherwise: ObjectReference) -> Iterator[Told]:
        """`otherwise` is told of pods without an owner."""
        if not self._classes:
            return
        share = max(1, min(PODS_OF_A_CLASS, _PODS_OF_A_TURN // len(self._classes)))
        for one in self._classes.values():
            for pod, name in one.pods[:share]:
                yield Told(about=about_pod(pod, name), type=NORMAL, reason=one.reason, message=f"pod {one.words}")
            if len(one.pods) > share:
                message = f"{len(one.pods)} pods {one.words}"
                yield Told(about=one.owner or otherwise, type=NORMAL, reason=one.reason, message=message)
