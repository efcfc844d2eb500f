"""The bodies of reports (docs/design/fleet.md 3.3). Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.fleet.agent.model.reports import FALSE, TRUE

if TYPE_CHECKING:
    from plimsoll.fleet.agent.model.capacity import ClusterCapacity
    from plimsoll.fleet.agent.model.operators import OperatorVersion
    from plimsoll.fleet.agent.model.reports import InstanceReport

_LONGEST: Final = 1024
_ROUTE: Final = "bootstrap"


def build_instance_report(report: InstanceReport) -> dict[str, Any]:
    document: dict[str, Any] = {
        "conditions": [_build_condition("Ready", report.status, report.reason, report.message)],
    }
    versions = report.versions
    named = {"kafka": versions.kafka, "strimzi": versions.strimzi, "kafkaIbp": versions.kafka_ibp}
    if known := {name: version for name, version in named.items() if version}:
        document["versions"] = known
    if report.router:
        document["routes"] = [{"name": _ROUTE, "prefix": "", "router": report.router}]
    if report.admin_server_uri:
        document["adminServerURI"] = report.admin_server_uri
    if report.bytes_stored is not None:
        document["bytesStored"] = report.bytes_stored
    if report.units is not None:
        document |= {"units": report.units, "resizing": report.is_resizing}
    if report.refused_units is not None:
        document["refusedUnits"] = report.refused_units
    return document


def build_cluster_report(versions: tuple[OperatorVersion, ...], capacity: ClusterCapacity) -> dict[str, Any]:
    """Sent after a successful poll: the cluster is ready if an operator is."""
    is_ready = any(version.ready for version in versions)
    message = "" if is_ready else "no Kafka operator is available"
    ready = _build_condition("Ready", TRUE if is_ready else FALSE, "" if is_ready else "NoKafkaOperator", message)
    smaller = [_build_condition(reason.code, TRUE, reason.code, str(reason)) for reason in capacity.smaller]
    return {
        "conditions": [ready, *smaller],
        "capacity": {
            name: {"maxUnits": units.max_units, "remainingUnits": units.remaining_units}
            for name, units in capacity.types.items()
        },
        "strimzi": [
            {
                "version": version.version,
                "ready": version.ready,
                "kafkaVersions": list(version.kafka_versions),
                "kafkaIbpVersions": list(version.ibp_versions),
            }
            for version in versions
        ],
    }


def _build_condition(name: str, status: str, reason: str, message: str) -> dict[str, str]:
    return {"type": name, "status": status, "reason": reason, "message": message[:_LONGEST]}
