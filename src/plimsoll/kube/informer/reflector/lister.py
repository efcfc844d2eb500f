"""Lists all objects, page by page, and yields to the event loop between portions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Generic, NamedTuple

import structlog

from plimsoll.kube.errors import Expired, UnreadableAnswer
from plimsoll.kube.informer.events import V
from plimsoll.kube.informer.reflector.list_decoder import ListReader
from plimsoll.kube.informer.reflector.list_verifier import ListVerifier
from plimsoll.runtime.cooperative_yield import OBJECTS_AT_ONCE, CooperativeYield

if TYPE_CHECKING:
    from plimsoll.kube.informer.reflector.lister_watcher import ListerWatcher
    from plimsoll.kube.informer.settings import InformerSettings
    from plimsoll.kube.informer.status import ReflectorProgress
    from plimsoll.kube.informer.store.cache_updater import CacheUpdater
    from plimsoll.objects.api.meta import ListMeta

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

# If pages expire this often, reading takes longer than the server stores a version: everything is requested at once.
_MOST_EXPIRED: Final = 2


class NewestState(NamedTuple):
    """The version of the server, and its number of objects of the kind; None: it does not count them."""

    version: str
    objects: int | None


class Lister(Generic[V]):
    """Lists into the cache updater as pages arrive, so that there is never a second copy of 100,000 objects."""

    def __init__(
        self,
        lister_watcher: ListerWatcher,
        updater: CacheUpdater[V],
        *,
        settings: InformerSettings,
        progress: ReflectorProgress,
    ) -> None:
        self._lister_watcher = lister_watcher
        self._updater = updater
        self._settings = settings
        self._progress = progress
        self._verifier = ListVerifier(lister_watcher, updater)
        self._yielder = CooperativeYield()

    async def list(self) -> None:
        """List a consistent state. Starts again if the pages expire."""
        for attempt in range(_MOST_EXPIRED + 1):
            try:
                await self._list_once(limit=self._settings.page_size if attempt < _MOST_EXPIRED else 0)
            except Expired:
                if attempt == _MOST_EXPIRED:
                    raise
                log.info("informer.list_expired", resource=self._lister_watcher.name, attempt=attempt + 1)
            else:
                return

    async def get_newest_state(self) -> NewestState:
        """Get the current version of the server and its number of objects, with a list of one object."""
        body = await self._lister_watcher.get_page(limit=1, timeout_s=self._settings.probe_timeout_s)
        reader: ListReader[V] = ListReader(self._lister_watcher.struct, body)
        objects = 0
        for portion in reader.read_portions():
            objects += len(portion.values)
            await self._yielder.count_and_yield(objects=len(portion.values), size_bytes=portion.size_bytes)
        listed = reader.metadata
        remaining = listed.remaining_item_count if listed.continue_ else 0
        return NewestState(listed.resource_version, None if remaining is None else objects + remaining)

    async def _list_once(self, *, limit: int) -> None:
        self._updater.begin_list()
        listed = await self._list_page(limit, "")
        while token := listed.continue_:
            listed = await self._list_page(limit, token)
            if listed.continue_ == token:
                raise UnreadableAnswer("a list without end: the server returned the same continue token")
        await self.conclude(listed.resource_version)

    async def conclude(self, version: str) -> None:
        """Everything was listed as of `version`: what it misses is gone, unless the list is not believed."""
        missing = [*self._updater.find_unlisted()]
        contradiction = await self._verifier.find_contradiction(missing, version)
        if contradiction:
            log.warning("informer.list_not_believed", resource=self._lister_watcher.name, problem=contradiction)
            missing = []
        for key in missing:
            self._updater.infer_deletion(key)
            await self._yielder.count_and_yield()
        self._updater.end_list(version, contradiction=contradiction)

    async def _list_page(self, limit: int, token: str) -> ListMeta:
        body = await self._lister_watcher.get_page(limit=limit, token=token)
        self._progress.bytes_read += len(body)
        # Receiving the page is one portion of work, decoding it another, and updating the cache one or more.
        await self._yielder.yield_now()
        reader: ListReader[V] = ListReader(self._lister_watcher.struct, body, keep_raw=self._lister_watcher.keep_raw)
        for portion in reader.read_portions():
            await self._yielder.yield_now()
            for start in range(0, len(portion.values), OBJECTS_AT_ONCE):
                some = portion.values[start : start + OBJECTS_AT_ONCE]
                self._updater.add_listed(some)
                await self._yielder.count_and_yield(objects=len(some))
        return reader.metadata
