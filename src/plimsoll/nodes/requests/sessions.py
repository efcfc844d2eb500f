"""One turn's service to ProvisioningRequests that may add nodes: intents before the growth, answers after it.

`Desk.open` makes a session of what it found; the loop plans with `snapshot`, asks `intend` before a plan is carried out
and `close` when it was. Each request gets all its nodes or none (specs/nodes.md 3.3, 3.5): what a definite failure
leaves of its growth is taken back at once, and again every turn until it is gone; what was not answered is left as it
is written, and the next turn looks at the cloud.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from plimsoll.core.plans import Reason
from plimsoll.nodes.planning.request_shares import shares
from plimsoll.nodes.planning.results import ScaleUp
from plimsoll.nodes.planning.withdrawals import dropped_growths, without_requests
from plimsoll.nodes.requests.intents import (
    Attempt,
    Return,
    added_up,
    attempts,
    grown_before,
    in_the_cloud,
    may_have_grown,
    on_the_way_back,
)
from plimsoll.nodes.requests.seen import Phase
from plimsoll.nodes.requests.verdicts import RequestsPart, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from plimsoll.nodes.planning.world import Pending, Snapshot
    from plimsoll.nodes.requests.answering import Answering
    from plimsoll.nodes.requests.rolling_back import Grounds, RollBack
    from plimsoll.nodes.requests.seen import Seen
    from plimsoll.nodes.requests.writing import RequestWriter
    from plimsoll.nodes.turns import Grown, ScaleUpPart

NOT_INTENDED: Final = "IntentNotWritten"


@dataclass(frozen=True, slots=True, kw_only=True)
class Counter:
    """What a session works with."""

    writer: RequestWriter
    roll_back: RollBack
    answering: Answering
    is_free: bool
    """Whether anything may be written or called."""

    async def say(self, verdicts: Sequence[Verdict]) -> tuple[Verdict, ...]:
        """Write them, unless a brake is on: then nothing is assumed written."""
        if not self.is_free:
            return tuple(replace(one, is_written=False) for one in verdicts)
        return await self.writer.write_all(verdicts)


@dataclass(slots=True, kw_only=True)
class Session:
    """`line` are the requests that this turn plans for, as they are served; `sizes` the groups' when it began."""

    counter: Counter
    snapshot: Snapshot
    line: tuple[Seen, ...] = ()
    sizes: Mapping[str, int] = field(default_factory=dict)
    grounds: Grounds
    part: RequestsPart = field(default_factory=RequestsPart)
    ended: Reason | None = None
    """Sizes of groups were changed before anything was planned: the next turn looks anew."""
    booked_nodes: frozenset[str] = frozenset()
    withdrawn: set[str] = field(default_factory=set)

    # ---- before the growth

    async def intend(self, plan: ScaleUp) -> ScaleUp:
        """Write down what is about to be done; the plan without those for whom that could not be written."""
        begun = {name: one for name, one in self._attempts(plan).items() if one.intent is not None}
        if not begun:
            return plan
        said = await self.counter.say([self.counter.answering.begun(one) for one in begun.values()])
        written = {one.seen.name: one for one in said if one.is_written}
        self.withdrawn = begun.keys() - written.keys()
        self.line = tuple(_as_written(one, written.get(one.name)) for one in self.line)
        why = Reason(code=NOT_INTENDED, message="what is about to be done for it could not be written down")
        left = without_requests(plan, self.withdrawn, pending=self._pending, why=why)
        theirs = {one.key for one in self._pending if one.bundle}
        return replace(left, growths=tuple(replace(one, for_requests=_is_for(one, theirs)) for one in left.growths))

    # ---- after it

    async def close(self, up: ScaleUpPart) -> RequestsPart:
        """Answer, and take back what failed."""
        if up.skipped is not None and not up.plan.helped and not up.plan.remaining:
            return self.part
        failed = self._failed(up)
        answers = self._answers(up, failed)
        returned = await self._returned(self._returns(up, failed), failed, up.grown)
        said = await self.counter.say(answers)
        self.part = replace(self.part, verdicts=(*self.part.verdicts, *said, *returned))
        return self.part

    def _answers(self, up: ScaleUpPart, failed: Mapping[str, str]) -> list[Verdict]:
        answering = self.counter.answering
        served = self._attempts(self._without(up.plan, failed))
        why_made = {
            one.group: "; ".join(map(str, one.growth.reason.because)) for one in up.grown if not one.growth.offer.exists
        }
        found: list[Verdict] = []
        for seen in self.line:
            if seen.name in failed or seen.name in self.withdrawn:
                continue
            attempt = served.get(seen.name)
            if attempt is None:
                found += [] if seen.phase is Phase.INTENDED else [answering.left_over(seen, up.plan)]
            elif not self._is_open(attempt, up.grown):
                nodes = added_up(grown_before(seen, self.sizes), in_the_cloud(attempt.share.nodes, up.grown))
                found.append(answering.given(seen, nodes, why_made=why_made) if nodes else answering.found(seen))
        return found

    def _is_open(self, attempt: Attempt, grown: Iterable[Grown]) -> bool:
        """Whether nobody knows yet what became of its growth."""
        return any(one.growth.offer.group in attempt.groups and not one.is_done and not one.held_back for one in grown)

    # ---- what failed

    def _failed(self, up: ScaleUpPart) -> dict[str, str]:
        """By name, why. Who was begun with and has no place in the plan any more has failed too."""
        refused = {
            one.growth.offer.group: f"{one.group}: {one.failure.message}"
            for one in up.grown
            if one.failure is not None and not one.is_unknown and not one.is_overtaken
        }
        served = self._attempts(up.plan)
        failed: dict[str, str] = {}
        for seen in self.line:
            attempt = served.get(seen.name)
            if seen.name in self.withdrawn:
                continue
            if attempt is None:
                if seen.phase is Phase.INTENDED and seen.pods:
                    failed[seen.name] = self.counter.answering.left_over(seen, up.plan).reason.message
            elif told := [refused[group] for group in attempt.groups if group in refused]:
                failed[seen.name] = "; ".join(told)
        return failed

    def _returns(self, up: ScaleUpPart, failed: Mapping[str, str]) -> list[Return]:
        """What only they wanted of the growth of this turn, and what earlier turns added for them."""
        if not failed:
            return []
        keys = {one.key for one in self._pending if one.bundle in failed}
        dropped = ScaleUp(result=up.plan.result, growths=dropped_growths(up.plan, keys))
        parts = shares(dropped, self._pending)
        made = {one.group: one.growth.offer.group for one in up.grown if one.created}
        found: list[Return] = []
        for seen in self.line:
            if seen.name not in failed:
                continue
            nodes = in_the_cloud(parts[seen.name].nodes, up.grown) if seen.name in parts else {}
            intent = seen.details.intent
            created = tuple(group for group, asked in made.items() if intent is not None and asked in intent.created)
            before = {} if seen.phase is not Phase.INTENDED else grown_before(seen, self.sizes)
            found.append(Return(seen=seen, nodes=added_up(before, nodes), created=created))
        return found

    async def _returned(
        self, returns: Sequence[Return], failed: Mapping[str, str], grown: Sequence[Grown]
    ) -> list[Verdict]:
        """Written down first, then done; finished now only if nothing of it may still come."""
        answering = self.counter.answering
        idle = [one for one in returns if one.is_nothing and not one.seen.details.intent_created]
        said = [*await self.counter.say([answering.not_found(one.seen, failed[one.seen.name], []) for one in idle])]
        return said
