"""The algebra of field sets, and their written form."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.local.apiserver.apply.fieldpath import elements
from plimsoll.local.apiserver.apply.fieldpath.elements import InvalidFieldSet
from plimsoll.local.apiserver.apply.fieldpath.sets import FieldSet

_ELEMENTS = st.sampled_from(["f:a", "f:b", 'k:{"name":"x"}', 'k:{"name":"y","port":80}', "v:1", 'v:"s"', "i:2"])
_PATHS = st.frozensets(st.lists(_ELEMENTS, min_size=1, max_size=3).map(tuple), max_size=8)


def _set_of(paths: frozenset[tuple[str, ...]]) -> FieldSet:
    result = FieldSet()
    for *way, last in paths:
        node = result
        for element in way:
            node = node.children.setdefault(element, FieldSet())
        node.members.add(last)
    return result


def _paths_of(fields: FieldSet) -> frozenset[tuple[str, ...]]:
    return frozenset(fields.iterate_paths())


@settings(max_examples=150, deadline=None)
@given(_PATHS, _PATHS)
def test_operations_are_those_of_plain_sets_of_paths(
    item: frozenset[tuple[str, ...]], other: frozenset[tuple[str, ...]]
):
    assert _paths_of(_set_of(item) | _set_of(other)) == item | other
    assert _paths_of(_set_of(item) & _set_of(other)) == item & other
    assert _paths_of(_set_of(item) - _set_of(other)) == item - other
    assert bool(_set_of(item)) == bool(item)


@settings(max_examples=150, deadline=None)
@given(_PATHS, _PATHS)
def test_a_reset_takes_everything_below_along(item: frozenset[tuple[str, ...]], other: frozenset[tuple[str, ...]]):
    left = _paths_of(_set_of(item).subtract_recursively(_set_of(other)))
    assert left == {path for path in item if not any(path[:size] in other for size in range(1, len(path) + 1))}


@settings(max_examples=150, deadline=None)
@given(_PATHS)
def test_the_written_form_can_be_read_back(paths: frozenset[tuple[str, ...]]):
    fields = _set_of(paths)
    assert FieldSet.from_fields_v1(fields.to_fields_v1()) == fields


@settings(max_examples=150, deadline=None)
@given(_PATHS, _PATHS)
def test_no_operation_changes_its_operands(item: frozenset[tuple[str, ...]], other: frozenset[tuple[str, ...]]):
    first, second = _set_of(item), _set_of(other)
    _ = (first | second, first & second, first - second, first.subtract_recursively(second))
    assert (_paths_of(first), _paths_of(second)) == (item, other)


def test_a_path_with_paths_below_it_is_marked_by_a_dot():
    fields = _set_of(frozenset({("f:a",), ("f:a", "f:b")}))
    assert fields.to_fields_v1() == {"f:a": {".": {}, "f:b": {}}}


def test_keys_have_one_spelling():
    assert FieldSet.from_fields_v1({'k:{ "b": 1, "a": "x" }': {}}).members == {'k:{"a":"x","b":1}'}


def test_numbers_in_keys_are_ordered_as_numbers():
    fields = _set_of(frozenset({('k:{"port":443}',), ('k:{"port":80}',)}))
    assert [elements.format_path(path) for path in fields.iterate_paths()] == ["[port=80]", "[port=443]"]


@pytest.mark.parametrize(
    ("path", "spelled"),
    [
        (("f:spec", 'k:{"name":"a"}', "f:image"), '.spec[name="a"].image'),
        (("f:s", 'v:"x"'), '.s[="x"]'),
        (("f:s", "i:3"), ".s[3]"),
        (("f:p", 'k:{"port":80,"protocol":"TCP"}'), '.p[port=80,protocol="TCP"]'),
    ],
)
def test_paths_are_spelled_as_in_messages(path: tuple[str, ...], spelled: str):
    assert elements.format_path(path) == spelled


@pytest.mark.parametrize("written", [[], {"x": {}}, {"q:x": {}}, {"k:1": {}}, {"k:{": {}}, {"i:x": {}}, {"f:a": 1}])
def test_what_is_no_field_set_is_refused(written: object):
    with pytest.raises(InvalidFieldSet):
        FieldSet.from_fields_v1(written)
