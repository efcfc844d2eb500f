"""Random operations against the plain model, the same for both drivers; sqlite is also restarted and killed."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from plimsoll.local.apiserver.storage import (
    Compacted,
    Delete,
    HistoryLimits,
    Keep,
    Key,
    ListQuery,
    MemoryDriver,
    Put,
    SqliteDriver,
    Store,
    Stored,
    Watch,
)
from tests.local.apiserver.storage.builders import StoppedClock, pod
from tests.local.apiserver.storage.store_model import Model, ModelEvent

resources = st.sampled_from(["pods", "apps/deployments"])
namespaces = st.sampled_from(["a", "a-b", "b"])
names = st.sampled_from(["x", "x-1", "y"])
keys = st.builds(Key, resources, namespaces, names)
bodies = st.builds(
    lambda labels, value: {"labels": labels, "value": value},
    st.sampled_from([None, {}, {"w": "1"}, {"w": "2", "v": "1"}]),
    st.integers(0, 3),
)


def body_of(key: Key, details: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = pod(key.name, key.namespace, **details)
    return made


def selected(stored: Stored) -> bool:
    return "w" in stored.labels


class WatchFollower(NamedTuple):
    watch: Watch
    resource: str
    namespace: str | None
    selecting: bool
    since: int
    reported: list[ModelEvent]


class StoreMachine(RuleBasedStateMachine):
    driver = "memory"

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.directories = tempfile.TemporaryDirectory()
        self.generation = 0
        self.model = Model()
        self.followers: list[WatchFollower] = []

    @initialize(changes=st.sampled_from([4, 10_000]), in_all=st.sampled_from([1_000, 1_000_000]))
    def start(self, changes: int, in_all: int) -> None:
        self.limits = HistoryLimits(changes_per_resource=changes, bytes_in_all=in_all)
        self.clock = StoppedClock()
        self.store = self.opened()

    @property
    def directory(self) -> Path:
        return Path(self.directories.name, str(self.generation))

    def opened(self) -> Store:
        driver = MemoryDriver() if self.driver == "memory" else SqliteDriver(self.directory)
        return Store.open(driver, clock=self.clock, limits=self.limits)

    def teardown(self) -> None:
        self.loop.run_until_complete(self.store.aclose())
        self.loop.close()
        self.directories.cleanup()

    # ---- writes

    @rule(key=keys, details=bodies)
    def put(self, key: Key, details: dict[str, Any]) -> None:
        body = body_of(key, details)
        written = self.loop.run_until_complete(self.store.update(key, lambda _: Put(body)))
        assert written is not None
        self.model.write(key.resource, key.path, revision=written.revision, after=body)

    @rule(key=keys)
    def delete(self, key: Key) -> None:
        there = self.model.state(key.resource).get(key.path)
        gone = self.loop.run_until_complete(self.store.update(key, lambda _: Delete()))
        assert (gone is None) == (there is None)
        if gone is not None:
            self.model.write(key.resource, key.path, revision=gone.revision, after=None)

    @rule(key=keys)
    def keep(self, key: Key) -> None:
        kept = self.loop.run_until_complete(self.store.update(key, lambda _: Keep()))
        assert (kept.decode_body() if kept else None) == self.model.state(key.resource).get(key.path)

    @rule(chosen=st.lists(keys, min_size=2, max_size=3, unique=True), details=bodies)
    def put_together(self, chosen: list[Key], details: dict[str, Any]) -> None:
        wanted = [body_of(key, details) for key in chosen]
        written = self.loop.run_until_complete(self.store.update_all(chosen, lambda _: [Put(body) for body in wanted]))
        for key, body, stored in zip(chosen, wanted, written, strict=True):
            assert stored is not None
            self.model.write(key.resource, key.path, revision=stored.revision, after=body)

    @rule(chosen=st.lists(keys, min_size=2, max_size=8), details=bodies)
    def put_at_the_same_time(self, chosen: list[Key], details: dict[str, Any]) -> None:
        async def together() -> list[Stored | None]:
            writes = (self.store.update(key, lambda _, key=key: Put(body_of(key, details))) for key in chosen)  # type: ignore[misc]
            return list(await asyncio.gather(*writes))

        written = self.loop.run_until_complete(together())
        in_order = sorted(
            (stored.revision, key) for stored, key in zip(written, chosen, strict=True) if stored is not None
        )
        assert len(in_order) == len(chosen)
        for revision, key in in_order:
            self.model.write(key.resource, key.path, revision=revision, after=body_of(key, details))

    @rule(back=st.integers(0, 5))
    def compact(self, back: int) -> None:
        revision = max(1, self.store.revision - back)
        self.store.compact(revision)
        for resource in ("pods", "apps/deployments"):
            assert self.store.get_oldest_revision(resource) >= revision

    @rule()
    def let_history_age(self) -> None:
        self.clock.elapsed_s += self.limits.age_s + 1

    # ---- reads

    @rule(
        resource=resources,
        namespace=st.none() | namespaces,
        limit=st.none() | st.integers(1, 3),
        selecting=st.booleans(),
        back=st.integers(0, 6),
    )
    def list_in_pages(
        self, resource: str, namespace: str | None, limit: int | None, selecting: bool, back: int
    ) -> None:
        at = max(1, self.store.revision - back) if back else None
        expected = self.model.state(resource, at=at, namespace=namespace)
        if selecting:
            expected = {path: body for path, body in expected.items() if "w" in (body["metadata"].get("labels") or {})}
        found: dict[str, Any] = {}
        start: str | None = ""
        while start is not None:
            query = ListQuery(namespace=namespace, start=start, limit=limit, at=at)
            try:
                page = self.store.list(resource, query, matches=selected if selecting else None)
            except Compacted:
                assert at is not None
                assert at < self.store.get_oldest_revision(resource)
                return
            assert at is None or at >= self.store.get_oldest_revision(resource)
            found |= {stored.key.path: stored.decode_body() for stored in page.items}
            start = page.next
            assert page.revision == (at or self.store.revision)
            if start is not None and not selecting:
                assert page.remaining == len(expected) - len(found) > 0
        assert list(found.items()) == list(expected.items())

    # ---- watches

    @precondition(lambda self: len(self.followers) < 4)
    @rule(resource=resources, namespace=st.none() | namespaces, selecting=st.booleans(), back=st.integers(0, 6))
    def watch(self, resource: str, namespace: str | None, selecting: bool, back: int) -> None:
        self.follow(resource, namespace, selecting=selecting, since=max(1, self.store.revision - back))

    def follow(self, resource: str, namespace: str | None, *, selecting: bool, since: int) -> None:
        matches = selected if selecting else None
        try:
            watch = self.store.watch(resource, namespace=namespace, since=since, matches=matches)
        except Compacted:
            assert since < self.store.get_oldest_revision(resource)
            return
        assert since >= self.store.get_oldest_revision(resource)
        self.followers.append(WatchFollower(watch, resource, namespace, selecting, since, []))

    @rule(resource=resources, namespace=st.none() | namespaces)
    def watch_from_the_state(self, resource: str, namespace: str | None) -> None:
        expected = self.model.state(resource, namespace=namespace)
        with self.store.watch(resource, namespace=namespace) as watch:
            for body in expected.values():
                event = self.loop.run_until_complete(asyncio.wait_for(anext(watch), 10))
                assert (event.type, event.object.decode_body()) == ("ADDED", body)
            assert watch.initial_left == 0
            assert watch.revision == self.store.revision

    @rule()
    def catch_up(self) -> None:
        """No watcher is so slow here that it may expire: a watcher holds some hundred events, whatever history does."""
        for follower in self.followers:
            self.read_to_the_end(follower)

    def read_to_the_end(self, follower: WatchFollower) -> None:
        expected = self.model.events(
            follower.resource, since=follower.since, namespace=follower.namespace, selecting=follower.selecting
        )
        while len(follower.reported) < len(expected):
            event = self.loop.run_until_complete(asyncio.wait_for(anext(follower.watch), 10))
            follower.reported.append(ModelEvent(event.type.value, event.revision, event.object.decode_body()))
            assert follower.reported == expected[: len(follower.reported)]
            assert follower.watch.revision >= event.revision
        assert follower.watch.revision == self.store.revision

    # ---- the end of the process, for drivers that outlive it

    @precondition(lambda self: self.driver == "sqlite")
    @rule()
    def restart(self) -> None:
        self.loop.run_until_complete(self.store.aclose())
        self.resume(self.opened())
        assert self.store.revision == self.model.revision

    @precondition(lambda self: self.driver == "sqlite")
    @rule()
    def kill(self) -> None:
        """The files as they are at this instant are what a killed process leaves."""
        left = self.directory
        self.generation += 1
        shutil.copytree(left, self.directory)
        self.loop.run_until_complete(self.store.aclose())
        self.resume(self.opened())
        assert self.store.revision > self.model.revision
        self.model.revision = self.store.revision

    def resume(self, store: Store) -> None:
        self.store = store
        before, self.followers = self.followers, []
        for follower in before:
            self.follow(
                follower.resource,
                follower.namespace,
                selecting=follower.selecting,
                since=follower.reported[-1].revision if follower.reported else follower.since,
            )

    @invariant()
    def revision_is_the_last_writes(self) -> None:
        if hasattr(self, "store"):
            assert self.store.revision == self.model.revision

    @invariant()
    def histories_keep_to_their_bound(self) -> None:
        if hasattr(self, "store"):
            held = [resource.collection.history.superseded_bytes for resource in self.store._resources.values()]
            assert sum(held) == self.store._history_bytes <= self.limits.bytes_in_all


class SqliteMachine(StoreMachine):
    driver = "sqlite"


@pytest.mark.parametrize(
    ("machine", "examples"),
    [pytest.param(StoreMachine, 80, id="memory"), pytest.param(SqliteMachine, 25, id="sqlite")],
)
def test_random_operations_do_what_the_model_does(machine: type[StoreMachine], examples: int):
    phases = (Phase.explicit, Phase.reuse, Phase.generate)  # shrinking a machine with threads and files takes minutes
    chosen = settings(max_examples=examples, stateful_step_count=40, deadline=None, phases=phases)
    run_state_machine_as_test(machine, settings=chosen)
