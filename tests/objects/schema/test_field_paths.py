from __future__ import annotations

import pytest

from plimsoll.objects.schema.field_paths import BadPath, FoundField, find_field
from tests.objects.schema.builders import an_object, schema_of

TEXT = {"type": "string"}
SCHEMA = schema_of(
    an_object(
        spec=an_object(**{"min": TEXT, "a.b": TEXT, "it's": TEXT}),
        labels={"type": "object", "additionalProperties": TEXT},
    )
)


@pytest.mark.parametrize(
    ("path", "normal"),
    [
        (".spec.min", "spec.min"),
        (".spec['a.b']", "spec.a.b"),
        (r".spec['it\'s']", "spec.it's"),
        (".labels['x/y']", "labels[x/y]"),
        (".labels.x", "labels[x]"),
    ],
)
def test_a_path_leads_through_fields_and_map_keys(path: str, normal: str):
    found = find_field(path, SCHEMA)

    assert isinstance(found, FoundField)
    assert found.path == normal
    assert found.schema is not None
    assert found.schema.type == "string"


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        (".spec.max", "does not refer to a valid field"),
        (".spec.min.x", "does not refer to a valid field"),
        (".spec.", "unexpected end of JSON path"),
        ("spec", "expected [ or . but got: spec"),
        (".spec[0]", "expected single quoted string but got 0"),
        (".spec['min'", "unexpected end of JSON path"),
        (r".spec['\q']", r"invalid string literal: invalid escape char \q"),
    ],
)
def test_a_path_that_leads_nowhere_says_why(path: str, problem: str):
    assert find_field(path, SCHEMA) == BadPath(problem=problem)


def test_brackets_can_be_forbidden():
    assert find_field(".spec['min']", SCHEMA, allow_brackets=False) == BadPath(problem="array notation is not allowed")
