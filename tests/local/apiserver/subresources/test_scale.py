from __future__ import annotations

from typing import Any

import pytest

from tests.local.apiserver.subresources.builders import DEPLOYMENTS, ServerClient, cluster, deployment

Json = dict[str, Any]

NOT_A_NUMBER = "json: cannot unmarshal string into Go struct field ScaleSpec.spec.replicas of type int32"
MERGE = "application/merge-patch+json"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/ex.com/v1/namespaces/default/widgets"


def managers(world: ServerClient, path: str) -> dict[str, Json]:
    entries = world.get(path)["metadata"].get("managedFields", [])
    return {f"{entry['manager']}/{entry.get('subresource', '')}": entry["fieldsV1"] for entry in entries}


class TestBuiltinKinds:
    def test_every_scale_is_a_change_of_the_object(self):
        with cluster() as world:
            world.made(DEPLOYMENTS, deployment())
            world.send("PATCH", f"{DEPLOYMENTS}/d/scale", {"spec": {"replicas": 4}}, media=MERGE)
            after = world.get(f"{DEPLOYMENTS}/d")
            assert (after["spec"]["replicas"], after["metadata"]["generation"]) == (4, 2)

    def test_the_same_number_changes_nothing(self):
        with cluster() as world:
            before = world.made(DEPLOYMENTS, deployment())["metadata"]["resourceVersion"]
            reply = world.send("PATCH", f"{DEPLOYMENTS}/d/scale", {"spec": {"replicas": 1}}, media=MERGE)
            assert reply.body["metadata"]["resourceVersion"] == before

    def test_whoever_scales_owns_the_number(self):
        with cluster() as world:
            world.made(DEPLOYMENTS, deployment())
            patch = {"spec": {"replicas": 4}}
            world.send("PATCH", f"{DEPLOYMENTS}/d/scale", patch, media=MERGE, fieldManager="scaler")
            owned = managers(world, f"{DEPLOYMENTS}/d")
            assert owned["scaler/scale"] == {"f:spec": {"f:replicas": {}}}
            assert "f:replicas" not in owned["tests/"]["f:spec"]

    def test_an_apply_of_another_manager_conflicts(self):
        with cluster() as world:
            world.made(DEPLOYMENTS, deployment())
            body = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "d"}, "spec": {"replicas": 7}}
            media = "application/apply-patch+yaml"
            path = f"{DEPLOYMENTS}/d/scale"
            assert world.send("PATCH", path, body, media=media, fieldManager="one").status == 409
            reply = world.send("PATCH", path, body, media=media, fieldManager="one", force="true")
            assert (reply.status, reply.body["spec"]) == (200, {"replicas": 7})
            assert managers(world, f"{DEPLOYMENTS}/d")["one/scale"] == {"f:spec": {"f:replicas": {}}}

    def test_an_object_of_another_uid_is_not_meant(self):
        with cluster() as world:
            uid = world.made(DEPLOYMENTS, deployment())["metadata"]["uid"]
            body = {"metadata": {"name": "d", "uid": "other"}, "spec": {"replicas": 2}}
            reply = world.send("PUT", f"{DEPLOYMENTS}/d/scale", body)
            reported = f"Precondition failed: UID in precondition: other, UID in object meta: {uid}"
            assert (reply.status, reply.body["message"].endswith(reported)) == (409, True)

    @pytest.mark.parametrize(
        ("body", "reported"),
        [
            (
                {"spec": {"replicas": 2}},
                "the name of the object (d based on URL) was undeterminable: name must be provided",
            ),
            (
                {"metadata": {"name": "other"}, "spec": {"replicas": 2}},
                "the name of the object (other) does not match the name on the URL (d)",
            ),
            (
                {"metadata": {"name": "d", "namespace": "other"}, "spec": {"replicas": 2}},
                "the namespace of the provided object does not match the namespace sent on the request",
            ),
            (
                {"metadata": {"name": "d"}, "spec": {"replicas": "two"}},
                f'Scale in version "v1" cannot be handled as a Scale: {NOT_A_NUMBER}',
            ),
        ],
    )
    def test_a_body_that_is_not_this_scale_is_refused(self, body: Json, reported: str):
        with cluster() as world:
            world.made(DEPLOYMENTS, deployment())
            reply = world.send("PUT", f"{DEPLOYMENTS}/d/scale", body)
            assert (reply.status, reply.body["message"]) == (400, reported)

    def test_a_dry_run_shows_and_changes_nothing(self):
        with cluster() as world:
            before = world.made(DEPLOYMENTS, deployment())
            reply = world.send("PATCH", f"{DEPLOYMENTS}/d/scale", {"spec": {"replicas": 4}}, media=MERGE, dryRun="All")
            assert reply.body["spec"] == {"replicas": 4}
            assert world.get(f"{DEPLOYMENTS}/d") == before

    def test_the_selector_is_written_out(self):
        made = deployment()
        expression = {"key": "tier", "operator": "In", "values": ["b", "a"]}
        made["spec"]["selector"]["matchExpressions"] = [expression]
        made["spec"]["template"]["metadata"]["labels"]["tier"] = "a"
        with cluster() as world:
            world.made(DEPLOYMENTS, made)
            assert world.get(f"{DEPLOYMENTS}/d/scale")["status"]["selector"] == "app=d,tier in (a,b)"

    def test_a_replication_controllers_selector_is_a_plain_map(self):
        path = "/api/v1/namespaces/default/replicationcontrollers"
        made = deployment("rc")
        made["spec"]["selector"] = {"app": "d"}
        with cluster() as world:
            world.made(path, made)
            assert world.get(f"{path}/rc/scale")["status"] == {"replicas": 0, "selector": "app=d"}


class TestCustomKinds:
    @staticmethod
    def define(world: ServerClient, **more: Any) -> None:
        number = {"type": "integer"}
        properties = {
            "spec": {"type": "object", "properties": {"size": {"type": "object", "properties": {"count": number}}}},
            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        }
        scale = {"specReplicasPath": ".spec.size.count", "statusReplicasPath": ".status.count", **more}
        version = {
            "name": "v1",
            "served": True,
            "storage": True,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
            "subresources": {"status": {}, "scale": scale},
        }
        names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
        spec = {"group": "ex.com", "scope": "Namespaced", "names": names, "versions": [version]}
        body = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
        world.made(DEFINITIONS, {**body, "metadata": {"name": "widgets.ex.com"}, "spec": spec})

    @staticmethod
    def make(world: ServerClient, spec: Json) -> None:
        world.made(WIDGETS, {"apiVersion": "ex.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": spec})

    def test_the_number_is_where_the_definition_says(self):
        with cluster() as world:
            self.define(world)
            self.make(world, {"size": {"count": 2}})
            assert world.get(f"{WIDGETS}/w/scale")["spec"] == {"replicas": 2}
            world.send("PATCH", f"{WIDGETS}/w/scale", {"spec": {"replicas": 5}}, media=MERGE)
            assert world.get(f"{WIDGETS}/w")["spec"] == {"size": {"count": 5}}

    def test_an_object_without_the_number_has_no_scale(self):
        with cluster() as world:
            self.define(world)
            self.make(world, {})
            reply = world.send("GET", f"{WIDGETS}/w/scale")
            reported = 'Internal error occurred: the spec replicas field ".spec.size.count" does not exist'
            assert (reply.status, reply.body["message"]) == (500, reported)

    def test_an_object_without_the_number_can_be_given_one(self):
        with cluster() as world:
            self.define(world)
            self.make(world, {})
            reply = world.send("PATCH", f"{WIDGETS}/w/scale", {"spec": {"replicas": 3}}, media=MERGE)
            assert reply.status == 200, reply.text
            assert world.get(f"{WIDGETS}/w")["spec"] == {"size": {"count": 3}}

    def test_an_object_without_the_number_is_not_given_nothing(self):
        with cluster() as world:
            self.define(world)
            self.make(world, {})
            reply = world.send("PATCH", f"{WIDGETS}/w/scale", {"metadata": {"name": "w"}}, media=MERGE)
            reported = 'the spec replicas field ".spec.size.count" cannot be empty'
            assert (reply.status, reply.body["message"]) == (400, reported)
