"""Pods that wait, gathered into the few entries planners are asked about, and kept so while pods come and go.

Ten thousand pods of a hundred controllers are a hundred entries (`Pending`), so that a plan costs by controllers even
before its classes are made. Pods of one entry are one owner's, alike in everything a scheduling rule or a volume could
tell; pods with claims of their own stand alone. Part of `snapshots`; what waits and what does not is said by its user.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from plimsoll.nodes.planning.scheduling_keys import fingerprint
from plimsoll.nodes.planning.volume_forms import touches_storage
from plimsoll.nodes.planning.world import Pending
from plimsoll.objects.owners import controller_of

if TYPE_CHECKING:
    from plimsoll.objects.pods import Pod
    from plimsoll.scheduling.view import PodKey

Likeness = tuple[Any, ...]

_FAR_AHEAD: Final = datetime.max.replace(tzinfo=UTC)


class WaitingGroups:
    """Entries by what their pods have in common; only those are made anew whose pods changed."""

    def __init__(self) -> None:
        self._groups: dict[Likeness, _Group] = {}
        self._likeness: dict[PodKey, Likeness] = {}
        self._entries: dict[Likeness, Pending] = {}
        self._changed: dict[Likeness, None] = {}
        self._listed: tuple[Pending, ...] = ()

    def put(self, key: PodKey, pod: Pod) -> None:
        """A pod that waits, or waits still with something about it changed."""
        likeness = _likeness(pod)
        if self._likeness.get(key) not in {None, likeness}:
            self.drop(key)
        self._likeness[key] = likeness
        if likeness not in self._groups:
            self._groups[likeness] = _Group()
        if self._groups[likeness].put(key, pod):
            self._changed[likeness] = None

    def drop(self, key: PodKey) -> None:
        """It waits no longer. One that never did is nobody's business."""
        likeness = self._likeness.pop(key, None)
        if likeness is not None:
            self._groups[likeness].drop(key)
            self._changed[likeness] = None

    def pending(self) -> tuple[Pending, ...]:
        """In the order of their keys, whatever order the pods came in."""
        if self._changed:
            for likeness in self._changed:
                if self._groups[likeness].line:
                    self._entries[likeness] = self._groups[likeness].entry()
                else:
                    del self._groups[likeness]
                    self._entries.pop(likeness, None)
            self._changed = {}
            self._listed = tuple(sorted(self._entries.values(), key=lambda one: one.key))
        return self._listed


class _Group:
    """Pods of one entry; who waits longest comes first."""

    def __init__(self) -> None:
        self._pods: dict[PodKey, Pod] = {}
        self._line: list[tuple[datetime, PodKey]] = []
        self._is_in_order = True

    def put(self, key: PodKey, pod: Pod) -> bool:
        """Whether that changes the entry; of a pod in the middle of the line only its place and name are in it."""
        before = self._pods.get(key)
        if before is not None and _place(key, before) != _place(key, pod):
            self.drop(key)
            before = None
        self._pods[key] = pod
        if before is None:
            self._line.append(_place(key, pod))
            self._is_in_order = False
            return True
        return self.line[0][1] == key

    def drop(self, key: PodKey) -> None:
        self._line.remove(_place(key, self._pods.pop(key)))

    @property
    def line(self) -> list[tuple[datetime, PodKey]]:
        """Put in order when somebody asks: thousands come at once."""
        if not self._is_in_order:
            self._line.sort()
            self._is_in_order = True
        return self._line

    def entry(self) -> Pending:
        """Named after the first in line."""
        line = self.line
        key = line[0][1]
        return Pending(
            key=str(key),
            pod=self._pods[key],
            count=len(line),
            created=self._pods[key].metadata.creation_timestamp,
            names=tuple([one.name for _, one in line]),
        )


def _place(key: PodKey, pod: Pod) -> tuple[datetime, PodKey]:
    return (pod.metadata.creation_timestamp or _FAR_AHEAD, key)


def _likeness(pod: Pod) -> Likeness:
    meta = pod.metadata
    owner = controller_of(meta)
    own_claims = bool(pod.spec.volumes) and touches_storage(pod)
    return (
        meta.namespace,
        None if owner is None else owner.uid,
        frozenset(meta.labels.items()),
        fingerprint(pod),
        meta.name if own_claims else "",
    )
