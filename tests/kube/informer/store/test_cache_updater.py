"""Lists are the truth; watches send what happened since, each event once."""

from __future__ import annotations

from typing import Any

import pytest
from structlog.testing import capture_logs

from plimsoll.kube.informer.delivery.broadcaster import DeliveryLoop, HandlerBroadcaster
from plimsoll.kube.informer.events import Key
from plimsoll.kube.informer.store.cache import WritableCache
from plimsoll.kube.informer.store.cache_updater import CacheUpdater, is_newer, is_restored
from plimsoll.objects.api.meta import ObjectMeta
from plimsoll.objects.codec.decode_problems import BadObject
from tests.kube.informer.widget_server import Widget


def widget(name: str, version: str, *, uid: str = "") -> Widget:
    return Widget(metadata=ObjectMeta(name=name, uid=uid or f"uid of {name}", resource_version=version))


def nameless() -> BadObject:
    return BadObject(kind="Widget", problem="metadata.name: Expected `str`, got `int`")


class UpdatedCache:
    """A updater after a list of these objects."""

    def __init__(self, *objects: Widget | BadObject, version: str = "10") -> None:
        self.cache: WritableCache[Any] = WritableCache()
        self.updater: CacheUpdater[Any] = CacheUpdater(
            "widgets", cache=self.cache, on_change=HandlerBroadcaster(self.cache, DeliveryLoop("widgets")).distribute
        )
        self.list(*objects, version=version)

    def list(self, *objects: Widget | BadObject, version: str) -> None:
        self.updater.begin_list()
        self.updater.add_listed(objects)
        for key in self.updater.find_unlisted():
            self.updater.infer_deletion(key)
        self.updater.end_list(version)

    @property
    def versions(self) -> dict[str, str]:
        return {cached.metadata.name: cached.metadata.resource_version for cached in self.cache.list()}


def test_what_a_list_does_not_hold_is_deleted():
    updated = UpdatedCache(widget("a", "1"), widget("b", "2"))
    updated.list(widget("b", "2"), widget("c", "12"), version="12")
    assert updated.versions == {"b": "2", "c": "12"}
    assert updated.updater.position == "12"


def test_a_list_of_a_restored_server_counts_although_its_versions_are_older():
    updated = UpdatedCache(widget("a", "9"), version="10")
    updated.list(widget("a", "3"), version="5")
    assert updated.versions == {"a": "3"}
    assert updated.updater.position == "5"


def test_a_list_that_was_broken_off_is_counted_from_the_start():
    updated = UpdatedCache(widget("a", "1"))
    updated.updater.begin_list()
    updated.updater.add_listed([widget("b", "2")])
    updated.list(widget("a", "1"), version="12")
    assert updated.versions == {"a": "1"}


def test_nothing_is_deleted_by_a_list_with_an_object_that_cannot_be_identified():
    updated = UpdatedCache(widget("a", "1"))
    with capture_logs() as logs:
        updated.list(nameless(), version="12")
    assert updated.versions == {"a": "1"}
    assert updated.updater.is_suspect
    assert "informer.deletions_not_inferred" in [entry["event"] for entry in logs]


def test_modified_is_as_good_as_added_and_moves_the_position():
    updated = UpdatedCache()
    updated.updater.update(widget("a", "11"))
    assert updated.versions == {"a": "11"}
    assert updated.updater.position == "11"


def test_a_replayed_event_does_nothing():
    updated = UpdatedCache()
    for version in ("11", "12", "11", "12"):
        updated.updater.update(widget("a", version))
        assert updated.updater.position == max("11", version, updated.updater.position)
    updated.updater.delete(widget("a", "13"))
    updated.updater.update(widget("a", "12"))
    assert updated.versions == {}
    assert updated.updater.replays == 3


def test_a_replayed_deletion_does_not_take_the_next_object_of_that_name():
    updated = UpdatedCache(widget("a", "1"))
    updated.updater.delete(widget("a", "11"))
    updated.updater.update(widget("a", "12", uid="another"))
    updated.updater.delete(widget("a", "11"))
    assert updated.versions == {"a": "12"}


def test_the_deletion_of_what_is_not_known_does_nothing():
    updated = UpdatedCache(widget("a", "1"))
    updated.updater.delete(widget("b", "11"))
    assert updated.versions == {"a": "1"}


def test_a_bookmark_never_moves_the_position_back():
    updated = UpdatedCache(version="10")
    updated.updater.advance_to("9")
    assert updated.updater.position == "10"
    updated.updater.advance_to("15")
    assert updated.updater.position == "15"


@pytest.mark.parametrize("kind", ["update", "delete", "advance_to"])
def test_what_is_older_than_where_the_watch_stands_is_suspect(kind: str):
    updated = UpdatedCache(version="10")
    apply_update = getattr(updated.updater, kind)
    apply_update("10" if kind == "advance_to" else widget("a", "10"))
    assert not updated.updater.is_suspect
    apply_update("9" if kind == "advance_to" else widget("a", "9"))
    assert updated.updater.is_suspect
    updated.list(version="9")
    assert not updated.updater.is_suspect


def test_versions_that_are_no_numbers_are_taken_as_they_come():
    updated = UpdatedCache(widget("a", "x1"), version="list")
    updated.updater.update(widget("a", "x2"))
    updated.updater.update(widget("b", "q"))
    assert updated.versions == {"a": "x2", "b": "q"}
    assert updated.updater.position == "q"


def test_a_deletion_delivered_with_an_unreadable_object_is_a_deletion():
    updated = UpdatedCache(widget("a", "1"))
    updated.updater.delete(BadObject(kind="Widget", problem="odd", name="a", resource_version="11"))
    assert updated.cache.get_state(Key("", "a")) is None


@pytest.mark.parametrize(
    ("version", "than", "newer", "back"),
    [("10", "9", True, False), ("9", "10", False, True), ("9", "9", False, False), ("x", "9", True, False)],
)
def test_versions_are_compared_as_numbers(version: str, than: str, newer: bool, back: bool):
    assert is_newer(version, than) is newer
    assert is_restored(version, than) is back
