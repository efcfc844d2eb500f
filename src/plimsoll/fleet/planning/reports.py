"""Reports of agents: what they change on rows (docs/design/fleet.md 1.3, 1.6 and 3.3).

A report is a document of another program: it may be extreme, partial or false. Each is read alone, and what cannot be
used is a warning that changes nothing else.
"""

from __future__ import annotations

from datetime import datetime  # noqa: TC003 - msgspec reads annotations at run time
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.plans import Action, NotDone, Plan
from plimsoll.core.value_parsing import InvalidValue, parse_switch, quote
from plimsoll.core.values import Value
from plimsoll.fleet.model.clusters import StrimziVersion, VersionItem
from plimsoll.fleet.model.kafkas import Route
from plimsoll.fleet.model.statuses import ENDING, LISTED_FOR_AGENTS, ClusterType, KafkaStatus
from plimsoll.fleet.model.version_order import UnsortableVersion, sort_strimzi_versions
from plimsoll.fleet.planning.plan_parts import build_plan, build_reason, refer_to_kafka
from plimsoll.fleet.ports import ClusterReport, KafkaChanges, UnitReport
from plimsoll.fleet.wire.agent_reports import (
    ClusterStatusBody,
    Condition,
    KafkaStatusBody,
    ReportedRoute,
    UnreadableReport,
    convert_cluster_status,
    convert_kafka_status,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from plimsoll.fleet.model.clusters import Cluster
    from plimsoll.fleet.model.kafkas import KafkaRequest

CLUSTER_FULL: Final = "Cluster has insufficient resources"
FAILED_REASON: Final = "Kafka reported as failed from the data plane"
"""The text for users. The text of the agent stays in our log."""
MOST_ROUTES: Final = 100
LONGEST_NAME: Final = 253
_SUSPENSION: Final = frozenset({KafkaStatus.SUSPENDING, KafkaStatus.SUSPENDED})
_TO_READY: Final = frozenset({KafkaStatus.PROVISIONING, KafkaStatus.READY, KafkaStatus.FAILED, KafkaStatus.RESUMING})
_CHANGEABLE: Final = LISTED_FOR_AGENTS - ENDING
_UPGRADES: Final = {
    "StrimziUpdating": "strimzi_upgrading",
    "KafkaUpdating": "kafka_upgrading",
    "KafkaIbpUpdating": "kafka_ibp_upgrading",
}


class ReportedStatus(StrEnum):
    """The state of a Kafka as its agent sees it."""

    SUSPENDED = "suspended"
    READY = "ready"
    UNKNOWN = "unknown"
    INSTALLING = "installing"
    DELETED = "deleted"
    ERROR = "error"
    REJECTED = "rejected"
    CLUSTER_FULL = "rejectedClusterFull"


class KafkaReportResult(Value):
    """What a report changes on the row of a Kafka. No changes: nothing is written.

    `statuses` are those that the row may be in; `needs_new_placement`: the writer adds a new `placement_id`.
    """

    kafka_id: str
    reported: ReportedStatus | None
    changes: KafkaChanges
    statuses: frozenset[KafkaStatus]
    needs_new_placement: bool = False
    warnings: tuple[str, ...] = ()

    def build_plan(self, number: int, now: datetime) -> Plan:
        """An action for a change of the status or of the place; a warning is not done. The rest is no decision."""
        subject = refer_to_kafka(self.kafka_id)
        reported = "" if self.reported is None else str(self.reported)
        parts: list[Action | NotDone] = []
        if "status" in self.changes or "cluster_id" in self.changes or self.needs_new_placement:
            facts = {"reported": reported}
            reason = build_reason(f"reported_{reported}", f"the agent reports {subject} as {reported}", facts)
            arguments = {name: str(value) for name, value in self.changes.items() if name in {"status", "cluster_id"}}
            parts.append(Action(verb="update", target=subject, reason=reason, arguments=arguments))
        for warning in self.warnings:
            reason = build_reason("report_ignored", warning, {"reported": reported})
            parts.append(NotDone(what="not updated", about=(subject,), reason=reason))
        return build_plan(number, now, parts)


class InvalidReport(Value):
    """A report about a cluster that is refused as a whole, with the code of the API's error."""

    code: int
    reason: str


# ---- clusters


def read_cluster_report(document: Any, now: datetime) -> ClusterReport | InvalidReport:
    """The report of an agent about its cluster."""
    try:
        body = convert_cluster_status(document)
        is_ready = _read_readiness(body)
        versions = _read_versions(body)
    except UnreadableReport as error:
        return InvalidReport(code=error.code, reason=str(error))
    except UnsortableVersion as error:
        return InvalidReport(code=8, reason=f"strimzi: {error}")
    units = {
        name: UnitReport(max_units=reported.max_units or 0, remaining_units=reported.remaining_units or 0)
        for name, reported in (body.capacity or {}).items()
    }
    return ClusterReport(is_ready=is_ready, at=now, units=units, versions=versions)


def _read_readiness(body: ClusterStatusBody) -> bool:
    """Whether the Ready condition is true. Without one the cluster is not ready."""
    for position, condition in enumerate(body.conditions or ()):
        if condition.type == "Ready":
            try:
                return parse_switch(condition.status or "")
            except InvalidValue as error:
                raise UnreadableReport(21, f"conditions[{position}].status: {error}") from error
    return False


def _read_versions(body: ClusterStatusBody) -> tuple[StrimziVersion, ...]:
    found = []
    for position, strimzi in enumerate(body.strimzi or ()):
        for name, given in (
            ("version", strimzi.version),
            ("kafkaVersions", strimzi.kafka_versions),
            ("kafkaIbpVersions", strimzi.kafka_ibp_versions),
        ):
            if not given:
                raise UnreadableReport(37, f"strimzi[{position}].{name} is missing or empty")
        found.append(
            StrimziVersion(
                version=strimzi.version or "",
                ready=bool(strimzi.ready),
                kafkaVersions=tuple(VersionItem(version=text) for text in strimzi.kafka_versions or ()),
                kafkaIBPVersions=tuple(VersionItem(version=text) for text in strimzi.kafka_ibp_versions or ()),
            )
        )
    return sort_strimzi_versions(found)


# ---- Kafkas


def read_kafka_report(kafka: KafkaRequest, report: Any, cluster: Cluster, now: datetime) -> KafkaReportResult:
    """The changes of one Kafka. `report` is its part of the body, decoded from JSON."""
    del now  # no rule of a report depends on the time
    try:
        body = convert_kafka_status(report)
    except UnreadableReport as error:
        return _ignore(kafka, None, f"the report cannot be read: {error}")
    reported = read_condition(body.conditions or ())
    if not cluster.cluster_id or kafka.cluster_id != cluster.cluster_id:
        return _ignore(kafka, reported, f"the agent of cluster/{cluster.id} reports a Kafka that is not on it")
    if kafka.status in ENDING:
        return _read_ending(kafka, reported)
    if kafka.status not in LISTED_FOR_AGENTS:
        return _ignore(kafka, reported, f"the Kafka is {kafka.status}: no agent runs it")
    return _read_running(kafka, body, reported, cluster)


def read_condition(conditions: Sequence[Condition]) -> ReportedStatus:
    """The state that the Ready condition gives; without one the Kafka is being installed."""
    condition = _find_ready_condition(conditions)
    if condition is None:
        return ReportedStatus.INSTALLING
    reason, status = (condition.reason or "").lower(), (condition.status or "").lower()
    if reason == "suspended":
        return ReportedStatus.SUSPENDED
    if status == "true":
        return ReportedStatus.READY
    if status == "unknown":
        return ReportedStatus.UNKNOWN
    if reason == "rejected":
        is_full = (condition.message or "").strip().lower() == CLUSTER_FULL.lower()
        return ReportedStatus.CLUSTER_FULL if is_full else ReportedStatus.REJECTED
    named = {
        "installing": ReportedStatus.INSTALLING,
        "deleted": ReportedStatus.DELETED,
        "error": ReportedStatus.ERROR,
    }
    return named.get(reason, ReportedStatus.INSTALLING)


def _find_ready_condition(conditions: Sequence[Condition]) -> Condition | None:
    return next((condition for condition in conditions if (condition.type or "").lower() == "ready"), None)


def _ignore(kafka: KafkaRequest, reported: ReportedStatus | None, warning: str) -> KafkaReportResult:
    return KafkaReportResult(
        kafka_id=kafka.id, reported=reported, changes={}, statuses=frozenset(), warnings=(warning,)
    )


def _read_ending(kafka: KafkaRequest, reported: ReportedStatus) -> KafkaReportResult:
    """A Kafka that goes away: only its end counts."""
    changes: KafkaChanges = {}
    if reported is ReportedStatus.DELETED and kafka.status is KafkaStatus.DEPROVISION:
        changes["status"] = KafkaStatus.DELETING
    return KafkaReportResult(
        kafka_id=kafka.id, reported=reported, changes=changes, statuses=frozenset({KafkaStatus.DEPROVISION})
    )


def _read_running(
    kafka: KafkaRequest, body: KafkaStatusBody, reported: ReportedStatus, cluster: Cluster
) -> KafkaReportResult:
    facts, warnings = _read_facts(kafka, body, cluster)
    if reported is ReportedStatus.DELETED:
        warnings += (f"the agent reports the Kafka as deleted, but it is {kafka.status}",)
    is_rejected = reported in {ReportedStatus.REJECTED, ReportedStatus.CLUSTER_FULL}
    if is_rejected and kafka.status is KafkaStatus.PROVISIONING:
        leaves = reported is ReportedStatus.CLUSTER_FULL and cluster.cluster_type is not ClusterType.ENTERPRISE
        return KafkaReportResult(
            kafka_id=kafka.id,
            reported=reported,
            changes=_release_place() if leaves else facts,
            statuses=frozenset({KafkaStatus.PROVISIONING}),
            needs_new_placement=True,
            warnings=warnings,
        )
    changes, statuses = _read_transition(kafka, body, reported, facts=facts)
    return KafkaReportResult(
        kafka_id=kafka.id, reported=reported, changes=changes, statuses=statuses, warnings=warnings
    )


def _read_transition(
    kafka: KafkaRequest, body: KafkaStatusBody, reported: ReportedStatus, *, facts: KafkaChanges
) -> tuple[KafkaChanges, frozenset[KafkaStatus]]:
    """The change of the status, with the statuses that it may come from."""
    has_routes = facts.get("routes_created", kafka.routes_created)
    if reported is ReportedStatus.READY and kafka.status in _TO_READY and has_routes:
        if kafka.status is not KafkaStatus.READY or kafka.failed_reason:
            facts |= {"status": KafkaStatus.READY, "failed_reason": ""}
        if body.admin_server_uri and body.admin_server_uri != kafka.admin_api_server_url:
            facts |= {"admin_api_server_url": body.admin_server_uri}
        return facts, _TO_READY
    if reported is ReportedStatus.ERROR and kafka.status not in _SUSPENSION:
        if kafka.status is not KafkaStatus.FAILED:
            facts |= {"status": KafkaStatus.FAILED, "failed_reason": FAILED_REASON}
        return facts, _CHANGEABLE - _SUSPENSION
    if reported is ReportedStatus.SUSPENDED and kafka.status is KafkaStatus.SUSPENDING:
        return facts | {"status": KafkaStatus.SUSPENDED}, frozenset({KafkaStatus.SUSPENDING})
    return facts, _CHANGEABLE


def _release_place() -> KafkaChanges:
    """The cluster has no room: placement begins again."""
    return {
        "cluster_id": "",
        "bootstrap_server_host": "",
        "desired_kafka_version": "",
        "desired_strimzi_version": "",
        "desired_kafka_ibp_version": "",
    }


def _read_facts(kafka: KafkaRequest, body: KafkaStatusBody, cluster: Cluster) -> tuple[KafkaChanges, tuple[str, ...]]:
    """Versions, upgrades, bytes stored and routes, as far as they differ from the row."""
    found: dict[str, Any] = {}
    if body.versions is not None:
        found["actual_kafka_version"] = body.versions.kafka
        found["actual_strimzi_version"] = body.versions.strimzi
        found["actual_kafka_ibp_version"] = body.versions.kafka_ibp
        found = {name: version for name, version in found.items() if version}
    condition = _find_ready_condition(body.conditions or ())
    if condition is not None:
        found |= {column: condition.reason == reason for reason, column in _UPGRADES.items()}
    if body.bytes_stored is not None:
        found["bytes_stored"] = body.bytes_stored
    if kafka.resizing_to_units and _has_ended_resizing(kafka, body):
        found["resizing_to_units"] = 0
    warnings: tuple[str, ...] = ()
    if body.routes and not kafka.routes:
        routes, problem = _build_routes(kafka, body.routes, cluster)
        if problem:
            warnings = (problem,)
        else:
            found |= {"routes": routes, "routes_created": True}
    changed = {name: value for name, value in found.items() if getattr(kafka, name) != value}
    return _to_changes(changed), warnings


def _has_ended_resizing(kafka: KafkaRequest, body: KafkaStatusBody) -> bool:
    """Whether the instance has its size, or its cluster refused it.

    An agent that does not know of sizes reports readiness alone, and nothing else says that the change is done.
    """
    if body.resizing or read_condition(body.conditions or ()) is not ReportedStatus.READY:
        return False
    return body.units in {None, kafka.resizing_to_units} or body.refused_units == kafka.resizing_to_units


def _to_changes(changed: dict[str, Any]) -> KafkaChanges:
    changes: KafkaChanges = {}
    changes.update(changed)  # type: ignore[typeddict-item]  # names of columns, from the tables above
    return changes


def _build_routes(
    kafka: KafkaRequest, reported: Sequence[ReportedRoute], cluster: Cluster
) -> tuple[tuple[Route, ...], str]:
    """The routes as they are stored, or why they are rejected: all or none."""
    host = kafka.bootstrap_server_host
    if not host:
        return (), "the report has routes, but the Kafka has no bootstrap host"
    if len(reported) > MOST_ROUTES:
        return (), f"the report has {len(reported)} routes; the most is {MOST_ROUTES}"
    suffix = cluster.cluster_dns.removeprefix("apps.")
    routes = tuple(
        Route(domain=f"{route.prefix}-{host}" if route.prefix else host, router=route.router or "")
        for route in reported
    )
    for route in routes:
        if not route.router or not route.router.endswith(suffix):
            return (), f"the router {quote(route.router)} is not below {quote(suffix)} of its cluster"
        if max(len(route.router), len(route.domain)) > LONGEST_NAME:
            return (), f"the route of {quote(route.domain)} has a name of more than {LONGEST_NAME} characters"
    return routes, ""


def list_warnings(results: Iterable[KafkaReportResult]) -> list[str]:
    """One line per warning, for the log."""
    return [f"kafka/{result.kafka_id}: {warning}" for result in results for warning in result.warnings]
