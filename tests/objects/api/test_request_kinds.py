"""ProvisioningRequests and ProvisioningClasses: our table against our definitions, and names of the first design."""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll.objects.api.provisioning_requests import REQUEST_RESOURCES, use_shipped_names
from plimsoll.objects.custom_kinds import OUR_KINDS
from plimsoll.objects.validation import list_shipped_definitions

DEFINITIONS = {manifest.body["spec"]["names"]["kind"]: manifest.body["spec"] for manifest in list_shipped_definitions()}


@pytest.mark.parametrize("resource", REQUEST_RESOURCES, ids=lambda kind: kind.kind)
def test_the_table_says_what_the_definition_says(resource: Any):
    spec = DEFINITIONS[resource.kind]
    names = spec["names"]
    stored = next(version["name"] for version in spec["versions"] if version["storage"])
    assert (resource.group, resource.version, resource.namespaced) == (
        spec["group"],
        stored,
        spec["scope"] == "Namespaced",
    )
    assert (resource.plural, resource.singular, resource.list_kind) == (
        names["plural"],
        names["singular"],
        names["listKind"],
    )
    assert resource.short_names == tuple(names["shortNames"])


@pytest.mark.parametrize("name", ["provreq", "provreqs", "provisioningrequests.autoscaling.x-k8s.io"])
def test_requests_are_found_by_their_short_names(name: str):
    found = OUR_KINDS.find_by_name(name)
    assert found is not None
    assert found.kind == "ProvisioningRequest"


def test_both_versions_of_requests_have_one_schema():
    served, deprecated = DEFINITIONS["ProvisioningRequest"]["versions"]
    assert (served["name"], deprecated["name"], deprecated["deprecated"]) == ("v1", "v1beta1", True)
    for part in ("schema", "subresources", "additionalPrinterColumns"):
        assert served[part] == deprecated[part]


def test_names_of_the_first_design_become_those_of_today():
    body = {
        "apiVersion": "autoscaling.x-k8s.io/v1",
        "kind": "ProvisioningRequest",
        "spec": {"provisioningClass": "c", "Parameters": {"a": "b"}, "podSets": []},
        "status": {"statuses": {"attempts": "1"}},
    }
    assert use_shipped_names(body) == {
        "apiVersion": "autoscaling.x-k8s.io/v1",
        "kind": "ProvisioningRequest",
        "spec": {"provisioningClassName": "c", "parameters": {"a": "b"}, "podSets": []},
        "status": {"provisioningClassDetails": {"attempts": "1"}},
    }


@pytest.mark.parametrize(
    "body",
    [
        {"kind": "ProvisioningRequest", "spec": {"provisioningClass": "old", "provisioningClassName": "new"}},
        {"kind": "ProvisioningRequest", "spec": "odd", "status": None},
        {"kind": "Other", "spec": {"provisioningClass": "c"}},
        {"kind": "ProvisioningRequest", "apiVersion": "example.com/v1", "spec": {"Parameters": {}}},
    ],
    ids=["both names", "no map", "another kind", "another group"],
)
def test_everything_else_stays_as_it_is(body: dict[str, Any]):
    assert use_shipped_names(body) == body
