from __future__ import annotations

from typing import Any

import pytest

from plimsoll.core.names import find_subdomain_problems
from plimsoll.objects.schema.admission.metadata_checks import validate_metadata_update, validate_new_metadata
from plimsoll.objects.schema.admission.object_metadata import decode_problem
from tests.objects.schema.builders import a_thing, a_version, an_object

SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)


def errors_of(metadata: dict[str, Any], *, namespaced: bool = True) -> list[str]:
    rule = find_subdomain_problems
    return [error.text for error in validate_new_metadata(metadata, "metadata", namespaced=namespaced, name_rule=rule)]


@pytest.mark.parametrize(
    ("metadata", "errors"),
    [
        ({"name": "a"}, []),
        ({"generateName": "a-"}, []),
        ({}, ["metadata.name: Required value: name or generateName is required"]),
        ({"name": "Bad_Name"}, [f'metadata.name: Invalid value: "Bad_Name": {SUBDOMAIN}']),
        (
            {"name": "a" * 254},
            [f'metadata.name: Invalid value: "{"a" * 254}": must be no more than 253 characters'],
        ),
        ({"generateName": "Bad_"}, [f'metadata.generateName: Invalid value: "Bad_": {SUBDOMAIN}']),
        ({"name": "a", "namespace": "b.c"}, ['metadata.namespace: Invalid value: "b.c": must not contain dots']),
        (
            {"name": "a", "annotations": {"a": "x" * 262144}},
            ["metadata.annotations: Too long: may not be more than 262144 bytes"],
        ),
        ({"name": "a", "labels": {"/x": ""}}, ['metadata.labels: Invalid value: "/x": prefix part must be non-empty']),
    ],
)
def test_metadata_is_judged_by_the_rules_of_every_kind(metadata: dict[str, Any], errors: list[str]):
    assert errors_of(metadata) == errors


def test_a_cluster_scoped_object_has_no_namespace():
    assert errors_of({"name": "a", "namespace": "b"}, namespaced=False) == [
        "metadata.namespace: Forbidden: not allowed on this type"
    ]


@pytest.mark.parametrize(
    ("metadata", "problem"),
    [
        ({"labels": {"a": 1}}, "number into Go struct field ObjectMeta.labels of type string"),
        ({"labels": "x"}, "string into Go struct field ObjectMeta.labels of type map[string]string"),
        ({"name": 1}, "number into Go struct field ObjectMeta.name of type string"),
        ({"finalizers": [{}]}, "object into Go struct field ObjectMeta.finalizers of type string"),
        ([], "array into Go value of type v1.ObjectMeta"),
        (
            {"ownerReferences": [{"name": "a", "controller": 1}]},
            "number into Go struct field OwnerReference.ownerReferences.controller of type bool",
        ),
        (
            {"managedFields": [{"manager": 1}]},
            "number into Go struct field ManagedFieldsEntry.managedFields.manager of type string",
        ),
    ],
)
def test_metadata_of_the_wrong_type_cannot_be_decoded(metadata: Any, problem: str):
    assert decode_problem(metadata) == f"json: cannot unmarshal {problem}"


def test_identity_cannot_change_but_need_not_be_repeated():
    old = {"name": "a", "uid": "1", "generation": 2}

    assert validate_metadata_update({"name": "a"}, old, "metadata") == []
    assert [error.text for error in validate_metadata_update({"name": "a", "uid": "2"}, old, "metadata")] == [
        'metadata.uid: Invalid value: "2": field is immutable'
    ]


def test_a_deleted_object_gets_no_new_finalizers():
    old = {"name": "a", "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["x/a"]}
    new = {"name": "a", "finalizers": ["x/a", "x/b"]}

    assert [error.text for error in validate_metadata_update(new, old, "metadata")] == [
        (
            "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, "
            'found new finalizers []string{"x/b"}'
        )
    ]


def test_generation_counts_changes_outside_of_metadata():
    version = a_version(an_object(a={"type": "string"}))
    created = version.admit_create(a_thing({"a": "1"})).object
    relabelled = version.admit_update({**created, "metadata": {"name": "a", "labels": {"x": "y"}}}, created).object
    changed = version.admit_update({**relabelled, "spec": {"a": "2"}}, relabelled).object

    generations = [thing["metadata"]["generation"] for thing in (created, relabelled, changed)]

    assert generations == [1, 1, 2]


def test_the_status_is_written_only_through_its_subresource():
    version = a_version(
        an_object(a={"type": "string"}), status=an_object(ok={"type": "boolean"}), subresources={"status": {}}
    )
    created = version.admit_create(a_thing({"a": "1"}, status={"ok": True})).object
    through_status = version.admit_update(
        a_thing({"a": "2"}, status={"ok": False}), created, subresource="status"
    ).object
    through_main = version.admit_update(a_thing({"a": "3"}, status={"ok": True}), through_status).object

    assert "status" not in created
    assert (through_status["spec"], through_status["status"]) == ({"a": "1"}, {"ok": False})
    assert (through_main["spec"], through_main["status"]) == ({"a": "3"}, {"ok": False})


def test_an_old_object_that_cannot_be_read_is_reported_as_such():
    admission = a_version(an_object()).admit_update(a_thing(), a_thing(metadata={"name": "a", "labels": 1}))

    assert admission.bad_request == (
        "the object to be replaced cannot be read: "
        "json: cannot unmarshal number into Go struct field ObjectMeta.labels of type map[string]string"
    )
