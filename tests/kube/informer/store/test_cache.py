"""What can be asked of a cache: by name, by namespace, by index; and that nothing odd breaks it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from plimsoll.core.errors import InvalidInput
from plimsoll.kube.informer.events import Key, get_key
from plimsoll.kube.informer.store.cache import WritableCache
from plimsoll.objects.api.meta import ObjectMeta
from plimsoll.objects.codec.decode_problems import BadObject
from plimsoll.objects.codec.decoding import RawObject
from tests.kube.informer.widget_server import Widget, WidgetCluster, WidgetSpec


def good(name: str = "a", *, namespace: str = "here", size: int = 1) -> Widget:
    metadata = ObjectMeta(name=name, namespace=namespace, uid=f"{namespace}/{name}")
    return Widget(metadata=metadata, spec=WidgetSpec(size=size))


def bad(name: str = "a", *, namespace: str = "here") -> BadObject:
    return BadObject(kind="Widget", problem="odd", name=name, namespace=namespace)


def by_size(one: Widget) -> list[int]:
    return [one.spec.size]


def filled(*values: Widget | BadObject) -> WritableCache[Widget]:
    cache: WritableCache[Widget] = WritableCache()
    for value in values:
        cache.put(get_key(value), value)
    return cache


def test_objects_are_found_by_name_and_namespace():
    cache = filled(good("a"), good("a", namespace="there"))
    assert cache.get("a", "there") == good("a", namespace="there")
    assert cache.get("a") is None
    assert cache.list("here") == (good("a"),)
    assert len(cache) == 2
    assert Key("here", "a") in cache


def test_a_bad_object_is_present_but_cannot_be_got():
    cache = filled(good("a"), bad("b"))
    assert cache.get("b", "here") is None
    assert cache.bad == {Key("here", "b"): bad("b")}
    assert Key("here", "b") in cache
    assert len(cache) == 1


def test_an_object_is_either_good_or_bad():
    cache = filled(good("a"), bad("a"))
    assert (len(cache), len(cache.bad)) == (0, 1)
    cache.put(Key("here", "a"), good("a"))
    assert (len(cache), len(cache.bad)) == (1, 0)


objects = st.builds(good, st.sampled_from("abc"), size=st.integers(0, 2)) | st.builds(bad, st.sampled_from("abc"))


@settings(max_examples=100)
@given(st.lists(st.one_of(objects, st.sampled_from("abc"))))
def test_an_index_always_holds_what_a_search_would_find(steps: list[Any]):
    cache: WritableCache[Widget] = WritableCache()
    cache.add_index("size", by_size)
    for step in steps:
        if isinstance(step, str):
            cache.remove(Key("here", step))
        else:
            cache.put(get_key(step), step)
        for size in range(3):
            found = {widget.metadata.name for widget in cache.list_by_index("size", size)}
            assert found == {widget.metadata.name for widget in cache.list() if widget.spec.size == size}


def test_an_index_added_late_knows_what_is_there():
    cache = filled(good("a", size=5))
    cache.add_index("size", by_size)
    assert cache.list_by_index("size", 5) == (good("a", size=5),)


@pytest.mark.parametrize("keys_of", [lambda _one: 1 / 0, lambda _one: [[]], lambda _one: 5])
def test_an_index_function_that_fails_is_reported_once_and_leaves_the_object_out(keys_of: Any):
    cache: WritableCache[Widget] = WritableCache()
    cache.add_index("odd", keys_of)
    with capture_logs() as logs:
        for name in "abc":
            cache.put(Key("here", name), good(name))
            cache.remove(Key("here", name))
    assert [entry["event"] for entry in logs] == ["informer.index_failed"]
    assert cache.list_by_index("odd", 5) == ()


def test_a_missing_index_is_named():
    with pytest.raises(InvalidInput, match="'nodes'"):
        filled().list_by_index("nodes", "n")


def test_an_index_name_is_taken_once():
    cache = filled()
    cache.add_index("size", by_size)
    with pytest.raises(InvalidInput, match="'size'"):
        cache.add_index("size", by_size)


def test_an_informer_keeps_its_indexes_up_to_date():
    with WidgetCluster() as world:
        informer = world.informer()
        informer.add_index("size", by_size)
        world.put("a", 1)
        world.run.spawn(informer.run())
        world.run.run_until(informer.wait_until_synced())
        world.put("a", 2)
        world.put("b", 2)
        world.run.settle()
        assert informer.cache.list_by_index("size", 1) == ()
        assert [cached.metadata.name for cached in informer.cache.list_by_index("size", 2)] == ["a", "b"]


def test_bytes_are_kept_for_kinds_that_are_copied():
    with WidgetCluster() as world:
        world.put("listed", 1)
        informer = world.running(keep_raw=True)
        world.put("watched", 2)
        world.run.settle()
        kept: dict[str, Any] = {cached.view.metadata.name: cached for cached in informer.cache.list()}
        assert all(isinstance(cached, RawObject) for cached in kept.values())
        assert b'"size":1' in kept["listed"].raw
        assert b'"size":2' in kept["watched"].raw
