"""Reads the status of a running autoscaler from its ConfigMap, for `plimsoll nodes status`. Pure.

The ConfigMap may be Cluster Autoscaler's, or edited by hand: missing or malformed parts are left out.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.durations import add_seconds
from plimsoll.core.value_parsing import read_duration_s
from plimsoll.nodes.cluster_state.status_document import LAST_UPDATED, STATUS_KEY, read_status
from plimsoll.nodes.config.flags import find_flag_problem
from plimsoll.nodes.config.options import find_flag
from plimsoll.nodes.reporting.status.configmap import (
    LAST_LOOP_ANNOTATION,
    LOOP_STARTED_ANNOTATION,
    OTHER_AUTOSCALER_ANNOTATION,
    read_options_annotation,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from plimsoll.nodes.config.configure import RuntimeConfig
    from plimsoll.objects.api.core import ConfigMap

Json = dict[str, Any]
_SCAN_INTERVAL_S: Final = 10.0
_TURNS_MISSED: Final = 6
_LEAST_STALE_S: Final = 60.0


def build_status_report(config_map: ConfigMap, config: RuntimeConfig, *, now: datetime) -> Json:
    """The status as plain data."""
    document = read_status(config_map.data.get(STATUS_KEY, "")) or {}
    notes = config_map.metadata.annotations
    in_force = read_options_annotation(notes)
    wide = _get_part(document, "clusterWide")
    written = _get_text(document.get("time")) or notes.get(LAST_UPDATED, "")
    loop_s = _compute_loop_s(notes.get(LOOP_STARTED_ANNOTATION, ""), now)
    if loop_s is not None:
        # While a loop iteration is under way, only the annotations are written.
        written = notes.get(LAST_UPDATED, written)
    age_s = _compute_age_s(written, now)
    groups = document.get("nodeGroups")
    return {
        "status": _get_text(document.get("autoscalerStatus")) or "Unknown",
        "time": written,
        "ageSeconds": age_s,
        "stale": age_s is None or age_s > _compute_stale_after_s(in_force or {}),
        "loopUnderWaySeconds": loop_s,
        "message": _get_text(document.get("message")),
        "lastTurn": notes.get(LAST_LOOP_ANNOTATION, ""),
        "paused": config.paused,
        "otherAutoscaler": notes.get(OTHER_AUTOSCALER_ANNOTATION, ""),
        "dryRun": is_dry_run(in_force or {}, config),
        "health": _get_text(_get_part(wide, "health").get("status")),
        "nodes": _read_counts(_get_part(wide, "health")),
        "scaleUp": _get_text(_get_part(wide, "scaleUp").get("status")),
        "scaleDown": _get_text(_get_part(wide, "scaleDown").get("status")),
        "candidates": _get_number(_get_part(wide, "scaleDown").get("candidates")),
        "groups": [_read_group(group) for group in groups if isinstance(group, dict)]
        if isinstance(groups, list)
        else [],
        "options": in_force,
        "configured": dict(config.options),
        "problems": list(
            _find_problems(in_force, config, reported_at=None if age_s is None else add_seconds(now, -age_s))
        ),
    }


def _find_problems(
    in_force: Mapping[str, Any] | None, config: RuntimeConfig, *, reported_at: datetime | None
) -> Iterator[str]:
    """Configured options that are not in force."""
    if config.problem:
        yield f"the configuration cannot be used: {config.problem}"
        return
    if in_force is None:
        return
    for spelling, wanted in config.options.items():
        flag = find_flag(spelling)
        if flag is None or find_flag_problem(flag, wanted) is not None:
            continue
        held = in_force.get(flag.name)
        used = flag.default if held is None or find_flag_problem(flag, held) is not None else flag.parse(held)
        if flag.parse(wanted) != used:
            difference = f"{flag.name} is configured as {wanted}, and the last loop iteration ran {_format_used(used)}"
            yield f"{difference}: {_explain_not_in_force(config.configured_at, reported_at)}"


def _format_used(used: Any) -> str:
    return "without it" if used in (None, (), "") else f"with {','.join(used) if isinstance(used, tuple) else used}"


def _explain_not_in_force(configured_at: datetime | None, reported_at: datetime | None) -> str:
    """Why a configured option is not in force. Times are whole seconds: the same second does not count as after."""
    if configured_at is None or reported_at is None:
        return "the next one takes it up, or the autoscaler's log says why it cannot"
    if reported_at <= configured_at:
        return f"that was before the change at {configured_at:%H:%M:%S} UTC; the next one takes it up"
    return f"although it was changed before, at {configured_at:%H:%M:%S} UTC: the autoscaler's log says why"


def _read_group(group: Json) -> Json:
    health, growing = _get_part(group, "health"), _get_part(group, "scaleUp")
    backoff = _get_part(growing, "backoffInfo")
    parts = [_get_text(backoff.get(key)) for key in ("errorCode", "errorMessage")]
    return {
        "name": _get_text(group.get("name")),
        "min": _get_number(health.get("minSize")),
        "target": _get_number(health.get("cloudProviderTarget")),
        "max": _get_number(health.get("maxSize")),
        "nodes": _read_counts(health),
        "health": _get_text(health.get("status")),
        "scaleUp": _get_text(growing.get("status")),
        "backoff": ": ".join(part for part in parts if part),
        "candidates": _get_number(_get_part(group, "scaleDown").get("candidates")),
    }


def _read_counts(health: Json) -> Json:
    counts = _get_part(health, "nodeCounts")
    registered = _get_part(counts, "registered")
    return {
        "registered": _get_number(registered.get("total")),
        "ready": _get_number(registered.get("ready")),
        "notStarted": _get_number(registered.get("notStarted")),
        "beingDeleted": _get_number(registered.get("beingDeleted")),
        "unready": _get_number(_get_part(registered, "unready").get("total")),
        "unregistered": _get_number(counts.get("unregistered")),
        "longUnregistered": _get_number(counts.get("longUnregistered")),
    }


def is_dry_run(in_force: Mapping[str, Any], config: RuntimeConfig) -> bool:
    """Whether the autoscaler runs dry: a dry run writes no status, so the configuration counts too."""
    return any(str(options.get("dry-run", "")).lower() == "true" for options in (in_force, config.options))


def _compute_stale_after_s(in_force: Mapping[str, Any]) -> float:
    interval_s = read_duration_s(str(in_force.get("scan-interval", "")))
    return max(_LEAST_STALE_S, _TURNS_MISSED * (_SCAN_INTERVAL_S if interval_s is None else interval_s))


def _compute_age_s(written: str, now: datetime) -> float | None:
    """The age of a time in Go's format: `2026-01-31 12:00:00.5 +0000 UTC`."""
    moment, _, zone = written.partition(" +")
    try:
        read = datetime.fromisoformat(moment[:19]).replace(tzinfo=UTC)
    except ValueError:
        return None
    age_s = (now - read).total_seconds()
    return float(math.floor(max(age_s, 0.0))) if zone.startswith("0000") else None


def _compute_loop_s(started: str, now: datetime) -> float | None:
    """How long a loop iteration has been under way; None: none is."""
    try:
        read = datetime.fromisoformat(started)
    except ValueError:
        return None
    return None if read.tzinfo is None else float(math.floor(max((now - read).total_seconds(), 0.0)))


def _get_part(document: Json, key: str) -> Json:
    value = document.get(key)
    return value if isinstance(value, dict) else {}


def _get_text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _get_number(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
