"""Doctor judges the permissions of the node autoscaler by the options that the running one shows in its status."""

from __future__ import annotations

import json
from typing import Any

import pytest

from plimsoll.kube.diagnosis import Namespaces
from plimsoll.kube.diagnosis.permissions import role_manifests
from plimsoll.nodes.config.options import read_options
from plimsoll.nodes.permissions import NODES, REQUESTS
from plimsoll.nodes.running_permissions import adapt_to_policy
from tests.kube.diagnosis.examinations import DiagnosedCluster, found

USER = "system:serviceaccount:kube-system:plimsoll"
OPTIONS = [
    {"leader-elect": "false"},
    {"leader-elect-resource-name": "mine", "leader-elect-resource-namespace": "default"},
    {"write-status-configmap": "false"},
    {"ignore-other-autoscalers": "true"},
    {"dry-run": "true"},
]


def show_options(cluster: DiagnosedCluster, options: dict[str, Any]) -> None:
    """As a running autoscaler does."""
    annotations = {"plimsoll.io/options": json.dumps(options)}
    metadata = {"name": "cluster-autoscaler-status", "annotations": annotations}
    cluster.made("/api/v1/namespaces/kube-system/configmaps", {"metadata": metadata})


def grant_needed(cluster: DiagnosedCluster, options: dict[str, Any]) -> str:
    """The token of a ServiceAccount that has what these options need, and may read the status."""
    token = cluster.service_account()
    adapted = adapt_to_policy(NODES, read_options(options))
    for manifest in role_manifests(adapted.permissions, role="needed", user=USER, namespaces=Namespaces()):
        cluster.apply(manifest)
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}
    home = {"name": "status", "namespace": "kube-system"}
    subject = {"kind": "ServiceAccount", "name": "plimsoll", "namespace": "kube-system"}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "status"}
    cluster.apply(
        {"kind": "Role", "metadata": home, "rules": [rule]},
        {"kind": "RoleBinding", "metadata": home, "roleRef": reference, "subjects": [subject]},
    )
    return token


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: next(iter(options)))
def test_what_the_options_in_force_do_not_need_is_not_missing(options: dict[str, Any]):
    with DiagnosedCluster() as cluster:
        token = grant_needed(cluster, options)
        before = found(cluster.examined("nodes", token=token), "permissions.nodes")
        show_options(cluster, options)
        after = found(cluster.examined("nodes", token=token), "permissions.nodes")
    assert (before.level, after.level) == ("fail", "ok")


def test_a_lease_of_another_name_is_asked_about():
    with DiagnosedCluster() as cluster:
        token = grant_needed(cluster, {})
        show_options(cluster, {"leader-elect-resource-name": "mine"})
        finding = found(cluster.examined("nodes", token=token), "permissions.nodes")
    assert {question["name"] for question in finding.details["missing"]} == {"mine"}


@pytest.mark.parametrize(("controllers", "needed"), [((), 0), (("requests",), 17)])
def test_requests_that_are_not_enabled_need_nothing_unless_asked_about(controllers: tuple[str, ...], needed: int):
    with DiagnosedCluster() as cluster:
        show_options(cluster, {})
        finding = found(cluster.examined(*controllers), "permissions.requests")
    assert finding.details["needed"] == needed
    assert needed in {0, sum(len(permission.verbs) for permission in REQUESTS.permissions)}


def test_options_that_cannot_be_read_change_nothing():
    with DiagnosedCluster() as cluster:
        show_options(cluster, {"scan-interval": "soon"})
        finding = found(cluster.examined("nodes"), "permissions.nodes")
    assert finding.details["needed"] == sum(
        len(permission.verbs) * max(1, len(permission.names)) for permission in NODES.permissions
    )
