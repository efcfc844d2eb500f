"""A store in PD's JSON format: sizes with units, times with their zone, a state of 0 left out. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from datetime import datetime

    from plimsoll.local.tidb.pd.stores import StoreState

_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def build_store_json(store: StoreState, *, now: datetime, used_bytes: float) -> dict[str, Any]:
    """As it stands in lists, and alone."""
    used = min(used_bytes, store.capacity_bytes)
    meta: dict[str, Any] = {
        "id": store.id,
        "address": store.address,
        "labels": [{"key": key, "value": value} for key, value in sorted(store.labels.items())],
        "version": "7.5.0",
        "state_name": store.get_state_name(now),
    }
    if store.state:
        meta["state"] = store.state
    status = {
        "capacity": format_size(store.capacity_bytes),
        "available": format_size(store.capacity_bytes - used),
        "used_size": format_size(used),
        "leader_count": store.leaders,
        "region_count": store.regions,
        "start_ts": _format_time(store.started),
        "last_heartbeat_ts": _format_time(store.get_last_heartbeat(now)),
    }
    return {"store": meta, "status": status}


def format_size(size_bytes: float) -> str:
    """With four digits, in powers of 1024: `97.66GiB`."""
    size, unit = float(size_bytes), 0
    while size >= 1024 and unit < len(_UNITS) - 1:
        size, unit = size / 1024, unit + 1
    return f"{size:.4g}{_UNITS[unit]}" if size < 1000 else f"{size:.0f}{_UNITS[unit]}"


def _format_time(moment: datetime) -> str:
    return moment.isoformat()
