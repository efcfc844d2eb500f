"""The outcome of a scenario: the JSON that `plimsoll simulate` prints and that expectations refer to.

It is read through the API server, in an order that depends only on names and times.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.formatting import NO_LIMIT
from plimsoll.nodes.model.node_templates import AUTOPROVISIONED_LABEL, PROFILE_LABEL
from plimsoll.objects.api.simulated_cloud import GROUP_LABEL
from plimsoll.simulation.kafka.outcome import build_kafka_outcome
from plimsoll.simulation.times import format_time

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plimsoll.kube.client import Client
    from plimsoll.local.cloud.api import SimulatedCloud
    from plimsoll.local.cloud.faults.call_log import CallRecord
    from plimsoll.simulation.worlds.group_names import GroupNames
    from plimsoll.simulation.worlds.world import World

_REQUESTS: Final = "/apis/autoscaling.x-k8s.io/v1/provisioningrequests"
_GROUPS: Final = "/apis/cloud.plimsoll.io/v1alpha1/nodegroups"
_INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"
_MARKS: Final = frozenset({AUTOPROVISIONED_LABEL, PROFILE_LABEL})
"""Labels that auto-provisioning puts on all its groups, in addition to those that pods ask for."""

Json = dict[str, Any]


async def read_outcome(world: World, loops: Sequence[Json]) -> Json:
    objects = await read_objects(world.client, world.group_names)
    brokers = build_kafka_outcome(world.kafka_clusters)
    requests = await _list_items(world.client, _REQUESTS)
    return {
        "loops": list(loops),
        "requests": {_get_key(item): _build_request(world, item) for item in requests},
        "nodeGroups": objects["nodeGroups"],
        "nodes": objects["nodes"],
        "providerCalls": [_call(call_record, world.group_names) for call_record in world.log],
        "events": objects["events"],
        "metrics": await _get_metrics(world),
        "pods": objects["pods"],
        **({"kafka": brokers} if brokers else {}),
    }


async def read_objects(client: Client, names: GroupNames) -> Json:
    """What every cluster has."""
    pods = await _list_items(client, "/api/v1/pods")
    nodes = await _list_items(client, "/api/v1/nodes")
    groups = await _list_items(client, _GROUPS)
    return {
        "nodeGroups": {names.get_id(item["metadata"]["name"]): _build_group(item) for item in groups},
        "nodes": _build_nodes(nodes, pods, names),
        "events": _build_events(await _list_items(client, "/api/v1/events")),
        "pods": {_get_key(pod): pod["spec"].get("nodeName") or None for pod in pods},
    }


async def _list_items(client: Client, path: str) -> list[Json]:
    """Objects by namespace and name."""
    listed = await client.get_json(path)
    return sorted(listed["items"], key=lambda item: (item["metadata"].get("namespace", ""), item["metadata"]["name"]))


def _get_key(obj: Json) -> str:
    return f"{obj['metadata'].get('namespace', '')}/{obj['metadata']['name']}"


def _build_request(world: World, obj: Json) -> Json:
    status = obj.get("status") or {}
    return {
        "conditions": status.get("conditions") or [],
        "details": status.get("provisioningClassDetails") or {},
        "history": world.requests.list_changes(_get_key(obj)),
    }


def _build_group(obj: Json) -> Json:
    spec = obj["spec"]
    template = spec.get("template") or {}
    return {
        "target": spec.get("target", 0),
        "min": spec.get("min", 0),
        "max": spec.get("max", NO_LIMIT),
        "autoprovisioned": spec.get("autoprovisioned", False),
        "labels": {key: value for key, value in (template.get("labels") or {}).items() if key not in _MARKS},
        "taints": template.get("taints") or [],
        "machineType": spec.get("machineType") or None,
    }


def _build_nodes(nodes: list[Json], pods: list[Json], names: GroupNames) -> Json:
    on: dict[str, list[str]] = {}
    for pod in pods:
        on.setdefault(pod["spec"].get("nodeName") or "", []).append(_get_key(pod))
    found: Json = {}
    for node in nodes:
        name, labels = node["metadata"]["name"], node["metadata"].get("labels") or {}
        found[name] = {
            "group": names.get_id(labels[GROUP_LABEL]) if GROUP_LABEL in labels else None,
            "machineType": labels.get(_INSTANCE_TYPE),
            "pods": on.get(name, []),
        }
    return found


def _call(record: CallRecord, names: GroupNames) -> Json:
    arg = list(record.arg) if isinstance(record.arg, tuple) else record.arg
    group = names.get_id(record.group)
    call = {"time": format_time(record.time), "group": group, "call": record.call, "arg": arg, "ok": record.ok}
    return {**call, "message": record.message} if record.message else call


def _build_events(events: list[Json]) -> list[Json]:
    return sorted((_build_event(event) for event in events), key=lambda row: (row["time"], *map(str, row.values())))


def _build_event(obj: Json) -> Json:
    about = obj.get("involvedObject") or {}
    first = obj.get("firstTimestamp") or obj.get("eventTime") or obj["metadata"]["creationTimestamp"]
    series = obj.get("series") or {}
    last = obj.get("lastTimestamp") or series.get("lastObservedTime") or first
    return {
        "time": _format_time(last),
        "firstTime": _format_time(first),
        "count": series.get("count") or obj.get("count") or 1,
        "type": obj.get("type", ""),
        "reason": obj.get("reason", ""),
        "object": "/".join(part for part in (about.get("kind"), about.get("namespace"), about.get("name")) if part),
        "message": obj.get("message", ""),
        "source": (obj.get("source") or {}).get("component") or obj.get("reportingComponent", ""),
    }


def _format_time(time: str) -> str:
    """The time without zero microseconds, which some Events have."""
    return time.replace(".000000Z", "Z")


async def _get_metrics(world: World) -> dict[str, float]:
    metrics = await add_costs(world.cloud)
    if world.loop is not None:
        metrics |= world.loop.get_metrics()
    return dict(sorted(metrics.items()))


async def add_costs(cloud: SimulatedCloud) -> dict[str, float]:
    """What all machines have cost, by currency."""
    spent: dict[str, float] = {}
    for cost in await cloud.compute_costs():
        name = f'cloud_cost_total{{currency="{cost.currency}"}}'
        spent[name] = spent.get(name, 0.0) + float(cost.amount)
    return {name: round(amount, 6) for name, amount in spent.items()}
