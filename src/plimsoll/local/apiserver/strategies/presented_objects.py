"""A cache of custom resources as a version presents them, encoded.

An object is presented (pruned, with the defaults of its definition) for its watchers, for every list and get, and
before every change, although it is the same until it is written again. The cache is bounded by the bytes it holds; the
oldest are evicted first. Long work may ask it from another thread.
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from weakref import ref

import msgspec

if TYPE_CHECKING:
    from plimsoll.local.apiserver.storage import Stored
    from plimsoll.local.apiserver.strategies.interface import Strategy

_MAX_BYTES: Final = 8 * 1024 * 1024

_encoder: Final = msgspec.json.Encoder()


class _Known(NamedTuple):
    stored_data: bytes
    strategy: ref[Any]
    """A changed definition has another strategy; this does not keep the old one alive."""
    encoded: bytes

    @property
    def size_bytes(self) -> int:
        return len(self.stored_data) + len(self.encoded)


class PresentedObjects:
    """Encoded objects by revision and version."""

    def __init__(self, max_bytes: int = _MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._known: dict[tuple[int, str], _Known] = {}
        self._lock = Lock()

    def encode(self, strategy: Strategy, stored: Stored) -> bytes:
        """`stored` as this strategy presents it, in JSON."""
        key = (stored.revision, strategy.resource.api_version)
        known = self._known.get(key)
        # A write that came to nothing gives its revision back, and another object may have it by now.
        if known is not None and known.stored_data is stored.data and known.strategy() is strategy:
            return known.encoded
        encoded = _encoder.encode(strategy.present(stored.decode_body()))
        self._keep(key, _Known(stored.data, ref(strategy), encoded))
        return encoded

    def _keep(self, key: tuple[int, str], made: _Known) -> None:
        with self._lock:
            before = self._known.pop(key, None)
            self._known[key] = made
            self._bytes += made.size_bytes - (before.size_bytes if before is not None else 0)
            while self._bytes > self._max_bytes:
                self._bytes -= self._known.pop(next(iter(self._known))).size_bytes
