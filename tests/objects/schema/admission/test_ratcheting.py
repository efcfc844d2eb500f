from __future__ import annotations

from typing import Any

from tests.objects.schema.builders import a_thing, a_version, an_object

SHORT = {"type": "string", "maxLength": 3}


def admit(schema: dict[str, Any], new: Any, old: Any):
    admission = a_version(schema).admit_update(a_thing(new), a_thing(old))
    return [error.text for error in admission.errors], list(admission.warnings)


def test_what_an_update_leaves_alone_may_stay_invalid():
    schema = an_object(a=SHORT, b=SHORT)

    assert admit(schema, {"a": "toolong", "b": "x"}, {"a": "toolong"}) == ([], [])


def test_what_an_update_changes_must_be_valid():
    schema = an_object(a=SHORT)

    errors, _ = admit(schema, {"a": "longer!"}, {"a": "toolong"})

    assert errors == ["spec.a: Too long: may not be more than 3 bytes"]


def test_a_value_that_changes_only_its_type_is_changed():
    schema = an_object(a={"type": "string"})

    errors, _ = admit(schema, {"a": True}, {"a": 1})

    assert errors == ['spec.a: Invalid value: "boolean": spec.a in body must be of type string: "boolean"']


def test_a_missing_required_field_is_tolerated_only_in_an_unchanged_object():
    schema = an_object(o={**an_object(a=SHORT, b=SHORT), "required": ["b"]}, c=SHORT)

    assert admit(schema, {"o": {"a": "x"}, "c": "y"}, {"o": {"a": "x"}})[0] == []
    assert admit(schema, {"o": {"a": "y"}}, {"o": {"a": "x"}})[0] == ["spec.o.b: Required value"]


def test_items_of_a_list_map_are_matched_wherever_they_moved():
    items = {**an_object(name=SHORT, v=SHORT), "required": ["name"]}
    listed = {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "items": items,
    }
    old = {"l": [{"name": "a", "v": "toolong"}]}
    new = {"l": [{"name": "b", "v": "ok"}, {"name": "a", "v": "toolong"}]}

    assert admit(an_object(l=listed), new, old)[0] == []


def test_items_of_an_atomic_list_are_matched_with_nothing():
    schema = an_object(l={"type": "array", "items": SHORT})

    errors, _ = admit(schema, {"l": ["toolong", "x"]}, {"l": ["toolong"]})

    assert errors == ["spec.l[0]: Too long: may not be more than 3 bytes"]


def test_a_tolerated_rule_becomes_a_warning_and_a_transition_rule_is_never_tolerated():
    rules = [{"rule": "self == 'x'", "message": "must be x"}, {"rule": "oldSelf == 'x'", "message": "must have been x"}]
    schema = an_object(a={**SHORT, "x-kubernetes-validations": rules}, b=SHORT)

    errors, warnings = admit(schema, {"a": "y", "b": "1"}, {"a": "y"})

    assert errors == ['spec.a: Invalid value: "string": must have been x']
    assert warnings == ['spec.a: Invalid value: "string": must be x']


def test_duplicates_that_were_there_before_are_tolerated():
    schema = an_object(s={"type": "array", "x-kubernetes-list-type": "set", "items": SHORT}, a=SHORT)

    assert admit(schema, {"s": ["x", "x"], "a": "1"}, {"s": ["x", "x"]})[0] == []
    assert admit(schema, {"s": ["x", "x"]}, {"s": ["x"]})[0] == ['spec.s[1]: Duplicate value: "x"']
