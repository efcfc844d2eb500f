"""All handlers of one informer, and what each of them has still to hear. Told by `tracking`, asked by the informer.

Handlers that have heard everything keep step: they share one backlog until they have heard that as well. One that is
in the middle of something, because it has to be awaited or has much to catch up with, has a backlog of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic

from plimsoll.kube.informer.backlogs import Backlog
from plimsoll.kube.informer.changes import V

if TYPE_CHECKING:
    from plimsoll.kube.informer.cache import Cache
    from plimsoll.kube.informer.changes import Departure, Place
    from plimsoll.kube.informer.handlers import HandlerFeed
    from plimsoll.kube.informer.rounds import Rounds
    from plimsoll.objects.problems import BadObject


class Audience(Generic[V]):
    """`feeds` are in the order in which they came; that is also the order in which they hear of a change."""

    def __init__(self, cache: Cache[V], rounds: Rounds) -> None:
        self.feeds: list[HandlerFeed[V]] = []
        self._cache = cache
        self._rounds = rounds
        self._alone: dict[HandlerFeed[V], None] = {}
        self._shared: list[Backlog[V]] = []
        # Of those that wait for the next change.
        self._idle: Backlog[V] = Backlog(cache)

    def add(self, feed: HandlerFeed[V]) -> None:
        """It does not keep step before it knows what was there when it came."""
        self.feeds.append(feed)
        self._alone[feed] = None

    def changed(self, place: Place, before: V | BadObject | None, departure: Departure[V] | None = None) -> None:
        """The object was in state `before` and is now as the cache has it. If it left, `departure` says how."""
        if self._idle.members:
            self._share_anew()
        for backlog in self._shared:
            backlog.changed(place, before, departure)
        for feed in self._alone:
            feed.changed(place, before, departure)

    def _share_anew(self) -> None:
        """Those that had nothing to hear have something now."""
        waiting = self._idle
        self._idle = Backlog(self._cache)
        self._shared = [*(one for one in self._shared if one.members), waiting]
        self._rounds.want([feed for feed in self.feeds if feed in waiting.members])

    # ---- told by feeds

    def keep_step(self, feed: HandlerFeed[V], heard: Backlog[V]) -> Backlog[V]:
        """All of `heard` is told or about to be; gives the backlog it has in common with the others from now on."""
        if feed in self._alone:
            del self._alone[feed]
        else:
            del heard.members[feed]
        self._idle.members[feed] = None
        return self._idle

    def go_alone(self, feed: HandlerFeed[V], shared: Backlog[V]) -> Backlog[V]:
        """What happens from now on waits for it apart from the others; gives the backlog for that."""
        del shared.members[feed]
        self._alone[feed] = None
        return shared.copied()
