from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.local.apiserver.resources.builtin import list_builtin_resources
from plimsoll.objects.registry import KINDS

if TYPE_CHECKING:
    from plimsoll.local.apiserver.resources.registry import ServedResource

DISCOVERY = Path(__file__).parents[3] / "fixtures" / "kubernetes" / "discovery"
SERVED = tuple(list_builtin_resources())


def recorded(resource: ServedResource) -> dict[str, Any]:
    name = "api_v1" if resource.api_version == "v1" else f"apis_{resource.api_version.replace('/', '_')}"
    document = json.loads((DISCOVERY / f"{name}.json").read_text())
    return {item["name"]: item for item in document["response"]["resources"]}


def identifier(resource: ServedResource) -> str:
    return f"{resource.api_version}-{resource.plural}"


@pytest.mark.parametrize("resource", SERVED, ids=identifier)
def test_a_resource_is_called_what_a_real_server_calls_it(resource: ServedResource):
    real = recorded(resource)[resource.plural]
    assert resource.kind == real["kind"]
    assert resource.singular == real["singularName"]
    assert resource.namespaced == real["namespaced"]
    assert list(resource.short_names) == real.get("shortNames", [])
    assert list(resource.categories) == real.get("categories", [])
    assert resource.storage_version_hash == real.get("storageVersionHash", "")


@pytest.mark.parametrize(
    "resource",
    [served_resource for served_resource in SERVED if served_resource.group != "autoscaling"],
    ids=identifier,
)
def test_a_resource_can_do_what_a_real_one_can(resource: ServedResource):
    assert list(resource.verbs) == recorded(resource)[resource.plural]["verbs"]


def test_autoscalers_are_listed_and_never_made():
    verbs = {item.verbs for item in SERVED if item.group == "autoscaling"}
    assert verbs == {("get", "list", "watch")}


@pytest.mark.parametrize(
    "resource", [served_resource for served_resource in SERVED if served_resource.subresources], ids=identifier
)
def test_subresources_have_the_kinds_and_verbs_of_a_real_server(resource: ServedResource):
    for part in resource.subresources:
        real = recorded(resource)[f"{resource.plural}/{part.name}"]
        assert (part.kind, list(part.verbs)) == (real["kind"], real["verbs"])
        assert (part.group, part.version) == (real.get("group", ""), real.get("version", ""))


def test_every_kind_that_objects_knows_is_served():
    served = {(item.api_version, item.kind) for item in SERVED}
    assert {(kind.api_version, kind.kind) for kind in KINDS} <= served
