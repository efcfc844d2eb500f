"""The status of a ManagedKafka, from its report and what the agent knows about its control plane. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from plimsoll.fleet.agent.model.reports import FALSE, TRUE
from plimsoll.kube.conditions import set_transition_time, to_json

if TYPE_CHECKING:
    from datetime import datetime

    from plimsoll.core.plans import Reason
    from plimsoll.fleet.agent.model.reports import InstanceReport
    from plimsoll.objects.api.managed_kafkas import ManagedKafka

CLAIMED: Final = "Claimed"
REACHABLE: Final = "ControlPlaneReachable"
DIFFERS: Final = "ListDiffers"
_TIME: Final = "lastTransitionTime"


def build_status(
    managed: ManagedKafka,
    report: InstanceReport,
    *,
    units: int,
    is_reachable: bool | None,
    differs: Reason | None,
    now: datetime,
) -> dict[str, Any]:
    """`is_reachable` None: not known yet, so the condition stays as it is. `differs`: how the list differs."""
    conditions = [_build_condition("Ready", report.status, report.reason, report.message)]
    is_reserved = report.id.startswith("reserved-")
    if not is_reserved:
        message = f"{units} streaming units" if units else "no streaming units"
        conditions.append(_build_condition(CLAIMED, TRUE if units else FALSE, "Held" if units else "NotHeld", message))
    before = {condition.type: to_json(condition) for condition in managed.status.conditions}
    if is_reachable is not None:
        reason, message = ("Answers", "") if is_reachable else ("DoesNotAnswer", "the instance runs on meanwhile")
        conditions.append(_build_condition(REACHABLE, TRUE if is_reachable else FALSE, reason, message))
    elif REACHABLE in before:
        conditions.append(before[REACHABLE])
    if differs is not None:
        conditions.append(_build_condition(DIFFERS, TRUE, differs.code, str(differs)))
    status: dict[str, Any] = {
        "conditions": [_keep_time(condition, before.get(condition["type"]), now) for condition in conditions],
        "units": units,
        "versions": {key: text for key, text in msgspec.to_builtins(report.versions).items() if text},
    }
    # Routes are stored once by the control plane; a break of readiness does not take them back here either.
    if report.router:
        status["routes"] = [{"name": "bootstrap", "prefix": "", "router": report.router}]
    if report.admin_server_uri:
        status["adminServerURI"] = report.admin_server_uri
    if report.bytes_stored is not None:
        status["bytesStored"] = report.bytes_stored
    return status


def is_written(managed: ManagedKafka, status: dict[str, Any]) -> bool:
    """Whether the object has this status already, but for fields that the status does not name."""
    there = managed.status
    known: dict[str, Any] = {
        "conditions": [to_json(condition) for condition in there.conditions],
        "units": there.units,
        "versions": {key: text for key, text in msgspec.to_builtins(there.versions).items() if text},
        "routes": msgspec.to_builtins(there.routes),
        "adminServerURI": there.admin_server_uri,
        "bytesStored": there.bytes_stored,
    }
    known["routes"] = [{"name": "", "prefix": "", "router": "", **route} for route in known["routes"]]
    return all(known.get(key) == value for key, value in status.items())


def _build_condition(name: str, status: str, reason: str, message: str) -> dict[str, Any]:
    return {"type": name, "status": status, "reason": reason, "message": message}


def _keep_time(condition: dict[str, Any], before: dict[str, Any] | None, now: datetime) -> dict[str, Any]:
    is_same = before is not None and before.get("status") == condition["status"]
    return set_transition_time(condition, before if is_same else None, now)
