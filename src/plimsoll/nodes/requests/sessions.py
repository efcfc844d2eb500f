"""One turn's service to ProvisioningRequests that may add nodes: intents before the growth, answers after it.

`Desk.open` makes a session of what it found; the loop plans with `snapshot`, asks `intend` before a plan is carried out
and `close` when it was. Each request gets all its nodes or none (specs/nodes.md 3.3, 3.5): what a definite failure
leaves of its growth is taken back; what was not answered is left as it is written: the next turn looks at the cloud.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from plimsoll.core.plans import Reason
from plimsoll.nodes.planning.request_shares import shares
from plimsoll.nodes.planning.results import ScaleUp
from plimsoll.nodes.planning.withdrawals import dropped_growths, without_requests
from plimsoll.nodes.requests.idleness import idle_nodes
from plimsoll.nodes.requests.intents import Return, added_up, attempts, grown_before, in_the_cloud, may_have_grown
from plimsoll.nodes.requests.returning import Occasion, as_written, begin
from plimsoll.nodes.requests.seen import Phase
from plimsoll.nodes.requests.verdicts import RequestsPart

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from plimsoll.nodes.planning.results import Growth
    from plimsoll.nodes.planning.world import Snapshot
    from plimsoll.nodes.requests.details import Intent
    from plimsoll.nodes.requests.intents import Attempt
    from plimsoll.nodes.requests.returning import Counter
    from plimsoll.nodes.requests.seen import Seen
    from plimsoll.nodes.requests.verdicts import Verdict
    from plimsoll.nodes.turns import Grown, ScaleUpPart

NOT_INTENDED: Final = "IntentNotWritten"


@dataclass(slots=True, kw_only=True)
class Session:
    """Of one turn."""

    counter: Counter
    snapshot: Snapshot
    """With bookings on its nodes, and with the pods of `line` among those that are pending."""
    line: tuple[Seen, ...] = ()
    """Requests that nodes may be added for, as they are served."""
    sizes: Mapping[str, int] = field(default_factory=dict)
    """The groups', when the turn began."""
    returning: tuple[Intent, ...] = ()
    """Of attempts that are on their way back and not there yet."""
    booked_nodes: frozenset[str] = frozenset()
    unanswered: tuple[Seen, ...] = ()
    """All that waited for an answer when the turn began."""
    part: RequestsPart = field(default_factory=RequestsPart)
    ended: Reason | None = None
    """Sizes of groups were changed before anything was planned: the next turn looks anew."""
    _written: dict[str, Seen] = field(default_factory=dict)
    """Requests as the server has them since this session wrote to them."""
    _withdrawn: frozenset[str] = frozenset()
    """Those that this turn does nothing for: what it would do could not be written down."""
    _before: dict[str, dict[str, int]] = field(init=False)

    def __post_init__(self) -> None:
        self._before = {one.name: grown_before(one, self.sizes) for one in self.line}

    # ---- before the growth

    async def intend(self, plan: ScaleUp) -> ScaleUp:
        """Write down what is about to be done; the plan without those for whom that could not be written."""
        begun = {name: one for name, one in self._attempts(plan).items() if one.intent is not None}
        if not begun:
            return plan
        said = await self.counter.say([self._begun(one) for one in begun.values()])
        self._written |= {one.seen.name: as_written(one) for one in said if one.is_written}
        self._withdrawn = frozenset(one.seen.name for one in said if not one.is_written)
        why = Reason(code=NOT_INTENDED, message="what is about to be done for it could not be written down")
        left = without_requests(plan, self._withdrawn, pending=self.snapshot.pending, why=why)
        keys = {one.key for one in self.snapshot.pending if one.bundle}
        return replace(left, growths=tuple(replace(one, for_requests=_is_for(one, keys)) for one in left.growths))

    def _begun(self, attempt: Attempt) -> Verdict:
        cost = attempt.seen.details.plan_cost_per_hour if self._grown_before(attempt.seen) else ""
        return self.counter.answering.begun(attempt, cost_before=_number(cost))

    # ---- after it

    async def close(self, up: ScaleUpPart) -> RequestsPart:
        """Answer, and take back what failed."""
        if not self.line or not (up.plan.helped or up.plan.remaining):
            return self.part
        failed = self._failed(up)
        answers = self._answers(up, failed)
        returned = await begin(self.counter, self._returns(up, failed), self._occasion(up, failed))
        said = await self.counter.say(answers)
        self._written |= {one.seen.name: as_written(one) for one in (*said, *returned.verdicts) if one.is_written}
        self.part = replace(self.part, verdicts=(*self.part.verdicts, *said, *returned.verdicts))
        return self.part

    def served(self) -> tuple[Seen, ...]:
        """The line, each request as it was written last."""
        return tuple(self._written.get(one.name, one) for one in self.line)

    def _answers(self, up: ScaleUpPart, failed: Mapping[str, str]) -> list[Verdict]:
        """To everybody whose attempt has come to an end and did not fail."""
        answering = self.counter.answering
        why = Reason(code=NOT_INTENDED, message="its attempt failed")
        kept = without_requests(up.plan, failed.keys(), pending=self.snapshot.pending, why=why)
        attempts_of = self._attempts(kept)
        why_made = {one.group: _why_made(one) for one in up.grown if not one.growth.offer.exists}
        found: list[Verdict] = []
        for seen in self.served():
            if seen.name in failed or seen.name in self._withdrawn:
                continue
            attempt = attempts_of.get(seen.name)
            if attempt is None:
                found.append(answering.left_over(seen, up.plan))
            elif not _is_open(attempt, up.grown):
                nodes = added_up(self._grown_before(seen), in_the_cloud(attempt.share.nodes, up.grown))
                found.append(answering.given(seen, nodes, why_made=why_made) if nodes else answering.found(seen))
        return found

    # ---- what failed

    def _failed(self, up: ScaleUpPart) -> dict[str, str]:
        """By name, why. Who was begun with and has no place in the plan any more has failed too."""
        refused = {
            one.growth.offer.group: f"{one.group}: {one.failure.message}"
            for one in up.grown
            if one.failure is not None and not one.is_unknown and not one.is_overtaken
        }
        attempts_of = self._attempts(up.plan)
        failed: dict[str, str] = {}
        for seen in self.line:
            attempt = attempts_of.get(seen.name)
            if attempt is not None:
                told = [refused[group] for group in attempt.share.nodes if group in refused]
                failed |= {seen.name: "; ".join(told)} if told else {}
            elif seen.phase is Phase.INTENDED and seen.name not in self._withdrawn:
                failed[seen.name] = self.counter.answering.left_over(seen, up.plan).reason.message
        return failed

    def _returns(self, up: ScaleUpPart, failed: Collection[str]) -> list[Return]:
        """What only they wanted of the growth of this turn, and what earlier turns added for them, if it is idle."""
        if not failed:
            return []
        keys = {one.key for one in self.snapshot.pending if one.bundle in failed}
        dropped = ScaleUp(result=up.plan.result, growths=dropped_growths(up.plan, keys))
        parts = shares(dropped, self.snapshot.pending)
        idle = idle_nodes(self.snapshot, {*self.booked_nodes, *_used(up.plan, keys)})
        found: list[Return] = []
        for seen in self.served():
            if seen.name in failed:
                before = {group: min(nodes, idle.get(group, 0)) for group, nodes in self._grown_before(seen).items()}
                idle = {group: nodes - before.get(group, 0) for group, nodes in idle.items()}
                nodes = added_up(before, in_the_cloud(parts[seen.name].nodes, up.grown))
                found.append(Return(seen=seen, nodes=nodes, created=self._created(seen, up.grown)))
        return found

    def _created(self, seen: Seen, grown: tuple[Grown, ...]) -> tuple[str, ...]:
        """Groups made for it that are there, or may be, by the id the cloud gave them."""
        intent = seen.details.intent
        if intent is None:
            return ()
        made = [one.group for one in grown if one.growth.offer.group in intent.created and _may_be_made(one)]
        return tuple(dict.fromkeys((*(one for one in intent.created if one in self.sizes), *made)))

    def _occasion(self, up: ScaleUpPart, failed: Mapping[str, str]) -> Occasion:
        unknown = {one.growth.offer.group for one in up.grown if one.is_unknown}
        attempts_of = self._attempts(up.plan)
        return Occasion(
            sizes={**self.sizes, **{one.group: one.after for one in up.grown if may_have_grown(one)}},
            begun=self.returning,
            told=failed,
            uncertain={name for name in failed if name in attempts_of and unknown & attempts_of[name].groups},
        )

    # ---- inside

    def _attempts(self, plan: ScaleUp) -> dict[str, Attempt]:
        return attempts(plan, self.line, self.snapshot.pending)

    def _grown_before(self, seen: Seen) -> Mapping[str, int]:
        """What earlier turns added for it."""
        return self._before.get(seen.name, {})


def _is_for(growth: Growth, keys: Collection[str]) -> bool:
    return any(key in keys for one in growth.patterns for key in one.pods)


def _is_open(attempt: Attempt, grown: tuple[Grown, ...]) -> bool:
    """Whether nobody knows yet what became of its growth."""
    mine = [one for one in grown if one.growth.offer.group in attempt.groups]
    return any(not one.is_done and one.held_back is None for one in mine)


def _used(plan: ScaleUp, but: Collection[str]) -> set[str]:
    """Nodes on which the plan found room for somebody else."""
    return {node for node, pods in plan.existing.items() if any(key not in but for key in pods)}


def _may_be_made(one: Grown) -> bool:
    return one.created or (not one.growth.offer.exists and one.is_unknown)


def _why_made(one: Grown) -> str:
    return "; ".join(map(str, one.growth.reason.because))


def _number(text: str) -> float:
    try:
        return float(text or 0)
    except ValueError:
        return 0.0
