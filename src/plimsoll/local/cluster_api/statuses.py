"""The status of a simulated Cluster, in the form of either version of the API. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from plimsoll.local.cluster_api.definitions import V1BETA1
from plimsoll.objects.api.meta import format_time

if TYPE_CHECKING:
    from datetime import datetime

Json = dict[str, Any]
_DONE: Final = {"status": "True", "reason": "Succeeded"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterProgress:
    """How far a Cluster is. `failure`: why its infrastructure or topology cannot be made; `failed_step` names which."""

    phase: str
    has_infrastructure: bool = False
    is_ready: bool = False
    zones: tuple[str, ...] = ()
    workers: int = 0
    control_planes: int = 0
    failed_step: str = ""
    failure: str = ""


def build_status(progress: ClusterProgress, before: Json, *, version: str, now: datetime) -> Json:
    """The new status; conditions that did not change keep their time."""
    older = _keep_times(_build_older(progress), _list_conditions(before, version=version, of_older=True), now)
    newer = _keep_times(_build_newer(progress), _list_conditions(before, version=version, of_older=False), now)
    if version == V1BETA1:
        return {
            "phase": progress.phase,
            "infrastructureReady": progress.has_infrastructure,
            "controlPlaneReady": progress.is_ready,
            "failureDomains": {zone: {"controlPlane": True} for zone in progress.zones},
            "conditions": older,
            "v1beta2": {"conditions": newer},
        }
    return {
        "phase": progress.phase,
        "initialization": {
            "infrastructureProvisioned": progress.has_infrastructure,
            "controlPlaneInitialized": progress.is_ready,
        },
        "failureDomains": [{"name": zone, "controlPlane": True} for zone in progress.zones],
        "controlPlane": {"replicas": progress.control_planes},
        "workers": {"replicas": progress.workers},
        "conditions": newer,
        "deprecated": {"v1beta1": {"conditions": older}},
    }


def _build_older(progress: ClusterProgress) -> list[Json]:
    """Conditions with a severity: none if true, Info under way, Error if it failed."""
    steps = {
        "TopologyReconciled": True,
        "InfrastructureReady": progress.has_infrastructure,
        "Ready": progress.is_ready,
    }
    return [
        {"type": step, "status": "False", "severity": "Error", "reason": "Failed", "message": progress.failure}
        if step == progress.failed_step
        else {"type": step, "status": "True"}
        if is_done
        else {"type": step, "status": "False", "severity": "Info", "reason": "WaitingForInfrastructure", "message": ""}
        for step, is_done in steps.items()
    ]


def _build_newer(progress: ClusterProgress) -> list[Json]:
    steps = {
        "TopologyReconciled": True,
        "InfrastructureReady": progress.has_infrastructure,
        "Available": progress.is_ready,
    }
    return [
        {"type": step, "status": "False", "reason": "ReconcileFailed", "message": progress.failure}
        if step == progress.failed_step
        else {"type": step, **_DONE, "message": ""}
        if is_done
        else {"type": step, "status": "False", "reason": "NotReady", "message": "the machines are being made"}
        for step, is_done in steps.items()
    ]


def _list_conditions(status: Json, *, version: str, of_older: bool) -> list[Json]:
    if of_older == (version == V1BETA1):
        return list(status.get("conditions") or ())
    where = (status.get("deprecated") or {}).get("v1beta1") if of_older else status.get("v1beta2")
    return list((where or {}).get("conditions") or ())


def _keep_times(conditions: list[Json], before: list[Json], now: datetime) -> list[Json]:
    known = {condition.get("type"): condition for condition in before}
    return [
        {**condition, "lastTransitionTime": _find_time(condition, known.get(condition["type"]), now)}
        for condition in conditions
    ]


def _find_time(condition: Json, before: Json | None, now: datetime) -> str:
    if before is not None and before.get("status") == condition["status"] and before.get("lastTransitionTime"):
        return str(before["lastTransitionTime"])
    return format_time(now)
