"""Definitions with the name of a built-in resource: stored with the reason, and never served."""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll.local.apiserver.application import Application
from plimsoll.local.apiserver.crds.names import build_accepted_names_status
from plimsoll.local.apiserver.storage import Key, Put
from tests.local.apiserver.builders import MERGE, ApiServerHarness, definition

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GROUP = "rbac.authorization.k8s.io"
BINDINGS = f"{GROUP}/clusterrolebindings"


@pytest.fixture
def world():
    with ApiServerHarness() as made:
        made.namespace()
        yield made


def reserved(plural: str = "clusterrolebindings", *, kind: str = "Foo", version: str = "v1") -> dict[str, Any]:
    body = definition(plural, group=GROUP, scope="Cluster", names={"plural": plural, "singular": "foo", "kind": kind})
    body["metadata"] = {
        "name": f"{plural}.{GROUP}",
        "annotations": {"api-approved.kubernetes.io": "unapproved, for tests"},
    }
    body["spec"]["versions"][0]["name"] = version
    return body


def conditions(body: dict[str, Any]) -> dict[str, tuple[str, str, str]]:
    return {
        condition["type"]: (condition["status"], condition["reason"], condition["message"])
        for condition in body["status"]["conditions"]
    }


@pytest.mark.parametrize(
    ("body", "reason", "name"),
    [
        (reserved(), "PluralConflict", "clusterrolebindings"),
        (reserved(version="v9"), "PluralConflict", "clusterrolebindings"),
        (reserved("foos", kind="ClusterRoleBinding"), "ListKindConflict", "ClusterRoleBindingList"),
    ],
)
def test_a_built_in_name_is_in_use(world: ApiServerHarness, body: dict[str, Any], reason: str, name: str):
    world.made(CRDS, body)
    found = conditions(world.ask("GET", f"{CRDS}/{body['metadata']['name']}").body)
    assert found == {
        "NamesAccepted": ("False", reason, f'"{name}" is already in use'),
        "Established": ("False", "NotAccepted", "not all names are accepted"),
    }
    assert not any(resource.is_custom for resource in world.server.registry)


def test_a_status_that_claims_otherwise_changes_nothing(world: ApiServerHarness):
    world.made(CRDS, reserved(version="v9"))
    claimed = {
        "acceptedNames": {"plural": "clusterrolebindings", "singular": "foo", "kind": "Foo", "listKind": "FooList"},
        "conditions": [
            {
                "type": kind,
                "status": "True",
                "reason": "Me",
                "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }
            for kind in ("NamesAccepted", "Established")
        ],
    }
    url = f"{CRDS}/clusterrolebindings.{GROUP}"
    assert world.ask("PATCH", f"{url}/status", {"status": claimed}, content=MERGE).status == 200
    assert conditions(world.ask("GET", url).body)["Established"][0] == "False"
    assert world.ask("GET", f"/apis/{GROUP}/v9/clusterrolebindings").status == 404


def test_deleting_it_deletes_nothing_built_in(world: ApiServerHarness):
    world.made(CRDS, reserved())
    before = world.server.store.count(BINDINGS)
    assert before > 0
    assert world.ask("DELETE", f"{CRDS}/clusterrolebindings.{GROUP}").status == 200
    assert world.server.store.count(BINDINGS) == before
    assert world.ask("GET", f"{CRDS}/clusterrolebindings.{GROUP}").status == 404


def test_one_that_an_older_server_established_is_withdrawn_at_the_start(world: ApiServerHarness):
    world.made(CRDS, reserved())
    key = Key("apiextensions.k8s.io/customresourcedefinitions", "", f"clusterrolebindings.{GROUP}")
    stored = world.server.store.get(key)
    assert stored is not None
    body = {**stored.decode_body()}
    body["status"] = build_accepted_names_status({**body, "status": {}}, [], now="2026-01-01T00:00:00Z")
    assert conditions(body)["Established"][0] == "True"
    world.run.run_until(world.server.store.update(key, lambda _: Put(body)))
    world.application = Application(world.server)
    assert conditions(world.ask("GET", f"{CRDS}/{key.name}").body)["Established"][0] == "False"
    assert not any(resource.is_custom for resource in world.server.registry)


def test_another_name_in_a_built_in_group_is_free(world: ApiServerHarness):
    world.made(CRDS, reserved("foos"))
    assert world.ask("GET", f"/apis/{GROUP}/v1/foos").status == 200
