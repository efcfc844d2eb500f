"""The loops of a live world, for `loops[]` of its outcome (docs/design/nodes.md 14).

Loops run by their own timer, thousands per day, and most equal the previous one. Those are counted in its entry
(`turns`, with the time of the `last` one). If there are too many entries, the latest are kept. The log belongs to the
world, so it survives a crash of the autoscaler.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Final

Json = dict[str, Any]

_MOST: Final = 10_000


class LoopLog:
    """Entries with their time, oldest first."""

    def __init__(self, *, most: int = _MOST) -> None:
        self._entries: deque[Json] = deque(maxlen=most)
        self._last: Json | None = None
        """The last entry, without its time."""

    def add(self, time: str, loop: Json) -> None:
        if self._entries and loop == self._last:
            entry = self._entries[-1]
            entry["turns"] = entry.get("turns", 1) + 1
            entry["last"] = time
            return
        self._last = loop
        self._entries.append({"time": time, **loop})

    def list_entries(self) -> list[Json]:
        """A copy: later loops do not change it."""
        return [dict(entry) for entry in self._entries]
