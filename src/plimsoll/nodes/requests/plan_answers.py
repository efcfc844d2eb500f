"""What a plan that nobody carries out tells of ProvisioningRequests: `plimsoll plan`. Pure.

The sentences, conditions and details are those of `answering`, as if each request were new: what is counted and timed
from attempt to attempt has no place in a plan. `request_shares` says which part of a plan for many is whose.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from plimsoll.nodes.planning.request_shares import Share, shares
from plimsoll.nodes.requests.answering import Answering, money
from plimsoll.nodes.requests.conditions import Conditions
from plimsoll.nodes.requests.details import Details
from plimsoll.nodes.requests.seen import Nature

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from plimsoll.nodes.planning.capacity_checks import Checked
    from plimsoll.nodes.planning.results import ScaleUp
    from plimsoll.nodes.planning.world import Pending
    from plimsoll.nodes.policy import Policy
    from plimsoll.nodes.requests.seen import Seen
    from plimsoll.nodes.requests.verdicts import Verdict

Json = dict[str, Any]

_CONDITION: Final = ("type", "status", "reason", "message", "lastTransitionTime")
_DETAILS: Final = ("planCostPerHour", "costLowerBoundPerHour", "nodeGroups", "bookedUntil", "blocking")


class PlanAnswers:
    """Answers by one plan, of one moment. `pending` are the pods it was made for."""

    def __init__(self, plan: ScaleUp, pending: Sequence[Pending], *, policy: Policy, at: datetime) -> None:
        self._answering = Answering(at, policy)
        self._plan = plan
        self._left = {key for one in plan.remaining for key in one.keys}
        self._shares = shares(plan, pending)
        made = (one for one in plan.growths if not one.offer.exists)
        self._why_made = {one.offer.group: "; ".join(map(str, one.reason.because)) for one in made}

    def all(self, line: Sequence[Seen], checks: Mapping[str, Checked]) -> dict[str, Json]:
        """By NAMESPACE/NAME, in line."""
        return {one.name: self._written(one, self._verdict(_as_new(one), checks)) for one in line}

    def _verdict(self, seen: Seen, checks: Mapping[str, Checked]) -> Verdict:
        if seen.problem is not None:
            return self._answering.failed(seen, *seen.problem)
        if seen.nature is Nature.CHECK:
            return self._answering.checked(seen, checks[seen.name])
        if any(one.key in self._left for one in seen.pods):
            return self._answering.left_over(seen, self._plan)
        share = self._shares.get(seen.name, Share())
        if not share.nodes:
            return self._answering.found(seen)
        costs = Details(
            plan_cost_per_hour=money(share.cost_per_hour) or "0",
            cost_lower_bound_per_hour=money(share.lower_bound_per_hour) or "0",
        )
        return self._answering.given(replace(seen, details=costs), share.nodes, why_made=self._why_made)

    def _written(self, seen: Seen, verdict: Verdict) -> Json:
        """What grows is booked when it was asked for, and nobody asks."""
        details = verdict.details if seen.nature is Nature.CHECK else verdict.details.but(booked_until=None)
        texts = details.written()
        return {
            "conditions": [{key: one[key] for key in _CONDITION} for one in verdict.conditions.written()],
            "details": {key: texts[key] for key in _DETAILS if key in texts},
        }


def _as_new(seen: Seen) -> Seen:
    return replace(seen, conditions=Conditions(), details=Details())
