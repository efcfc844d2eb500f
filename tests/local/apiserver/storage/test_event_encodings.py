from __future__ import annotations

from plimsoll.local.apiserver.storage.objects import Traits, build_stored, stamp
from plimsoll.local.apiserver.storage.watch_cache.events import EncodingCache, Event, EventType
from tests.local.apiserver.storage.builders import key, pod


def deleted(memory: EncodingCache, *, size: int = 1_000) -> Event:
    last = build_stored(Traits("pods"), key(), body=stamp(pod(text="x" * size), 2), revision=2)
    return Event(EventType.DELETED, 3, last, memory)


def test_the_object_of_a_deletion_is_counted_and_dropped():
    memory = EncodingCache(2_000)
    first, second = deleted(memory), deleted(memory)
    kept = first.object
    assert first.object is kept
    assert second.object.revision == 3
    assert first.object is not kept
    assert first.object.data == kept.data


def test_more_than_the_bound_is_given_out_all_the_same():
    event = deleted(EncodingCache(10))
    assert event.object.decode_body()["metadata"]["resourceVersion"] == "3"
    assert event.wire.startswith(b'{"type":"DELETED"')
    event.keep_encoding("name", b"web" * 10)
    assert event.get_encoding("name") is None


def test_an_event_without_readers_is_not_held():
    memory = EncodingCache(10_000)
    event = deleted(memory)
    assert event.wire
    del event
    assert memory._kept[0][0]() is None
