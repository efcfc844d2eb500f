"""What the turns of a live world did, for `loops[]` of its outcome (specs/nodes.md 14).

Turns come by their own timer there, thousands in a day, and most of them say what the one before said: those are
counted in its entry (`turns`, with the time of the `last` one) and not written again. Of a story that is still too long
the latest entries are kept. It belongs to the world: an autoscaler that crashes does not take it along.
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
        """What the last turn said, without its time."""

    def add(self, time: str, said: Json) -> None:
        if self._entries and said == self._last:
            entry = self._entries[-1]
            entry["turns"] = entry.get("turns", 1) + 1
            entry["last"] = time
            return
        self._last = said
        self._entries.append({"time": time, **said})

    def entries(self) -> list[Json]:
        """As they stand now: later turns do not change what was given before."""
        return [dict(entry) for entry in self._entries]
