from __future__ import annotations

import json
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.local.apiserver.request.json import Read, read_json


def duplicates(text: str) -> tuple[str, ...]:
    read = read_json(text.encode())
    assert isinstance(read, Read)
    return read.duplicates


class KeyValuePairs(NamedTuple):
    """An object as it is written, repeated keys and all."""

    pairs: list[tuple[str, Any]]


def naive_duplicates(value: Any, path: str = "") -> list[str]:
    """What `read_json` should find, in plain code: walk what the last of equal keys left over."""
    if isinstance(value, list):
        return [found for index, item in enumerate(value) for found in naive_duplicates(item, f"{path}[{index}]")]
    if not isinstance(value, KeyValuePairs):
        return []
    keys = [key for key, _ in value.pairs]
    at = {key: f"{path}.{key}" if path else key for key in keys}
    repeated = dict.fromkeys(key for index, key in enumerate(keys) if key in keys[:index])
    inside = [found for key, item in dict(value.pairs).items() for found in naive_duplicates(item, at[key])]
    return [at[key] for key in repeated] + inside


def written(value: Any) -> str:
    if isinstance(value, KeyValuePairs):
        return "{" + ",".join(f"{json.dumps(key)}:{written(item)}" for key, item in value.pairs) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(written, value)) + "]"
    return json.dumps(value)


keys = st.sampled_from("ab")
values = st.recursive(
    st.just(1),
    lambda inner: st.builds(KeyValuePairs, st.lists(st.tuples(keys, inner), max_size=3)) | st.lists(inner, max_size=2),
    max_leaves=20,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a":1,"a":2,"a":3}', ("a",)),
        ('{"m":{"x":1,"x":2},"n":[{"y":1},{"y":1,"y":1}]}', ("m.x", "n[1].y")),
    ],
)
def test_a_field_that_stands_twice_is_found_at_its_path(text: str, expected: tuple[str, ...]):
    assert duplicates(text) == expected


def test_what_a_later_key_replaced_is_not_looked_into():
    assert duplicates('{"b":{"a":{"a":{"a":1},"a":{}},"a":1}}') == ("b.a",)


def test_objects_made_in_the_place_of_freed_ones_are_not_taken_for_them():
    replaced = '"a":{"x":1,"x":2},"a":7'
    others = ",".join(f'"n{number}":{{"x":{number}}}' for number in range(50))
    assert duplicates(f'{{"m":{{{replaced}}},{others}}}') == ("m.a",)


@settings(max_examples=300, deadline=None)
@given(value=values)
def test_duplicates_are_those_of_a_naive_walk(value: Any):
    assert list(duplicates(written(value))) == naive_duplicates(value)
