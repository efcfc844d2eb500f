from __future__ import annotations

import pytest

from plimsoll.local.apiserver.auth_types import User
from plimsoll.local.apiserver.status_errors import StatusError
from tests.local.apiserver.authentication.builders import ADMIN_TOKEN, AuthenticatorHarness
from tests.local.apiserver.authorization.builders import AuthorizerHarness, cluster_binding, cluster_role, rule

EVE = User(name="eve")


def door_of_eve(*rules: dict) -> AuthenticatorHarness:
    """Eve has a token, `eve`, and the rules."""
    world = AuthorizerHarness(cluster_role("cr", *rules), cluster_binding("b", "ClusterRole/cr", "User eve"))
    return AuthenticatorHarness({"eve": EVE}, world.authorizer)


def refusal_text(door: AuthenticatorHarness, **headers: str) -> str:
    with pytest.raises(StatusError) as caught:
        door.enter("eve", **headers)
    assert caught.value.code in {400, 403}
    return caught.value.status["message"]


def test_a_master_may_impersonate_any_user():
    user = door_of_eve().enter(
        ADMIN_TOKEN,
        impersonate_user="bob",
        impersonate_group="dev, ops",
        impersonate_uid="u1",
        impersonate_extra_scopes="a,b",
        **{"impersonate-extra-example.com%2fteam": "x"},
    )
    assert user == User(
        name="bob",
        uid="u1",
        groups=("dev", "ops", "system:authenticated"),
        extra={"scopes": ("a", "b"), "example.com/team": ("x",)},
    )


def test_impersonation_needs_the_permission():
    assert refusal_text(door_of_eve(), impersonate_user="bob") == (
        'users "bob" is forbidden: User "eve" cannot impersonate resource "users" in API group "" at the cluster scope'
    )


def test_the_right_may_be_for_one_name():
    door = door_of_eve(rule("impersonate", "users", named="bob"))
    assert door.enter("eve", impersonate_user="bob").name == "bob"
    assert refusal_text(door, impersonate_user="admin").startswith('users "admin" is forbidden')


def test_each_group_is_asked_for():
    door = door_of_eve(rule("impersonate", "users"), rule("impersonate", "groups", named="dev"))
    assert door.enter("eve", impersonate_user="bob", impersonate_group="dev").groups == ("dev", "system:authenticated")
    assert refusal_text(door, impersonate_user="bob", impersonate_group="dev,system:masters") == (
        'groups "system:masters" is forbidden: User "eve" cannot impersonate resource "groups" in API group ""'
        " at the cluster scope"
    )


def test_uids_and_extras_are_asked_for():
    door = door_of_eve(rule("impersonate", "users"))
    assert refusal_text(door, impersonate_user="bob", impersonate_uid="u").startswith(
        'uids.authentication.k8s.io "u" is forbidden: User "eve" cannot impersonate resource "uids"'
        ' in API group "authentication.k8s.io"'
    )
    assert 'resource "userextras/scopes"' in refusal_text(door, impersonate_user="bob", impersonate_extra_scopes="x")


def test_a_service_account_is_asked_for_in_its_namespace_and_has_its_groups():
    door = door_of_eve(rule("impersonate", "serviceaccounts"))
    user = door.enter("eve", impersonate_user="system:serviceaccount:n:sa")
    assert user.groups == ("system:serviceaccounts", "system:serviceaccounts:n", "system:authenticated")
    assert refusal_text(door_of_eve(), impersonate_user="system:serviceaccount:n:sa") == (
        'serviceaccounts "sa" is forbidden: User "eve" cannot impersonate resource "serviceaccounts" in API group ""'
        ' in the namespace "n"'
    )


@pytest.mark.parametrize(
    "name", ["system:serviceaccount:n", "system:serviceaccount::sa", "system:serviceaccount:n:a:b"]
)
def test_what_only_looks_like_a_service_account_is_a_user(name: str):
    assert refusal_text(door_of_eve(), impersonate_user=name).startswith(f'users "{name}" is forbidden')


def test_acting_as_the_anonymous_user_is_unauthenticated():
    door = door_of_eve(rule("impersonate", "users"))
    assert door.enter("eve", impersonate_user="system:anonymous").groups == ("system:unauthenticated",)


@pytest.mark.parametrize("header", ["impersonate_group", "impersonate_uid", "impersonate_extra_scopes"])
def test_groups_alone_are_no_identity(header: str):
    assert "without impersonating a user" in refusal_text(door_of_eve(), **{header: "x"})


def test_impersonation_needs_an_authorizer():
    door = AuthenticatorHarness({"eve": EVE})
    assert refusal_text(door, impersonate_user="bob").startswith('users "bob" is forbidden')
