"""Every handler receives at its own pace a history without gaps or repetitions, and delays no other."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.core.errors import InvalidInput
from plimsoll.kube.informer import Added, BecameUnreadable, Deleted, UnreadableDeleted, Updated
from plimsoll.kube.informer.events import Deletion, get_view, list_changes
from plimsoll.objects.api.meta import ObjectMeta
from plimsoll.objects.codec.decode_problems import BadObject
from tests.kube.embedded_api import status_reply
from tests.kube.informer.widget_server import BAD, Widget, WidgetCluster, WidgetSpec
from tests.narrowing import instance_of, present

if TYPE_CHECKING:
    from plimsoll.kube.informer import Change


def good(version: str, *, uid: str = "u") -> Widget:
    return Widget(metadata=ObjectMeta(name="a", uid=uid, resource_version=version), spec=WidgetSpec(size=int(version)))


def bad(version: str, *, uid: str = "u") -> BadObject:
    return BadObject(kind="Widget", problem="odd", name="a", uid=uid, resource_version=version)


@pytest.mark.parametrize(
    ("before", "after", "reported"),
    [
        (None, None, ()),
        (None, good("1"), (Added(new=good("1")),)),
        (good("1"), good("1"), ()),
        (good("1"), good("2"), (Updated(old=good("1"), new=good("2")),)),
        (good("1"), None, (Deleted(last=good("1"), is_inferred=True),)),
        (good("1"), good("2", uid="v"), (Deleted(last=good("1"), is_inferred=True), Added(new=good("2", uid="v")))),
        (None, bad("1"), (BecameUnreadable(bad=bad("1")),)),
        (good("1"), bad("2"), (BecameUnreadable(bad=bad("2"), last=good("1")),)),
        (bad("1"), bad("1"), ()),
        (bad("1"), bad("2"), (BecameUnreadable(bad=bad("2")),)),
        (bad("1"), good("2"), (Added(new=good("2")),)),
        (bad("1"), good("1"), (Added(new=good("1")),)),
        (bad("1"), None, (UnreadableDeleted(bad=bad("1")),)),
        (bad("1"), good("2", uid="v"), (UnreadableDeleted(bad=bad("1")), Added(new=good("2", uid="v")))),
    ],
)
def test_what_is_reported_follows_from_two_states(before: Any, after: Any, reported: tuple[Any, ...]):
    assert list_changes(before, after) == reported


def test_a_deletion_that_was_seen_has_the_last_state():
    seen = Deletion(last=good("3"), is_inferred=False)
    assert list_changes(good("1"), None, seen) == (Deleted(last=good("3")),)


def test_the_same_version_with_another_content_is_an_update():
    # A server restored from a backup gives versions a second time.
    other = Widget(metadata=good("1").metadata, spec=WidgetSpec(size=9))
    assert list_changes(good("1"), other) == (Updated(old=good("1"), new=other),)


class GatedHandler:
    """A handler that waits at a gate before it takes the next change."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.reported: list[Change[Any]] = []

    async def __call__(self, change: Change[Any]) -> None:
        await self.gate.wait()
        self.reported.append(change)

    @property
    def story(self) -> list[tuple[str, str]]:
        return [(type(change).__name__, change.key.name) for change in self.reported]


def test_a_slow_handler_skips_versions_and_delays_no_other():
    with WidgetCluster() as world:
        slow, quick = GatedHandler(), list[Any]()
        informer = world.running()
        informer.add_handler(slow, name="slow")
        informer.add_handler(quick.append, name="quick")
        for size in range(10):
            world.put("a", size)
            world.run.settle()
        assert [type(change) for change in quick] == [Added] + [Updated] * 9
        slow.gate.set()
        world.run.settle()
        assert slow.story == [("Added", "a"), ("Updated", "a")]
        added, updated = instance_of(Added, slow.reported[0]), instance_of(Updated, slow.reported[1])
        assert updated.new.spec.size == 9
        assert updated.old is added.new


def test_what_came_and_went_unheard_of_takes_no_memory_and_is_not_reported():
    with WidgetCluster() as world:
        slow = GatedHandler()
        informer = world.running()
        runner = informer.add_handler(slow, name="slow")
        world.put("first")
        world.run.settle()
        for number in range(50):
            world.put(f"w{number}")
            world.delete(f"w{number}")
            world.run.settle()
        assert runner.pending == 1, "the one it is at"
        slow.gate.set()
        world.run.settle()
        assert slow.story == [("Added", "first")]


def test_a_handler_that_is_added_late_gets_all_objects_and_is_then_in_sync():
    with WidgetCluster() as world:
        world.put("a")
        world.put("b", BAD)
        informer = world.running()
        slow = GatedHandler()
        runner = informer.add_handler(slow, name="late")
        world.run.settle()
        assert not runner.has_synced
        slow.gate.set()
        world.run.run_until(runner.wait_until_synced())
        assert slow.story == [("Added", "a"), ("BecameUnreadable", "b")]


def test_a_handler_of_an_empty_world_is_in_sync_after_the_first_list():
    with WidgetCluster() as world:
        informer = world.informer()
        runner = informer.add_handler(lambda _change: None, name="any")
        world.run.settle()
        assert not runner.has_synced
        world.run.spawn(informer.run())
        world.run.run_until(runner.wait_until_synced())
        assert informer.has_synced


@pytest.mark.parametrize("error", [RuntimeError("a bug"), asyncio.CancelledError()])
def test_a_handler_that_raises_is_counted_and_gets_the_next_change(error: Any):
    reported: list[str] = []

    def failing(change: Change[Any]) -> None:
        reported.append(change.key.name)
        raise error

    with WidgetCluster() as world:
        informer = world.running()
        runner = informer.add_handler(failing, name="failing")
        for name in "abc":
            world.put(name)
        world.run.settle()
        assert reported == ["a", "b", "c"]
        assert runner.failures == 3
        assert informer.status.handlers[0].failures == 3


def test_handlers_have_names_of_their_own():
    with WidgetCluster() as world:
        informer = world.informer()
        informer.add_handler(lambda _change: None, name="x")
        with pytest.raises(InvalidInput, match="already"):
            informer.add_handler(lambda _change: None, name="x")


def test_an_informer_that_was_stopped_goes_on_where_its_handlers_were():
    with WidgetCluster() as world:
        reported: list[Any] = []
        informer = world.informer()
        informer.add_handler(reported.append, name="all")
        world.put("a")
        world.put("b")
        first = world.run.spawn(informer.run())
        world.run.run_until(informer.wait_until_synced())
        world.run.settle()
        first.cancel()
        world.run.settle()
        world.delete("a")
        world.put("c")
        world.run.spawn(informer.run())
        world.run.advance_by(1)
        assert [(type(change), change.key.name) for change in reported[2:]] == [(Added, "c"), (Deleted, "a")]
        assert reported[-1].is_inferred


@pytest.mark.parametrize("lists_are_bare", [True, False])
@pytest.mark.parametrize("keep_raw", [True, False])
def test_a_list_without_changes_causes_no_calls(lists_are_bare: bool, keep_raw: bool):
    with WidgetCluster() as world:
        world.line.lists_are_bare = lists_are_bare
        world.put("listed")
        reported: list[Any] = []
        informer = world.running(keep_raw=keep_raw)
        informer.add_handler(reported.append, name="all")
        world.put("watched")
        world.run.settle()
        world.compact()
        world.run.run_until(world.line.break_all())
        world.line.replies.append(status_reply(410))
        world.run.advance_by(60)
        assert informer.status.relists == 1
        assert [(type(change), change.key.name) for change in reported] == [(Added, "listed"), (Added, "watched")]


@pytest.mark.parametrize("lists_are_bare", [True, False])
@pytest.mark.parametrize("keep_raw", [True, False])
def test_objects_look_the_same_however_they_came(lists_are_bare: bool, keep_raw: bool):
    with WidgetCluster() as world:
        world.line.lists_are_bare = lists_are_bare
        world.put("listed")
        informer = world.running(keep_raw=keep_raw)
        world.put("watched")
        world.run.settle()
        found = [present(informer.cache.get(name, "here")) for name in ("listed", "watched")]
        assert [(get_view(cached).kind, get_view(cached).api_version) for cached in found] == [("", "")] * 2
        if keep_raw:
            listed, watched = (json.loads(cached.raw) for cached in found)
            assert listed.keys() == watched.keys() == {"metadata", "spec"}


def test_a_change_whose_handler_was_cancelled_in_the_middle_is_reported_again():
    with WidgetCluster() as world:
        begun: list[Change[Any]] = []
        slow = GatedHandler()

        async def begin(change: Change[Any]) -> None:
            begun.append(change)
            await slow(change)

        informer = world.informer()
        runner = informer.add_handler(begin, name="slow")
        world.put("a")
        first = world.run.spawn(informer.run())
        world.run.run_until(informer.wait_until_synced())
        world.run.settle()
        first.cancel()
        world.run.settle()
        assert slow.reported == []
        assert runner.pending == 1
        world.delete("a")
        slow.gate.set()
        world.run.spawn(informer.run())
        world.run.advance_by(1)
        assert slow.story == [("Added", "a"), ("Deleted", "a")], "it may have acted on what it half heard"
        assert begun == [slow.reported[0], *slow.reported]
        assert runner.pending == 0


def test_a_handler_that_was_cancelled_with_its_last_change_still_comes_into_sync():
    with WidgetCluster() as world:
        slow = GatedHandler()
        informer = world.informer()
        runner = informer.add_handler(slow, name="slow")
        world.put("a")
        first = world.run.spawn(informer.run())
        world.run.run_until(informer.wait_until_synced())
        world.run.settle()
        first.cancel()
        world.run.settle()
        slow.gate.set()
        world.run.spawn(informer.run())
        world.run.advance_by(1)
        assert runner.has_synced
