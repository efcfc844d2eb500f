"""What holds for every apply."""

from __future__ import annotations

import copy
import json
from datetime import timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.local.apiserver.apply.field_manager import Applied, FieldManager
from plimsoll.local.apiserver.apply.typed.schemas import TypeSchema
from tests.local.apiserver.apply.recordings import NOW

_SCHEMA = TypeSchema.from_definition(
    {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {
                    "text": {"type": "string"},
                    "map": {"type": "object", "additionalProperties": {"type": "string"}},
                    "whole": {"type": "array", "items": {"type": "integer"}},
                    "set": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
                    "keyed": {
                        "type": "array",
                        "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["name"],
                        "items": {
                            "type": "object",
                            "properties": {"name": {"type": "string"}, "value": {"type": "integer"}},
                        },
                    },
                    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                },
            }
        },
    }
)
_WIDGETS = FieldManager({"ex.com/v1": _SCHEMA}, api_version="ex.com/v1", kind="Widget")
_WORDS = st.sampled_from(["a", "b", "c"])
_ITEMS = st.fixed_dictionaries({"name": _WORDS}, optional={"value": st.integers(0, 2)})
_SPECS = st.fixed_dictionaries(
    {},
    optional={
        "text": _WORDS,
        "map": st.dictionaries(_WORDS, _WORDS, min_size=1, max_size=3),
        "whole": st.lists(st.integers(0, 2), min_size=1, max_size=3),
        "set": st.lists(_WORDS, min_size=1, max_size=3, unique=True),
        "keyed": st.lists(_ITEMS, min_size=1, max_size=3, unique_by=lambda item: item["name"]),  # type: ignore[index]
        "free": st.dictionaries(_WORDS, st.dictionaries(_WORDS, st.integers(0, 1), max_size=2), min_size=1, max_size=2),
    },
)


def _widget(spec: dict[str, Any] | None) -> dict[str, Any]:
    value: dict[str, Any] = {"apiVersion": "ex.com/v1", "kind": "Widget", "metadata": {"name": "w"}}
    return {**value, "spec": spec} if spec else value


def _apply(live: dict[str, Any] | None, spec: dict[str, Any] | None, manager: str, seconds: int = 0) -> dict[str, Any]:
    outcome = _WIDGETS.apply(live, _widget(spec), manager=manager, force=True, now=NOW + timedelta(seconds=seconds))
    assert isinstance(outcome, Applied)
    return {**outcome.value, "metadata": {**outcome.value["metadata"], "uid": "u"}}


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _pruned(value: Any) -> Any:
    """Without what emptied containers leave behind, which decoding drops."""
    if isinstance(value, dict):
        kept = {key: _pruned(item) for key, item in value.items()}
        return {key: item for key, item in kept.items() if item not in (None, {}, [])}
    return value


@settings(max_examples=100, deadline=None)
@given(_SPECS, _SPECS)
def test_applying_twice_changes_nothing_not_even_a_time(obj: dict[str, Any], other: dict[str, Any]) -> None:
    live = _apply(_apply(None, obj, "one"), other, "two")
    before = copy.deepcopy(live)
    assert _apply(live, other, "two", seconds=60) == live
    assert live == before


@settings(max_examples=100, deadline=None)
@given(_SPECS)
def test_what_was_applied_is_there(spec: dict[str, Any]) -> None:
    assert _apply(None, spec, "one").get("spec", {}) == spec


@settings(max_examples=150, deadline=None)
@given(_SPECS, _SPECS)
def test_applying_nothing_removes_exactly_what_has_no_other_owner(obj: dict[str, Any], other: dict[str, Any]) -> None:
    alone = _apply(None, obj, "one")
    both = _apply(alone, other, "two")
    left = _apply(both, None, "two")
    owners = {entry["manager"]: entry["fieldsV1"] for entry in left["metadata"].get("managedFields", [])}
    still_owned = {entry["manager"]: entry["fieldsV1"] for entry in both["metadata"].get("managedFields", [])}
    assert owners.get("one") == still_owned.get("one")
    assert "two" not in owners
    rest = {name: value for name, value in obj.items() if name not in other}
    kept = (
        {name: value for name, value in left.get("spec", {}).items() if name not in other} if left.get("spec") else {}
    )
    assert _pruned(kept) == _pruned(rest)
    only_others = other.keys() - obj.keys()
    assert not only_others & _pruned(left.get("spec") or {}).keys()


@settings(max_examples=100, deadline=None)
@given(_SPECS, _SPECS)
def test_a_sole_manager_has_exactly_what_it_applied_last(first: dict[str, Any], second: dict[str, Any]) -> None:
    live = _apply(_apply(None, first, "one"), second, "one")
    assert _pruned(live.get("spec") or {}) == _pruned(_ordered_like(live.get("spec") or {}, second))


def _ordered_like(live: dict[str, Any], spec: dict[str, Any]) -> dict[str, Any]:
    """The order of keyed lists and sets is the object's business."""
    ordered = dict(spec)
    for name in ("set", "keyed"):
        if name in spec and isinstance(live.get(name), list):
            assert sorted(map(_canonical, live[name])) == sorted(map(_canonical, spec[name]))
            ordered[name] = live[name]
    return ordered


@settings(max_examples=100, deadline=None)
@given(_SPECS, _SPECS)
def test_an_update_owns_what_changed_and_no_input_is_changed(obj: dict[str, Any], other: dict[str, Any]) -> None:
    live = _apply(None, obj, "one")
    new = {**live, "spec": other}
    before = copy.deepcopy((live, new))
    written = _WIDGETS.update(live, new, manager="two", now=NOW)
    assert (live, new) == before
    managers = {entry["manager"] for entry in written["metadata"].get("managedFields", [])}
    assert ("two" in managers) <= (obj != other)
    again = _WIDGETS.update(written, written, manager="three", now=NOW)
    assert again == written
