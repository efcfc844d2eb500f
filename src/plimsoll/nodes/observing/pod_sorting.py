"""Every pod where a turn wants it: on a node, waiting to be planned for, set aside. Sorted again only where it changed.

`PodSorter` follows the book of pods (`pod_books`); what `waiting_pods` says of a pod stands until the pod is another
one, the rules are, or the time comes that it waits for. The result is the same as if all had been looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeGuard

from plimsoll.kube.informer.trails import Trail
from plimsoll.nodes.observing.waiting_pods import TOO_NEW, UNPROCESSED, fate_of
from plimsoll.nodes.turns import PodState, SetAside

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from plimsoll.kube.informer.changes import Place
    from plimsoll.nodes.observing.pod_books import PodBook
    from plimsoll.nodes.observing.waiting_pods import Fate
    from plimsoll.nodes.policy import PodRules
    from plimsoll.objects.pods import Pod


@dataclass(frozen=True, slots=True, kw_only=True)
class Sorted:
    """All pods, each in at most one place; what has ended is in none."""

    counted: Mapping[Place, Pod]
    """For planners: on a node, or promised one; and those that wait, without one. No expendable ones. Good until the
    next sorting."""
    news: Trail
    """Where `counted` is another; for the one who makes snapshots of it."""
    guests: tuple[Pod, ...] = ()
    """The same of pods that the cluster does not show so: they stand for any of their name."""
    pending: int
    """How many of both wait."""
    unprocessed: int
    """Waiting pods that the scheduler has not looked at yet."""
    set_aside: tuple[SetAside, ...]
    """In the order of their names."""

    @property
    def by_state(self) -> dict[PodState, int]:
        return {
            PodState.UNSCHEDULABLE: self.pending + len(self.set_aside),
            PodState.UNPROCESSED: self.unprocessed,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Viewpoint:
    """What pods are judged by. `waits_for_scheduler` is False in a world where none runs by itself."""

    rules: PodRules
    now: datetime
    waits_for_scheduler: bool = True

    def fate_of(self, pod: Pod) -> Fate:
        return fate_of(pod, self.rules, now=self.now, waits_for_scheduler=self.waits_for_scheduler)

    def judges_like(self, before: Viewpoint | None) -> bool:
        """Whether what was found before stands, but for pods that are waited with until some time."""
        if before is None or self.now < before.now:
            return False
        return self.waits_for_scheduler == before.waits_for_scheduler and self.rules == before.rules


class PodSorter:
    """One a controller."""

    def __init__(self) -> None:
        self._book: PodBook | None = None
        self._trail = Trail()
        self._news = Trail()
        self._from: Viewpoint | None = None
        self._counted: dict[Place, Pod] = {}
        self._pending: dict[Place, None] = {}
        self._unprocessed: dict[Place, None] = {}
        self._set_aside: dict[Place, SetAside] = {}

    def sorted(self, book: PodBook, viewpoint: Viewpoint, *, guests: Iterable[Pod] = ()) -> Sorted:
        """`guests` are pods that the cluster does not show, or not as they are to be seen; few."""
        if book is not self._book:
            self._book, self._trail = book, book.follow()
        for place in self._to_look_at(book, viewpoint):
            pod = book.get(place)
            self._put(place, None if pod is None else viewpoint.fate_of(pod))
        self._from = viewpoint
        self._trail.caught_up()
        fates = [viewpoint.fate_of(one) for one in guests]
        aside = [self._set_aside[place] for place in sorted(self._set_aside)]
        return Sorted(
            counted=self._counted,
            news=self._news,
            guests=tuple([one for one in fates if _is_counted(one)]),
            pending=len(self._pending) + sum(_is_counted(one) and not one.spec.node_name for one in fates),
            unprocessed=len(self._unprocessed) + fates.count(UNPROCESSED),
            set_aside=(*aside, *(one for one in fates if isinstance(one, SetAside))),
        )

    def _to_look_at(self, book: PodBook, viewpoint: Viewpoint) -> list[Place]:
        changed = self._trail.changed if viewpoint.judges_like(self._from) else None
        if changed is None:
            known = (*self._counted, *self._unprocessed, *self._set_aside)
            return [*dict.fromkeys((*known, *book.places()))]
        waited_with = [place for place, one in self._set_aside.items() if one.reason.code == TOO_NEW]
        return [*changed, *waited_with]

    def _put(self, place: Place, fate: Fate) -> None:
        for elsewhere in (self._pending, self._unprocessed, self._set_aside):
            elsewhere.pop(place, None)
        if isinstance(fate, SetAside):
            self._set_aside[place] = fate
        elif fate is UNPROCESSED:
            self._unprocessed[place] = None
        counted = fate if _is_counted(fate) else None
        if counted is not None and not counted.spec.node_name:
            self._pending[place] = None
        before = self._counted.pop(place, None)
        if counted is not None:
            self._counted[place] = counted
        if counted is not before:
            self._news.note(place)


def _is_counted(fate: Fate) -> TypeGuard[Pod]:
    return fate is not None and fate is not UNPROCESSED and not isinstance(fate, SetAside)
