"""The status ConfigMap: `cluster-autoscaler-status`, its key `status`, with Cluster Autoscaler's keys and words. Pure.

Programs that read Cluster Autoscaler's status can read this one. `build_status_document` builds plain data from the
health and from the previous document, which may have been read back from the ConfigMap: transition times survive a
restart. `format_status` writes the document; `read_status` reads one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import yaml

from plimsoll.core.errors import UnreadableDocument
from plimsoll.objects.api.meta import format_time
from plimsoll.objects.codec.yaml import load_all, resolve

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from plimsoll.nodes.cluster_state.health import ClusterHealth, GroupHealth
    from plimsoll.nodes.cluster_state.readiness import Readiness

STATUS_KEY: Final = "status"
LAST_UPDATED: Final = "cluster-autoscaler.kubernetes.io/last-updated"
INITIALIZING: Final = "Initializing"
RUNNING: Final = "Running"
_LONGEST_MESSAGE: Final = 1024
_PLAIN: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*", re.ASCII)
_SIMPLE: Final = re.compile(r"[ !#-\[\]-~]*", re.ASCII)
"""Printable, with neither quotation marks nor backslashes."""
Document = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopSummary:
    """What a loop iteration adds to the health."""

    candidates: Mapping[str, int] = field(default_factory=dict)
    """Nodes that could go, by group id; "" for those of no group."""
    looked_at: datetime | None = None
    """When candidates were looked for last; None: with the health."""
    message: str = ""


def build_status_document(health: ClusterHealth, summary: LoopSummary, before: Document | None = None) -> Document:
    """The document of a running autoscaler."""
    last = before or {}
    groups_before = {item["name"]: item for item in _get_items(last, "nodeGroups") if isinstance(item.get("name"), str)}
    groups = [
        _build_group(group, health, summary, groups_before.get(name, {}))
        for name, group in sorted(health.groups.items())
        if group.group.autoscaled
    ]
    growing = any(group.is_scaling_up for group in health.groups.values())
    wide_before = _get_part(last, "clusterWide")
    document = _build_head(health.at, RUNNING, summary.message)
    document["clusterWide"] = {
        "health": _add_times(
            {"status": _format_health(health.is_healthy), "nodeCounts": _count_nodes(health.total)},
            health.at,
            _get_part(wide_before, "health"),
        ),
        "scaleUp": _add_times(
            {"status": "InProgress" if growing else "NoActivity"}, health.at, _get_part(wide_before, "scaleUp")
        ),
        "scaleDown": _build_scale_down(
            sum(summary.candidates.values()), health, summary, _get_part(wide_before, "scaleDown")
        ),
    }
    document["nodeGroups"] = groups
    return document


def build_initializing_document(now: datetime, message: str = "") -> Document:
    """The document before the first loop iteration, and if one cannot begin."""
    return _build_head(now, INITIALIZING, message)


def format_status(document: Document) -> str:
    """As YAML. Written here, because of three hundred groups a general writer makes a second's work."""
    return "\n".join(_format_lines(document, "")) + "\n"


def read_status(text: str) -> Document | None:
    """What a ConfigMap holds; None if that is not a status document: it is overwritten then."""
    try:
        documents = [value for _line, value in load_all(text)]
    except UnreadableDocument:
        return None
    return documents[0] if len(documents) == 1 and isinstance(documents[0], dict) else None


def without_probe_times(document: Document) -> Document:
    """What it says, but for when it was last looked at."""
    return {
        key: without_probe_times(value) if isinstance(value, dict) else _strip_items(value)
        for key, value in document.items()
        if key not in {"time", "lastProbeTime"}
    }


def _strip_items(value: Any) -> Any:
    return [without_probe_times(item) for item in value] if isinstance(value, list) else value


def build_last_updated(now: datetime) -> dict[str, str]:
    """The ConfigMap's annotation."""
    return {LAST_UPDATED: _format_go_time(now)}


def _build_head(now: datetime, status: str, message: str) -> Document:
    document: Document = {"time": _format_go_time(now), "autoscalerStatus": status}
    if message:
        document["message"] = message
    return document


def _build_group(group: GroupHealth, health: ClusterHealth, summary: LoopSummary, before: Document) -> Document:
    probe = {
        "status": _format_health(group.is_healthy),
        "nodeCounts": _count_nodes(group.readiness),
        "cloudProviderTarget": group.target_size,
        "minSize": group.group.min_size,
        "maxSize": group.group.max_size,
    }
    candidates = summary.candidates.get(group.group.id, 0)
    return {
        "name": group.group.id,
        "health": _add_times(probe, health.at, _get_part(before, "health")),
        "scaleUp": _add_times(_build_group_scale_up(group), health.at, _get_part(before, "scaleUp")),
        "scaleDown": _build_scale_down(candidates, health, summary, _get_part(before, "scaleDown")),
    }


def _build_group_scale_up(group: GroupHealth) -> Document:
    if group.is_scaling_up:
        return {"status": "InProgress"}
    if group.backoff is None:
        return {"status": "NoActivity"}
    error = group.backoff.error
    info = {"errorCode": error.code, "errorMessage": _shorten(error.message)}
    return {"status": "Backoff", "backoffInfo": {key: value for key, value in info.items() if value}}


def _build_scale_down(candidates: int, health: ClusterHealth, summary: LoopSummary, before: Document) -> Document:
    status = "CandidatesPresent" if candidates else "NoCandidates"
    return _add_times({"status": status, "candidates": candidates}, summary.looked_at or health.at, before)


def _add_times(condition: Document, at: datetime, before: Document) -> Document:
    """With its times: the transition's stays while the status stays."""
    now = format_time(at)
    since = before.get("lastTransitionTime") if before.get("status") == condition["status"] else None
    return {**condition, "lastProbeTime": now, "lastTransitionTime": since if isinstance(since, str) else now}


def _count_nodes(readiness: Readiness) -> Document:
    return {
        "registered": {
            "total": readiness.registered,
            "ready": len(readiness.ready),
            "notStarted": len(readiness.not_started),
            "suspended": len(readiness.suspended),
            "beingDeleted": len(readiness.deleted),
            "unready": {"total": len(readiness.unready), "resourceUnready": len(readiness.resource_unready)},
        },
        "longUnregistered": len(readiness.long_unregistered),
        "unregistered": len(readiness.unregistered),
    }


def _format_health(is_healthy: bool) -> str:
    return "Healthy" if is_healthy else "Unhealthy"


def _shorten(message: str) -> str:
    return message if len(message) <= _LONGEST_MESSAGE else f"{message[: _LONGEST_MESSAGE - 1]}…"


def _get_part(document: Document, key: str) -> Document:
    """The stored document may contain anything, because it can be edited."""
    value = document.get(key)
    return value if isinstance(value, dict) else {}


def _get_items(document: Document, key: str) -> list[Document]:
    value = document.get(key)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _format_lines(document: Document, indent: str) -> Iterator[str]:
    for key, value in document.items():
        if isinstance(value, dict) and value:
            yield f"{indent}{key}:"
            yield from _format_lines(value, f"{indent}  ")
        elif isinstance(value, list) and value:
            yield f"{indent}{key}:"
            for item in value:
                first, *rest = _format_lines(item, f"{indent}  ")
                yield f"{indent}- {first[len(indent) + 2 :]}"
                yield from rest
        else:
            yield f"{indent}{key}: {'[]' if value == [] else _format_scalar(value)}"


@lru_cache(maxsize=4096)
def _format_scalar(value: str | int) -> str:
    if not isinstance(value, str):
        return str(value)
    if _PLAIN.fullmatch(value) and isinstance(resolve(value), str):
        return value
    if _SIMPLE.fullmatch(value):
        return f'"{value}"'
    # One line, whatever the error message of the cloud contains.
    return str(yaml.dump(value, Dumper=yaml.SafeDumper, default_style='"', width=float("inf"))).strip()


def _format_go_time(moment: datetime) -> str:
    """As Go prints a time, which is what readers of this ConfigMap know."""
    utc = moment.astimezone(UTC)
    fraction = f".{utc.microsecond:06d}".rstrip("0") if utc.microsecond else ""
    return f"{utc:%Y-%m-%d %H:%M:%S}{fraction} +0000 UTC"
