"""The informer: a cache of one kind that follows the API server, with indexes and handlers.

    pods = Informer(client, Pod, clock=clock, entropy=entropy)
    pods.add_index("node", lambda pod: [pod.spec.node_name])
    pods.add_handler(queue_owner, name="owners")
    …run `pods.run()` as a service…
    await pods.wait_until_synced()
    pods.cache.by_index("node", "n1")

Check `age_s()` before removing anything: a cache that has not heard from its server is not evidence.
"""

from __future__ import annotations

import asyncio
import math
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeVar, overload

import structlog

from plimsoll.core.errors import InvalidInput
from plimsoll.kube.informer.delivery.broadcaster import DeliveryLoop, HandlerBroadcaster
from plimsoll.kube.informer.delivery.handler import HandlerRunner
from plimsoll.kube.informer.events import V
from plimsoll.kube.informer.reflector.lister_watcher import ListerWatcher
from plimsoll.kube.informer.reflector.reflector import Reflector
from plimsoll.kube.informer.settings import InformerSettings
from plimsoll.kube.informer.status import HandlerStatus, InformerStatus
from plimsoll.kube.informer.store.cache import Cache, WritableCache
from plimsoll.kube.informer.store.cache_updater import CacheUpdater
from plimsoll.kube.requests.options import EVERYTHING
from plimsoll.objects.api.meta import WireObject

if TYPE_CHECKING:
    from plimsoll.core.clock import Clock
    from plimsoll.core.entropy import Entropy
    from plimsoll.kube.client import Client
    from plimsoll.kube.informer.delivery.handler import Handler
    from plimsoll.kube.informer.store.indexer import IndexFunc
    from plimsoll.kube.requests.options import Selection
    from plimsoll.objects.api.resource import Resource
    from plimsoll.objects.codec.decoding import RawObject

T = TypeVar("T", bound=WireObject)

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

DEFAULT_SETTINGS: Final = InformerSettings()


class Informer(Generic[V]):
    """One kind, one selection. With `keep_raw` the cache holds `RawObject`s: for kinds whose objects are copied."""

    @overload
    def __init__(
        self: Informer[T],
        client: Client,
        of: type[T] | Resource,
        *,
        clock: Clock,
        entropy: Entropy,
        selection: Selection = ...,
        settings: InformerSettings = ...,
        keep_raw: Literal[False] = ...,
    ) -> None: ...

    @overload
    def __init__(
        self: Informer[RawObject[T]],
        client: Client,
        of: type[T] | Resource,
        *,
        clock: Clock,
        entropy: Entropy,
        selection: Selection = ...,
        settings: InformerSettings = ...,
        keep_raw: Literal[True],
    ) -> None: ...

    def __init__(  # noqa: PLR0913 - what every user names; a struct around it would only be unpacked
        self,
        client: Client,
        of: type[Any] | Resource,
        *,
        clock: Clock,
        entropy: Entropy,
        selection: Selection = EVERYTHING,
        settings: InformerSettings = DEFAULT_SETTINGS,
        keep_raw: bool = False,
    ) -> None:
        if selection.resource_version:
            raise InvalidInput("an informer always begins with the newest state", path="selection.resource_version")
        self._clock = clock
        self._lister_watcher = ListerWatcher(
            client, of, selection=selection, keep_raw=keep_raw, list_timeout_s=settings.list_timeout_s
        )
        self._cache: WritableCache[V] = WritableCache()
        self._delivery = DeliveryLoop(self._lister_watcher.name)
        self._broadcaster: HandlerBroadcaster[V] = HandlerBroadcaster(self._cache, self._delivery)
        self._updater: CacheUpdater[V] = CacheUpdater(
            self._lister_watcher.name, cache=self._cache, on_change=self._broadcaster.distribute
        )
        self._reflector: Reflector[V] = Reflector(
            self._lister_watcher,
            self._updater,
            settings=settings,
            clock=clock,
            entropy=entropy,
            on_synced=self._on_list_complete,
        )
        self._synced = asyncio.Event()
        self._is_running = False

    @property
    def cache(self) -> Cache[V]:
        return self._cache

    @property
    def resource(self) -> str:
        """`pods`, `deployments.apps`."""
        return self._lister_watcher.name

    def add_index(self, name: str, index_func: IndexFunc[V]) -> None:
        """Find objects by `cache.by_index(name, …)` from now on. Best done before `run`: it goes through all there are.

        `index_func` must be quick and give the same keys for the same object each time.
        """
        self._cache.add_index(name, index_func)

    def add_handler(self, handler: Handler[V], *, name: str) -> HandlerRunner[V]:
        """Tell `handler`, a function or a coroutine function, of every change; of what is there already as `Added`."""
        if any(runner.name == name for runner in self._broadcaster.runners):
            raise InvalidInput(f"there is a handler {name!r} already", path="name")
        runner = HandlerRunner(name, handler, cache=self._cache, broadcaster=self._broadcaster, delivery=self._delivery)
        self._broadcaster.add(runner)
        if self.has_synced:
            runner.mark_cache_complete()
        if self._is_running:
            runner.start()
        return runner

    async def run(self) -> None:
        """Until cancelled. After a restart the cache is still there, and a list brings it up to date."""
        if self._is_running:
            raise InvalidInput(f"the informer of {self.resource} is already running")
        async with asyncio.TaskGroup() as group:
            self._is_running = True
            try:
                delivery = self._delivery.run(self._broadcaster.runners, group)
                group.create_task(delivery, name=f"informer {self.resource}: handlers")
                await self._reflector.run()
            finally:
                self._is_running = False

    def _on_list_complete(self) -> None:
        told = "informer.relisted" if self.has_synced else "informer.synced"
        log.info(told, resource=self.resource, items=len(self._cache), bad=len(self._cache.bad))
        if not self.has_synced:
            self._synced.set()
            for runner in self._broadcaster.runners:
                runner.mark_cache_complete()

    # ---- how it is doing

    @property
    def has_synced(self) -> bool:
        """Whether the cache has been complete once."""
        return self._synced.is_set()

    async def wait_until_synced(self) -> None:
        await self._synced.wait()

    @property
    def position(self) -> str:
        """The version up to which everything is known; empty before the first list."""
        return self._updater.position

    def age_s(self) -> float:
        """How old the cache may be: seconds since the server was last heard. Infinite before the first list.

        A quiet watch is up to a bit more than a minute old, the time between two bookmarks. After an event that could
        not be read it ages from there, whatever comes later, until a list has made good for it.
        """
        if not self.has_synced:
            return math.inf
        progress = self._lister_watcher.progress
        return self._clock.monotonic_s() - min(progress.heard_s, progress.suspect_since_s)

    @property
    def status(self) -> InformerStatus:
        progress = self._lister_watcher.progress
        silent_s = self._clock.monotonic_s() - progress.heard_s
        heard_at = self._clock.now() - timedelta(seconds=silent_s) if self.has_synced else None
        return InformerStatus(
            resource=self.resource,
            has_synced=self.has_synced,
            synced_at=progress.synced_at,
            last_heard_at=heard_at,
            resource_version=self._updater.position,
            objects=len(self._cache),
            bad=len(self._cache.bad),
            relists=max(0, progress.lists - 1),
            reconnects=progress.reconnects,
            unreadable=self._updater.unreadable,
            is_suspect=self._updater.is_suspect,
            bytes_read=progress.bytes_read,
            trouble=progress.trouble,
            handlers=tuple(
                HandlerStatus(
                    name=runner.name, pending=runner.pending, handled=runner.handled, failures=runner.failures
                )
                for runner in self._broadcaster.runners
            ),
        )
