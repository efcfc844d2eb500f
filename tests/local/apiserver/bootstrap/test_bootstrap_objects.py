from __future__ import annotations

from typing import Any

import pytest

from plimsoll.local.apiserver.auth_types import User
from plimsoll.local.apiserver.bootstrap.objects import NAMESPACES, build_bootstrap_objects
from plimsoll.objects import builtin
from tests.local.apiserver.authorization.builders import AuthorizerHarness, binding, cluster_binding, visit, wish

OBJECTS = list(build_bootstrap_objects(ca_certificate="-----BEGIN CERTIFICATE-----\n"))
EVERY_VERB = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "*")
ACCESS = [object_ for object_ in OBJECTS if object_["apiVersion"].startswith("rbac.")]


def world(*more: dict[str, Any]) -> AuthorizerHarness:
    return AuthorizerHarness(*ACCESS, *more)


def named(kind: str) -> set[str]:
    return {object_["metadata"]["name"] for object_ in OBJECTS if object_["kind"] == kind}


@pytest.mark.parametrize("obj", OBJECTS, ids=lambda item: f"{item['kind']} {item['metadata']['name']}")
def test_every_object_is_valid(obj: dict[str, Any]):
    verdict = builtin.check_create(obj)
    # Only the server itself may make classes of this name, and above the highest priority for users.
    own = {"metadata.name", "value"} if obj["kind"] == "PriorityClass" else set()
    assert [error.text for error in verdict.errors if error.path not in own] == []
    assert verdict.decode_problems == []
    assert verdict.unknown_fields == []


def test_no_two_objects_share_a_name():
    places = [
        (object_["kind"], object_["metadata"].get("namespace"), object_["metadata"]["name"]) for object_ in OBJECTS
    ]
    assert len(set(places)) == len(places)


def test_the_namespaces_of_a_fresh_cluster_come_first():
    assert [object_["metadata"]["name"] for object_ in OBJECTS[:4]] == [
        "default",
        "kube-node-lease",
        "kube-public",
        "kube-system",
    ]


def test_each_namespace_has_its_account_and_certificate():
    for namespace in NAMESPACES:
        inside = {
            (object_["kind"], object_["metadata"]["name"])
            for object_ in OBJECTS
            if object_["metadata"].get("namespace") == namespace
        }
        assert {("ServiceAccount", "default"), ("ConfigMap", "kube-root-ca.crt")} <= inside


def test_without_a_certificate_there_are_no_maps_of_it():
    assert all(obj["kind"] != "ConfigMap" for obj in build_bootstrap_objects())


def test_the_priority_classes_of_the_system():
    values = {
        object_["metadata"]["name"]: object_["value"] for object_ in OBJECTS if object_["kind"] == "PriorityClass"
    }
    assert values == {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


def test_every_binding_finds_its_role():
    roles = {(item["metadata"].get("namespace", ""), item["metadata"]["name"]) for item in ACCESS if "rules" in item}
    for item in ACCESS:
        if "roleRef" in item:
            namespace = item["metadata"].get("namespace", "") if item["roleRef"]["kind"] == "Role" else ""
            assert (namespace, item["roleRef"]["name"]) in roles


def test_view_never_reads_secrets():
    viewer = User(name="v", groups=("system:authenticated",))
    for bound in (binding("v", "ClusterRole/view", "User v"), cluster_binding("v", "ClusterRole/view", "User v")):
        at = world(bound)
        assert at.allows(viewer, "get", "pods", namespace="default")
        for verb in EVERY_VERB:
            for resource in ("secrets", "secrets/status", "pods/exec", "serviceaccounts/token"):
                assert not at.allows(viewer, verb, resource, namespace="default"), (verb, resource)


def test_view_only_reads():
    viewer = User(name="v")
    at = world(cluster_binding("v", "ClusterRole/view", "User v"))
    rules = at.authorizer.find_user_rules(viewer, "default")
    assert {verb for rule in rules for verb in rule.verbs} == {"get", "list", "watch"}


@pytest.mark.parametrize(
    ("role", "verb", "resource", "group", "allowed"),
    [
        ("edit", "get", "secrets", "", True),
        ("edit", "create", "deployments", "apps", True),
        ("edit", "get", "pods/log", "", True),
        ("edit", "create", "roles", "rbac.authorization.k8s.io", False),
        ("edit", "update", "resourcequotas", "", False),
        ("edit", "update", "pods/status", "", False),
        ("admin", "create", "roles", "rbac.authorization.k8s.io", True),
        ("admin", "get", "secrets", "", True),
        ("admin", "update", "namespaces", "", False),
        ("admin", "create", "localsubjectaccessreviews", "authorization.k8s.io", True),
        ("cluster-admin", "anything", "anything", "anywhere", True),
        ("view", "get", "endpointslices", "discovery.k8s.io", True),
    ],
)
def test_roles_for_people(role: str, verb: str, resource: str, group: str, allowed: bool):
    at = world(binding("b", f"ClusterRole/{role}", "User u"))
    assert at.allows(User(name="u"), verb, resource, group=group, namespace="default") is allowed


@pytest.mark.parametrize(
    ("groups", "path", "allowed"),
    [
        (("system:unauthenticated",), "/version", True),
        (("system:unauthenticated",), "/readyz", True),
        (("system:unauthenticated",), "/api", False),
        (("system:unauthenticated",), "/openapi/v3", False),
        (("system:authenticated",), "/apis/apps/v1", True),
        (("system:authenticated",), "/openapi/v3", True),
        (("system:authenticated",), "/metrics", False),
        (("system:authenticated",), "/openid/v1/jwks", False),
        (("system:serviceaccounts",), "/openid/v1/jwks", True),
        (("system:monitoring",), "/metrics", True),
    ],
)
def test_pages_for_groups(groups: tuple[str, ...], path: str, allowed: bool):
    assert world().authorizer.decide(visit(User(name="x", groups=groups), path)).allowed is allowed


@pytest.mark.parametrize(
    ("user", "verb", "resource", "more"),
    [
        ("system:kube-scheduler", "create", "pods/binding", {"namespace": "default"}),
        ("system:kube-scheduler", "update", "leases",
         {"group": "coordination.k8s.io", "namespace": "kube-system", "name": "kube-scheduler"}),
        ("system:kube-controller-manager", "watch", "anything", {"group": "example.com"}),
        ("system:kube-controller-manager", "create", "serviceaccounts/token", {"namespace": "kube-system"}),
    ],
)  # fmt: skip
def test_the_parts_of_a_cluster_may_work(user: str, verb: str, resource: str, more: dict[str, str]):
    assert world().allows(User(name=user), verb, resource, **more)


def test_a_stranger_may_ask_about_themselves_and_no_more():
    stranger = User(name="x", groups=("system:authenticated",))
    at = world()
    assert at.allows(stranger, "create", "selfsubjectaccessreviews", group="authorization.k8s.io")
    assert not at.allows(stranger, "create", "subjectaccessreviews", group="authorization.k8s.io")
    assert not at.authorizer.decide(wish(stranger, "get", "pods", namespace="default")).allowed


def test_aggregated_roles_show_their_rules_and_keep_their_selectors():
    roles = {item["metadata"]["name"]: item for item in ACCESS if item["kind"] == "ClusterRole"}
    view, edit, admin = roles["view"], roles["edit"], roles["admin"]
    assert view["aggregationRule"] == {
        "clusterRoleSelectors": [{"matchLabels": {"rbac.authorization.k8s.io/aggregate-to-view": "true"}}]
    }
    assert all(rule in edit["rules"] for rule in view["rules"])
    assert all(rule in admin["rules"] for rule in edit["rules"])


def test_a_role_of_a_new_kind_joins_view_by_its_label():
    label = {"rbac.authorization.k8s.io/aggregate-to-view": "true"}
    rules = [{"verbs": ["get"], "apiGroups": ["example.com"], "resources": ["things"]}]
    new = {"kind": "ClusterRole", "apiVersion": "rbac.authorization.k8s.io/v1",
           "metadata": {"name": "things-view", "labels": label}, "rules": rules}  # fmt: skip
    at = world(binding("b", "ClusterRole/admin", "User u"), new)
    assert at.allows(User(name="u"), "get", "things", group="example.com", namespace="default")


def test_names_are_those_of_kubernetes():
    assert {"cluster-admin", "admin", "edit", "view", "system:node", "system:basic-user"} <= named("ClusterRole")
    assert {"cluster-admin", "system:discovery", "system:public-info-viewer"} <= named("ClusterRoleBinding")
