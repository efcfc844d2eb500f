"""The table of needs keeps to the least, and gives a reason for each."""

from __future__ import annotations

import pytest

from plimsoll.cli.commands.doctor import Controller
from plimsoll.cli.commands.requirements import REQUIREMENTS
from plimsoll.kube.diagnosis import Namespaces, Requirements, Scope
from plimsoll.objects.registry import KINDS

VERBS = {"get", "list", "watch", "create", "patch", "update", "delete"}
# Questions to the server, which stores nothing of them.
REVIEWS = {"authentication.k8s.io/v1 tokenreviews", "authorization.k8s.io/v1 subjectaccessreviews"}

every_controller = pytest.mark.parametrize("needs", REQUIREMENTS.values(), ids=REQUIREMENTS.keys())


def test_every_controller_can_be_asked_for_on_the_command_line():
    assert [controller.value for controller in Controller] == [*REQUIREMENTS, "all"]


@every_controller
def test_every_permission_has_a_reason_and_names_verbs_and_resources_one_by_one(needs: Requirements):
    for permission in needs.permissions:
        assert permission.why.startswith("to "), permission
        assert permission.verbs
        assert set(permission.verbs) <= VERBS
        assert "*" not in (permission.group, permission.resource, permission.subresource, *permission.names)


@every_controller
def test_no_secret_is_listed_or_watched(needs: Requirements):
    verbs = {verb for permission in needs.permissions if permission.resource == "secrets" for verb in permission.verbs}
    assert not verbs & {"list", "watch"}


@every_controller
def test_creation_is_never_limited_by_name_because_rbac_cannot_do_that(needs: Requirements):
    assert not [permission for permission in needs.permissions if "create" in permission.verbs and permission.names]


@every_controller
def test_no_permission_is_listed_twice(needs: Requirements):
    asked = [question for permission in needs.permissions for question in permission.list_questions(Namespaces())]
    assert len(asked) == len(set(asked))


@every_controller
def test_what_is_not_a_custom_resource_is_a_kind_of_kubernetes(needs: Requirements):
    for permission in needs.permissions:
        if permission.group in needs.builtin_groups:
            version = f"{permission.group}/v1" if permission.group else "v1"
            is_review = f"{version} {permission.resource}" in REVIEWS
            assert is_review or KINDS.find_by_plural(version, permission.resource) is not None, permission


@every_controller
def test_every_custom_resource_that_is_used_is_defined_somewhere(needs: Requirements):
    defined = {(definition.group, definition.plural) for definition in needs.custom_resources}
    used = {
        (permission.group, permission.resource)
        for permission in needs.permissions
        if permission.group not in needs.builtin_groups
    }
    assert used == defined


@every_controller
def test_a_place_of_its_own_is_named_only_where_it_is_always_the_same(needs: Requirements):
    for permission in needs.permissions:
        assert bool(permission.namespace) is (permission.scope is Scope.ONE), permission


def test_the_node_autoscaler_shares_the_lease_of_cluster_autoscaler():
    leases = [
        permission for permission in REQUIREMENTS["nodes"].permissions if permission.names == ("cluster-autoscaler",)
    ]
    assert [(lease.resource, lease.namespace, lease.verbs) for lease in leases] == [
        ("leases", "kube-system", ("get", "patch")),
    ]
