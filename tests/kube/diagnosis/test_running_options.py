"""Doctor judges the permissions of the node autoscaler by the options that the running one shows in its status."""

from __future__ import annotations

import json
from typing import Any

import pytest

from plimsoll.kube.diagnosis import Finding, Namespaces
from plimsoll.kube.diagnosis.permissions import build_role_manifests
from plimsoll.local.cluster_api.definitions import KINDS, build_definition
from plimsoll.nodes.config.options import read_options
from plimsoll.nodes.permissions import NODES, REQUESTS
from plimsoll.nodes.running_permissions import adapt_to_policy, add_provider
from tests.kube.diagnosis.examinations import DiagnosedCluster, found
from tests.nodes.providers.clusterapi.capi_objects import INFRASTRUCTURE, collection, scalable

USER = "system:serviceaccount:kube-system:plimsoll"
OPTIONS = [
    {"leader-elect": "false"},
    {"leader-elect-resource-name": "mine", "leader-elect-resource-namespace": "default"},
    {"write-status-configmap": "false"},
    {"ignore-other-autoscalers": "true"},
    {"dry-run": "true"},
]
CLUSTER_API = {"cloud-provider": "clusterapi"}
NAP = {"node-autoprovisioning": "true"}


def show_options(cluster: DiagnosedCluster, options: dict[str, Any]) -> None:
    """As a running autoscaler does."""
    annotations = {"plimsoll.io/options": json.dumps(options)}
    metadata = {"name": "cluster-autoscaler-status", "annotations": annotations}
    cluster.made("/api/v1/namespaces/kube-system/configmaps", {"metadata": metadata})


def grant_needed(cluster: DiagnosedCluster, options: dict[str, Any]) -> str:
    """The token of a ServiceAccount that has what these options need, and may read the status."""
    token = cluster.service_account()
    policy = read_options(options)
    adapted = add_provider(adapt_to_policy(NODES, policy), policy)
    for manifest in build_role_manifests(adapted.permissions, role="needed", user=USER, namespaces=Namespaces()):
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


def missing(options: dict[str, Any]) -> set[str]:
    """What an account with all permissions of the autoscaler itself, and none of a provider, lacks."""
    with DiagnosedCluster() as cluster:
        token = grant_needed(cluster, {"cloud-provider": "externalgrpc", "cloud-config": "provider.yaml"})
        show_options(cluster, options)
        return name_missing(found(cluster.examined("nodes", token=token), "permissions.nodes"))


def name_missing(finding: Finding) -> set[str]:
    questions = (finding.details or {}).get("missing", ())
    return {
        f"{question['verb']} {question['resource']}{'/' if question.get('subresource') else ''}"
        f"{question.get('subresource') or ''} in {question.get('namespace') or 'all'}"
        for question in questions
    }


@pytest.mark.parametrize("options", [{}, NAP, CLUSTER_API, {**CLUSTER_API, **NAP}], ids=str)
def test_an_account_with_what_the_provider_needs_passes(options: dict[str, str]):
    with DiagnosedCluster() as cluster:
        token = grant_needed(cluster, options)
        show_options(cluster, options)
        assert found(cluster.examined("nodes", token=token), "permissions.nodes").level == "ok"


def test_permissions_of_the_provider_are_asked_about():
    simulated = missing({})
    assert {
        "list nodegroups in all",
        "patch nodegroups in all",
        "list machines in all",
        "get clouds in all",
    } <= simulated
    assert "create nodegroups in all" not in simulated
    assert missing(NAP) - simulated == {"create nodegroups in all", "delete nodegroups in all"}
    machines = missing(CLUSTER_API)
    assert {
        "list machinedeployments in all",
        "patch machinedeployments/scale in all",
        "patch machines in all",
    } <= machines
    assert "create machinedeployments in all" not in machines
    assert "create machinedeployments in all" in missing({**CLUSTER_API, **NAP})


def test_a_provider_reads_only_the_namespace_that_is_discovered():
    options = {**CLUSTER_API, "node-group-auto-discovery": "clusterapi:namespace=default"}
    assert {question.rpartition(" ")[2] for question in missing(options)} == {"default"}


@pytest.mark.parametrize("option", [{"cloud-config": "management.kubeconfig"}, {"dry-run": "true"}], ids=str)
def test_a_management_cluster_is_another_one_and_a_dry_run_only_reads(option: dict[str, str]):
    verbs = {question.split()[0] for question in missing({**CLUSTER_API, **option})}
    assert verbs == ({"list", "get"} if "dry-run" in option else set())


def test_definitions_of_the_provider_are_looked_for():
    with DiagnosedCluster() as cluster:
        show_options(cluster, CLUSTER_API)
        finding = found(cluster.examined("nodes"), "definitions.nodes")
    assert "Cluster API" in finding.fix


def test_options_that_cannot_be_read_change_nothing():
    with DiagnosedCluster() as cluster:
        show_options(cluster, {"scan-interval": "soon"})
        finding = found(cluster.examined("nodes"), "permissions.nodes")
    assert finding.details["needed"] == sum(
        len(permission.verbs) * max(1, len(permission.names)) for permission in NODES.permissions
    )


def build_cluster_api(cluster: DiagnosedCluster, group: str) -> None:
    """Two groups whose machines are made from templates of an infrastructure."""
    for kind in KINDS:
        cluster.made("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", build_definition(kind, group=group))
    cluster.run.settle()
    for name, reference in (
        ("new", {"apiGroup": INFRASTRUCTURE, "kind": "AWSMachineTemplate", "name": "t"}),
        ("old", {"apiVersion": f"{INFRASTRUCTURE}/v1beta1", "kind": "DockerMachineTemplate", "name": "t"}),
        ("none", None),
    ):
        template = {"spec": {"infrastructureRef": reference}} if reference else {}
        body = scalable(name=name, namespace="default", template=template)
        body["apiVersion"] = f"{group}/v1beta1"
        cluster.made(collection("MachineDeployment", group=group, namespace="default"), body)


@pytest.mark.parametrize("group", ["cluster.x-k8s.io", "own.example.com"])
def test_templates_of_the_infrastructure_and_the_group_of_cluster_api_are_judged(group: str):
    with DiagnosedCluster() as cluster:
        build_cluster_api(cluster, group)
        environment = {} if group == "cluster.x-k8s.io" else {"CAPI_GROUP": group}
        show_options(cluster, CLUSTER_API)
        token = grant_needed(cluster, {"cloud-provider": "externalgrpc", "cloud-config": "provider.yaml"})
        metadata = {"name": "lister"}
        subject = {"kind": "ServiceAccount", "name": "plimsoll", "namespace": "kube-system"}
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "lister"}
        plurals = ["machinedeployments", "machinesets", "machinepools"]
        rule = {"apiGroups": [group], "resources": plurals, "verbs": ["list"]}
        cluster.apply(
            {"kind": "ClusterRole", "metadata": metadata, "rules": [rule]},
            {"kind": "ClusterRoleBinding", "metadata": metadata, "roleRef": reference, "subjects": [subject]},
        )
        examination = cluster.examined("nodes", token=token, environment=environment)
        asked = name_missing(found(examination, "permissions.nodes"))
        defined = found(examination, "definitions.nodes")
    templates = {f"get {kind}machinetemplates in default" for kind in ("aws", "docker")}
    assert templates <= asked
    assert "list machines in all" in asked
    assert "list machinedeployments in all" not in asked, "that is granted, in the group that the environment names"
    assert "Cluster API" not in defined.fix
