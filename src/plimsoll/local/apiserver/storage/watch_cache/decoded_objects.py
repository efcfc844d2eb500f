"""A cache of stored objects as dicts.

A pod is written five times within its first seconds and its last, each time as a change of the previous state; decoding
it again each time took a fifteenth of a busy hour. The cache is bounded by the bytes of the objects; the oldest are
evicted first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from plimsoll.local.apiserver.storage.objects import JsonObject, Stored


class _Known(NamedTuple):
    data: bytes
    body: JsonObject


class DecodedObjects:
    """Shared, read-only dicts by the revision of the object."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._known: dict[int, _Known] = {}

    def get_body(self, stored: Stored) -> JsonObject:
        known = self._known.get(stored.revision)
        # A write that came to nothing gives its revision back, and another object may have it by now.
        if known is not None and known.data is stored.data:
            return known.body
        body = stored.decode_body()
        self.keep(stored, body)
        return body

    def find_data(self, body: JsonObject) -> bytes | None:
        """The bytes of a dict that is one of these; none for any other, however equal."""
        metadata: Any = body.get("metadata")
        version: Any = metadata.get("resourceVersion") if isinstance(metadata, dict) else None
        known = self._known.get(int(version)) if isinstance(version, str) and version.isdecimal() else None
        return known.data if known is not None and known.body is body else None

    def keep(self, stored: Stored, body: JsonObject) -> None:
        """`decode_body` is what `stored` holds, its revision included."""
        before = self._known.pop(stored.revision, None)
        self._known[stored.revision] = _Known(stored.data, body)
        self._bytes += len(stored.data) - (len(before.data) if before is not None else 0)
        while self._bytes > self._max_bytes:
            oldest = next(iter(self._known))
            self._bytes -= len(self._known.pop(oldest).data)
