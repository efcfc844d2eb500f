"""Who is served when not all can be: as they stand in line (`waiting_lines`), bundles whole (specs/nodes.md 8.2).

Money comes second: one old big pod is not dropped to help three young small ones. As long as everybody gets a place
nobody is ranked, and all are planned together; otherwise as many of the first in line as can be are planned together,
and the rest one after the other on top of that.

Who stands where in line: requests and ordinary pods by one key (specs/nodes.md 4.2, 4.5 and 8.2). Pure.

Asked by `tiers` (who is served when not all can be), by `placing` and `verifying` (who is placed first), and by
`request_shares` (whose a node is). Nothing is served here.

A request stands by its rank, the highest priority of its pod sets, its creation and its name. Ordinary pods of one
priority are one unit that stands where the oldest of them would; inside it they stand by their own age and name. So no
young request waits for ever behind ordinary pods that come and come, none of low priority goes before them because it
is a request, and at the same instant the request goes first, as it is all or nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from plimsoll.nodes.planning.scaleup.placement import Placement
from plimsoll.scheduling.priorities import priority_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from plimsoll.core.plans import Reason
    from plimsoll.nodes.model.snapshot import PendingPods
    from plimsoll.nodes.planning.scaleup.problem import ScaleUpProblem
    from plimsoll.solver.problem import Ints

    Place = Callable[[Ints, Placement | None], Placement]
    """Pods by class [C] on top of a draft; None: on nothing, and nobody will come after them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """Pending entries that are served together: a bundle whole or not at all, others as far as it goes."""

    entries: tuple[int, ...]
    is_whole: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Try:
    """A draft in which a bundle has a place in part only; it says what was lacking."""

    draft: Placement
    placed: int
    pods: int
    short: tuple[int, ...]
    """Classes of it that lack places."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A draft, and how many pods of each Pending have a place in it."""

    draft: Placement
    pods: tuple[int, ...]
    tries: Mapping[int, Try] = field(default_factory=dict)
    """By pending entry of a bundle that was refused: what came nearest."""
    waits: Mapping[int, Reason] = field(default_factory=dict)
    """By class: why its pods without a place are not refused, but wait for a later loop."""


def serve_by_priority(board: ScaleUpProblem, place: Place) -> Served:
    """All together if that works; else in line."""
    line = _in_line(board)
    together = place(_demand(board, line), None)
    if not _somebody_could_go(board, line, together):
        return _served(board, line, together)
    draft = Placement()
    first = _longest_prefix(board, line, place)
    accepted = list(line[:first])
    tries: dict[int, Try] = {}
    if accepted:
        draft = place(_demand(board, accepted), draft)
    for unit in line[first:]:
        tried = place(_demand(board, [unit]), draft)
        if not unit.is_whole or _is_served(board, unit, draft, tried):
            draft = tried
            accepted.append(unit)
        else:
            tries |= dict.fromkeys(unit.entries, _nearest(board, unit, draft, tried))
    draft = _with_company(board, accepted, draft, place)
    in_line = replace(_served(board, accepted, draft), tries=tries)
    # Who wants the company of somebody further back is helped only together with them.
    at_once = _served(board, line, together)
    return at_once if _ranked(line, at_once) > _ranked(line, in_line) and _is_whole(board, line, at_once) else in_line


def _with_company(board: ScaleUpProblem, accepted: Sequence[Unit], draft: Placement, place: Place) -> Placement:
    """Who wants company and stood in line before it is asked once more when it is there."""
    left = _demand(board, accepted) - draft.placed(len(board.table))
    left[[not pod_class.has_affinity for pod_class in board.table]] = 0
    return place(left, draft) if left.any() else draft


def served_at_once(board: ScaleUpProblem, draft: Placement) -> Served:
    """Everybody who has a place in the draft, whoever stands where in line."""
    return _served(board, _in_line(board), draft)


def _ranked(line: Sequence[Unit], served: Served) -> list[int]:
    """Pods served of each unit, the first in line first: more for somebody goes before more for all behind."""
    return [sum(served.pods[index] for index in unit.entries) for unit in line]


def _is_whole(board: ScaleUpProblem, line: Sequence[Unit], served: Served) -> bool:
    """Whether no bundle is served in part."""
    pending = board.table.pending
    counts = [[(served.pods[index], pending[index].count) for index in unit.entries] for unit in line if unit.is_whole]
    return all(all(got == wanted for got, wanted in unit) or not any(got for got, _ in unit) for unit in counts)


def _nearest(board: ScaleUpProblem, unit: Unit, before: Placement, tried: Placement) -> Try:
    classes = len(board.table)
    demand = _demand(board, [unit])
    placed = np.minimum(tried.placed(classes) - before.placed(classes), demand)
    short = tuple(np.flatnonzero(placed < demand).tolist())
    return Try(draft=tried, placed=int(placed.sum()), pods=int(demand.sum()), short=short)


def _in_line(board: ScaleUpProblem) -> list[Unit]:
    """Each bundle, and each class of ordinary pods, where the first of it stands."""
    bundles: dict[str, list[int]] = {}
    single: dict[int, list[int]] = {}
    for index, pending in enumerate(board.table.pending):
        if pending.bundle:
            bundles.setdefault(pending.bundle, []).append(index)
        else:
            single.setdefault(int(board.table.class_of[index]), []).append(index)
    units = [Unit(entries=tuple(entries), is_whole=True) for entries in bundles.values()]
    units += [Unit(entries=tuple(entries), is_whole=False) for entries in single.values()]
    return sorted(units, key=lambda unit: min(board.line[index] for index in unit.entries))


def _demand(board: ScaleUpProblem, units: Sequence[Unit]) -> Ints:
    demand = np.zeros(len(board.table), dtype=np.int64)
    for unit in units:
        for index in unit.entries:
            demand[int(board.table.class_of[index])] += board.table.pending[index].count
    return demand


def _is_complete(board: ScaleUpProblem, units: Sequence[Unit], draft: Placement) -> bool:
    return bool((draft.placed(len(board.table)) >= _demand(board, units)).all())


def _is_served(board: ScaleUpProblem, unit: Unit, before: Placement, tried: Placement) -> bool:
    """Whether all of it came to what was there; who stands before it may have got less than they asked for."""
    classes = len(board.table)
    return bool((tried.placed(classes) - before.placed(classes) >= _demand(board, [unit])).all())


def _somebody_could_go(board: ScaleUpProblem, line: Sequence[Unit], draft: Placement) -> bool:
    """Whether pods are left that others may have kept out: a bundle in part, or pods that some node would take."""
    left = _demand(board, line) - draft.placed(len(board.table))
    if not left.any():
        return False
    short = np.flatnonzero(left)
    in_bundles = {int(board.table.class_of[index]) for unit in line if unit.is_whole for index in unit.entries}
    if in_bundles & set(short.tolist()):
        return True
    return len(line) > 1 and any(_has_a_place(board, int(number)) for number in short)


def _has_a_place(board: ScaleUpProblem, number: int) -> bool:
    """Whether some node, there or offered, would take such a pod if nobody else came."""
    if board.allowed[:, number].any():
        return True
    return bool(board.rules.node_predicates.fits(number, board.arrays.free, {}).any())


def _longest_prefix(board: ScaleUpProblem, line: Sequence[Unit], place: Place) -> int:
    """How many of the first in line can all be served together, found by halving."""
    low, high = 0, len(line)
    while low < high:
        middle = (low + high + 1) // 2
        if _is_complete(board, line[:middle], place(_demand(board, line[:middle]), Placement())):
            low = middle
        else:
            high = middle - 1
    return low


def _served(board: ScaleUpProblem, units: Sequence[Unit], draft: Placement) -> Served:
    """Places of a class go to its members as they stand in line; a bundle got all of its own."""
    left = draft.placed(len(board.table))
    pods = [0] * len(board.table.pending)
    for unit in sorted(units, key=lambda one: not one.is_whole):
        for index in unit.entries:
            number = int(board.table.class_of[index])
            pods[index] = min(int(left[number]), board.table.pending[index].count)
            left[number] -= pods[index]
    return Served(draft=draft, pods=tuple(pods))


_LATEST: Final = datetime.max.replace(tzinfo=UTC)


class Stand(NamedTuple):
    """Where a unit stands: the least is served first."""

    rank: int
    below: int
    """The priority, the highest of which is the least."""
    since: datetime
    is_ordinary: bool
    bundle: str


class QueuePosition(NamedTuple):
    """Where so many pods that are alike stand: in which unit, and where in that."""

    stand: Stand
    since: datetime
    key: str


def places_in_line(pending: Sequence[PendingPods]) -> list[QueuePosition]:
    """Of each entry. Pod sets of a request stand together, as they are numbered in it."""
    stands: dict[tuple[str, int], Stand] = {}
    units = [_unit(pods) for pods in pending]
    for pending_pods, unit in zip(pending, units, strict=True):
        mine = Stand(
            pending_pods.rank,
            -priority_of(pending_pods.pod),
            _since(pending_pods),
            not pending_pods.bundle,
            pending_pods.bundle,
        )
        known = stands.get(unit, mine)
        stands[unit] = Stand(
            rank=min(known.rank, mine.rank),
            below=min(known.below, mine.below),
            since=min(known.since, mine.since),
            is_ordinary=mine.is_ordinary,
            bundle=mine.bundle,
        )
    return [
        QueuePosition(stands[unit], *((_since(pods), pods.key) if not pods.bundle else (stands[unit].since, "")))
        for pods, unit in zip(pending, units, strict=True)
    ]


def turns(line: Sequence[QueuePosition], class_of: Sequence[int]) -> tuple[int, ...]:
    """[C]: by class of each entry [P], where the first of it stands; equals stand as they are numbered."""
    first: dict[int, tuple[Stand, datetime]] = {}
    for place, number in zip(line, class_of, strict=True):
        first[number] = min(place[:2], first.get(number, place[:2]))
    found = [0] * len(first)
    for turn, number in enumerate(sorted(first, key=lambda one: (first[one], one))):
        found[number] = turn
    return tuple(found)


def bundles_in_line(pending: Sequence[PendingPods]) -> list[str]:
    """The first in line first."""
    return [stand.bundle for stand in sorted({place.stand for place in places_in_line(pending)}) if stand.bundle]


def _unit(one: PendingPods) -> tuple[str, int]:
    return one.bundle, 0 if one.bundle else priority_of(one.pod)


def _since(one: PendingPods) -> datetime:
    return one.created or one.pod.metadata.creation_timestamp or _LATEST
