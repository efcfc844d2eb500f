from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.objects.codec.json_spans import index_members, split_members

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text('{}[],:"\\é ', max_size=6),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text('{}[],:"\\é', max_size=4), inner, max_size=4),
    max_leaves=15,
)


@given(value=st.dictionaries(st.text('{}[],:"\\é', max_size=4), JSON, max_size=5), indent=st.sampled_from([None, 1]))
@settings(max_examples=200, deadline=None)
def test_members_of_an_object_come_out_as_a_parser_reads_them(value: dict[str, Any], indent: int | None):
    text = json.dumps(value, indent=indent).encode()
    assert {json.loads(key): json.loads(part) for key, part in split_members(text)} == value


@given(value=st.lists(JSON, max_size=5), indent=st.sampled_from([None, 1]))
@settings(max_examples=200, deadline=None)
def test_elements_of_an_array_come_out_as_a_parser_reads_them(value: list[Any], indent: int | None):
    text = json.dumps(value, indent=indent).encode()
    assert [json.loads(part) for _, part in split_members(text)] == value


@pytest.mark.parametrize(
    "text", [b"", b"{", b"}", b"]", b'{"', b'{"a', b'{"a":', b'{"a":"\\', b"7", b'"a"', b"{}", b"[]"]
)
def test_text_without_a_whole_member_gives_none(text: bytes):
    assert list(split_members(text)) == []


def test_what_is_whole_before_the_text_breaks_off_comes_out():
    assert index_members(b'{"a": 1, "b": {"c": 2}, "d": "x') == {"a": b"1", "b": b'{"c": 2}'}


def test_the_last_of_two_equal_keys_wins():
    assert index_members(b'{"a": 1, "a": 2}') == {"a": b"2"}


@pytest.mark.parametrize("pattern", [b'{"', b'\\"', b"{", b'"', b"[{", b"\\"])
def test_a_megabyte_of_marks_is_walked_once(pattern: bytes):
    assert list(split_members(b'{"' + pattern * 500_000)) == []
