"""Properties that hold for every schema and every value."""

from __future__ import annotations

from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from plimsoll.objects.schema.admission.defaulting import apply_defaults
from plimsoll.objects.schema.admission.pruning import prune, prune_nulls
from plimsoll.objects.schema.admission.validation import ValueValidator
from plimsoll.objects.schema.api import compile_definition
from plimsoll.objects.schema.definition.checks import validate_definition
from plimsoll.objects.schema.json_values import copy, is_same, take_over
from tests.objects.schema.builders import a_definition, a_thing, a_version, an_object, schema_of
from tests.objects.schema.recordings import recorded

NAMES = st.sampled_from(["a", "b", "c"])


def kind_of(line: dict[str, Any]) -> str | None:
    body = line["body"]
    return body.get("kind") if isinstance(body, dict) else None


SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.floats() | st.text(max_size=3)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=8
)
TAME_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text("ab", max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
LEAVES = st.sampled_from(
    [
        {"type": "string"},
        {"type": "string", "default": "d"},
        {"type": "string", "nullable": True},
        {"type": "string", "maxLength": 1},
        {"type": "string", "pattern": "^a", "default": "ab"},
        {"type": "integer", "minimum": 0, "default": 1},
        {"type": "boolean"},
        {"x-kubernetes-int-or-string": True},
        {"x-kubernetes-preserve-unknown-fields": True},
    ]
)
SCHEMAS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.dictionaries(NAMES, inner, max_size=3).map(lambda found: an_object(**found)),
        st.dictionaries(NAMES, inner, max_size=3).map(lambda found: {**an_object(**found), "default": {}}),
        inner.map(lambda schema: {"type": "array", "items": schema}),
        inner.map(lambda schema: {"type": "object", "additionalProperties": schema}),
        inner.map(lambda schema: {**schema, "anyOf": [{"required": ["a"]}, {"minimum": 1}]}),
    ),
    max_leaves=5,
)


@given(SCHEMAS, TAME_VALUES)
@settings(max_examples=150, deadline=None)
def test_pruning_twice_is_pruning_once(schema: dict[str, Any], value: Any):
    parsed, once = schema_of(schema), copy(value)
    prune(once, parsed, is_resource=False)
    prune_nulls(once, parsed)
    twice = copy(once)

    assert prune(twice, parsed, is_resource=False) == []
    prune_nulls(twice, parsed)
    assert is_same(twice, once)


@given(SCHEMAS, TAME_VALUES)
@settings(max_examples=150, deadline=None)
def test_defaulting_twice_is_defaulting_once(schema: dict[str, Any], value: Any):
    parsed, once = schema_of(schema), copy(value)
    apply_defaults(once, parsed)
    twice = copy(once)
    apply_defaults(twice, parsed)

    assert is_same(twice, once)


def values_of(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Mostly valid values of a schema."""
    match schema.get("type"):
        case "object" if "additionalProperties" in schema:
            return st.dictionaries(NAMES, values_of(schema["additionalProperties"]), max_size=2)
        case "object":
            fields = {name: values_of(described) for name, described in schema["properties"].items()}
            return st.fixed_dictionaries({}, optional=fields)
        case "array":
            return st.lists(values_of(schema["items"]), max_size=2)
        case "string":
            return st.sampled_from(["a", "ab"])
        case "integer":
            return st.integers(0, 3)
        case "boolean":
            return st.booleans()
    return st.sampled_from([1, "x"])


@st.composite
def schemas_with_values(draw: st.DrawFn) -> tuple[dict[str, Any], Any]:
    schema = draw(SCHEMAS)
    return schema, draw(values_of(schema))  # type: ignore[return-value, arg-type]


@given(schemas_with_values())
@settings(max_examples=150, deadline=None)
def test_a_valid_value_stays_valid_when_defaults_are_filled_in(drawn: tuple[dict[str, Any], Any]):
    schema, value = drawn
    wrapped = an_object(f=schema)
    assume(validate_definition(a_definition(an_object(spec=wrapped))) == [])
    parsed, thing = schema_of(wrapped), {"f": copy(value)}
    validator = ValueValidator(parsed)
    assume(validator.validate(thing) == [])

    apply_defaults(thing, parsed)

    assert validator.validate(thing) == []


@given(SCHEMAS, VALUES)
@settings(max_examples=150, deadline=None)
def test_admission_of_any_json_value_is_an_answer(schema: dict[str, Any], value: Any):
    version = a_version(an_object(f=schema))
    old = version.admit_create(a_thing({"f": None})).object

    created = version.admit_create(a_thing({"f": value}))
    updated = version.admit_update(a_thing({"f": value}), old)

    for admission in (created, updated, version.admit_create(value)):
        assert admission.admitted == (admission.build_status() is None)


@given(SCHEMAS, TAME_VALUES)
@settings(max_examples=100, deadline=None)
def test_what_was_admitted_is_admitted_again_unchanged(schema: dict[str, Any], value: Any):
    version = a_version(an_object(f=schema))
    first = version.admit_create(a_thing({"f": value}))
    assume(first.admitted)

    again = version.admit_update(first.object, first.object)

    assert again.admitted
    assert again.object == first.object


@given(VALUES)
@settings(max_examples=150, deadline=None)
def test_any_json_value_given_as_a_schema_is_an_answer(value: Any):
    errors = validate_definition(a_definition(an_object(spec=an_object(f=value))))

    assert all(error.text for error in errors)


RECORDED = [line for group in ("crd", "provisioningrequest") for line in recorded(group)]
DEFINITIONS = [line["body"] for line in RECORDED if kind_of(line) == "CustomResourceDefinition"]
COMPILED = {
    definition.names.kind: next(iter(definition.versions.values()))
    for definition in (
        compile_definition(line["response"])
        for line in RECORDED
        if kind_of(line) == "CustomResourceDefinition" and line["status"] == 201
    )
}
OBJECTS = [line["body"] for line in RECORDED if kind_of(line) in COMPILED]
JUNK = st.sampled_from([None, True, 0, -1, 1.5, "", "x", [], {}, [None], {"a": None}, {"type": "object"}, "a" * 300])


@st.composite
def spoilt(draw: st.DrawFn, bodies: list[dict[str, Any]]) -> Any:
    """A recorded body with junk in a few random places."""
    body = copy(draw(st.sampled_from(bodies)))
    for _ in range(draw(st.integers(1, 3))):
        place, step = body, draw(st.sampled_from(sorted(body)))
        while isinstance(place[step], (dict, list)) and place[step] and draw(st.integers(0, 3)):
            place = place[step]
            step = draw(st.sampled_from(sorted(place)) if isinstance(place, dict) else st.integers(0, len(place) - 1))
        place[step] = copy(draw(JUNK))
    return body


@given(spoilt(DEFINITIONS), st.sampled_from(DEFINITIONS))
@settings(max_examples=120, deadline=None)
def test_a_spoilt_definition_is_an_answer(crd: Any, old: dict[str, Any]):
    for errors in (validate_definition(crd), validate_definition(crd, old)):
        assert all(error.text for error in errors)


@given(spoilt(OBJECTS), st.sampled_from(OBJECTS), st.sampled_from(["status", None]))
@settings(max_examples=150, deadline=None)
def test_a_spoilt_object_is_an_answer(resource: Any, old: dict[str, Any], subresource: Any):
    version = COMPILED[old["kind"]]

    for admission in (
        version.admit_create(resource),
        version.admit_update(resource, old, subresource=subresource),
        version.admit_update(old, resource, subresource=subresource),
    ):
        assert admission.admitted == (admission.build_status() is None)


@given(TAME_VALUES)
@settings(max_examples=100, deadline=None)
def test_taking_over_a_good_value_copies_it(value: Any):
    taken = take_over(value)

    assert is_same(taken, value)
    assert taken is not value or not isinstance(value, (dict, list))
