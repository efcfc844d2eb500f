from __future__ import annotations

from typing import Any

import pytest

from plimsoll.local.apiserver.application import Application
from plimsoll.local.apiserver.crds.names import build_accepted_names_status
from plimsoll.local.apiserver.storage import Key, Put
from tests.local.apiserver.builders import MERGE, ApiServerHarness, definition

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/ex.com/v1/namespaces/here/widgets"


@pytest.fixture
def world():
    with ApiServerHarness() as made:
        made.namespace()
        yield made


def widget(name: str = "w", **more: Any) -> dict[str, Any]:
    return {"apiVersion": "ex.com/v1", "kind": "Widget", "metadata": {"name": name, **more.pop("metadata", {})}, **more}


def conditions(body: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {condition["type"]: (condition["status"], condition["reason"]) for condition in body["status"]["conditions"]}


def test_a_definition_is_established_after_it_was_created(world: ApiServerHarness):
    made = world.made(CRDS, definition())
    assert made["status"] == {"conditions": None, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": ["v1"]}
    body = world.ask("GET", f"{CRDS}/widgets.ex.com").body
    assert conditions(body) == {
        "NamesAccepted": ("True", "NoConflicts"),
        "Established": ("True", "InitialNamesAccepted"),
    }
    assert body["status"]["acceptedNames"] == {
        "plural": "widgets",
        "singular": "widget",
        "kind": "Widget",
        "listKind": "WidgetList",
    }
    assert {entry["manager"] for entry in body["metadata"]["managedFields"]} == {"tester", "kube-apiserver"}


def test_its_objects_are_defaulted_pruned_and_counted(world: ApiServerHarness):
    world.made(CRDS, definition())
    reply = world.ask("POST", WIDGETS, widget(spec={"junk": 1}))
    assert reply.status == 201
    assert reply.warnings == ('299 - "unknown field \\"spec.junk\\""',)
    assert (reply.body["spec"], reply.body["metadata"]["generation"]) == ({"size": 1}, 1)
    status = world.ask("PATCH", f"{WIDGETS}/w/status", {"status": {"ready": True}, "spec": {"size": 9}}, content=MERGE)
    assert (status.body["spec"], status.body["status"]) == ({"size": 1}, {"ready": True})
    assert status.body["metadata"]["generation"] == 1
    main = world.ask("PATCH", f"{WIDGETS}/w", {"status": {"ready": False}, "spec": {"size": 9}}, content=MERGE)
    assert (main.body["status"], main.body["metadata"]["generation"]) == ({"ready": True}, 2)


def test_a_list_of_custom_resources_repeats_kinds_and_always_says_continue(world: ApiServerHarness):
    world.made(CRDS, definition())
    world.made(WIDGETS, widget())
    body = world.ask("GET", WIDGETS).body
    assert body["items"][0]["kind"] == "Widget"
    assert body["metadata"]["continue"] == ""


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        (
            {"metadata": {"name": "w"}},
            400,
            "the object provided is unrecognized (must be of type Widget): Object 'Kind'",
        ),
        (
            {"apiVersion": "ex.com/v2", "kind": "Widget", "metadata": {"name": "w"}},
            400,
            "the API version in the data (ex.com/v2) does not match the expected API version (ex.com/v1)",
        ),
        (
            {"apiVersion": "ex.com/v1", "kind": "Gadget", "metadata": {"name": "w"}},
            422,
            'Gadget.ex.com "w" is invalid: kind: Invalid value: "Gadget": must be Widget',
        ),
    ],
)
def test_a_custom_resource_says_what_it_is(world: ApiServerHarness, body: dict[str, Any], code: int, message: str):
    world.made(CRDS, definition())
    reply = world.ask("POST", WIDGETS, body)
    assert reply.status == code
    assert reply.message.startswith(message)


def test_versions_differ_in_nothing_but_their_schema(world: ApiServerHarness):
    def version(name: str, default: str, **more: Any) -> dict[str, Any]:
        properties = {"spec": {"type": "object", "properties": {"v": {"type": "string", "default": default}}}}
        schema = {"openAPIV3Schema": {"type": "object", "properties": properties}}
        return {"name": name, "served": True, "storage": name == "v1", "schema": schema, **more}

    versions = [version("v1beta1", "old", deprecated=True), version("v1", "new")]
    world.made(CRDS, definition(versions=versions))
    url = "/apis/ex.com/v1beta1/namespaces/here/widgets"
    made = world.ask("POST", url, {**widget(spec={}), "apiVersion": "ex.com/v1beta1"})
    assert made.body["spec"] == {"v": "old"}
    assert made.warnings == ('299 - "ex.com/v1beta1 Widget is deprecated; use ex.com/v1 Widget"',)
    shown = world.ask("GET", f"{WIDGETS}/w").body
    assert (shown["apiVersion"], shown["spec"]) == ("ex.com/v1", {"v": "old"})


def test_a_version_that_is_no_longer_served_is_a_page(world: ApiServerHarness):
    world.made(CRDS, definition())
    versions = [dict(version) for version in definition()["spec"]["versions"]]
    versions[0] |= {"storage": False, "served": False}
    versions.append({**versions[0], "name": "v2", "storage": True, "served": True})
    reply = world.ask("PATCH", f"{CRDS}/widgets.ex.com", {"spec": {"versions": versions}}, content=MERGE)
    assert reply.status == 200
    assert reply.body["status"]["storedVersions"] == ["v1", "v2"]
    assert world.ask("GET", WIDGETS).body == "404 page not found\n"
    assert world.ask("GET", "/apis/ex.com/v2/namespaces/here/widgets").status == 200


def test_a_kind_that_is_taken_is_not_accepted_until_it_is_free(world: ApiServerHarness):
    world.made(CRDS, definition())
    world.made(CRDS, definition("widgetz"))
    waiting = world.ask("GET", f"{CRDS}/widgetz.ex.com").body
    assert conditions(waiting) == {
        "NamesAccepted": ("False", "ListKindConflict"),
        "Established": ("False", "NotAccepted"),
    }
    assert world.ask("GET", "/apis/ex.com/v1/widgetz").status == 404
    world.ask("DELETE", f"{CRDS}/widgets.ex.com")
    assert conditions(world.ask("GET", f"{CRDS}/widgetz.ex.com").body)["Established"][0] == "True"
    assert world.ask("GET", "/apis/ex.com/v1/widgetz").status == 200


def test_deleting_a_definition_deletes_its_objects(world: ApiServerHarness):
    world.made(CRDS, definition())
    world.made(WIDGETS, widget())
    watching = world.watch("/apis/ex.com/v1/widgets?watch=1")
    assert world.ask("DELETE", f"{CRDS}/widgets.ex.com").status == 200
    assert watching.story == [("ADDED", "w"), ("DELETED", "w")]
    assert world.ask("GET", f"{CRDS}/widgets.ex.com").status == 404
    assert world.ask("GET", WIDGETS).body == "404 page not found\n"


def test_a_definition_waits_for_an_object_that_waits(world: ApiServerHarness):
    world.made(CRDS, definition())
    world.made(WIDGETS, widget(metadata={"finalizers": ["ex.com/hold"]}))
    deleted = world.ask("DELETE", f"{CRDS}/widgets.ex.com").body
    assert deleted["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
    assert conditions(deleted)["Terminating"] == ("True", "InstanceDeletionPending")
    body = world.ask("GET", f"{CRDS}/widgets.ex.com").body
    assert conditions(body)["Terminating"] == ("True", "InstanceDeletionInProgress")
    refused = world.ask("POST", WIDGETS, widget("other"))
    assert refused.status == 403
    assert refused.message.endswith("create not allowed while custom resource definition is terminating")
    world.ask("PATCH", f"{WIDGETS}/w", {"metadata": {"finalizers": None}}, content=MERGE)
    assert world.ask("GET", f"{CRDS}/widgets.ex.com").status == 404


def test_what_a_server_left_half_done_is_finished_by_the_next(world: ApiServerHarness):
    world.made(CRDS, definition())
    store = world.server.store
    crd = store.get(Key("apiextensions.k8s.io/customresourcedefinitions", "", "widgets.ex.com"))
    assert crd is not None
    unsettled = {**crd.decode_body(), "status": {"storedVersions": ["v1"]}}
    world.run.run_until(store.update(crd.key, lambda _: Put(unsettled)))
    world.server.registry.serve("widgets.ex.com", ())
    world.application = Application(world.server)
    assert world.ask("GET", WIDGETS).status == 200


def test_names_that_were_accepted_stay_accepted():
    settled = build_accepted_names_status({"spec": definition()["spec"], "status": {}}, [], now="2026-01-01T00:00:00Z")
    rival = {"spec": definition()["spec"], "status": settled}
    again = build_accepted_names_status(
        {"spec": definition()["spec"], "status": settled}, [rival], now="2026-01-02T00:00:00Z"
    )
    assert conditions({"status": again})["Established"] == ("True", "InitialNamesAccepted")
    assert again["acceptedNames"]["plural"] == "widgets"


def test_selectable_fields_are_those_of_the_definition(world: ApiServerHarness):
    versions = [dict(version) for version in definition()["spec"]["versions"]]
    versions[0]["selectableFields"] = [{"jsonPath": ".spec.size"}]
    world.made(CRDS, definition(versions=versions))
    world.made(WIDGETS, widget("small", spec={"size": 1}))
    world.made(WIDGETS, widget("large", spec={"size": 9}))
    found = world.ask("GET", f"{WIDGETS}?fieldSelector=spec.size%3D9").body
    assert [item["metadata"]["name"] for item in found["items"]] == ["large"]
    assert (
        world.ask("GET", f"{WIDGETS}?fieldSelector=spec.color%3Dx").message == "field label not supported: spec.color"
    )


WEBHOOK = {
    "strategy": "Webhook",
    "webhook": {"clientConfig": {"url": "https://example.com/convert"}, "conversionReviewVersions": ["v1"]},
}


def test_a_conversion_webhook_is_refused_because_none_is_called(world: ApiServerHarness):
    asked = definition()
    asked["spec"]["conversion"] = WEBHOOK
    refused = world.ask("POST", CRDS, asked)
    assert refused.status == 422
    assert refused.message.startswith(
        'CustomResourceDefinition.apiextensions.k8s.io "widgets.ex.com" is invalid: spec.conversion.strategy: '
        'Invalid value: "Webhook": this server does not call conversion webhooks'
    )
    world.made(CRDS, definition())
    patched = world.ask("PATCH", f"{CRDS}/widgets.ex.com", {"spec": {"conversion": WEBHOOK}}, content=MERGE)
    assert patched.status == 422
    assert world.ask("GET", f"{CRDS}/widgets.ex.com").body["spec"]["conversion"] == {"strategy": "None"}


def test_a_definition_with_a_webhook_that_is_there_already_can_be_changed(world: ApiServerHarness):
    world.made(CRDS, definition())
    key = Key("apiextensions.k8s.io/customresourcedefinitions", "", "widgets.ex.com")

    def with_webhook(found: Any) -> Put:
        body = found.decode_body()
        return Put({**body, "spec": {**body["spec"], "conversion": WEBHOOK}})

    world.run.run_until(world.server.store.update(key, with_webhook))
    label = {"metadata": {"labels": {"a": "b"}}}
    assert world.ask("PATCH", f"{CRDS}/widgets.ex.com", label, content=MERGE).status == 200
    back = {"spec": {"conversion": {"strategy": "None", "webhook": None}}}
    assert world.ask("PATCH", f"{CRDS}/widgets.ex.com", back, content=MERGE).status == 200


@pytest.mark.parametrize("body", [{}, {"spec": None}, {"spec": {}}, {"spec": {"conversion": []}}, {"spec": []}])
def test_a_definition_without_a_spec_is_refused_by_name(world: ApiServerHarness, body: dict[str, Any]):
    reply = world.ask("POST", CRDS, {"metadata": {"name": "widgets.ex.com"}, **body})
    assert reply.status in {400, 422}
    assert "spec" in reply.message
