"""Attempts that failed, on their way back: written down, then done, then answered (specs/nodes.md 3.5).

Both `desk` (what earlier turns or processes left) and `sessions` (what this turn made) return growth through here. A
return that cannot be finished stays written in the request, and every later turn goes on with it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from plimsoll.nodes.requests.answering import is_over
from plimsoll.nodes.requests.intents import on_the_way_back
from plimsoll.nodes.requests.rolling_back import Grounds

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from plimsoll.nodes.requests.answering import Answering, Blocking
    from plimsoll.nodes.requests.details import Intent
    from plimsoll.nodes.requests.intents import Return
    from plimsoll.nodes.requests.rolling_back import RollBack
    from plimsoll.nodes.requests.seen import Seen
    from plimsoll.nodes.requests.verdicts import Verdict
    from plimsoll.nodes.requests.writing import RequestWriter


@dataclass(frozen=True, slots=True, kw_only=True)
class Counter:
    """What requests are served with in one turn."""

    writer: RequestWriter
    roll_back: RollBack
    answering: Answering
    grounds: Grounds = field(default_factory=Grounds)
    is_free: bool = True
    """Whether anything may be written or called."""

    async def say(self, verdicts: Sequence[Verdict]) -> tuple[Verdict, ...]:
        """Write them, unless a brake is on: then nothing is assumed written."""
        if not self.is_free:
            return tuple(replace(one, is_written=False) for one in verdicts)
        return await self.writer.write_all(verdicts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Returned:
    """What was said, and what was done."""

    verdicts: tuple[Verdict, ...] = ()
    unfinished: tuple[Intent, ...] = ()
    did_something: bool = False

    @property
    def groups(self) -> frozenset[str]:
        """Groups that have yet to become smaller: nobody should grow them meanwhile."""
        return frozenset(group for one in self.unfinished for group in one.groups)

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


async def begin(counter: Counter, returns: Sequence[Return], at: Occasion) -> Returned:
    """Of requests whose attempt has just failed; `returns` stand in line."""
    answering = counter.answering
    at_once = [one for one in returns if one.is_nothing and one.seen.name not in at.uncertain]
    said = await counter.say([_ended(answering, one.seen, at.told[one.seen.name]) for one in at_once])
    left = [one for one in returns if one not in at_once]
    intents = on_the_way_back(left, at.sizes, begun=at.begun)
    names = [one.seen for one in left]
    written = await counter.say([answering.rolling_back(one, intents[one.name], at.told[one.name]) for one in names])
    going = [as_written(one) for one in written if one.is_written]
    if going:
        await counter.roll_back.look_again()
    done = await go_on(counter, going, uncertain=at.uncertain)
    answered = {one.seen.name for one in done.verdicts}
    unfinished = [one for one in written if one.seen.name not in answered and not is_over(one.seen)]
    return replace(done, verdicts=(*said, *unfinished, *done.verdicts))


async def go_on(counter: Counter, requests: Sequence[Seen], *, uncertain: Collection[str] = ()) -> Returned:
    """Of requests in which it is written how far back to go; the last one in line first."""
    finished: list[Verdict] = []
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


def _ended(answering: Answering, seen: Seen, told: Blocking) -> Verdict:
    return answering.rolled_back(seen, {}) if is_over(seen) else answering.not_found(seen, told)


def as_written(verdict: Verdict) -> Seen:
    """The request as it is once the verdict is written."""
    return replace(verdict.seen, conditions=verdict.conditions, details=verdict.details)
