from __future__ import annotations

import pytest

from plimsoll.local.apiserver.auth_types import User
from plimsoll.local.apiserver.authorization import forbidden
from tests.local.apiserver.authorization.builders import (
    ADMIN,
    BOB,
    AuthorizerHarness,
    binding,
    cluster_binding,
    cluster_role,
    role,
    rule,
    visit,
    wish,
)


def allowed_by(*rules: dict) -> AuthorizerHarness:
    return AuthorizerHarness(cluster_role("cr", *rules), cluster_binding("b", "ClusterRole/cr", "User bob"))


@pytest.mark.parametrize(
    ("rules", "asked", "allowed"),
    [
        ([rule("get", "pods")], {"verb": "get", "resource": "pods"}, True),
        ([rule("get", "pods")], {"verb": "list", "resource": "pods"}, False),
        ([rule("get", "pods")], {"verb": "get", "resource": "services"}, False),
        ([rule("get", "pods")], {"verb": "get", "resource": "pods", "group": "metrics.k8s.io"}, False),
        ([rule("*", "pods")], {"verb": "anything", "resource": "pods"}, True),
        ([rule("get", "*")], {"verb": "get", "resource": "pods/log"}, True),
        ([rule("get", "pods", of="*")], {"verb": "get", "resource": "pods", "group": "x.example.com"}, True),
        ([rule("get", "pods")], {"verb": "get", "resource": "pods/log"}, False),
        ([rule("get", "pods/log")], {"verb": "get", "resource": "pods/log"}, True),
        ([rule("get", "pods/log")], {"verb": "get", "resource": "pods"}, False),
        ([rule("get", "*/scale", of="apps")], {"verb": "get", "resource": "deployments/scale", "group": "apps"}, True),
        ([rule("get", "*/scale", of="apps")], {"verb": "get", "resource": "deployments", "group": "apps"}, False),
        ([rule("update", "*/scale")], {"verb": "update", "resource": "x/y/scale"}, False),
        ([rule("get", "pods", named="a")], {"verb": "get", "resource": "pods", "name": "a"}, True),
        ([rule("get", "pods", named="a")], {"verb": "get", "resource": "pods", "name": "b"}, False),
        ([rule("list watch", "pods", named="a")], {"verb": "watch", "resource": "pods"}, False),
        ([rule("list watch", "pods", named="a")], {"verb": "watch", "resource": "pods", "name": "a"}, True),
        ([rule("deletecollection", "pods", named="a")], {"verb": "deletecollection", "resource": "pods"}, False),
        ([rule("get", urls="*")], {"verb": "get", "resource": "pods"}, False),
    ],
)  # fmt: skip
def test_a_rule_allows(rules: list, asked: dict, allowed: bool):
    world = allowed_by(*rules)
    assert world.allows(BOB, asked.pop("verb"), asked.pop("resource"), **asked) is allowed


@pytest.mark.parametrize(
    ("urls", "path", "allowed"),
    [
        ("/healthz", "/healthz", True),
        ("/healthz", "/healthz/", False),
        ("/healthz", "/healthz/ping", False),
        ("/healthz/*", "/healthz/ping", True),
        ("/healthz/*", "/healthz", False),
        ("/api*", "/apis/apps", True),
        ("*", "/anything", True),
        ("/a /b/*", "/b/c/d", True),
        ("/a*b", "/axb", False),
    ],
)
def test_a_rule_allows_paths(urls: str, path: str, allowed: bool):
    world = allowed_by(rule("get", urls=urls))
    assert world.authorizer.decide(visit(BOB, path)).allowed is allowed


def test_a_rule_for_resources_says_nothing_about_paths():
    assert not allowed_by(rule("*", "*", of="*")).authorizer.decide(visit(BOB, "/api")).allowed


def test_a_role_binding_grants_in_its_namespace_only():
    world = AuthorizerHarness(
        cluster_role("cr", rule("get", "pods")), binding("b", "ClusterRole/cr", "User bob", namespace="a")
    )
    assert world.allows(BOB, "get", "pods", namespace="a")
    assert not world.allows(BOB, "get", "pods", namespace="b")
    assert not world.allows(BOB, "get", "pods")


def test_a_role_is_looked_up_in_the_namespace_of_its_binding():
    world = AuthorizerHarness(
        role("r", rule("get", "pods"), namespace="a"),
        binding("b", "Role/r", "User bob", namespace="b"),
    )
    assert not world.allows(BOB, "get", "pods", namespace="a")
    assert not world.allows(BOB, "get", "pods", namespace="b")


def test_a_cluster_role_binding_never_grants_a_namespaced_role():
    world = AuthorizerHarness(role("r", rule("get", "pods")), cluster_binding("b", "Role/r", "User bob"))
    assert not world.allows(BOB, "get", "pods", namespace="default")


def test_a_masters_member_may_everything_whatever_the_roles_say():
    decision = AuthorizerHarness().authorizer.decide(wish(ADMIN, "delete", "nodes", name="n"))
    assert decision.allowed
    assert decision.reason == ""


@pytest.mark.parametrize(
    ("bound", "user", "reason"),
    [
        (
            cluster_binding("x", "ClusterRole/cr", "Group dev"),
            BOB,
            'RBAC: allowed by ClusterRoleBinding "x" of ClusterRole "cr" to Group "dev"',
        ),
        (
            binding("x", "ClusterRole/cr", "User eve", "User bob"),
            BOB,
            'RBAC: allowed by RoleBinding "x/default" of ClusterRole "cr" to User "bob"',
        ),
        (
            binding("x", "Role/r", "ServiceAccount sa"),
            User(name="system:serviceaccount:default:sa"),
            'RBAC: allowed by RoleBinding "x/default" of Role "r" to ServiceAccount "sa/default"',
        ),
        (
            cluster_binding("x", "ClusterRole/cr", "ServiceAccount other/sa"),
            User(name="system:serviceaccount:other:sa"),
            'RBAC: allowed by ClusterRoleBinding "x" of ClusterRole "cr" to ServiceAccount "sa/other"',
        ),
    ],
)
def test_the_reason_names_binding_role_and_subject(bound: dict, user: User, reason: str):
    world = AuthorizerHarness(cluster_role("cr", rule("get", "pods")), role("r", rule("get", "pods")), bound)
    assert world.authorizer.decide(wish(user, "get", "pods", namespace="default")).reason == reason


def test_a_service_account_without_namespace_matches_no_user_in_a_cluster_binding():
    world = AuthorizerHarness(
        cluster_role("cr", rule("get", "pods")), cluster_binding("b", "ClusterRole/cr", "ServiceAccount sa")
    )
    assert not world.allows(User(name="system:serviceaccount::sa"), "get", "pods")


def test_a_user_named_like_a_group_is_not_the_group():
    world = AuthorizerHarness(
        cluster_role("cr", rule("get", "pods")), cluster_binding("b", "ClusterRole/cr", "Group dev")
    )
    assert not world.allows(User(name="dev"), "get", "pods")
    assert not world.allows(User(name="Group dev"), "get", "pods")


def test_a_binding_whose_role_is_gone_is_reported_in_the_reason():
    world = AuthorizerHarness(
        cluster_binding("b", "ClusterRole/gone", "User bob"),
        binding("b", "Role/gone", "Group dev"),
        binding("c", "Role/gone", "User bob"),
    )
    denied = wish(BOB, "get", "pods", namespace="default")
    decision = world.authorizer.decide(denied)
    assert decision.reason == (
        'RBAC: [clusterrole.rbac.authorization.k8s.io "gone" not found,'
        ' role.rbac.authorization.k8s.io "gone" not found]'
    )
    assert forbidden(denied, decision).status["message"].endswith(f'in the namespace "default": {decision.reason}')


def test_changes_count_from_the_next_decision_on():
    world = AuthorizerHarness(role("r", rule("get", "pods")), binding("b", "Role/r", "User bob"))
    assert world.allows(BOB, "get", "pods", namespace="default")
    world.put(role("r", rule("list", "pods")))
    assert not world.allows(BOB, "get", "pods", namespace="default")
    world.put(role("r", rule("get", "pods")))
    assert world.allows(BOB, "get", "pods", namespace="default")
    world.remove(binding("b", "Role/r"))
    assert not world.allows(BOB, "get", "pods", namespace="default")


def test_paths_in_refusals_are_safe_to_render():
    refusal = forbidden(visit(BOB, '/<img src="x">'))
    assert refusal.status["message"] == 'forbidden: User "bob" cannot get path "/&lt;img src=\\"x\\"&gt;"'


def test_aggregated_roles_have_the_rules_of_those_they_pick_and_of_those_these_pick():
    world = AuthorizerHarness(
        cluster_role("top", rule("*", "secrets"), picks={"to": "top"}),
        cluster_role("middle", labels={"to": "top"}, picks={"to": "middle"}),
        cluster_role("leaf", rule("get", "pods"), labels={"to": "middle"}),
        cluster_role("other", rule("get", "nodes"), labels={"to": "nowhere"}),
        cluster_binding("b", "ClusterRole/top", "User bob"),
    )
    assert world.allows(BOB, "get", "pods")
    assert not world.allows(BOB, "get", "nodes")
    assert not world.allows(BOB, "get", "secrets"), "a controller would have overwritten the role's own rules"


def test_a_role_that_joins_later_counts_at_once():
    world = AuthorizerHarness(
        cluster_role("top", picks={"to": "top"}), cluster_binding("b", "ClusterRole/top", "User bob")
    )
    assert not world.allows(BOB, "get", "pods")
    world.put(cluster_role("leaf", rule("get", "pods"), labels={"to": "top"}))
    assert world.allows(BOB, "get", "pods")


def test_aggregation_in_a_circle_ends():
    world = AuthorizerHarness(
        cluster_role("a", labels={"x": "1"}, picks={"y": "1"}),
        cluster_role("b", labels={"y": "1"}, picks={"x": "1"}),
        cluster_role("leaf", rule("get", "pods"), labels={"x": "1"}),
        cluster_binding("b", "ClusterRole/a", "User bob"),
    )
    assert world.allows(BOB, "get", "pods")


def test_matchExpressions_pick_too():  # noqa: N802 - the field's name
    top = cluster_role("top", picks={})
    expression = {"key": "tier", "operator": "In", "values": ["a", "b"]}
    top["aggregationRule"]["clusterRoleSelectors"] = [{"matchExpressions": [expression]}]
    leaf = cluster_role("leaf", rule("get", "pods"), labels={"tier": "b"})
    world = AuthorizerHarness(top, leaf, cluster_binding("b", "ClusterRole/top", "User bob"))
    assert world.allows(BOB, "get", "pods")
