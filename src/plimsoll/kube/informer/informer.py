"""The informer: a cache of one kind that follows the API server, with indexes and handlers.

    pods = Informer(client, Pod, clock=clock, entropy=entropy)
    pods.add_index("node", lambda pod: [pod.spec.node_name])
    pods.add_handler(queue_owner, name="owners")
    …run `pods.run()` as a service…
    await pods.wait_until_synced()
    pods.cache.by_index("node", "n1")

Check `get_age_s()` before removing anything: a cache without recent contact to its server is not evidence.
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
from plimsoll.objects.codec.decode_problems import BadObject
from plimsoll.objects.codec.decoding import RawObject

if TYPE_CHECKING:
    from plimsoll.core.clock import Clock
    from plimsoll.core.entropy import Entropy
    from plimsoll.kube.client import Client
    from plimsoll.kube.informer.delivery.handler import Handler
    from plimsoll.kube.informer.store.indexer import IndexFunc
    from plimsoll.kube.requests.options import Selection
    from plimsoll.objects.api.resource import Resource

T = TypeVar("T", bound=WireObject)

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

DEFAULT_SETTINGS: Final = InformerSettings()


class Informer(Generic[V]):
    """The informer of one kind and selection. With `keep_raw`, the cache holds `RawObject`s, which can be copied."""

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
            raise InvalidInput("an informer always starts from the newest state", path="selection.resource_version")
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
        """Make objects available through `cache.by_index(name, …)`. Before `run` it is cheapest.

        `index_func` must be fast and return the same keys for the same object each time.
        """
        self._cache.add_index(name, index_func)

    def add_handler(self, handler: Handler[V], *, name: str) -> HandlerRunner[V]:
        """Call `handler`, a function or coroutine function, with every change. Existing objects come as `Added`."""
        if any(runner.name == name for runner in self._broadcaster.runners):
            raise InvalidInput(f"there is a handler {name!r} already", path="name")
        runner = HandlerRunner(name, handler, cache=self._cache, broadcaster=self._broadcaster, delivery=self._delivery)
        self._broadcaster.add(runner)
        if self.has_synced:
            runner.mark_cache_complete()
        if self._is_running:
            runner.start()
        return runner

    def set_aside(self, found: WireObject, problem: str) -> BadObject | None:
        """Treat an object of the cache as bad until it changes; None if the cache does not have it.

        For an object that is decodable, and that a controller fails on: it is present and unmovable, like every bad
        object, and the controller goes on without it.
        """
        metadata = found.metadata
        known: Any = self._cache.get(metadata.name, metadata.namespace)
        view = known.view if isinstance(known, RawObject) else known
        if type(view) is not type(found) or view.metadata.resource_version != metadata.resource_version:
            return None
        # Of the cache: the controller may have worked on a changed copy, without the node for instance.
        spec = getattr(view, "spec", None)
        bad = BadObject(
            kind=found.get_kind_name(),
            problem=problem,
            namespace=metadata.namespace,
            name=metadata.name,
            uid=metadata.uid,
            resource_version=metadata.resource_version,
            node_name=getattr(spec, "node_name", ""),
            provider_id=getattr(spec, "provider_id", ""),
        )
        self._updater.set_aside((metadata.namespace, metadata.name), bad)
        return bad

    async def run(self) -> None:
        """Run until cancelled. After a restart, the cache still has its objects, and a list updates it."""
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
        event = "informer.relisted" if self.has_synced else "informer.synced"
        log.info(event, resource=self.resource, items=len(self._cache), bad=len(self._cache.bad))
        if not self.has_synced:
            self._synced.set()
            for runner in self._broadcaster.runners:
                runner.mark_cache_complete()

    # ---- status

    @property
    def has_synced(self) -> bool:
        """Whether the cache has been complete at least once."""
        return self._synced.is_set()

    async def wait_until_synced(self) -> None:
        await self._synced.wait()

    @property
    def position(self) -> str:
        """The version up to which the cache is complete; empty before the first list."""
        return self._updater.position

    def get_age_s(self) -> float:
        """The age of the cache: seconds since the last contact to the server. Infinite before the first list.

        With a quiet watch, the age reaches the time between two bookmarks, or `silence_s` where the server sends none.
        After an event that could not be decoded, the age counts from that event until the next complete list.
        """
        if not self.has_synced:
            return math.inf
        progress = self._lister_watcher.progress
        return self._clock.monotonic_s() - min(progress.last_received_s, progress.suspect_since_s)

    @property
    def status(self) -> InformerStatus:
        progress = self._lister_watcher.progress
        silent_s = self._clock.monotonic_s() - progress.last_received_s
        last_heard_at = self._clock.now() - timedelta(seconds=silent_s) if self.has_synced else None
        return InformerStatus(
            resource=self.resource,
            has_synced=self.has_synced,
            synced_at=progress.synced_at,
            last_received_at=last_heard_at,
            resource_version=self._updater.position,
            objects=len(self._cache),
            bad=len(self._cache.bad),
            relists=max(0, progress.lists - 1),
            reconnects=progress.reconnects,
            unreadable=self._updater.unreadable,
            is_suspect=self._updater.is_suspect,
            contradiction=self._updater.contradiction,
            bytes_read=progress.bytes_read,
            trouble=progress.trouble,
            handlers=tuple(
                HandlerStatus(
                    name=runner.name, pending=runner.pending, handled=runner.handled, failures=runner.failures
                )
                for runner in self._broadcaster.runners
            ),
        )
