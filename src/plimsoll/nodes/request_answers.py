"""What ProvisioningRequests are told: the conditions and details that answer a plan, a check or a bad request. Pure.

Used by `plimsoll plan`; types, reasons and details are those of specs/nodes.md 2.2 and 2.3. `request_shares` says which
part of a plan for many is whose.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import msgspec

from plimsoll.nodes.planning.request_shares import Share, shares
from plimsoll.objects.meta import written_time

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from plimsoll.core.plans import Reason
    from plimsoll.nodes.planning.capacity_checks import Checked
    from plimsoll.nodes.planning.results import ScaleUp
    from plimsoll.nodes.planning.world import Pending

ACCEPTED: Final = "Accepted"
PROVISIONED: Final = "Provisioned"
FAILED: Final = "Failed"
CAPACITY_AVAILABLE: Final = "CapacityAvailable"
_FOUND: Final = "CapacityIsFound"
_GIVEN: Final = "CapacityIsProvisioned"
_NOT_FOUND: Final = "CapacityIsNotFound"

Json = dict[str, Any]


class Answers:
    """Answers of one moment."""

    def __init__(self, at: datetime) -> None:
        self._at = at

    def failed(self, reason: str, message: str) -> Json:
        """Nothing could be planned, and never will be."""
        return {"conditions": [self._condition(FAILED, "True", reason, message)], "details": {}}

    # ---- checks

    def checked(self, one: Checked, *, retries: bool, mirrors: bool, booked_s: int) -> Json:
        """`mirrors`: the class has the name of the first design, whose condition comes beside ours.

        `booked_s`: so long the room is kept; 0 if it is not.
        """
        if one.fits:
            until = {"bookedUntil": written_time(self._at + timedelta(seconds=booked_s))} if booked_s else {}
            told = f"Capacity for {_pods(one.pods)} is there."
            return self._answer(self._mirrored(PROVISIONED, "True", _FOUND, told, mirrors=mirrors), until)
        told = "; ".join(map(str, one.reasons))
        details = {"blocking": _compact([str(reason) for reason in one.reasons])}
        if not retries:
            return self._answer([self._condition(FAILED, "True", _NOT_FOUND, told)], details)
        return self._answer(self._mirrored(PROVISIONED, "False", _NOT_FOUND, told, mirrors=mirrors), details)

    def _mirrored(self, kind: str, status: str, reason: str, message: str, *, mirrors: bool) -> list[Json]:
        kinds = (kind, CAPACITY_AVAILABLE) if mirrors else (kind,)
        return [self._condition(each, status, reason, message) for each in kinds]

    # ---- growth

    def planned(self, plan: ScaleUp, pending: Sequence[Pending], names: Iterable[str]) -> dict[str, Json]:
        """Of the requests with these names, by a plan that gives each all it asks for or nothing."""
        own: dict[str, list[Pending]] = {}
        for one in pending:
            if one.bundle:
                own.setdefault(one.bundle, []).append(one)
        left = {key: one.reasons for one in plan.remaining for key in one.keys}
        parts = shares(plan, pending)
        made = {one.offer.group: one.reason for one in plan.growths if not one.offer.exists}
        return {name: self._planned(own.get(name, ()), left, parts.get(name, Share()), made) for name in names}

    def _planned(
        self,
        pods: Sequence[Pending],
        left: Mapping[str, tuple[Reason, ...]],
        part: Share,
        made: Mapping[str, Reason],
    ) -> Json:
        total = sum(one.count for one in pods)
        short = {one.key: [str(reason) for reason in left[one.key]] for one in pods if one.key in left}
        if short:
            why = dict.fromkeys(reason for reasons in short.values() for reason in reasons)
            told = f"no capacity for {_pods(total)}: {'; '.join(why)}"
            sets = {key.rpartition("/")[2]: reasons for key, reasons in short.items()}
            return self._answer([self._condition(PROVISIONED, "False", _NOT_FOUND, told)], {"blocking": _compact(sets)})
        if not part.nodes:
            told = f"Capacity for {_pods(total)} is there."
            return self._answer([self._condition(PROVISIONED, "True", _FOUND, told)], {})
        told = f"Capacity for {_pods(total)} was requested: {_growth(part, made)}."
        details = {
            "planCostPerHour": _money(part.cost_per_hour),
            "costLowerBoundPerHour": _money(part.lower_bound_per_hour),
            "nodeGroups": _compact(part.nodes),
        }
        return self._answer([self._condition(PROVISIONED, "True", _GIVEN, told)], details)

    # ---- form

    def _answer(self, conditions: Sequence[Json], details: Mapping[str, str]) -> Json:
        accepted = self._condition(ACCEPTED, "True", ACCEPTED, "Provisioning Request was successfully queued.")
        return {"conditions": [accepted, *conditions], "details": dict(details)}

    def _condition(self, kind: str, status: str, reason: str, message: str) -> Json:
        return {
            "type": kind,
            "status": status,
            "reason": reason,
            "message": message,
            "lastTransitionTime": written_time(self._at),
        }


def _growth(part: Share, made: Mapping[str, Reason]) -> str:
    """Group by group what is its own of the new nodes; of new groups also why they are made."""
    told = []
    for group, nodes in part.nodes.items():
        what = f"{group} +{nodes}" if nodes else f"room on new nodes of {group}"
        if group in made:
            why = "; ".join(map(str, made[group].because))
            what += f" (new group: {why})" if why else " (new group)"
        told.append(what)
    return ", ".join(told)


def _compact(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _money(amount: float) -> str:
    return f"{round(amount, 9):.12g}"


def _pods(count: int) -> str:
    return f"{count} pod" if count == 1 else f"{count} pods"
