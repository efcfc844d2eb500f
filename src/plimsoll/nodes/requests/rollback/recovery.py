"""Growth that earlier turns made for ProvisioningRequests and that has to go again, found before anything is planned.

Three ways lead here: a roll-back that was begun and not finished; an attempt that was begun for a request that is over,
or cannot be served any more; capacity that was promised and did not come, or is gone (specs/nodes.md 3.4, 3.5).

Attempts that failed, on their way back: written down, then done, then answered (specs/nodes.md 3.5).

Both `desk` (what earlier turns or processes left) and `sessions` (what this turn made) return growth through here. A
return that cannot be finished stays written in the request, and every later turn goes on with it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from plimsoll.nodes.requests.conditions import Why
from plimsoll.nodes.requests.model import Phase
from plimsoll.nodes.requests.rollback.intents import Rollback, grown_before, on_the_way_back
from plimsoll.nodes.requests.rollback.rollback import Grounds, idle_coming, idle_nodes
from plimsoll.nodes.requests.status_updates import blocks_all, is_over

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from plimsoll.nodes.requests.booking.booking import Booked
    from plimsoll.nodes.requests.booking.node_arrivals import Missed
    from plimsoll.nodes.requests.details import Intent
    from plimsoll.nodes.requests.model import RequestView, StatusUpdate
    from plimsoll.nodes.requests.rollback.rollback import RollBack
    from plimsoll.nodes.requests.status_updates import Blocking, StatusUpdates
    from plimsoll.nodes.requests.status_writer import RequestWriter


@dataclass(frozen=True, slots=True, kw_only=True)
class Recall:
    """What is known when growth is called back."""

    booked: Booked
    """Without those that missed theirs."""
    sizes: Mapping[str, int]
    line: Sequence[RequestView] = ()
    missed: Sequence[Missed] = ()


def is_on_its_way_back(seen: RequestView) -> bool:
    return seen.details.intent is not None and seen.details.intent.is_rolled_back


def is_stranded(seen: RequestView) -> bool:
    """Whether growth was begun for it that nobody will finish."""
    return seen.phase is Phase.INTENDED and (is_over(seen) or seen.problem is not None)


async def recall(counter: StatusWriter, at: Recall) -> Returned:
    """Take back what can be; requests that are not done are tried again later."""
    going = [request for request in at.line if is_on_its_way_back(request)]
    begun = [request.details.intent for request in going if request.details.intent is not None]
    revoked = await _revoked(counter, at, begun)
    going += [as_written(update) for update in revoked if update.is_written and update.details.intent is not None]
    begun = [request.details.intent for request in going if request.details.intent is not None]
    returns = _returns(at)
    told = {request.name: blocks_all(request, _why_stranded(request)) for request in at.line if is_stranded(request)}
    told |= {missed.seen.name: blocks_all(missed.seen, missed.told) for missed in at.missed}
    first = await begin(counter, returns, Occasion(sizes=at.sizes, begun=tuple(begun), told=told))
    return Returned(verdicts=revoked) + first + await go_on(counter, going)


async def _revoked(counter: StatusWriter, at: Recall, begun: Sequence[Intent]) -> tuple[StatusUpdate, ...]:
    """Who was told that it has its capacity is told that it has not; of what did not join yet nothing is waited for."""
    held = [missed for missed in at.missed if missed.seen.phase is Phase.HELD]
    idle = idle_coming(at.booked.snapshot, at.booked.nodes)
    returns = [Rollback(seen=missed.seen, nodes=_share(missed.seen.details.node_groups, idle)) for missed in held]
    intents = on_the_way_back([rollback for rollback in returns if not rollback.is_nothing], at.sizes, begun=begun)
    verdicts = [
        counter.answering.revoked(
            missed.seen,
            Why.NODES_LOST if missed.failure is None else Why.NODES_FAILED,
            missed.told,
            intent=intents.get(missed.seen.name),
        )
        for missed in held
    ]
    return await counter.say(verdicts)


def _returns(at: Recall) -> list[Rollback]:
    """All of their growth, as far as nobody is on it."""
    idle = idle_nodes(at.booked.snapshot, at.booked.nodes)
    waiting = [missed.seen for missed in at.missed if missed.seen.phase is Phase.ARRIVING]
    stranded = [
        request_view for request_view in at.line if is_stranded(request_view) and not is_on_its_way_back(request_view)
    ]
    found = [
        Rollback(seen=request_view, nodes=_share(request_view.details.node_groups, idle)) for request_view in waiting
    ]
    for request in stranded:
        created = () if request.details.intent is None else request.details.intent.created
        made = tuple(group for group in created if group in at.sizes)
        found.append(Rollback(seen=request, nodes=_share(grown_before(request, at.sizes), idle), created=made))
    return found


def _share(nodes: Mapping[str, int], idle: dict[str, int]) -> dict[str, int]:
    """As many of the nodes as are idle; what one takes, the next cannot."""
    found = {group: min(count, idle.get(group, 0)) for group, count in nodes.items()}
    for group, count in found.items():
        idle[group] = idle.get(group, 0) - count
    return found


def _why_stranded(seen: RequestView) -> str:
    return "it is over" if seen.problem is None else seen.problem[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusWriter:
    """What requests are served with in one turn."""

    writer: RequestWriter
    roll_back: RollBack
    answering: StatusUpdates
    grounds: Grounds = field(default_factory=Grounds)
    is_free: bool = True
    """Whether anything may be written or called."""

    async def say(self, verdicts: Sequence[StatusUpdate]) -> tuple[StatusUpdate, ...]:
        """Write them, unless a brake is on: then nothing is assumed written."""
        if not self.is_free:
            return tuple(replace(update, is_written=False) for update in verdicts)
        return await self.writer.write_all(verdicts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Returned:
    """What was said, and what was done."""

    verdicts: tuple[StatusUpdate, ...] = ()
    unfinished: tuple[Intent, ...] = ()
    did_something: bool = False

    @property
    def groups(self) -> frozenset[str]:
        """Groups that have yet to become smaller: nobody should grow them meanwhile."""
        return frozenset(group for intent in self.unfinished for group in intent.groups)

    def __add__(self, other: Returned) -> Returned:
        return Returned(
            verdicts=self.verdicts + other.verdicts,
            unfinished=self.unfinished + other.unfinished,
            did_something=self.did_something or other.did_something,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Occasion:
    """What is known when growth is returned."""

    sizes: Mapping[str, int]
    """The groups', with what was asked for in this turn."""
    begun: tuple[Intent, ...] = ()
    """Returns of others that are not finished."""
    told: Mapping[str, Blocking] = field(default_factory=dict)
    """By name of the request, why its attempt failed."""
    uncertain: Collection[str] = ()
    """Names of requests for which growth may still come: theirs is finished in another turn."""


async def begin(counter: StatusWriter, returns: Sequence[Rollback], at: Occasion) -> Returned:
    """Of requests whose attempt has just failed; `returns` stand in line."""
    answering = counter.answering
    at_once = [rollback for rollback in returns if rollback.is_nothing and rollback.seen.name not in at.uncertain]
    said = await counter.say([_ended(answering, rollback.seen, at.told[rollback.seen.name]) for rollback in at_once])
    left = [rollback for rollback in returns if rollback not in at_once]
    intents = on_the_way_back(left, at.sizes, begun=at.begun)
    names = [rollback.seen for rollback in left]
    written = await counter.say(
        [answering.rolling_back(request, intents[request.name], at.told[request.name]) for request in names]
    )
    going = [as_written(update) for update in written if update.is_written]
    if going:
        await counter.roll_back.look_again()
    done = await go_on(counter, going, uncertain=at.uncertain)
    answered = {update.seen.name for update in done.verdicts}
    unfinished = [update for update in written if update.seen.name not in answered and not is_over(update.seen)]
    return replace(done, verdicts=(*said, *unfinished, *done.verdicts))


async def go_on(counter: StatusWriter, requests: Sequence[RequestView], *, uncertain: Collection[str] = ()) -> Returned:
    """Of requests in which it is written how far back to go; the last one in line first."""
    finished: list[StatusUpdate] = []
    unfinished: list[Intent] = []
    did_something = False
    for seen in reversed(requests):
        intent = seen.details.intent
        assert intent is not None, "it says how far back to go"
        if not counter.is_free:
            unfinished.append(intent)
            continue
        taken = await counter.roll_back.take_back(intent, counter.grounds)
        did_something |= taken.did_something
        if taken.is_done and seen.name not in uncertain:
            finished.append(counter.answering.rolled_back(seen, taken.nodes))
        else:
            unfinished.append(intent)
    said = await counter.say(finished)
    return Returned(verdicts=said, unfinished=tuple(unfinished), did_something=did_something)


def _ended(answering: StatusUpdates, seen: RequestView, told: Blocking) -> StatusUpdate:
    return answering.rolled_back(seen, {}) if is_over(seen) else answering.not_found(seen, told)


def as_written(verdict: StatusUpdate) -> RequestView:
    """The request as it is once the verdict is written."""
    return replace(verdict.seen, conditions=verdict.conditions, details=verdict.details)
