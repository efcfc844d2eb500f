"""The state of an informer, for health checks, metrics, and controllers that must not act on stale data."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime  # noqa: TC003 -- msgspec resolves the annotations of Values at run time

from plimsoll.core.values import Value


@dataclass(slots=True)
class ReflectorProgress:
    """Counters and times of a reflector."""

    synced_at: datetime | None = None
    last_received_s: float = -math.inf
    """The time of the last data from the server, by the monotonic clock."""
    suspect_since_s: float = math.inf
    """The time of the first event that could not be applied; reset by a complete list."""
    lists: int = 0
    reconnects: int = 0
    bytes_read: int = 0
    trouble: str = ""


class HandlerStatus(Value):
    """The state of one handler: the number of objects that are pending for it, and how often it raised."""

    name: str
    pending: int
    handled: int
    failures: int


class InformerStatus(Value):
    """The state of one informer."""

    resource: str
    has_synced: bool
    synced_at: datetime | None
    last_received_at: datetime | None
    resource_version: str
    objects: int
    bad: int
    relists: int
    """Complete lists after the first."""
    reconnects: int
    unreadable: int
    """The number of frames and objects whose name could not be decoded."""
    is_suspect: bool
    """An event could not be decoded, or was from the past: the cache may be wrong until the next complete list."""
    contradiction: str
    """Why the last list is not believed: it misses objects that exist. What it misses is still in the cache."""
    bytes_read: int
    trouble: str
    """The current failure; empty if there is none."""
    handlers: tuple[HandlerStatus, ...] = ()
