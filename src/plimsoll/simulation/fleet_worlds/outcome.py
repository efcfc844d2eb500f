"""The outcome of a scenario with a fleet: rows and answers of the service, the OCM, and every cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.local.cloud.api import SimulatedCloud
from plimsoll.simulation.kafka.outcome import build_kafka_outcome
from plimsoll.simulation.scenario import RequestStep
from plimsoll.simulation.times import format_time
from plimsoll.simulation.worlds.group_names import GroupNames
from plimsoll.simulation.worlds.outcome import add_costs, read_objects

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plimsoll.app.fleet.embedded_clusters import RunningCluster
    from plimsoll.fleet.model.clusters import Cluster
    from plimsoll.fleet.model.kafkas import KafkaRequest
    from plimsoll.simulation.fleet_worlds.world import FleetWorld

Json = dict[str, Any]
_CHANGES: Final = frozenset({"POST", "PATCH", "DELETE"})
_PAGE: Final = 1000


async def read_fleet_outcome(world: FleetWorld, requests: Sequence[Json]) -> Json:
    rows, kafkas = await world.database.transfer.export_rows()
    clusters = {}
    for name in world.list_provided():
        running = world.find_running(name)
        if running is not None:
            clusters[name] = await _read_cluster(running)
    fleet = {
        "clusters": [_build_row(world, row) for row in sorted(rows, key=lambda row: (row.created_at, row.id))],
        "kafkas": {kafka.name: _build_kafka(world, kafka, rows) for kafka in sorted(kafkas, key=lambda row: row.name)},
        "requests": list(requests),
        "reasons": await _read_reasons(world),
        "ocm": _build_ocm(world),
    }
    return {"fleet": fleet, "clusters": clusters}


async def _read_cluster(running: RunningCluster) -> Json:
    client = running.cluster.connect("scenario")
    brokers = running.cluster.local.kafka
    kafka = {} if brokers is None else build_kafka_outcome(brokers.clusters)
    cloud = SimulatedCloud(client, clock=running.host.dependencies.clock)
    return {
        **await read_objects(client, GroupNames(())),
        "metrics": await add_costs(cloud),
        **({"kafka": kafka} if kafka else {}),
    }


def _build_row(world: FleetWorld, row: Cluster) -> Json:
    return {
        "cluster": world.name_row(row.id) or None,
        "status": row.status.value,
        "provider": row.provider_type.value,
        "cloudProvider": row.cloud_provider,
        "region": row.region,
        "multiAz": row.multi_az,
        "instanceTypes": row.supported_instance_type,
        "capacity": {
            name: {"maxNodes": info.max_nodes, "maxUnits": info.max_units, "remainingUnits": info.remaining_units}
            for name, info in sorted(row.dynamic_capacity_info.items())
        },
        "details": row.status_details,
        "deleteRequested": row.delete_requested_at is not None,
    }


def _build_kafka(world: FleetWorld, kafka: KafkaRequest, rows: Sequence[Cluster]) -> Json:
    of = next((row for row in rows if row.cluster_id and row.cluster_id == kafka.cluster_id), None)
    return {
        "status": kafka.status.value,
        "cluster": None if of is None else world.name_row(of.id),
        "size": kafka.size_id,
        "bootstrapServerHost": kafka.bootstrap_server_host,
        "failedReason": kafka.failed_reason,
    }


async def _read_reasons(world: FleetWorld) -> Json:
    """By subject, the codes of its decisions, the oldest first; a code that repeats itself stands once."""
    step = RequestStep(method="GET", path="/admin/scaling/decisions", query=f"size={_PAGE}", is_admin=True)
    _, document = await world.ask(step, step.path)
    reasons: dict[str, list[str]] = {}
    for item in reversed(document["items"]):
        codes = reasons.setdefault(_name_subject(world, item["subject"]), [])
        if not codes or codes[-1] != item["reason"]:
            codes.append(item["reason"])
    return dict(sorted(reasons.items()))


def _name_subject(world: FleetWorld, subject: str) -> str:
    kind, _, name = subject.partition("/")
    return f"cluster/{world.name_row(name) or name}" if kind == "cluster" else subject


def _build_ocm(world: FleetWorld) -> Json:
    """What it has, how many clusters it made, and the changes that it was asked for, of the latest calls."""
    names = {cluster.id: name for name, cluster in world.list_provided().items()}
    calls: dict[str, list[Json]] = {}
    for call in world.fleet.ocm.list_calls():
        if call.method in _CHANGES and call.call != "token":
            path = call.path
            for cluster_id, name in names.items():
                path = path.replace(cluster_id, name)
            entry = {"time": format_time(call.at), "path": path, "body": call.body, "status": call.status}
            calls.setdefault(call.call, []).append(entry)
    return {
        "clusters": {name: cluster.state.value for name, cluster in world.list_provided().items()},
        "created": sum(world.fleet.ocm.clusters.created.values()),
        "calls": calls,
    }
