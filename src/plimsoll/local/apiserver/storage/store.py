"""The store: objects by key under one revision.

Reads are synchronous and come from memory. Writes go through `update`: the change function sees the newest state under
the key's lock, and its decision is acknowledged, and visible to readers and watchers, only once the driver has made it
durable. The store belongs to the thread of one event loop; it starts no task and no timer.

    store = Store.open(SqliteDriver(directory), clock=clock)
    pod = await store.update(Key("pods", "default", "web"), lambda current: Put(body))
    with store.watch("pods", since=pod.revision) as events:
        async for event in events: ...

A change function decides `Put`, `Delete` or `Keep` per object; `Keep` writes nothing and leaves the revision as it is.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from plimsoll.local.apiserver.storage.drivers.interface import EVERYTHING, Compaction, Write
from plimsoll.local.apiserver.storage.errors import RevisionAhead, StoreClosed
from plimsoll.local.apiserver.storage.key_lock import KeyLock
from plimsoll.local.apiserver.storage.objects import Stored, Traits, build_stored, stamp
from plimsoll.local.apiserver.storage.recovery import rebuild
from plimsoll.local.apiserver.storage.watch_cache.collection import Collection, ListQuery, Page
from plimsoll.local.apiserver.storage.watch_cache.decoded_objects import DecodedObjects
from plimsoll.local.apiserver.storage.watch_cache.events import Change, EncodingCache
from plimsoll.local.apiserver.storage.watch_cache.history import HistoryLimits, choose_revision_to_forget
from plimsoll.local.apiserver.storage.watch_cache.watchers import Watch, Watchers, WatchFilter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from plimsoll.core.clock import Clock
    from plimsoll.local.apiserver.storage.drivers.interface import Driver, Problem
    from plimsoll.local.apiserver.storage.objects import FieldsOf, JsonObject, Key
    from plimsoll.local.apiserver.storage.watch_cache.events import Matches
    from plimsoll.local.apiserver.storage.watch_cache.history import History


# An empty store is at 1, as etcd is: resourceVersion "0" has a meaning of its own in the API.
_FIRST_REVISION: Final = 1

# An inline driver lets others run once in so many writes; otherwise a loop of writes would push its watchers out of
# history before they had a chance to look.
_WRITES_IN_A_ROW: Final = 128

_ENCODINGS_MAX_BYTES: Final = 16 * 1024 * 1024
# As dicts they take some five times as much.
_BODIES_MAX_BYTES: Final = 2 * 1024 * 1024


class _Resource(NamedTuple):
    collection: Collection
    hub: Watchers


class Store:
    """All objects. Opened by `open`, closed by `aclose`."""

    def __init__(self, driver: Driver, *, clock: Clock, limits: HistoryLimits) -> None:
        self._driver = driver
        self._clock = clock
        self._limits = limits
        self._resources: dict[str, _Resource] = {}
        """Those that have objects, history or watchers. What else is known of a resource is small, and stays."""
        self._traits: dict[str, Traits] = {}
        self._floors: dict[str, int] = {}
        self._history_bytes = 0
        self._next_ageing_s = clock.monotonic_s() + limits.age_s
        self._revision = _FIRST_REVISION
        self._given = _FIRST_REVISION
        """The last revision given to a write; ahead of the visible one while writes are on their way to the disk."""
        self._key_lock = KeyLock()
        self._encodings = EncodingCache(_ENCODINGS_MAX_BYTES)
        self._bodies = DecodedObjects(_BODIES_MAX_BYTES)
        self._under_way: dict[Write, None] = {}
        """Submitted and not settled, in the order of their revisions."""
        self._waiting: dict[asyncio.Future[None], int] = {}
        """Who waits for which revision to come."""
        self._closed = False
        self._trouble = ""

    @classmethod
    def open(cls, driver: Driver, *, clock: Clock, limits: HistoryLimits | None = None) -> Self:
        """Read what the driver kept. Blocks, so it is done before there is anything to serve."""
        store = cls(driver, clock=clock, limits=limits or HistoryLimits())
        store._recover()
        driver.start(store._apply_outcomes)
        store._forget_surplus(tuple(store._resources))
        return store

    def _recover(self) -> None:
        recovered = self._driver.recover()
        self._floors.update(recovered.floors)
        now_s = self._clock.monotonic_s()
        unneeded = rebuild(recovered, lambda resource: self._get_resource(resource).collection, now_s=now_s)
        self._revision = self._given = max(recovered.revision, _FIRST_REVISION)
        self._history_bytes = sum(resource.collection.history.superseded_bytes for resource in self._resources.values())
        if unneeded:
            self._driver.forget(Compaction(unneeded, {}))

    async def aclose(self) -> None:
        """Finish the writes under way, end all watches, close the driver. Idempotent."""
        if self._closed:
            return
        self._closed = True
        await self._driver.aclose(self._given)
        for resource in tuple(self._resources.values()):
            resource.hub.close()

    # ---- reading

    @property
    def problem(self) -> str:
        """Why writes cannot be expected to succeed: the last one failed, or the store is closed. Empty: all is well."""
        return "the store is closed" if self._closed else self._trouble

    @property
    def revision(self) -> int:
        """The newest revision that is durable, and so visible."""
        return self._revision

    def get(self, key: Key) -> Stored | None:
        resource = self._resources.get(key.resource)
        return resource.collection.objects.get(key.path) if resource is not None else None

    def get_shared_body(self, stored: Stored) -> JsonObject:
        """`Stored.decode_body()` for read-only use: one dict for all readers while it is cached."""
        return self._bodies.get_body(stored)

    def find_data(self, body: JsonObject) -> bytes | None:
        """The bytes that a `get_shared_body` is stored as; none for any other dict."""
        return self._bodies.find_data(body)

    def list(self, resource: str, query: ListQuery | None = None, *, matches: Matches | None = None) -> Page:
        """Objects in the order of their paths, at the newest revision or at `query.at`.

        Raises `Compacted` or `RevisionAhead` if there is no such revision (any more, or yet).
        """
        query = query or ListQuery()
        collection = self._read(resource)
        if query.at is None or query.at == self._revision:
            return collection.read_newest_page(query, revision=self._revision, matches=matches)
        if query.at > self._revision:
            raise RevisionAhead(query.at, self._revision)
        return collection.read_page_at(query, revision=query.at, matches=matches)

    def count(self, resource: str, namespace: str | None = None) -> int:
        return self._read(resource).count(namespace)

    def list_resources(self) -> tuple[str, ...]:
        """Those that have objects."""
        return tuple(sorted(name for name, resource in self._resources.items() if resource.collection.objects))

    def iterate_pending_writes(self, resource: str) -> Iterator[Stored]:
        """The objects of `resource` as writes will leave them that are on their way to the disk, not yet visible.

        For allocations of unique values. Inside a change function, together with what is visible, it is everything:
        the decision is submitted before any other decision is made.
        """
        for write in self._under_way:
            for change in write.changes:
                if change.current is not None and change.key.resource == resource:
                    yield change.current

    def is_being_written(self, key: Key) -> bool:
        """Whether a write of this object is on its way to the disk."""
        return any(key in write.keys for write in self._under_way)

    def select_fields(self, resource: str, fields_of: FieldsOf) -> None:
        """Set how the fields that selectors may name are read from an object of `resource` (see `Stored.fields`)."""
        self._get_traits(resource).fields_of = fields_of
        self._read(resource).forget_fields()

    async def wait_for(self, revision: int, *, timeout_s: float) -> bool:
        """Wait until reads are not older than `revision`; False if that did not come about in time."""
        if self._revision >= revision:
            return True
        reached: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[reached] = revision
        try:
            async with asyncio.timeout(timeout_s):
                await reached
        except TimeoutError:
            return False
        finally:
            del self._waiting[reached]
        return True

    # ---- watching

    def watch(
        self,
        resource: str,
        *,
        namespace: str | None = None,
        since: int | None = None,
        matches: Matches | None = None,
        initial: Sequence[Stored] = (),
    ) -> Watch:
        """Everything after the revision `since`, or, without it, the present state as ADDED and everything after it.

        `initial` is a state at `since` that comes first, as ADDED; it matches already.

        Raises `Compacted` if history does not reach back so far. A revision that is still to come is fine: the watch
        begins after it.
        """
        hub = self._get_resource(resource).hub
        view = WatchFilter(namespace, matches)
        try:
            if since is not None:
                return hub.join(view, since=since, initial=initial)
            state = self.list(resource, ListQuery(namespace=namespace), matches=matches)
            return hub.join(view, since=state.revision, initial=state.items)
        finally:
            self._drop_if_idle(resource)

    # ---- writing

    async def update(self, key: Key, change: ChangeOne) -> Stored | None:
        """Let `change` decide on the newest state of one object, and make its decision durable.

        `change` is plain and synchronous, and may raise: then nothing is written, and the caller gets what it raised.
        Returns the object as it is now; after `Delete` as it was, under the revision of the deletion; after `Keep` the
        current one, or none. A write whose caller is cancelled is carried out all the same.
        """
        await self._yield_to_others()
        await self._key_lock.acquire(key)
        write: Write | None = None
        try:
            current = self.get(key)
            made = self._change(key, current, change(current), revision=self._given + 1)
            write = self._submit_changes((key,), () if made is None else (made,))
        finally:
            if write is None:
                self._key_lock.release(key)
        if write is not None:
            await write.settled
        return self._build_result(made, current)

    async def update_all(self, keys: Sequence[Key], change: ChangeSeveral) -> tuple[Stored | None, ...]:
        """`update` for several distinct objects at once: all of it becomes durable and visible together, or nothing."""
        await self._yield_to_others()
        in_order = sorted(keys)  # all callers lock in the same order, so there is no deadlock
        taken: deque[Key] = deque()
        write: Write | None = None
        try:
            for key in in_order:
                await self._key_lock.acquire(key)
                taken.append(key)
            currents = tuple(map(self.get, keys))
            changes = self._changes(keys, currents, change(currents))
            write = self._submit_changes(in_order, [item for item in changes if item is not None])
        finally:
            if write is None:
                for key in taken:
                    self._key_lock.release(key)
        if write is not None:
            await write.settled
        return tuple(self._build_result(item, current) for item, current in zip(changes, currents, strict=True))

    async def _yield_to_others(self) -> None:
        if self._driver.is_inline and self._given % _WRITES_IN_A_ROW == 0:
            await asyncio.sleep(0)

    def _changes(
        self, keys: Sequence[Key], currents: Sequence[Stored | None], decisions: Sequence[Decision]
    ) -> Sequence[Change | None]:
        changes: deque[Change | None] = deque()
        revision = self._given
        for key, current, decision in zip(keys, currents, decisions, strict=True):
            made = self._change(key, current, decision, revision=revision + 1)
            if made is not None:
                revision = made.revision
            changes.append(made)
        return changes

    def _change(self, key: Key, current: Stored | None, decision: Decision, *, revision: int) -> Change | None:
        if self._closed:
            raise StoreClosed("the store is closed")
        if isinstance(decision, Put):
            body = stamp(decision.body, revision)
            after = build_stored(self._get_traits(key.resource), key, body=body, revision=revision)
            self._bodies.keep(after, body)
        elif isinstance(decision, Keep) or current is None:
            return None
        else:
            after = None
        return Change(revision, key.path, current, after, self._clock.monotonic_s())

    def _submit_changes(self, keys: Sequence[Key], changes: Sequence[Change]) -> Write | None:
        if not changes:
            return None
        self._given = changes[-1].revision
        write = Write(keys, changes, asyncio.get_running_loop().create_future())
        self._under_way[write] = None
        try:
            self._driver.submit(write)
        except StoreClosed:
            self._under_way.pop(write)
            raise
        return write

    def _build_result(self, change: Change | None, current: Stored | None) -> Stored | None:
        if change is None:
            return current
        return change.current or change.build_plain_event(self._encodings).object

    def _apply_outcomes(self, outcomes: Sequence[tuple[Write, Problem | None]]) -> None:
        """Apply the outcome of a write; the driver reports writes in the order of their revisions."""
        touched: dict[str, set[str]] = {}
        for write, problem in outcomes:
            self._trouble = "" if problem is None else str(problem)
            if problem is None:
                for change in write.changes:
                    last = change.last
                    resource = last.traits.resource
                    self._get_resource(resource).collection.apply(change)
                    self._history_bytes += change.superseded_bytes
                    touched.setdefault(resource, set()).add(last.namespace)
                self._revision = write.changes[-1].revision
        for write, problem in outcomes:
            self._under_way.pop(write, None)
            for key in write.keys:
                self._key_lock.release(key)
            if write.settled.done():  # the waiter was cancelled
                continue
            if problem is None:
                write.settled.set_result(None)
            else:
                write.settled.set_exception(problem)
        for resource, namespaces in touched.items():
            self._resources[resource].hub.notify(namespaces)
        self._forget_surplus(touched)
        for reached, revision in self._waiting.items():
            if revision <= self._revision and not reached.done():
                reached.set_result(None)

    # ---- forgetting

    def compact(self, revision: int) -> None:
        """Forget what only watchers and lists at revisions before `revision` would need."""
        if revision > self._revision:
            raise RevisionAhead(revision, self._revision)
        if revision <= self._floors.get(EVERYTHING, 0):
            return
        unneeded: list[int] = []
        self._floors = {name: floor for name, floor in self._floors.items() if floor > revision}
        self._floors[EVERYTHING] = revision
        for name, (collection, _hub) in tuple(self._resources.items()):
            unneeded += self._forget(name, collection.history.count_until(revision))
            collection.history.floor = max(collection.history.floor, revision)
            self._drop_if_idle(name)
        self._driver.forget(Compaction(unneeded, {EVERYTHING: revision}))

    def get_oldest_revision(self, resource: str) -> int:
        """The least revision a watch of `resource` may start from, and a list of it may be asked for."""
        return self._read(resource).history.floor

    def _forget_surplus(self, touched: Iterable[str]) -> None:
        """Keep to the limits after writes of the resources `touched`."""
        for name in touched:
            resource = self._resources[name]
            surplus = resource.collection.history.count_surplus(self._limits)
            if surplus or not resource.collection.objects:
                self._forget_several({name: surplus})
        now_s = self._clock.monotonic_s()
        if now_s >= self._next_ageing_s:
            self._next_ageing_s = now_s + self._limits.age_s
            youngest_s = now_s - self._limits.age_s
            self._forget_several(
                {name: history.count_before(youngest_s) for name, history in self._iterate_histories()}
            )
        if self._history_bytes > self._limits.bytes_in_all:
            histories = (history for _name, history in self._iterate_histories())
            revision = choose_revision_to_forget(histories, held=self._history_bytes, most=self._limits.bytes_in_all)
            self._forget_several({name: history.count_until(revision) for name, history in self._iterate_histories()})

    def _iterate_histories(self) -> Iterable[tuple[str, History]]:
        return ((name, resource.collection.history) for name, resource in self._resources.items())

    def _forget_several(self, counts: Mapping[str, int]) -> None:
        """Forget so many of the oldest changes of each resource."""
        unneeded: list[int] = []
        floors: dict[str, int] = {}
        for name, count in counts.items():
            if count:
                unneeded += self._forget(name, count)
                floors[name] = self._resources[name].collection.history.floor
            self._drop_if_idle(name)
        if floors:
            self._driver.forget(Compaction(unneeded, floors))

    def _forget(self, name: str, count: int) -> Sequence[int]:
        collection, hub = self._resources[name]
        hub.catch_up()
        before = collection.history.superseded_bytes
        unneeded = collection.history.forget(count)
        self._history_bytes += collection.history.superseded_bytes - before
        return unneeded

    def _drop_if_idle(self, name: str) -> None:
        """Drop the state of an unused resource: custom resources come and go under ever new names."""
        found = self._resources.get(name)
        if found is None or found.collection.objects or len(found.collection.history) or found.hub.is_watched:
            return
        floor = found.collection.history.floor
        if floor > self._floors.get(EVERYTHING, 0):
            self._floors[name] = floor
        del self._resources[name]

    def _get_resource(self, resource: str) -> _Resource:
        """The state of a resource for changes and watchers; created on first use."""
        found = self._resources.get(resource)
        if found is None:
            collection = Collection(self._get_traits(resource), floor=self._get_oldest_retained(resource))
            hub = Watchers(
                collection.history,
                revision=lambda: self._revision,
                encodings=self._encodings,
                on_abandoned=lambda: self._drop_if_idle(resource),
            )
            found = self._resources[resource] = _Resource(collection, hub)
        return found

    def _read(self, resource: str) -> Collection:
        """The collection of a resource for reads; an empty one, not stored, for an unknown resource."""
        found = self._resources.get(resource)
        if found is not None:
            return found.collection
        return Collection(Traits(resource), floor=self._get_oldest_retained(resource))

    def _get_oldest_retained(self, resource: str) -> int:
        return max(self._floors.get(resource, 0), self._floors.get(EVERYTHING, 0))

    def _get_traits(self, resource: str) -> Traits:
        """One for all objects there are, were and will be, so that `select_fields` reaches them all."""
        found = self._traits.get(resource)
        if found is None:
            found = self._traits[resource] = Traits(resource)
        return found


class Put(NamedTuple):
    """Store this object; its metadata.resourceVersion is set by the store, in a copy."""

    body: Mapping[str, Any]


class Delete(NamedTuple):
    """Remove the object; of one that is not there, the same as `Keep`."""


class Keep(NamedTuple):
    """Leave everything as it is."""


Decision = Put | Delete | Keep
ChangeOne = Callable[[Stored | None], Decision]
ChangeSeveral = Callable[[Sequence[Stored | None]], Sequence[Decision]]
