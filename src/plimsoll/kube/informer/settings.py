"""The settings of an informer, each with its reason."""

from __future__ import annotations

from plimsoll.core.errors import InvalidInput
from plimsoll.core.values import Value
from plimsoll.runtime.backoff import Backoff


class InformerSettings(Value):
    """Seconds, unless a name says otherwise."""

    page_size: int = 500
    """Objects in one page of a list; 0: everything in one answer."""
    uses_watch_list: bool = False
    """Ask for the first state as a stream of events instead of pages. Off, because it is not faster to read (a page is
    one parse, a stream one for each object), and not every server has it; on, it spares the server memory."""
    watch_list_patience_s: float = 60.0
    """How long a stream of first events may say nothing before pages are asked for instead."""
    shortest_watch_s: int = 300
    longest_watch_s: int = 600
    """A watch is asked for between so and so long, by chance, so that a thousand of them do not end together."""
    wants_bookmarks: bool = True
    """False only where the server cannot go without notice and nobody asks how old a cache is: in one process, in
    virtual time, where a quiet week is ten thousand bookmarks a watch. `silence_s` is then as long as a watch."""
    silence_s: float = 100.0
    """A watch that says nothing for so long is dead: servers send a bookmark every 60 s, late by a quarter at most."""
    reopen_after_s: float = 1.0
    """Watches that end by themselves are opened again, but no faster than one in so long."""
    backoff: Backoff = Backoff(initial_s=0.8, factor=2.0, cap_s=30.0, jitter=0.5, reset_after_s=120.0)
    """After failures; as client-go waits."""
    suspicion_s: float = 300.0
    """After something that could not be read at all everything is listed again, at most once in so long."""
    list_timeout_s: float = 60.0

    def __post_init__(self) -> None:
        if self.page_size < 0:
            raise InvalidInput(f"must be 0 or more, is {self.page_size}", path="page_size")
        if not 1 <= self.shortest_watch_s <= self.longest_watch_s:
            raise InvalidInput("must be at least 1 and at most longest_watch_s", path="shortest_watch_s")
        for field in ("watch_list_patience_s", "silence_s", "list_timeout_s"):
            if not getattr(self, field) > 0:
                raise InvalidInput(f"must be more than 0, is {getattr(self, field)}", path=field)
        for field in ("reopen_after_s", "suspicion_s"):
            if not getattr(self, field) >= 0:
                raise InvalidInput(f"must be 0 or more, is {getattr(self, field)}", path=field)
