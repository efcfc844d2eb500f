from __future__ import annotations

from typing import Any

import pytest

from plimsoll.objects.schema.admission.validation import ValueValidator
from tests.objects.schema.builders import an_object, schema_of


def errors_of(value: Any, schema: dict[str, Any]) -> list[str]:
    """The errors of a value in the field `f`."""
    return [error.text for error in ValueValidator(schema_of(an_object(f=schema))).validate({"f": value})]


@pytest.mark.parametrize(
    ("schema", "value", "error"),
    [
        ({"type": "string"}, 1, 'f: Invalid value: "integer": f in body must be of type string: "integer"'),
        ({"type": "string"}, None, 'f: Invalid value: "null": f in body must be of type string: "null"'),
        ({"type": "array"}, {}, 'f: Invalid value: "object": f in body must be of type array: "object"'),
        ({"type": "boolean"}, [], 'f: Invalid value: "array": f in body must be of type boolean: "array"'),
        ({"type": "number"}, True, 'f: Invalid value: "boolean": f in body must be of type number: "boolean"'),
        (
            {"type": "integer", "format": "int32"},
            True,
            'f: Invalid value: "": f in body must be of type int32: ""',
        ),
        (
            {"type": "integer", "format": "int32"},
            1.5,
            'f: Invalid value: "float64": f in body must be of type int32: "float64"',
        ),
        (
            {"type": "integer", "format": "int32"},
            "1",
            'f: Invalid value: "string": f in body must be of type integer: "string"',
        ),
        ({"type": "integer", "maximum": 5}, 6, "f: Invalid value: 6: f in body should be less than or equal to 5"),
        (
            {"type": "integer", "maximum": 5, "exclusiveMaximum": True},
            5,
            "f: Invalid value: 5: f in body should be less than 5",
        ),
        (
            {"type": "number", "minimum": 0.5},
            0.25,
            "f: Invalid value: 0.25: f in body should be greater than or equal to 0.5",
        ),
        ({"type": "integer", "multipleOf": 5}, 7, "f: Invalid value: 7: f in body should be a multiple of 5"),
        ({"type": "string", "minLength": 2}, "é", 'f: Invalid value: "é": f in body should be at least 2 chars long'),
        ({"type": "string", "maxLength": 1}, "éé", "f: Too long: may not be more than 1 bytes"),
        (
            {"type": "object", "minProperties": 1},
            {},
            "f: Invalid value: 0: f in body should have at least 1 properties",
        ),
        ({"type": "integer", "enum": [1, 2]}, 3, 'f: Unsupported value: 3: supported values: "1", "2"'),
        (
            {"type": "string", "nullable": True, "enum": ["a"]},
            None,
            'f: Unsupported value: null: supported values: "a"',
        ),
        (
            {"type": "string", "format": "ipv4"},
            "x",
            'f: Invalid value: "x": f in body must be of type ipv4: "x"',
        ),
        (
            {"type": "integer", "not": {"minimum": 5}},
            7,
            '<nil>: Invalid value: "": "f" must not validate the schema (not)',
        ),
    ],
)
def test_a_bad_value_is_described_as_the_real_server_does(schema: dict[str, Any], value: Any, error: str):
    assert errors_of(value, schema) == [error]


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "integer"}, 2),
        ({"type": "number"}, 2),
        ({"type": "string", "maxLength": 2}, "éé"),
        ({"type": "string", "nullable": True}, None),
        ({"type": "string", "format": "int32"}, "anything"),
        ({"type": "integer", "format": "int32"}, 2**40),
        ({"type": "string", "pattern": "b"}, "abc"),
        ({"x-kubernetes-int-or-string": True}, "50%"),
        ({"x-kubernetes-int-or-string": True}, 50),
        ({"x-kubernetes-preserve-unknown-fields": True}, [1, {"a": None}]),
        ({"type": "boolean", "enum": [True]}, True),
    ],
)
def test_a_good_value_passes(schema: dict[str, Any], value: Any):
    assert errors_of(value, schema) == []


def test_true_is_not_the_number_one():
    assert errors_of(value=True, schema={"x-kubernetes-preserve-unknown-fields": True, "enum": [1]}) == [
        'f: Unsupported value: true: supported values: "1"'
    ]


def test_of_failed_alternatives_the_closest_is_explained():
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}, "c": {"type": "string"}},
        "anyOf": [
            {"required": ["a"]},
            {"required": ["c"], "properties": {"b": {"pattern": "^b"}}},
        ],
    }

    assert errors_of({"b": "b"}, schema) == [
        '<nil>: Invalid value: "": "f" must validate at least one schema (anyOf)',
        "f.c: Required value",
    ]


@pytest.mark.parametrize(
    ("value", "rest"), [("x", ". None validated"), ("ax", "")], ids=["none fits", "one of two fits"]
)
def test_all_of_says_how_many_failed(value: str, rest: str):
    schema = {"type": "string", "allOf": [{"pattern": "^a"}, {"pattern": "^b"}]}

    assert f'<nil>: Invalid value: "": "f" must validate all the schemas (allOf){rest}' in errors_of(value, schema)


def test_every_error_of_a_tree_is_reported_with_its_path():
    schema = {"type": "array", "maxItems": 1, "items": {**an_object(n={"type": "integer"}), "required": ["m"]}}

    assert errors_of([{"n": "x"}, {"m": 1}], schema) == [
        'f[0].n: Invalid value: "string": f[0].n in body must be of type integer: "string"',
        "f[0].m: Required value",
        "f: Too many: 2: must have at most 1 items",
    ]
