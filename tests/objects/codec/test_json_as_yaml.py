"""JSON that comes where YAML is expected is read faster, and as the events of YAML would read it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.core.errors import UnreadableDocument
from plimsoll.objects.codec import yaml as yaml_text

NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
SCALARS = st.none() | st.booleans() | NUMBERS | st.text() | st.sampled_from(["<<", "y", "1", "null", "/", "\\"])
OBJECTS = st.dictionaries(
    st.text(),
    st.recursive(SCALARS, lambda values: st.lists(values) | st.dictionaries(st.text(), values), max_leaves=20),
    max_size=5,
)


def read(text: str) -> Any:
    try:
        return yaml_text.load_first(text)
    except UnreadableDocument as error:
        return type(error), error.problem


@given(OBJECTS, st.sampled_from([(",", ":"), (", ", ": ")]))
def test_an_object_is_read_as_by_events(value: dict[str, Any], separators: tuple[str, str]):
    text = json.dumps(value, separators=separators)
    # A line break makes it a text for events.
    assert repr(read(text)) == repr(read(f"{text}\n"))


@pytest.mark.parametrize(
    "text",
    [
        '{"a":1,"a":2}',
        '{"a":1e999}',
        '{"a":NaN}',
        '{"a":-Infinity}',
        '{"a":"\\ud83d\\ude00"}',
        '{"a":"\\ud83d"}',
        '{"<<":{"b":1},"a":2}',
        '{"a":"\\/"}',
        '{"a":[1,2,]}',
        '{"a":b}',
        '{"a":1} {"b":2}',
        '{"a":-0,"b":1E5,"c":1.0,"d":100000000000000000000000}',
        f'{{"{"k" * 1100}":1}}',
        f'{{"a":{"9" * 500}}}',
        f'{{"a":{"[" * 498}{"]" * 498}}}',
        f'{{"a":{"[" * 499}{"]" * 499}}}',
        f'{{"a":{"[" * 500}{"]" * 500}}}',
        f'{{"a":{"[" * 5000}{"]" * 5000}}}',
    ],
)
def test_what_json_and_yaml_read_differently_is_read_as_yaml(text: str):
    assert repr(read(text)) == repr(read(f"{text}\n"))
