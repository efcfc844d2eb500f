"""Handlers that have heard the same share what comes next; whatever interrupts one of them, each history is whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.kube.informer import Added, Deleted, Updated
from plimsoll.kube.informer.delivery.broadcaster import CALLS_AT_ONCE, DeliveryLoop, HandlerBroadcaster
from plimsoll.kube.informer.delivery.handler import HandlerRunner
from plimsoll.kube.informer.store.cache import WritableCache
from plimsoll.kube.informer.store.cache_updater import CacheUpdater
from plimsoll.objects.api.meta import ObjectMeta
from tests.kube.informer.widget_server import Widget, WidgetSpec

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from plimsoll.kube.informer import Change


class HandlerStopped(BaseException):
    """What ends a run in the middle of a handler."""


class CheckingListener:
    """Knows the objects only by the changes it received, and checks that every change follows from what it knew."""

    def __init__(self) -> None:
        self.known: dict[str, Widget] = {}
        self.reported: list[Change[Any]] = []
        self.waits = False
        self.stops = False

    def __call__(self, change: Change[Any]) -> Awaitable[None] | None:
        if self.stops:
            self.stops = False
            raise HandlerStopped
        if self.waits:
            return self._heard_later(change)
        self._hear(change)
        return None

    async def _heard_later(self, change: Change[Any]) -> None:
        self._hear(change)

    def _hear(self, change: Change[Any]) -> None:
        name = change.key.name
        match change:
            case Added(new=new):
                assert name not in self.known
                self.known[name] = new
            case Updated(old=old, new=new):
                assert self.known[name] is old
                self.known[name] = new
            case Deleted(last=last):
                assert self.known.pop(name).metadata.uid == last.metadata.uid
            case _:
                raise AssertionError(change)
        self.reported.append(change)


class BroadcasterHarness:
    """An informer's inside without its loop: changes come and runners deliver when the test calls them."""

    def __init__(self, listeners: int) -> None:
        self.cache: WritableCache[Any] = WritableCache()
        delivery = DeliveryLoop("widgets")
        self.broadcaster: HandlerBroadcaster[Any] = HandlerBroadcaster(self.cache, delivery)
        self.updater: CacheUpdater[Any] = CacheUpdater(
            "widgets", cache=self.cache, on_change=self.broadcaster.distribute
        )
        self.listeners = [CheckingListener() for _ in range(listeners)]
        self.feeds: list[HandlerRunner[Any]] = []
        for number, listener in enumerate(self.listeners):
            runner = HandlerRunner(
                f"h{number}", listener, cache=self.cache, broadcaster=self.broadcaster, delivery=delivery
            )
            self.broadcaster.add(runner)
            runner.start()
            runner.mark_cache_complete()
            self.feeds.append(runner)
        self._version = 0

    def put(self, name: str, uid: str = "u") -> None:
        self._version += 1
        metadata = ObjectMeta(name=name, uid=uid, resource_version=str(self._version))
        self.updater.update(Widget(metadata=metadata, spec=WidgetSpec(size=self._version)))

    def delete(self, name: str) -> None:
        last = self.cache.get(name)
        if last is not None:
            self._version += 1
            metadata = ObjectMeta(name=name, uid=last.metadata.uid, resource_version=str(self._version))
            self.updater.delete(Widget(metadata=metadata))

    def deliver(self, number: int, most: int) -> None:
        runner = self.feeds[number]
        try:
            while (outcome := runner.deliver_some(most)) is not None:
                with pytest.raises(StopIteration):
                    runner.await_outcome(outcome).send(None)
        except HandlerStopped:
            runner.start()

    def deliver_all(self) -> None:
        for number, runner in enumerate(self.feeds):
            while runner.has_work:
                self.deliver(number, 32)


steps = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.sampled_from("abcd"), st.sampled_from(["u", "v"])),
        st.tuples(st.just("delete"), st.sampled_from("abcd"), st.none()),
        st.tuples(st.just("tell"), st.integers(0, 2), st.integers(1, 3)),
        st.tuples(st.just("waits"), st.integers(0, 2), st.booleans()),
        st.tuples(st.just("stops"), st.integers(0, 2), st.none()),
    ),
    max_size=40,
)


@settings(max_examples=150, deadline=None)
@given(story=steps)
def test_every_handler_comes_to_know_what_is_there_whatever_interrupts_it(story: list[tuple[str, Any, Any]]):
    harness = BroadcasterHarness(3)
    for step, target, other in story:
        match step:
            case "put":
                harness.put(target, other)
            case "delete":
                harness.delete(target)
            case "tell":
                harness.deliver(target, other)
            case "waits":
                harness.listeners[target].waits = other
            case "stops":
                harness.listeners[target].stops = True
    harness.deliver_all()
    there = {cached.metadata.name: cached for cached in harness.cache.list()}
    for listener, runner in zip(harness.listeners, harness.feeds, strict=True):
        assert listener.known == there
        assert runner.pending == 0
        assert runner.has_synced


def test_a_handler_that_receives_everything_at_once_to_the_last_call_is_in_sync():
    harness = BroadcasterHarness(1)
    for number in range(CALLS_AT_ONCE):
        harness.put(f"w{number}")
    harness.deliver(0, CALLS_AT_ONCE)
    assert len(harness.listeners[0].reported) == CALLS_AT_ONCE
    assert harness.feeds[0].has_synced


def test_handlers_that_keep_step_receive_the_very_same_changes():
    harness = BroadcasterHarness(2)
    harness.deliver_all()
    harness.put("a")
    harness.put("b")
    harness.deliver_all()
    first, second = (listener.reported for listener in harness.listeners)
    assert [change.key.name for change in first] == ["a", "b"]
    assert all(change is other for change, other in zip(first, second, strict=True))


def test_one_that_is_first_receives_every_change_and_the_other_only_the_last():
    harness = BroadcasterHarness(2)
    harness.deliver_all()
    harness.put("a")
    harness.deliver(0, 32)
    harness.put("a")
    harness.deliver_all()
    assert [type(change) for change in harness.listeners[0].reported] == [Added, Updated]
    assert [type(change) for change in harness.listeners[1].reported] == [Added]


def test_what_interrupts_a_handler_is_reported_again_and_the_rest_after_it():
    harness = BroadcasterHarness(2)
    harness.deliver_all()
    for name in "abc":
        harness.put(name)
    harness.listeners[0].stops = True
    harness.deliver(0, 32)
    assert harness.feeds[0].pending == 3
    harness.delete("b")
    harness.deliver_all()
    assert [change.key.name for change in harness.listeners[0].reported] == ["a", "c"]
    assert [change.key.name for change in harness.listeners[1].reported] == ["a", "c"]
