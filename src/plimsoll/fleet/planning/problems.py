"""What is wrong with the clusters of a fleet, and is left to an operator (docs/design/fleet.md 15.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.fleet.model.records import Record
from plimsoll.fleet.model.statuses import ClusterStatus, ClusterType
from plimsoll.fleet.planning.plan_parts import refer_to_cluster
from plimsoll.fleet.planning.terraforming import read_problems

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from plimsoll.fleet.model.clusters import Cluster
    from plimsoll.fleet.model.provided import Orphan

_PROBLEM_LENGTH: Final = 500
_REPORTING: Final = frozenset({ClusterStatus.READY, ClusterStatus.WAITING})


class FleetProblem(Record):
    """One problem. `subject`: `cluster/ID` of a row, or `orphan/NAME` of a cluster without one."""

    subject: str
    code: str
    message: str


def list_fleet_problems(
    clusters: Iterable[Cluster], orphans: Iterable[Orphan], *, agent_silence_s: float, now: datetime
) -> tuple[FleetProblem, ...]:
    """Those of all clusters in the order of their rows, then the orphans."""
    return (
        *(
            problem
            for cluster in clusters
            for problem in list_cluster_problems(cluster, agent_silence_s=agent_silence_s, now=now)
        ),
        *(FleetProblem(subject=f"orphan/{orphan.name}", code="orphan", message=str(orphan)) for orphan in orphans),
    )


def list_cluster_problems(cluster: Cluster, *, agent_silence_s: float, now: datetime) -> tuple[FleetProblem, ...]:
    """The last message of its provider, changes made by hand, and an agent that does not report."""
    found: list[tuple[str, str]] = []
    is_failed = cluster.status is ClusterStatus.FAILED
    if cluster.status_details or is_failed:
        code = "creation_failed" if is_failed else "provider"
        found.append((code, cluster.status_details or "its creation failed"))
    found += [("drift", problem) for problem in read_problems(cluster)]
    if cluster.status in _REPORTING and cluster.cluster_type is ClusterType.MANAGED:
        found += [("agent_silent", "the agent is silent")] if _is_silent(cluster, agent_silence_s, now) else []
    subject = str(refer_to_cluster(cluster.id))
    return tuple(FleetProblem(subject=subject, code=code, message=text[:_PROBLEM_LENGTH]) for code, text in found)


def _is_silent(cluster: Cluster, agent_silence_s: float, now: datetime) -> bool:
    """A cluster without any report is not called silent: its agent may never have been installed by us."""
    last = cluster.last_report_at
    return last is not None and (now - last).total_seconds() > agent_silence_s
