"""Lists are the truth; watches tell what happened since, each event once."""

from __future__ import annotations

from typing import Any

import pytest
from structlog.testing import capture_logs

from plimsoll.kube.informer.delivery.broadcaster import DeliveryLoop, HandlerBroadcaster
from plimsoll.kube.informer.events import Key
from plimsoll.kube.informer.store.cache import WritableCache
from plimsoll.kube.informer.store.tracker import Tracker, is_newer, went_back
from plimsoll.objects.api.meta import ObjectMeta
from plimsoll.objects.codec.decode_problems import BadObject
from tests.kube.informer.widget_server import Widget


def widget(name: str, version: str, *, uid: str = "") -> Widget:
    return Widget(metadata=ObjectMeta(name=name, uid=uid or f"uid of {name}", resource_version=version))


def nameless() -> BadObject:
    return BadObject(kind="Widget", problem="metadata.name: Expected `str`, got `int`")


class Tracked:
    """A tracker after a list of these objects."""

    def __init__(self, *objects: Widget | BadObject, version: str = "10") -> None:
        self.cache: WritableCache[Any] = WritableCache()
        self.tracker: Tracker[Any] = Tracker(
            "widgets", cache=self.cache, on_change=HandlerBroadcaster(self.cache, DeliveryLoop("widgets")).changed
        )
        self.list(*objects, version=version)

    def list(self, *objects: Widget | BadObject, version: str) -> None:
        self.tracker.list_begins()
        self.tracker.listed(objects)
        for key in self.tracker.not_listed():
            self.tracker.infer_deletion(key)
        self.tracker.list_ended(version)

    @property
    def versions(self) -> dict[str, str]:
        return {cached.metadata.name: cached.metadata.resource_version for cached in self.cache.list()}


def test_what_a_list_does_not_hold_is_deleted():
    tracked = Tracked(widget("a", "1"), widget("b", "2"))
    tracked.list(widget("b", "2"), widget("c", "12"), version="12")
    assert tracked.versions == {"b": "2", "c": "12"}
    assert tracked.tracker.position == "12"


def test_a_list_of_a_restored_server_counts_although_its_versions_are_older():
    tracked = Tracked(widget("a", "9"), version="10")
    tracked.list(widget("a", "3"), version="5")
    assert tracked.versions == {"a": "3"}
    assert tracked.tracker.position == "5"


def test_a_list_that_was_broken_off_is_counted_from_the_start():
    tracked = Tracked(widget("a", "1"))
    tracked.tracker.list_begins()
    tracked.tracker.listed([widget("b", "2")])
    tracked.list(widget("a", "1"), version="12")
    assert tracked.versions == {"a": "1"}


def test_nothing_is_deleted_by_a_list_with_an_object_that_could_be_anybody():
    tracked = Tracked(widget("a", "1"))
    with capture_logs() as logs:
        tracked.list(nameless(), version="12")
    assert tracked.versions == {"a": "1"}
    assert tracked.tracker.is_suspect
    assert "informer.deletions_not_inferred" in [entry["event"] for entry in logs]


def test_modified_is_as_good_as_added_and_moves_the_position():
    tracked = Tracked()
    tracked.tracker.present(widget("a", "11"))
    assert tracked.versions == {"a": "11"}
    assert tracked.tracker.position == "11"


def test_a_replayed_event_does_nothing():
    tracked = Tracked()
    for version in ("11", "12", "11", "12"):
        tracked.tracker.present(widget("a", version))
        assert tracked.tracker.position == max("11", version, tracked.tracker.position)
    tracked.tracker.gone(widget("a", "13"))
    tracked.tracker.present(widget("a", "12"))
    assert tracked.versions == {}
    assert tracked.tracker.replays == 3


def test_a_replayed_deletion_does_not_take_the_next_object_of_that_name():
    tracked = Tracked(widget("a", "1"))
    tracked.tracker.gone(widget("a", "11"))
    tracked.tracker.present(widget("a", "12", uid="another"))
    tracked.tracker.gone(widget("a", "11"))
    assert tracked.versions == {"a": "12"}


def test_the_deletion_of_what_is_not_known_does_nothing():
    tracked = Tracked(widget("a", "1"))
    tracked.tracker.gone(widget("b", "11"))
    assert tracked.versions == {"a": "1"}


def test_a_bookmark_never_moves_the_position_back():
    tracked = Tracked(version="10")
    tracked.tracker.bookmarked("9")
    assert tracked.tracker.position == "10"
    tracked.tracker.bookmarked("15")
    assert tracked.tracker.position == "15"


@pytest.mark.parametrize("kind", ["present", "gone", "bookmarked"])
def test_what_is_older_than_where_the_watch_stands_is_suspect(kind: str):
    tracked = Tracked(version="10")
    tell = getattr(tracked.tracker, kind)
    tell("10" if kind == "bookmarked" else widget("a", "10"))
    assert not tracked.tracker.is_suspect
    tell("9" if kind == "bookmarked" else widget("a", "9"))
    assert tracked.tracker.is_suspect
    tracked.list(version="9")
    assert not tracked.tracker.is_suspect


def test_versions_that_are_no_numbers_are_taken_as_they_come():
    tracked = Tracked(widget("a", "x1"), version="list")
    tracked.tracker.present(widget("a", "x2"))
    tracked.tracker.present(widget("b", "q"))
    assert tracked.versions == {"a": "x2", "b": "q"}
    assert tracked.tracker.position == "q"


def test_a_deletion_told_with_an_unreadable_object_is_a_deletion():
    tracked = Tracked(widget("a", "1"))
    tracked.tracker.gone(BadObject(kind="Widget", problem="odd", name="a", resource_version="11"))
    assert tracked.cache.state(Key("", "a")) is None


@pytest.mark.parametrize(
    ("version", "than", "newer", "back"),
    [("10", "9", True, False), ("9", "10", False, True), ("9", "9", False, False), ("x", "9", True, False)],
)
def test_versions_are_compared_as_numbers(version: str, than: str, newer: bool, back: bool):
    assert is_newer(version, than) is newer
    assert went_back(version, than) is back
