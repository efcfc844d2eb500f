"""JSON merge patch against the pseudo code of RFC 7386."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.local.apiserver.patches.merge_patch import apply_merge_patch
from plimsoll.local.apiserver.patches.results import Patched, PatchRefused

_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.text("xy", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcd"), inner, max_size=4),
    max_leaves=12,
)
_MAPS = st.dictionaries(st.sampled_from("abcd"), _VALUES, max_size=4)


def _by_the_rfc(target: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    target = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            target.pop(name, None)
        else:
            target[name] = _by_the_rfc(target.get(name), value)
    return target


@settings(max_examples=300, deadline=None)
@given(_MAPS, _MAPS)
def test_agrees_with_the_rfc_and_changes_no_input(document: dict[str, Any], patch: dict[str, Any]) -> None:
    before = copy.deepcopy((document, patch))
    outcome = apply_merge_patch(document, patch)
    assert isinstance(outcome, Patched)
    assert outcome.value == _by_the_rfc(document, patch)
    assert (document, patch) == before


@settings(max_examples=100, deadline=None)
@given(_MAPS)
def test_an_empty_patch_gives_the_document_itself(document: dict[str, Any]) -> None:
    outcome = apply_merge_patch(document, {})
    assert isinstance(outcome, Patched)
    assert outcome.value is document


@pytest.mark.parametrize(
    ("document", "patch", "expected"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_examples_of_the_rfc(document: dict[str, Any], patch: dict[str, Any], expected: dict[str, Any]) -> None:
    outcome = apply_merge_patch(document, patch)
    assert isinstance(outcome, Patched)
    assert outcome.value == expected


@pytest.mark.parametrize(("patch", "named"), [([1], "array"), ("x", "string"), (1, "number"), (True, "bool")])
def test_a_patch_must_be_an_object(patch: Any, named: str) -> None:
    outcome = apply_merge_patch({}, patch)
    assert isinstance(outcome, PatchRefused)
    assert outcome.message == (
        f"error decoding patch: json: cannot unmarshal {named} into Go value of type map[string]interface {{}}"
    )
