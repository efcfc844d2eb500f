from __future__ import annotations

from typing import Any

from plimsoll.objects.schema.api import compile_definition
from tests.objects.schema.builders import a_definition, a_thing, a_version, an_object

TEXT = {"type": "string", "maxLength": 20}


def rule(text: str, **more: Any) -> dict[str, Any]:
    return {"rule": text, **more}


def with_rules(schema: dict[str, Any], *rules: dict[str, Any]) -> dict[str, Any]:
    return {**schema, "x-kubernetes-validations": list(rules)}


def errors_on_create(spec_schema: dict[str, Any], spec: Any) -> list[str]:
    return [error.text for error in a_version(spec_schema).admit_create(a_thing(spec)).errors]


def errors_on_update(spec_schema: dict[str, Any], new: Any, old: Any) -> list[str]:
    return [error.text for error in a_version(spec_schema).admit_update(a_thing(new), a_thing(old)).errors]


def test_a_failed_rule_without_a_message_is_quoted():
    schema = with_rules(an_object(a={"type": "integer"}), rule(" self.a > 1 "))

    assert errors_on_create(schema, {"a": 1}) == ['spec: Invalid value: "object": failed rule: self.a > 1']


def test_rules_are_reported_in_their_order_and_outer_before_inner():
    inner = with_rules(TEXT, rule("self == 'x'", message="third"))
    schema = with_rules(an_object(a=inner), rule("false", message="first"), rule("self.a == 'z'", message="second"))

    messages = [error.rpartition(": ")[2] for error in errors_on_create(schema, {"a": "y"})]

    assert messages == ["first", "second", "third"]


def test_entries_of_maps_are_named_by_their_key_in_brackets():
    schema = an_object(
        m={"type": "object", "maxProperties": 3, "additionalProperties": with_rules(TEXT, rule("self != 'x'"))}
    )

    assert errors_on_create(schema, {"m": {"k": "x"}}) == [
        "spec.m[k]: Invalid value: \"string\": failed rule: self != 'x'"
    ]


def test_the_reason_chooses_the_kind_of_error():
    reasons = ("FieldValueForbidden", "FieldValueRequired", "FieldValueDuplicate", "FieldValueInvalid")
    schema = with_rules(an_object(), *(rule("false", message="no", reason=reason) for reason in reasons))

    assert errors_on_create(schema, {}) == [
        "spec: Forbidden: no",
        "spec: Required value: no",
        'spec: Duplicate value: "object"',
        'spec: Invalid value: "object": no',
    ]


def test_a_message_expression_wins_unless_it_fails_or_is_empty():
    field = an_object(a={"type": "array", "maxItems": 2, "items": TEXT})
    for expression, shown in (("'got ' + self.a[0]", "got x"), ("self.a[5]", "fallback"), ("'  '", "fallback")):
        schema = with_rules(field, rule("false", message="fallback", messageExpression=expression))

        assert errors_on_create(schema, {"a": ["x"]}) == [f'spec: Invalid value: "object": {shown}']


def test_transition_rules_wait_for_an_old_value():
    schema = an_object(a=with_rules(TEXT, rule("self == oldSelf", message="fixed")))

    assert errors_on_create(schema, {"a": "x"}) == []
    assert errors_on_update(schema, {"a": "x"}, {}) == []
    assert errors_on_update(schema, {"a": "y"}, {"a": "x"}) == ['spec.a: Invalid value: "string": fixed']


def test_optional_old_self_is_asked_on_create_too():
    started = rule("oldSelf.hasValue() || self == 'new'", optionalOldSelf=True, message="must start as new")
    schema = an_object(a=with_rules(TEXT, started))

    assert errors_on_create(schema, {"a": "old"}) == ['spec.a: Invalid value: "string": must start as new']
    assert errors_on_update(schema, {"a": "old"}, {"a": "new"}) == []


def test_items_of_a_list_map_are_compared_by_their_keys():
    item = an_object(name=TEXT, v=with_rules({"type": "integer"}, rule("self >= oldSelf", message="never less")))
    schema = an_object(
        l={
            "type": "array",
            "maxItems": 5,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {**item, "required": ["name"]},
        }
    )
    old = {"l": [{"name": "a", "v": 1}, {"name": "b", "v": 5}]}

    assert errors_on_update(schema, {"l": [{"name": "b", "v": 4}, {"name": "c", "v": 0}]}, old) == [
        'spec.l[0].v: Invalid value: "integer": never less'
    ]


def test_null_values_are_not_asked():
    schema = an_object(a={**with_rules(TEXT, rule("false")), "nullable": True})

    assert errors_on_create(schema, {"a": None}) == []


def test_rules_at_the_root_see_the_name_and_have_no_path():
    schema = with_rules(an_object(), rule("self.metadata.name == 'b'", message="must be b"))
    version = compile_definition(a_definition(schema)).get_version("v1")

    assert [error.text for error in version.admit_create(a_thing()).errors] == [
        '<nil>: Invalid value: "object": must be b'
    ]


def test_rules_that_cost_too_much_stop_the_others():
    everything = "self.all(x, self.all(y, self.all(z, x + y + z > 0)))"
    schema = an_object(
        a=with_rules({"type": "array", "items": {"type": "integer"}}, rule(everything), rule("false", message="later"))
    )

    (error,) = errors_on_create(schema, {"a": list(range(1, 200))})

    assert error.startswith('spec.a: Invalid value: "array": ')
    assert "no further validation rules will be run" in error


def test_a_type_error_keeps_rules_from_running():
    schema = with_rules(an_object(a={"type": "integer"}), rule("self.a > 1"))

    assert errors_on_create(schema, {"a": "x"}) == [
        'spec.a: Invalid value: "string": spec.a in body must be of type integer: "string"',
        (
            "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; "
            "correct the existing errors to complete validation"
        ),
    ]
