"""JSON patch: RFC 6902 with Kubernetes' habits, against a naive evaluator, and hostile patches."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.local.apiserver.patches.json_patch import MAX_COPIED_BYTES, apply_json_patch
from plimsoll.local.apiserver.patches.results import Patched, PatchRefused

_NAMES = st.sampled_from(["a", "b", "c/d", "e~f"])
_SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.text("xyz", max_size=2)
_VALUES = st.recursive(
    _SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAMES, inner, max_size=3), max_leaves=8
)
_STEPS = st.sampled_from(["a", "b", "c~1d", "e~0f", "0", "1", "-1", "-", "x"])
_PATHS = st.lists(_STEPS, max_size=3).map(lambda steps: "".join(f"/{step}" for step in steps))


def _operations() -> st.SearchStrategy[dict[str, Any]]:
    kinds = st.sampled_from(["add", "remove", "replace", "move", "copy", "test"])
    return st.fixed_dictionaries({"op": kinds, "path": _PATHS, "from": _PATHS, "value": _VALUES})


def _result(document: Any, *operations: dict[str, Any]) -> Any:
    outcome = apply_json_patch(document, list(operations))
    assert isinstance(outcome, Patched)
    return outcome.value


def _refusal(document: Any, *operations: Any) -> PatchRefused:
    outcome = apply_json_patch(document, list(operations))
    assert isinstance(outcome, PatchRefused)
    return outcome


class _NaiveDocument:
    """Copies everything all the time; raises LookupError where an operation does not apply."""

    def __init__(self, document: Any) -> None:
        self.box = {"": copy.deepcopy(document)}

    def find(self, path: str) -> tuple[Any, Any]:
        container: Any = self.box
        *before, last = ["", *(step.replace("~1", "/").replace("~0", "~") for step in path.split("/")[1:])]
        for step in before:
            container = self.get(container, step)
        if not isinstance(container, (dict, list)):
            raise LookupError(path)  # noqa: TRY004 - every failure of the naive evaluator is the same one
        return container, last

    def position(self, container: list[Any], step: str, extra: int = 0) -> int:
        if not step.lstrip("+-").isdigit():
            raise LookupError(step)
        index, size = int(step), len(container) + extra
        if not -size <= index < size:
            raise LookupError(step)
        return index % size

    def get(self, container: Any, step: str) -> Any:
        if isinstance(container, dict):
            return container.get(step)
        if isinstance(container, list):
            return container[self.position(container, step)]
        raise LookupError(step)

    def carry_out(self, operation: dict[str, Any]) -> None:
        kind, path, source = operation["op"], operation["path"], operation["from"]
        if kind in {"remove", "move", "copy"} and (source if kind != "remove" else path) == "":
            raise LookupError("the whole document")
        if kind == "test":
            found = self.get(*self.find(path))
            if repr(found) != repr(operation["value"]) and not _equal(found, operation["value"]):
                raise LookupError("test")
        elif kind == "replace":
            container, step = self.find(path)
            if isinstance(container, list):
                container[self.position(container, step)] = copy.deepcopy(operation["value"])
            else:
                container[step] = copy.deepcopy(operation["value"])
        elif kind == "remove":
            self.remove(path)
        elif kind == "add":
            self.add(path, operation["value"])
        else:
            value = self.get(*self.find(source))
            if kind == "move":
                self.remove(source)
            self.add(path, value)

    def remove(self, path: str) -> None:
        container, step = self.find(path)
        if isinstance(container, list):
            del container[self.position(container, step)]
        else:
            del container[step]

    def add(self, path: str, value: Any) -> None:
        container, step = self.find(path)
        value = copy.deepcopy(value)
        if isinstance(container, dict):
            container[step] = value
        elif step == "-":
            container.append(value)
        else:
            container.insert(self.position(container, step, extra=1), value)


def _equal(value: Any, other: Any) -> bool:
    if isinstance(value, dict) and isinstance(other, dict):
        return value.keys() == other.keys() and all(_equal(value[key], other[key]) for key in value)
    if isinstance(value, list) and isinstance(other, list):
        return len(value) == len(other) and all(map(_equal, value, other))
    return type(value) is type(other) and bool(value == other)


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(_NAMES, _VALUES, max_size=3), st.lists(_operations(), max_size=4))
def test_agrees_with_a_naive_evaluator_and_changes_no_input(document: Any, operations: list[dict[str, Any]]) -> None:
    before = copy.deepcopy((document, operations))
    naive: Any = _NaiveDocument(document)
    try:
        for operation in operations:
            naive.carry_out(operation)
    except LookupError:
        naive = None
    outcome = apply_json_patch(document, operations)
    assert (document, operations) == before
    if naive is None:
        assert isinstance(outcome, PatchRefused)
        assert outcome.code == 422
    else:
        assert isinstance(outcome, Patched)
        assert _equal(outcome.value, naive.box[""])


def test_unchanged_parts_are_shared() -> None:
    document = {"a": {"b": 1}, "c": {"d": 2}}
    patched = _result(document, {"op": "replace", "path": "/a/b", "value": 3})
    assert patched["c"] is document["c"]


def test_a_copy_is_independent_of_its_source() -> None:
    patched = _result(
        {"a": {"b": [1]}},
        {"op": "copy", "from": "/a", "path": "/c"},
        {"op": "add", "path": "/a/b/-", "value": 2},
        {"op": "add", "path": "/c/b/-", "value": 3},
    )
    assert patched == {"a": {"b": [1, 2]}, "c": {"b": [1, 3]}}


def test_one_is_not_true() -> None:
    assert _refusal({"a": 1}, {"op": "test", "path": "/a", "value": True}).code == 422


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        ({"op": "add"}, "json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"),
        ([1], "json: cannot unmarshal number into Go value of type handlers.jsonPatchOp"),
        ([{"op": 1}], "json: cannot unmarshal number into Go struct field jsonPatchOp.op of type string"),
    ],
)
def test_a_patch_of_the_wrong_shape_is_a_bad_request(patch: Any, message: str) -> None:
    outcome = apply_json_patch({}, patch)
    assert isinstance(outcome, PatchRefused)
    assert (outcome.code, outcome.message) == (400, f"error decoding patch: {message}")


def test_copies_that_double_the_document_are_stopped() -> None:
    doubling = [{"op": "copy", "from": "/a", "path": "/a/-"} for _ in range(60)]
    refusal = _refusal({"a": ["x" * 100]}, *doubling)
    assert refusal.code == 422
    assert f"exceeding the limit {MAX_COPIED_BYTES}" in refusal.detail


def test_nesting_piled_up_by_operations_is_refused() -> None:
    def nested(depth: int) -> Any:
        value: Any = {}
        for _ in range(depth):
            value = {"a": value}
        return value

    pile = [{"op": "add", "path": "/a" * (level * 150 + 1), "value": nested(150)} for level in range(8)]
    assert _refusal({}, *pile).code == 400


def test_an_operation_without_a_path_does_not_apply() -> None:
    assert "missing path" in _refusal({}, {"op": "remove"}).detail
