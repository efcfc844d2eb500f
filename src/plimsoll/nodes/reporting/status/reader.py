"""Reads the status of a running autoscaler from its ConfigMap, for `plimsoll nodes status`. Pure.

The ConfigMap may be Cluster Autoscaler's, or edited by hand: missing or malformed parts are left out.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.value_parsing import read_duration_s
from plimsoll.nodes.cluster_state.status_document import LAST_UPDATED, STATUS_KEY, read_status
from plimsoll.nodes.config.flags import problem_of
from plimsoll.nodes.config.options import known_flag
from plimsoll.nodes.reporting.status.configmap import LAST_LOOP_ANNOTATION, read_options_annotation

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
    wide = _part(document, "clusterWide")
    written = _text(document.get("time")) or notes.get(LAST_UPDATED, "")
    age_s = _age_s(written, now)
    groups = document.get("nodeGroups")
    return {
        "status": _text(document.get("autoscalerStatus")) or "Unknown",
        "time": written,
        "ageSeconds": age_s,
        "stale": age_s is None or age_s > _patience_s(in_force or {}),
        "message": _text(document.get("message")),
        "lastTurn": notes.get(LAST_LOOP_ANNOTATION, ""),
        "paused": config.paused,
        "dryRun": _is_dry_run(in_force or {}, config),
        "health": _text(_part(wide, "health").get("status")),
        "nodes": _counts(_part(wide, "health")),
        "scaleUp": _text(_part(wide, "scaleUp").get("status")),
        "scaleDown": _text(_part(wide, "scaleDown").get("status")),
        "candidates": _number(_part(wide, "scaleDown").get("candidates")),
        "groups": [_group(group) for group in groups if isinstance(group, dict)] if isinstance(groups, list) else [],
        "options": in_force,
        "configured": dict(config.options),
        "problems": list(
            _problems(in_force, config, reported_at=None if age_s is None else now - timedelta(seconds=age_s))
        ),
    }


def _problems(
    in_force: Mapping[str, Any] | None, steering: RuntimeConfig, *, reported_at: datetime | None
) -> Iterator[str]:
    """Configured options that are not in force."""
    if steering.problem:
        yield f"the configuration cannot be used: {steering.problem}"
        return
    if in_force is None:
        return
    for spelling, wanted in steering.options.items():
        flag = known_flag(spelling)
        if flag is None or problem_of(flag, wanted) is not None:
            continue
        held = in_force.get(flag.name)
        used = flag.default if held is None or problem_of(flag, held) is not None else flag.parse(held)
        if flag.parse(wanted) != used:
            difference = f"{flag.name} is configured as {wanted}, and the last loop ran {_with(used)}"
            yield f"{difference}: {_why_not(steering.configured_at, reported_at)}"


def _with(used: Any) -> str:
    return "without it" if used in (None, (), "") else f"with {','.join(used) if isinstance(used, tuple) else used}"


def _why_not(configured_at: datetime | None, reported_at: datetime | None) -> str:
    """Why a configured option is not in force. Times are whole seconds: the same second does not count as after."""
    if configured_at is None or reported_at is None:
        return "the next one takes it up, or the autoscaler's log says why it cannot"
    if reported_at <= configured_at:
        return f"that was before the change at {configured_at:%H:%M:%S} UTC; the next one takes it up"
    return f"although it was changed before, at {configured_at:%H:%M:%S} UTC: the autoscaler's log says why"


def _group(one: Json) -> Json:
    health, growing = _part(one, "health"), _part(one, "scaleUp")
    backoff = _part(growing, "backoffInfo")
    parts = [_text(backoff.get(key)) for key in ("errorCode", "errorMessage")]
    return {
        "name": _text(one.get("name")),
        "min": _number(health.get("minSize")),
        "target": _number(health.get("cloudProviderTarget")),
        "max": _number(health.get("maxSize")),
        "nodes": _counts(health),
        "health": _text(health.get("status")),
        "scaleUp": _text(growing.get("status")),
        "backoff": ": ".join(part for part in parts if part),
        "candidates": _number(_part(one, "scaleDown").get("candidates")),
    }


def _counts(health: Json) -> Json:
    counts = _part(health, "nodeCounts")
    registered = _part(counts, "registered")
    return {
        "registered": _number(registered.get("total")),
        "ready": _number(registered.get("ready")),
        "notStarted": _number(registered.get("notStarted")),
        "beingDeleted": _number(registered.get("beingDeleted")),
        "unready": _number(_part(registered, "unready").get("total")),
        "unregistered": _number(counts.get("unregistered")),
        "longUnregistered": _number(counts.get("longUnregistered")),
    }


def _is_dry_run(in_force: Mapping[str, Any], steering: RuntimeConfig) -> bool:
    """Whether the autoscaler runs dry: a dry run writes no status, so the configuration counts too."""
    return any(str(options.get("dry-run", "")).lower() == "true" for options in (in_force, steering.options))


def _patience_s(in_force: Mapping[str, Any]) -> float:
    interval_s = read_duration_s(str(in_force.get("scan-interval", "")))
    return max(_LEAST_STALE_S, _TURNS_MISSED * (_SCAN_INTERVAL_S if interval_s is None else interval_s))


def _age_s(written: str, now: datetime) -> float | None:
    """The age of a time in Go's format: `2026-01-31 12:00:00.5 +0000 UTC`."""
    moment, _, zone = written.partition(" +")
    try:
        read = datetime.fromisoformat(moment[:19]).replace(tzinfo=UTC)
    except ValueError:
        return None
    age_s = (now - read).total_seconds()
    return float(math.floor(max(age_s, 0.0))) if zone.startswith("0000") else None


def _part(document: Json, key: str) -> Json:
    value = document.get(key)
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _number(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
