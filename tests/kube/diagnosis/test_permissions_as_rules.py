from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.cli.commands.requirements import REQUIREMENTS
from plimsoll.kube.diagnosis import AccessQuestion, Namespaces, Permission, Scope
from plimsoll.kube.diagnosis.access_reviews import Reviewer, check_permissions
from plimsoll.kube.diagnosis.permissions import build_role_manifests, build_subject, select_missing


def permission(**given: Any) -> Permission:
    return Permission(**{"group": "", "resource": "pods", "verbs": ("get", "list"), "why": "to see", **given})


@pytest.mark.parametrize(
    ("scope", "namespace"),
    [(Scope.EVERYWHERE, ""), (Scope.WATCHED, "w"), (Scope.OWN_NAMESPACE, "h"), (Scope.ONE, "kube-system")],
)
def test_a_scope_says_in_which_namespace_is_asked(scope: Scope, namespace: str):
    one = permission(scope=scope, namespace="kube-system" if scope is Scope.ONE else "")
    assert {asked.namespace for asked in one.list_questions(Namespaces(own="h", watched="w"))} == {namespace}


def test_one_question_for_each_verb_and_name():
    asked = [*permission(names=("a", "b"), group="g", subresource="status").list_questions(Namespaces())]
    assert [str(access) for access in asked] == [
        "get pods.g/status a in the whole cluster",
        "list pods.g/status a in the whole cluster",
        "get pods.g/status b in the whole cluster",
        "list pods.g/status b in the whole cluster",
    ]


def test_a_rule_as_rbac_writes_it():
    assert permission(subresource="eviction", verbs=("create",)).build_rule() == {
        "apiGroups": [""],
        "resources": ["pods/eviction"],
        "verbs": ["create"],
    }
    assert permission(names=("a",)).build_rule()["resourceNames"] == ["a"]


def test_only_what_is_missing_of_a_permission_is_asked_for():
    missing = {AccessQuestion(verb="list", group="", resource="pods")}
    assert [need.build_rule() for need in select_missing(permission(), missing, Namespaces())] == [
        permission(verbs=("list",)).build_rule()
    ]
    assert [*select_missing(permission(resource="nodes"), missing, Namespaces())] == []


def test_what_is_missing_in_one_namespace_is_not_asked_for_in_another():
    narrow = permission(resource="secrets", scope=Scope.WITH_OBJECTS, verbs=("get",))
    namespaces = Namespaces(used=("a", "b"))
    missing = {AccessQuestion(verb="get", group="", resource="secrets", namespace="b")}
    assert [need.namespace for need in select_missing(narrow, missing, namespaces)] == ["b"]


@pytest.mark.parametrize(
    ("user", "named"),
    [
        ("bob", {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "bob"}),
        ("system:serviceaccount:ns:app", {"kind": "ServiceAccount", "name": "app", "namespace": "ns"}),
        ("system:node:n1", {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "system:node:n1"}),
    ],
)
def test_a_binding_names_service_accounts_in_their_own_form(user: str, named: dict[str, str]):
    assert build_subject(user) == named


def test_what_is_needed_in_one_namespace_is_granted_only_there():
    manifests = build_role_manifests(
        [permission(), permission(resource="leases", scope=Scope.OWN_NAMESPACE)],
        role="plimsoll-x",
        user="bob",
        namespaces=Namespaces(own="h"),
    )
    assert [(manifest["kind"], manifest["metadata"].get("namespace")) for manifest in manifests] == [
        ("ClusterRole", None),
        ("ClusterRoleBinding", None),
        ("Role", "h"),
        ("RoleBinding", "h"),
    ]


@given(data=st.data(), controller=st.sampled_from([*REQUIREMENTS]), watched=st.sampled_from(["", "kafka"]))
@settings(max_examples=60, deadline=None)
def test_exactly_what_the_server_refuses_is_reported_and_the_rules_cover_it(
    data: st.DataObject, controller: str, watched: str
):
    needs, namespaces = REQUIREMENTS[controller], Namespaces(own="home", watched=watched, used=("kafka", "more"))
    asked = [access for need in needs.permissions for access in need.list_questions(namespaces)]
    answers = {access: data.draw(st.booleans()) for access in asked}
    finding = check_permissions(needs, answers, namespaces=namespaces, reviewer=Reviewer(user="bob"))
    refused = {access for access, allowed in answers.items() if not allowed}
    assert (finding.level == "fail") is bool(refused)
    for question in refused:
        assert any(_grants(rule, question) for rule in finding.details["rules"]), question
    reported = {
        (rule["verb"], rule["resource"], rule["namespace"], rule["name"]) for rule in finding.details.get("missing", ())
    }
    assert {(access.verb, access.resource, access.namespace, access.name) for access in refused} <= reported


def _grants(rule: dict[str, Any], asked: AccessQuestion) -> bool:
    path = f"{asked.resource}/{asked.subresource}" if asked.subresource else asked.resource
    return (
        rule.get("namespace", "") == asked.namespace
        and rule["apiGroups"] == [asked.group]
        and rule["resources"] == [path]
        and asked.verb in rule["verbs"]
        and asked.name in rule.get("resourceNames", [""])
    )
