from __future__ import annotations

import copy
from typing import Any

import pytest

from plimsoll.objects.schema.api import compile_definition
from plimsoll.objects.schema.definition.checks import validate_definition
from tests.objects.schema.builders import a_definition, an_object

TEXT = {"type": "string"}
ROOT = "spec.validation.openAPIV3Schema"


def errors_of(crd: Any, old: dict[str, Any] | None = None) -> list[str]:
    return [error.text for error in validate_definition(crd, old)]


def a_list(**extensions: Any) -> dict[str, Any]:
    return an_object(l={"type": "array", "items": TEXT, **extensions})


def ruled(schema: dict[str, Any], **rule: Any) -> dict[str, Any]:
    return {**schema, "x-kubernetes-validations": [{"rule": "true", **rule}]}


def test_a_plain_definition_is_valid():
    assert errors_of(a_definition(an_object(spec=an_object(a=TEXT)))) == []


@pytest.mark.parametrize(
    ("schema", "error"),
    [
        ({"type": "object", "nullable": True}, f"{ROOT}.nullable: Forbidden: nullable cannot be true at the root"),
        (
            an_object(a={**TEXT, "default": 1}),
            f'{ROOT}.properties[a].default: Invalid value: "integer":  in body must be of type string: "integer"',
        ),
        (
            an_object(a={**an_object(b=TEXT), "default": {"c": 1}}),
            f'{ROOT}.properties[a].default: Invalid value: {{"c":1}}: must not have unknown fields',
        ),
        (
            an_object(a={"type": "array", "items": TEXT, "uniqueItems": True}),
            (
                f"{ROOT}.properties[a].uniqueItems: Forbidden: "
                "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
            ),
        ),
        (
            an_object(a={**an_object(b=TEXT), "additionalProperties": TEXT}),
            (
                f"{ROOT}.properties[a].additionalProperties: Forbidden: "
                "additionalProperties and properties are mutual exclusive"
            ),
        ),
        (an_object(a={**TEXT, "$ref": "#/x"}), f"{ROOT}.properties[a].$ref: Forbidden: $ref is not supported"),
        (
            an_object(a={"type": "text"}),
            (
                f'{ROOT}.properties[a].type: Unsupported value: "text": supported values: '
                '"array", "boolean", "integer", "number", "object", "string"'
            ),
        ),
        (
            an_object(apiVersion={**TEXT, "default": "v1"}),
            f"{ROOT}.properties[apiVersion].default: Forbidden: must not be set in top-level apiVersion",
        ),
        (
            a_list(**{"x-kubernetes-list-type": "sett"}),
            (
                f'{ROOT}.properties[l].x-kubernetes-list-type: Unsupported value: "sett": supported values: '
                '"atomic", "set", "map"'
            ),
        ),
        (
            a_list(**{"x-kubernetes-list-map-keys": ["a"]}),
            (
                f"{ROOT}.properties[l].x-kubernetes-list-type: Required value: "
                "must be map if x-kubernetes-list-map-keys is non-empty"
            ),
        ),
        (
            a_list(**{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"]}),
            (
                f'{ROOT}.properties[l].items.type: Invalid value: "string": '
                "must be object if parent array's x-kubernetes-list-type is map"
            ),
        ),
        (
            a_list(items=an_object(), **{"x-kubernetes-list-type": "set"}),
            (
                f"{ROOT}.properties[l].items.x-kubernetes-map-type: Invalid value: null: "
                "must be atomic as item of a list with x-kubernetes-list-type=set"
            ),
        ),
        (
            an_object(a={**TEXT, "x-kubernetes-map-type": "atomic"}),
            f'{ROOT}.properties[a].type: Invalid value: "string": must be object if x-kubernetes-map-type is specified',
        ),
        (
            an_object(a=ruled(TEXT, rule=" ")),
            f"{ROOT}.properties[a].x-kubernetes-validations[0].rule: Required value: rule is not specified",
        ),
        (
            an_object(a=ruled(TEXT, message=" ")),
            (
                f'{ROOT}.properties[a].x-kubernetes-validations[0].message: Invalid value: " ": '
                "message must be non-empty if specified"
            ),
        ),
        (
            an_object(a=ruled(TEXT, rule="true ||\ntrue")),
            (
                f"{ROOT}.properties[a].x-kubernetes-validations[0].message: Required value: "
                "message must be specified if rule contains line breaks"
            ),
        ),
        (
            an_object(a=ruled(TEXT, reason="Odd")),
            (
                f'{ROOT}.properties[a].x-kubernetes-validations[0].reason: Unsupported value: "Odd": supported values: '
                '"FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"'
            ),
        ),
        (
            an_object(a=ruled(an_object(b=TEXT), fieldPath=".c")),
            (
                f'{ROOT}.properties[a].x-kubernetes-validations[0].fieldPath: Invalid value: ".c": '
                "fieldPath must be a valid path"
            ),
        ),
        (
            an_object(a=ruled(TEXT, optionalOldSelf=True)),
            (
                f"{ROOT}.properties[a].x-kubernetes-validations[0].optionalOldSelf: Invalid value: true: "
                "may not be set if oldSelf is not used in rule"
            ),
        ),
        (
            an_object(a=ruled({**TEXT, "maxLength": 5}, messageExpression="1")),
            (
                f'{ROOT}.properties[a].x-kubernetes-validations[0].messageExpression: Invalid value: {{"Rule":"true",'
                '"Message":"","MessageExpression":"1","Reason":null,"FieldPath":"","OptionalOldSelf":null}: '
                "messageExpression must evaluate to a string"
            ),
        ),
    ],
)
def test_a_bad_schema_is_refused_with_its_path(schema: dict[str, Any], error: str):
    assert errors_of(a_definition(schema)) == [error]


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        (
            {"additionalPrinterColumns": [{"name": "A", "type": "text", "jsonPath": ".a"}]},
            (
                'spec.additionalPrinterColumns[0].type: Invalid value: "text": '
                "must be one of boolean,date,integer,number,string"
            ),
        ),
        (
            {"additionalPrinterColumns": [{"name": "A", "type": "string", "jsonPath": "a"}]},
            'spec.additionalPrinterColumns[0].JSONPath: Invalid value: "a": must be a simple json path starting with .',
        ),
        (
            {"subresources": {"scale": {"specReplicasPath": ".spec.r", "statusReplicasPath": ".spec.r"}}},
            'spec.subresources.scale.statusReplicasPath: Invalid value: ".spec.r": should be a json path under .status',
        ),
        (
            {"subresources": {"scale": {"statusReplicasPath": ".status.r"}}},
            "spec.subresources.scale.specReplicasPath: Required value",
        ),
        (
            {"selectableFields": [{"jsonPath": ".spec.b"}]},
            (
                'spec.selectableFields[0].jsonPath: Invalid value: ".spec.b": '
                "is an invalid path: does not refer to a valid field"
            ),
        ),
        (
            {"selectableFields": [{"jsonPath": ".spec"}]},
            (
                'spec.selectableFields[0].jsonPath: Invalid value: ".spec": must point to a field of type string, '
                "boolean or integer. Enum string fields and strings with formats are allowed."
            ),
        ),
        (
            {"selectableFields": [{"jsonPath": ".spec.a"}, {"jsonPath": ".spec.a"}]},
            'spec.selectableFields[1].jsonPath: Duplicate value: ".spec.a"',
        ),
        (
            {"deprecationWarning": "x"},
            'spec.versions[0].deprecationWarning: Invalid value: "x": can only be set for deprecated versions',
        ),
    ],
)
def test_a_bad_version_is_refused_with_its_path(changes: dict[str, Any], error: str):
    assert errors_of(a_definition(an_object(spec=an_object(a=TEXT)), **changes)) == [error]


@pytest.mark.parametrize(
    ("schema", "error"),
    [
        (
            {"type": "object", "x-kubernetes-map-type": "atomic"},
            f'{ROOT}: Invalid value: {{"type":"object","x-kubernetes-map-type":"atomic"}}: only [Description Type ',
        ),
        ({"type": "object", "description": "d", "x-unknown": 1}, None),
    ],
)
def test_with_a_status_subresource_little_else_may_stand_at_the_root(schema: dict[str, Any], error: str | None):
    found = errors_of(a_definition(schema, subresources={"status": {}}))

    assert [message[: len(error or "")] for message in found] == ([error] if error else [])


def test_unknown_fields_can_no_longer_be_preserved_for_the_whole():
    crd = a_definition()
    crd["spec"]["preserveUnknownFields"] = True

    assert errors_of(crd) == [
        (
            "spec.preserveUnknownFields: Invalid value: true: cannot set to true, set "
            "x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        )
    ]


def test_versions_that_differ_are_reported_where_they_stand():
    crd = a_definition(an_object(a={}))
    second = {**crd["spec"]["versions"][0], "name": "v2", "storage": False, "schema": {"openAPIV3Schema": an_object()}}
    crd["spec"]["versions"].append(second)

    assert errors_of(crd) == [
        (
            "spec.versions[0].schema.openAPIV3Schema.properties[a].type: Required value: "
            "must not be empty for specified object fields"
        )
    ]


def test_a_schema_that_got_it_wrong_before_is_not_held_to_rules_that_came_later():
    old = a_definition(a_list(items=an_object(), **{"x-kubernetes-list-type": "set"}))
    new = copy.deepcopy(old)
    new["spec"]["names"]["shortNames"] = ["th"]

    assert errors_of(old) != []
    assert errors_of(new, old) == []


def test_group_and_plural_never_change():
    old = a_definition()
    new = a_definition()
    new["spec"]["names"]["plural"] = "thingies"

    assert errors_of(new, old) == ['spec.names.plural: Invalid value: "thingies": field is immutable']


@pytest.mark.parametrize(
    ("approval", "error"),
    [
        ("https://github.com/kubernetes/enhancements/pull/1", None),
        ("unapproved, just trying", None),
        ("yes", "Invalid value"),
        (None, "Required value"),
    ],
)
def test_community_groups_need_an_approval(approval: str | None, error: str | None):
    crd = a_definition()
    crd["spec"]["group"] = "demo.k8s.io"
    crd["metadata"] = {"name": "things.demo.k8s.io"}
    if approval:
        crd["metadata"]["annotations"] = {"api-approved.kubernetes.io": approval}

    found = [message.partition(": ")[2].partition(":")[0] for message in errors_of(crd)]

    assert found == ([error] if error else [])


def test_a_rule_on_an_unlimited_list_costs_as_often_as_it_fits_into_a_request():
    heavy = {"rule": "self.matches('a.*b.*c.*d.*e.*f')"}
    item = {"type": "string", "maxLength": 1000, "x-kubernetes-validations": [heavy]}
    limited = an_object(l={"type": "array", "maxItems": 5, "items": item})
    unlimited = an_object(l={"type": "array", "items": item})

    assert errors_of(a_definition(limited)) == []
    assert any(
        "estimated rule cost exceeds budget by factor of" in error for error in errors_of(a_definition(unlimited))
    )


def test_a_default_must_satisfy_the_rules_beside_it():
    schema = an_object(a={**ruled({**TEXT, "maxLength": 5}, rule="self != 'x'"), "default": "x"})

    assert errors_of(a_definition(schema)) == [
        f"{ROOT}.properties[a].default: Invalid value: \"string\": failed rule: self != 'x'"
    ]


@pytest.mark.parametrize(
    ("name", "expected"),
    [("v1alpha1", "example.com/v1alpha1 Thing is deprecated; use example.com/v1 Thing"), ("v1", None)],
)
def test_a_deprecated_version_names_a_better_one(name: str, expected: str | None):
    crd = a_definition()
    first = crd["spec"]["versions"][0]
    crd["spec"]["versions"] = [
        {**first, "name": "v1beta1", "storage": False},
        {**first, "name": "v1alpha1", "storage": False, "deprecated": True},
        first,
    ]

    assert compile_definition(crd).get_version(name).deprecation_warning == expected


@pytest.mark.parametrize(
    "junk", [None, [], {"spec": None}, "x", 1, {}, {"spec": []}, {"spec": {"versions": [1]}}, {"spec": {"names": 1}}]
)
def test_what_is_no_definition_is_refused_with_a_sentence(junk: Any):
    assert errors_of(junk)
