"""The state of an informer, for health checks, metrics, and controllers that must not act on stale data."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime  # noqa: TC003 -- msgspec resolves the annotations of Values at run time

from plimsoll.core.values import Value


@dataclass(slots=True)
class ReflectorProgress:
    """What the reflector counts as it goes."""

    synced_at: datetime | None = None
    heard_s: float = -math.inf
    """When the server last said anything, by the monotonic clock."""
    suspect_since_s: float = math.inf
    """When the first event came that we could not take; until a list has made good for it."""
    lists: int = 0
    reconnects: int = 0
    bytes_read: int = 0
    trouble: str = ""


class HandlerStatus(Value):
    """One handler: how many objects it has yet to hear about, and how often it raised."""

    name: str
    pending: int
    handled: int
    failures: int


class InformerStatus(Value):
    """One informer at one moment."""

    resource: str
    has_synced: bool
    synced_at: datetime | None
    last_heard_at: datetime | None
    resource_version: str
    objects: int
    bad: int
    relists: int
    """Complete lists after the first."""
    reconnects: int
    unreadable: int
    """Frames and objects of which not even the name could be read."""
    is_suspect: bool
    """An event could not be read, or told of the past: the cache may be wrong until everything has been listed."""
    bytes_read: int
    trouble: str
    """What keeps it from going on, as long as something does."""
    handlers: tuple[HandlerStatus, ...] = ()
