from __future__ import annotations

import math
from typing import Any

import pytest

from plimsoll.objects.schema.definition.checks import validate_definition
from plimsoll.objects.schema.json_values import Refused, take_over
from tests.objects.schema.builders import a_definition, a_thing, a_version, an_object

FREE = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def nested(levels: int, *, key: str | None = "a") -> Any:
    value: Any = {} if key else []
    for _ in range(levels):
        value = {key: value} if key else [value]
    return value


@pytest.mark.parametrize("key", ["a", None])
def test_ten_thousand_levels_are_a_clear_error(key: str | None):
    admission = a_version(FREE).admit_create(a_thing({"x": nested(10_000, key=key)}))

    assert [error.message for error in admission.errors] == ["Invalid value: must not be nested deeper than 128 levels"]


def test_what_is_nested_almost_too_deep_is_admitted():
    deep = a_thing({"x": nested(120)})
    version = a_version(FREE)

    created = version.admit_create(deep)
    updated = version.admit_update(deep, deep)

    assert created.admitted
    assert updated.admitted


@pytest.mark.parametrize("step", ["properties", "items", "not"])
def test_a_schema_of_ten_thousand_levels_is_a_clear_error(step: str):
    schema: Any = {"type": "string"}
    for _ in range(10_000):
        schema = {"type": "object", "properties": {"a": schema}} if step == "properties" else {step: schema}

    (error,) = validate_definition(a_definition(schema))

    assert "nested deeper than" in error.text


@pytest.mark.parametrize("step", ["items", "not", "allOf"])
def test_a_schema_nested_as_deep_as_allowed_is_judged(step: str):
    schema: Any = {"type": "string"}
    for _ in range(55):
        schema = {"type": "array", step: [schema] if step == "allOf" else schema}

    assert all(
        "nested deeper than" not in error.text for error in validate_definition(a_definition(an_object(a=schema)))
    )


@pytest.mark.parametrize("number", [math.nan, math.inf, float("1e400"), 10**400])
def test_numbers_that_are_none_are_refused(number: float):
    admission = a_version(an_object(n={"type": "number"})).admit_create(a_thing({"n": number}))

    assert [error.text for error in admission.errors] == ["spec.n: Invalid value: must be a finite number"]


def test_a_hundred_thousand_entries_are_one_error_or_none():
    limited = an_object(m={"type": "object", "maxProperties": 10, "additionalProperties": {"type": "string"}})
    many = {f"key-{position}": "x" for position in range(100_000)}

    refused = a_version(limited).admit_create(a_thing({"m": many}))
    admitted = a_version(FREE).admit_create(a_thing(many))

    assert [error.text for error in refused.errors] == ["spec.m: Too many: 100000: must have at most 10 items"]
    assert admitted.admitted


def test_a_set_of_fifty_thousand_items_is_checked_without_comparing_every_pair():
    schema = an_object(s={"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "integer"}})

    admission = a_version(schema).admit_create(a_thing({"s": [*range(50_000), 7]}))

    assert [error.text for error in admission.errors] == ["spec.s[50000]: Duplicate value: 7"]


def test_a_pattern_that_explodes_elsewhere_is_answered():
    version = a_version(an_object(a={"type": "string", "pattern": "^(a+)+$"}))

    (error,) = version.admit_create(a_thing({"a": "a" * 5000 + "!"})).errors

    assert error.message.endswith("spec.a in body should match '^(a+)+$'")


@pytest.mark.parametrize(
    ("value", "taken"),
    [(1.0, 1), (2**70, float(2**70)), (0.5, 0.5), ("\ud800", "\ufffd"), (True, True), (None, None)],
)
def test_values_are_spelled_as_go_would_store_them(value: Any, taken: Any):
    result = take_over([value])

    assert result == [taken]
    assert type(result[0]) is type(taken)


@pytest.mark.parametrize(
    ("value", "path"), [({"a": [{1: 2}]}, "a[0]"), ({"a": object()}, "a"), ({"a": {"b": b"x"}}, "a.b")]
)
def test_what_is_not_json_is_refused_with_its_path(value: Any, path: str):
    refused = take_over(value)

    assert isinstance(refused, Refused)
    assert refused.path == path
