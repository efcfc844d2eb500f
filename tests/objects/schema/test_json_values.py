"""Deep equality of JSON values, against its definition."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.objects.schema.json_values import copy, is_same

_SCALARS = st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from([0.5, "", "a", "1"])
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=8,
)


def defined(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(defined(one[name], other[name]) for name in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(defined, one, other))
    return bool(one == other)


@settings(max_examples=300, deadline=None)
@given(_VALUES, _VALUES)
def test_values_are_the_same_if_types_and_contents_are(one: Any, other: Any):
    assert is_same(one, other) == defined(one, other)


@settings(max_examples=100, deadline=None)
@given(_VALUES)
def test_a_copy_is_the_same_and_shares_nothing(value: Any):
    made = copy([value])
    assert is_same(made, [value])
    assert not isinstance(value, (dict, list)) or made[0] is not value


@pytest.mark.parametrize(("one", "other"), [(1, True), (0, False), ([1], [True]), ({"a": 0}, {"a": False})])
def test_a_number_is_no_truth(one: Any, other: Any):
    assert not is_same(one, other)
