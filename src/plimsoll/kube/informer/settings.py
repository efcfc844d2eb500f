"""The settings of an informer, each with its reason."""

from __future__ import annotations

from plimsoll.core.errors import InvalidInput
from plimsoll.core.values import Value
from plimsoll.runtime.backoff import Backoff


class InformerSettings(Value):
    """Seconds, unless a name says otherwise."""

    page_size: int = 500
    """Objects per page of a list; 0: everything in one answer."""
    uses_watch_list: bool = False
    """Request the initial state as a stream of events instead of pages (WatchList). Off, because it is not faster to
    decode (one parse per object instead of one per page), and not every server supports it. On, it saves the server
    memory."""
    watch_list_patience_s: float = 60.0
    """How long a stream of initial events may be silent before pages are requested instead."""
    shortest_watch_s: int = 300
    longest_watch_s: int = 600
    """The timeout of a watch is drawn between these two, so that a thousand watches do not end together."""
    wants_bookmarks: bool = True
    """False only where the server cannot disappear unnoticed and the age of the cache is not used: in one process, in
    virtual time, where a quiet week has ten thousand bookmarks per watch. `silence_s` is then as long as a watch."""
    silence_s: float = 100.0
    """A watch without data for this long is opened again. Most servers send a bookmark every 60 s, at most a quarter
    late; others send none while nothing changes."""
    probe_timeout_s: float = 15.0
    """How long the server may take to answer before a watch is opened again. `silence_s` and this bound the time until
    a dead connection is noticed."""
    reopen_after_s: float = 1.0
    """The shortest time between two watches, after one that ended normally."""
    backoff: Backoff = Backoff(initial_s=0.8, factor=2.0, cap_s=30.0, jitter=0.5, reset_after_s=120.0)
    """The backoff after failures, as in client-go."""
    suspicion_s: float = 300.0
    """After an event that could not be decoded, everything is listed again, at most once per this time."""
    contradiction_s: float = 60.0
    """After a list that is not believed, everything is listed again, at most once per this time."""
    list_timeout_s: float = 60.0

    def __post_init__(self) -> None:
        if self.page_size < 0:
            raise InvalidInput(f"must be 0 or more, is {self.page_size}", path="page_size")
        if not 1 <= self.shortest_watch_s <= self.longest_watch_s:
            raise InvalidInput("must be at least 1 and at most longest_watch_s", path="shortest_watch_s")
        for field in ("watch_list_patience_s", "silence_s", "probe_timeout_s", "list_timeout_s"):
            if not getattr(self, field) > 0:
                raise InvalidInput(f"must be more than 0, is {getattr(self, field)}", path=field)
        for field in ("reopen_after_s", "suspicion_s", "contradiction_s"):
            if not getattr(self, field) >= 0:
                raise InvalidInput(f"must be 0 or more, is {getattr(self, field)}", path=field)
