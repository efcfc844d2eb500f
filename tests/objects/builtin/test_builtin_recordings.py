"""What a real API server answered is what we answer."""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll.objects.builtin import check_create, default
from plimsoll.objects.schema.field_errors import build_invalid_status
from tests.objects.builtin.recordings import causes, creations, recorded

ERRORS = recorded("errors")
CREATED = recorded("create")
FIELDS = recorded("fieldvalidation")

# Queries, not objects, were wrong in these.
ABOUT_THE_QUERY = {"create-054", "create-058", "fieldvalidation-009"}
ACCEPTED = [id_ for id_ in creations("create", 201) if CREATED[id_]["body"].get("kind")]


@pytest.mark.parametrize("id_", [id_ for id_ in creations("errors", 422) if id_ != "errors-043"])
def test_a_refused_object_gives_the_recorded_causes(id_: str):
    assert [error.cause for error in check_create(ERRORS[id_]["body"]).errors] == causes(ERRORS[id_])


def test_a_bad_prefix_and_the_name_made_of_it_are_both_refused():
    """The recorded server had already generated the name."""
    case = ERRORS["errors-043"]
    body = {**case["body"], "metadata": {**case["body"]["metadata"], "name": "Bad_2rlsc"}}
    assert [error.cause for error in check_create(body).errors] == causes(case)


@pytest.mark.parametrize("id_", ["errors-054", "errors-058", "errors-062", "errors-065"])
def test_the_whole_status_can_be_built_from_a_verdict(id_: str):
    case = ERRORS[id_]
    details = case["response"]["details"]
    status = build_invalid_status(
        kind=details["kind"],
        group=details.get("group", ""),
        name=details["name"],
        errors=check_create(case["body"]).errors,
    )
    assert status["message"] == case["response"]["message"]


@pytest.mark.parametrize("id_", [f"errors-{number:03d}" for number in range(7, 13)])
def test_an_undecodable_object_gives_the_recorded_sentence(id_: str):
    case = ERRORS[id_]
    verdict = check_create(case["body"])
    assert case["response"]["message"].endswith(f": {verdict.decode_error}")
    assert verdict.errors == []


@pytest.mark.parametrize("id_", ["fieldvalidation-001", "fieldvalidation-020"])
def test_unknown_fields_give_the_recorded_sentence(id_: str):
    case = FIELDS[id_]
    verdict = check_create(case["body"])
    unknown = ", ".join(f'unknown field "{path}"' for path in verdict.unknown_fields)
    assert case["response"]["message"].endswith(f": strict decoding error: {unknown}")
    assert verdict.is_good


@pytest.mark.parametrize("id_", sorted(set(ACCEPTED) - ABOUT_THE_QUERY))
def test_an_accepted_object_is_good(id_: str):
    verdict = check_create(CREATED[id_]["body"])
    assert verdict.is_good
    assert verdict.unknown_fields == []


# The token of create-028 is masked.
@pytest.mark.parametrize("id_", sorted(set(ACCEPTED) - ABOUT_THE_QUERY - {"create-028"}))
def test_what_the_server_stored_is_good_as_well(id_: str):
    assert check_create(CREATED[id_]["response"]).is_good


# What comes from elsewhere: identity, time, admission, allocation, the job's uid.
FROM_ELSEWHERE = {
    "Pod": {
        "priority",
        "preemptionPolicy",
        "serviceAccount",
        "serviceAccountName",
        "tolerations",
        "volumes",
        "volumeMounts",
    },
    "Job": {"selector", "labels"},
    "Service": {"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"},
    "PersistentVolume": {"lastPhaseTransitionTime", "finalizers"},
    "PersistentVolumeClaim": {"finalizers"},
    "DaemonSet": {"annotations"},
    "Node": {"taints"},
}
IDENTITY = {"uid", "resourceVersion", "creationTimestamp", "managedFields", "generation", "namespace", "name"}


def without(value: Any, names: set[str]) -> Any:
    if isinstance(value, dict):
        return {key: without(item, names) for key, item in value.items() if key not in names}
    if isinstance(value, list):
        return [without(item, names) for item in value]
    return value


DEFAULTED = sorted(set(ACCEPTED) - ABOUT_THE_QUERY - {"create-028", "create-045"})


@pytest.mark.parametrize("id_", DEFAULTED)
def test_defaults_are_those_of_the_server(id_: str):
    response = CREATED[id_]["response"]
    ours = default(CREATED[id_]["body"])
    ignored = FROM_ELSEWHERE.get(response["kind"], set())
    theirs = {**response, "metadata": without(response["metadata"], IDENTITY)}
    ours = {**ours, "metadata": without(ours["metadata"], IDENTITY)}
    assert without(ours, ignored) == without(theirs, ignored)


@pytest.mark.parametrize("id_", DEFAULTED)
def test_defaulting_twice_changes_nothing(id_: str):
    once = default(CREATED[id_]["body"])
    assert default(once) == once
