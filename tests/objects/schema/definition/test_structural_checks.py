from __future__ import annotations

from typing import Any

import pytest

from plimsoll.core.errors import InvalidInput
from plimsoll.objects.schema.definition.structural_checks import validate_structural
from plimsoll.objects.schema.structural import parse_schema
from tests.objects.schema.builders import an_object, schema_of


def errors_of(schema: dict[str, Any]) -> list[str]:
    return [error.text for error in validate_structural(schema_of(schema), "s")]


@pytest.mark.parametrize(
    ("schema", "error"),
    [
        ({}, "s.type: Required value: must not be empty at the root"),
        ({"type": "string"}, 's.type: Invalid value: "string": must be object at the root'),
        (an_object(a={}), "s.properties[a].type: Required value: must not be empty for specified object fields"),
        (an_object(a={"type": "array"}), "s.properties[a].items: Required value: must be specified"),
        (
            an_object(a={"type": "array", "items": {}}),
            "s.properties[a].items.type: Required value: must not be empty for specified array items",
        ),
        (
            {"type": "object", "additionalProperties": {"type": "string"}},
            "s.additionalProperties: Forbidden: must not be used at the root",
        ),
        (
            an_object(a={"type": "string", "pattern": "a("}),
            (
                's.properties[a].pattern: Invalid value: "a(": must be a valid regular expression, '
                "but isn't: error parsing regexp: missing closing ): `a(`"
            ),
        ),
        (
            an_object(a={"type": "object", "not": {"nullable": True}}),
            "s.properties[a].not.nullable: Forbidden: must be false to be structural",
        ),
        (
            an_object(
                a={"type": "string", "x-kubernetes-embedded-resource": True, "properties": {"b": {"type": "string"}}}
            ),
            's.properties[a].type: Invalid value: "string": must be object if x-kubernetes-embedded-resource is true',
        ),
        (
            an_object(a={"x-kubernetes-int-or-string": True, "x-kubernetes-preserve-unknown-fields": True}),
            (
                "s.properties[a].x-kubernetes-preserve-unknown-fields: Invalid value: true: "
                "must be false if x-kubernetes-int-or-string is true"
            ),
        ),
        (
            an_object(a={"type": "object", "x-kubernetes-embedded-resource": True}),
            (
                "s.properties[a].properties: Required value: must not be empty if x-kubernetes-embedded-resource is "
                "true without x-kubernetes-preserve-unknown-fields"
            ),
        ),
        (an_object(kind={"type": "integer"}), 's.properties[kind].type: Invalid value: "integer": must be string'),
        (
            an_object(metadata=an_object(labels={"type": "object"})),
            (
                "s.properties[metadata]: Forbidden: must not specify anything other than name and generateName, "
                "but metadata is implicitly specified"
            ),
        ),
        (
            {"type": "object", "anyOf": [{"properties": {"metadata": {}}}], "properties": {"metadata": an_object()}},
            "s.anyOf[0].properties[metadata]: Forbidden: must not be specified in a nested context",
        ),
        (
            {"type": "object", "oneOf": [{"properties": {"a": {"minimum": 1}}}]},
            "s.properties[a]: Required value: because it is defined in s.oneOf[0].properties[a]",
        ),
    ],
)
def test_what_is_not_structural_is_named(schema: dict[str, Any], error: str):
    assert errors_of(schema) == [error]


@pytest.mark.parametrize(
    "schema",
    [
        an_object(a={"type": "string"}, b={"type": "array", "items": {"type": "integer"}}),
        an_object(a={"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]}),
        an_object(
            a={
                "x-kubernetes-int-or-string": True,
                "allOf": [{"anyOf": [{"type": "integer"}, {"type": "string"}]}, {"pattern": "^x"}],
            }
        ),
        an_object(a={"x-kubernetes-preserve-unknown-fields": True}),
        an_object(metadata=an_object(name={"type": "string", "pattern": "^a"})),
        {"type": "object", "properties": {"a": {"type": "string"}}, "oneOf": [{"required": ["a"]}]},
    ],
)
def test_structural_schemas_pass(schema: dict[str, Any]):
    assert errors_of(schema) == []


def test_errors_are_sorted_by_their_text():
    found = errors_of(an_object(b={}, a={}))

    assert found == sorted(found)
    assert len(found) == 2


@pytest.mark.parametrize(
    ("schema", "path"),
    [
        ({"type": 5}, "s.type"),
        ({"properties": {"a": []}}, "s.properties[a]"),
        ({"required": ["a", 1]}, "s.required[1]"),
        ({"maxLength": "3"}, "s.maxLength"),
        ({"minimum": True}, "s.minimum"),
        ({"x-kubernetes-validations": ["x"]}, "s.x-kubernetes-validations[0]"),
    ],
)
def test_a_field_of_the_wrong_json_type_is_refused_with_its_path(schema: dict[str, Any], path: str):
    with pytest.raises(InvalidInput) as refusal:
        parse_schema(schema, "s")

    assert refusal.value.path == path
