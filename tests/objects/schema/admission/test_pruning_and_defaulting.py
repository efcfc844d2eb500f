from __future__ import annotations

from typing import Any

import pytest

from plimsoll.objects.schema.admission.defaulting import apply_defaults
from plimsoll.objects.schema.admission.pruning import prune, prune_nulls
from tests.objects.schema.builders import a_thing, a_version, an_object, schema_of

TEXT = {"type": "string"}


def pruned(value: Any, schema: dict[str, Any]) -> tuple[Any, list[str]]:
    unknown = prune(value, schema_of(schema), is_resource=True)
    return value, unknown


def test_unknown_fields_are_removed_and_named_in_order():
    schema = an_object(spec=an_object(known=TEXT, list={"type": "array", "items": an_object(a=TEXT)}))

    value, unknown = pruned({"spec": {"known": "x", "z": 1, "list": [{"a": "1"}, {"b": 2}]}, "y": {"deep": 1}}, schema)

    assert value == {"spec": {"known": "x", "list": [{"a": "1"}, {}]}}
    assert unknown == ["spec.list[1].b", "spec.z", "y"]


def test_what_every_resource_has_is_never_unknown():
    value, unknown = pruned({"apiVersion": "v1", "kind": "A", "metadata": {"x": 1}}, an_object())

    assert value == {"apiVersion": "v1", "kind": "A", "metadata": {"x": 1}}
    assert unknown == []


def test_below_preserve_unknown_fields_only_described_objects_are_pruned():
    schema = an_object(
        free={
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": True,
            "properties": {"known": an_object(a=TEXT)},
        }
    )

    value, unknown = pruned({"free": {"any": {"x": 1}, "known": {"a": "1", "b": 2}}}, schema)

    assert value == {"free": {"any": {"x": 1}, "known": {"a": "1"}}}
    assert unknown == ["free.known.b"]


def test_entries_of_a_map_are_known_and_their_fields_are_not():
    schema = an_object(map={"type": "object", "additionalProperties": an_object(a=TEXT)})

    value, unknown = pruned({"map": {"k": {"a": "1", "b": 2}}}, schema)

    assert value == {"map": {"k": {"a": "1"}}}
    assert unknown == ["map.k.b"]


@pytest.mark.parametrize(
    ("described", "stays"),
    [
        (TEXT, False),
        ({**TEXT, "nullable": True}, True),
        ({**TEXT, "default": "d"}, True),
        ({**TEXT, "nullable": True, "default": "d"}, True),
    ],
)
def test_a_null_without_meaning_is_removed(described: dict[str, Any], *, stays: bool):
    value = {"a": None}

    prune_nulls(value, schema_of(an_object(a=described)))

    assert ("a" in value) is stays


def defaulted(value: Any, schema: dict[str, Any]) -> Any:
    apply_defaults(value, schema_of(schema))
    return value


def test_defaults_are_filled_in_inside_objects_that_are_there_and_in_defaults():
    schema = an_object(
        there=an_object(x={**TEXT, "default": "1"}),
        absent=an_object(x={**TEXT, "default": "2"}),
        made={**an_object(x={**TEXT, "default": "3"}), "default": {}},
    )

    assert defaulted({"there": {}}, schema) == {"there": {"x": "1"}, "made": {"x": "3"}}


@pytest.mark.parametrize(("nullable", "result"), [(False, "d"), (True, None)])
def test_a_null_is_defaulted_unless_null_is_allowed(nullable: bool, result: str | None):
    schema = an_object(a={**TEXT, "default": "d", "nullable": nullable})

    assert defaulted({"a": None}, schema) == {"a": result}


def test_defaults_reach_items_and_entries():
    one = an_object(x={"type": "integer", "default": 1})
    schema = an_object(list={"type": "array", "items": one}, map={"type": "object", "additionalProperties": one})

    value = defaulted({"list": [{}, {"x": 2}], "map": {"k": {}}}, schema)

    assert value == {"list": [{"x": 1}, {"x": 2}], "map": {"k": {"x": 1}}}


def test_a_default_is_copied_for_every_object():
    schema = schema_of(
        an_object(a={"type": "object", "x-kubernetes-preserve-unknown-fields": True, "default": {"l": []}})
    )
    first: dict[str, Any] = {}
    second: dict[str, Any] = {}
    apply_defaults(first, schema)
    apply_defaults(second, schema)

    first["a"]["l"].append(1)

    assert second == {"a": {"l": []}}


def test_unknown_metadata_is_dropped_at_the_root_and_in_embedded_resources():
    version = a_version(
        an_object(
            tpl={
                "type": "object",
                "x-kubernetes-embedded-resource": True,
                "x-kubernetes-preserve-unknown-fields": True,
            }
        )
    )
    embedded = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "odd": 1}}

    admission = version.admit_create(a_thing({"tpl": embedded}, metadata={"name": "a", "bogus": 1}))

    assert admission.unknown_fields == ("metadata.bogus", "spec.tpl.metadata.odd")
    assert admission.object["spec"]["tpl"]["metadata"] == {"name": "x"}
    assert admission.admitted


def test_strict_refuses_unknown_fields_and_ignore_does_not_mention_them():
    version = a_version(an_object())
    thing = a_thing({"x": 1})

    strict = version.admit_create(thing, field_validation="Strict")
    ignored = version.admit_create(thing, field_validation="Ignore")

    assert strict.bad_request == (
        'Thing in version "v1" cannot be handled as a Thing: strict decoding error: unknown field "spec.x"'
    )
    assert ignored.admitted
    assert ignored.warnings == ()


def test_what_was_given_is_never_changed():
    version = a_version(an_object(a={**TEXT, "default": "d"}))
    thing = a_thing({"x": {"y": 1}})

    version.admit_create(thing)

    assert thing == a_thing({"x": {"y": 1}})
