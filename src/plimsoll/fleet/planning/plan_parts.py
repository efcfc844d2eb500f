"""Decisions as parts of a plan: references, reasons, and the codes of reasons in the spelling of plans."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.plans import Action, NotDone, Plan, Reason, Ref

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from plimsoll.fleet.model.clusters import Locator

SUBSYSTEM: Final = "fleet"


def refer_to_capacity(locator: Locator) -> Ref:
    return Ref(kind="capacity", name=str(locator))


def refer_to_cluster(row_id: str) -> Ref:
    return Ref(kind="cluster", name=row_id)


def refer_to_kafka(row_id: str) -> Ref:
    return Ref(kind="kafka", name=row_id)


def build_reason(code: str, message: str, facts: Mapping[str, Any]) -> Reason:
    """A reason with the code in the spelling of plans: `below_slack` is `BelowSlack` there."""
    return Reason(code="".join(word.capitalize() for word in code.split("_")), message=message, facts=dict(facts))


def build_plan(number: int, now: datetime, parts: Iterable[Action | NotDone]) -> Plan:
    found = tuple(parts)
    return Plan(
        subsystem=SUBSYSTEM,
        snapshot=number,
        at=now,
        actions=tuple(part for part in found if isinstance(part, Action)),
        not_done=tuple(part for part in found if isinstance(part, NotDone)),
    )
