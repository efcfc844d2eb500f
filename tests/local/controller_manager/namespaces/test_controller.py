"""Namespaces that are deleted: emptied of every kind, reported, let go."""

from __future__ import annotations

from typing import Any

from plimsoll.local.controller_manager.services import build_namespace_services
from tests.local.apiserver.builders import MERGE
from tests.local.local_cluster import LocalClusterHarness

HERE = "/api/v1/namespaces/here"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def emptying() -> LocalClusterHarness:
    return LocalClusterHarness(build_namespace_services)


def delete(world: LocalClusterHarness) -> None:
    assert world.ask("DELETE", HERE).status == 200
    world.run.settle()


def conditions(world: LocalClusterHarness) -> dict[str, Any]:
    return {condition["type"]: condition for condition in world.ask("GET", HERE).body["status"]["conditions"]}


def test_a_namespace_goes_with_everything_in_it():
    with emptying() as world:
        world.namespace()
        world.made(f"{HERE}/configmaps", {"metadata": {"name": "c"}})
        world.made(f"{HERE}/pods", {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "x"}]}})
        delete(world)
        assert world.ask("GET", f"{HERE}/configmaps/c").status == 200
        world.run.advance_by(5)
        assert world.ask("GET", HERE).status == 404
        assert world.ask("GET", f"{HERE}/configmaps").body["items"] == []


def test_custom_objects_go_too():
    with emptying() as world:
        schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
        names = {"plural": "widgets", "singular": "widget", "kind": "Widget"}
        spec = {"group": "ex.com", "scope": "Namespaced", "names": names, "versions": [version]}
        kind = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
        world.made(CRDS, {**kind, "metadata": {"name": "widgets.ex.com"}, "spec": spec})
        world.run.advance_by(1)
        world.namespace()
        widget = {"apiVersion": "ex.com/v1", "kind": "Widget", "metadata": {"name": "w"}}
        world.made("/apis/ex.com/v1/namespaces/here/widgets", widget)
        delete(world)
        world.run.advance_by(5)
        assert world.ask("GET", HERE).status == 404
        assert world.ask("GET", "/apis/ex.com/v1/widgets").body["items"] == []


def test_a_finalizer_keeps_the_namespace_and_is_named():
    with emptying() as world:
        world.namespace()
        world.made(f"{HERE}/configmaps", {"metadata": {"name": "c", "finalizers": ["ex.com/hold"]}})
        delete(world)
        world.run.advance_by(5)
        reported = conditions(world)
        assert reported["NamespaceContentRemaining"]["message"] == (
            "Some resources are remaining: configmaps. has 1 resource instances"
        )
        assert reported["NamespaceFinalizersRemaining"]["message"] == (
            "Some content in the namespace has finalizers remaining: ex.com/hold in 1 resource instances"
        )
        world.ask("PATCH", f"{HERE}/configmaps/c", {"metadata": {"finalizers": None}}, content=MERGE)
        world.run.advance_by(8)
        assert world.ask("GET", HERE).status == 404


def test_pods_have_their_grace():
    with emptying() as world:
        world.namespace()
        spec = {"nodeName": "n", "containers": [{"name": "c", "image": "x"}]}
        world.made(f"{HERE}/pods", {"metadata": {"name": "p"}, "spec": spec})
        delete(world)
        world.run.advance_by(10)
        assert conditions(world)["NamespaceContentRemaining"]["reason"] == "SomeResourcesRemain"
        world.ask("DELETE", f"{HERE}/pods/p?gracePeriodSeconds=0")
        world.run.advance_by(16)
        assert world.ask("GET", HERE).status == 404


def test_other_namespaces_are_left_alone():
    with emptying() as world:
        world.namespace()
        other = world.namespace("other")
        world.made(f"{other}/configmaps", {"metadata": {"name": "c"}})
        delete(world)
        world.run.advance_by(60)
        assert world.ask("GET", f"{other}/configmaps/c").status == 200


def test_a_restart_goes_on_where_it_was():
    with emptying() as world:
        world.namespace()
        world.made(f"{HERE}/configmaps", {"metadata": {"name": "c", "finalizers": ["ex.com/hold"]}})
        delete(world)
        world.run.advance_by(6)
        world.kill()
        world.ask("PATCH", f"{HERE}/configmaps/c", {"metadata": {"finalizers": None}}, content=MERGE)
        world.start()
        assert world.ask("GET", HERE).status == 404
