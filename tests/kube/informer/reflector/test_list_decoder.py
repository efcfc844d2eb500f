"""Lists are read in portions; what comes out does not depend on how they were cut."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.kube.errors import UnreadableAnswer
from plimsoll.kube.informer.reflector.list_decoder import ListReader
from plimsoll.objects.codec.decode_problems import BadObject
from plimsoll.objects.codec.decoding import RawObject, decode_list
from tests.kube.informer.widget_server import Widget


def listed(*items: Any, kind: str = "WidgetList", **more: Any) -> bytes:
    body = {"kind": kind, "apiVersion": "ex.com/v1", "metadata": {"resourceVersion": "7"}, "items": list(items), **more}
    return json.dumps(body, separators=(",", ":")).encode()


def item(name: str, size: Any = 1, **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "here"}, "spec": {"size": size}, **more}


def read(body: bytes, *, cut_bytes: int = 100, keep_raw: bool = False) -> tuple[list[Any], ListReader[Any]]:
    reader: ListReader[Any] = ListReader(Widget, body, keep_raw=keep_raw)
    portions = list(reader.read_portions(whole_bytes=0, cut_bytes=cut_bytes))
    return [value for portion in portions for value in portion.values], reader


def nested(depth: int) -> bytes:
    return b'{"metadata":{"name":"deep"},"x":' + b"[" * depth + b"]" * depth + b"}"


texts = st.text(st.sampled_from('ab"\\{}[],:é'), max_size=8)
decoys = st.recursive(
    st.one_of(texts, st.integers(), st.none(), st.booleans()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=6,
)
# What lies inside an item may look exactly like the beginning of the next one.
inner_lists = st.lists(st.builds(item, texts, decoys), max_size=3)
items = st.builds(item, st.sampled_from("abc"), st.one_of(st.integers(0, 9), decoys), more=inner_lists, odd=decoys)


@settings(max_examples=200, deadline=None)
@given(objects=st.lists(items, max_size=8), cut_bytes=st.integers(1, 400), indent=st.sampled_from([None, 1]))
def test_portions_hold_what_the_whole_holds(objects: list[Any], cut_bytes: int, indent: int | None):
    body = json.dumps({"kind": "WidgetList", "items": objects, "metadata": {"resourceVersion": "7"}}, indent=indent)
    values, reader = read(body.encode(), cut_bytes=cut_bytes)

    whole = decode_list(Widget, body.encode())
    assert whole.problem == ""
    assert [value for value in values if not isinstance(value, BadObject)] == list(whole.items)
    assert [value for value in values if isinstance(value, BadObject)] == list(whole.bad)
    assert reader.metadata == whole.metadata


def test_a_page_of_usual_size_is_one_portion():
    reader: ListReader[Any] = ListReader(Widget, listed(*(item(f"w{number}") for number in range(500))))
    assert [len(portion.values) for portion in reader.read_portions()] == [500]


def test_a_body_beyond_all_pages_comes_in_portions_of_about_one_size():
    body = listed(*(item(f"w{number}") for number in range(10_000)))
    reader: ListReader[Any] = ListReader(Widget, body)
    sizes = [portion.size_bytes for portion in reader.read_portions(whole_bytes=100_000, cut_bytes=10_000)]
    assert len(sizes) > len(body) / 12_000
    assert max(sizes) < 12_000


def test_objects_that_do_not_fit_come_a_few_at_a_time():
    reader: ListReader[Any] = ListReader(Widget, listed(*(item(f"w{number}", "many") for number in range(100))))
    portions = list(reader.read_portions())
    assert sum(len(portion.values) for portion in portions) == 100
    assert max(len(portion.values) for portion in portions) <= 16


def test_one_object_nested_too_deeply_is_bad_and_the_others_are_read():
    body = listed(item("a"), "HERE", item("b")).replace(b'"HERE"', nested(5000))
    values, _ = read(body, cut_bytes=10_000)
    assert [value.name if isinstance(value, BadObject) else value.metadata.name for value in values] == [
        "a",
        "deep",
        "b",
    ]
    assert [value.problem for value in values if isinstance(value, BadObject)] == ["nested too deeply"]


def test_bytes_are_kept_of_each_object_alone():
    values, _ = read(listed(item("a"), item("b")), keep_raw=True)
    assert [json.loads(value.raw) for value in values if isinstance(value, RawObject)] == [item("a"), item("b")]


@pytest.mark.parametrize("items_text", [b"[]", b"null"])
def test_an_empty_list_is_a_list(items_text: bytes):
    body = b'{"kind":"WidgetList","metadata":{"resourceVersion":"7"},"items":' + items_text + b"}"
    values, reader = read(body)
    assert values == []
    assert reader.metadata.resource_version == "7"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"<html>",
        b"{}",
        listed(item("a"))[:-1],
        listed(item("a"), item("b"))[:-40],
        listed(item("a")) + b"{}",
        listed(item("a"), kind="PodList"),
        b'{"kind":"Status","status":"Failure"}',
        listed(item("a"), metadata={"resourceVersion": 7}),
        listed().replace(b"[]", b"[{}}"),
        listed().replace(b"[]", b'[{"metadata":tru}]'),
    ],
)
@pytest.mark.parametrize("whole_bytes", [0, 1000])
def test_what_is_no_list_is_refused_and_not_an_empty_one(body: bytes, whole_bytes: int):
    reader: ListReader[Any] = ListReader(Widget, body)
    with pytest.raises(UnreadableAnswer):
        list(reader.read_portions(whole_bytes=whole_bytes, cut_bytes=100))
