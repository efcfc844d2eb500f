from __future__ import annotations

from datetime import timedelta

import pytest

from plimsoll.objects.api.meta import MicroTime
from tests.kube.diagnosis.examinations import DiagnosedCluster, found
from tests.local.apiserver.builders import deployment


def hold_lease(
    cluster: DiagnosedCluster,
    *,
    name: str = "cluster-autoscaler",
    holder: str = "cluster-autoscaler-7d4b9",
    renewed_s_ago: float = 3,
) -> None:
    renewed_at = MicroTime.of(cluster.clock.now() - timedelta(seconds=renewed_s_ago)).to_text()
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": renewed_at}
    body = {"metadata": {"name": name}, "spec": spec}
    cluster.made("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases", body)


def test_without_a_lease_there_is_no_other_autoscaler():
    with DiagnosedCluster() as cluster:
        assert found(cluster.examined("nodes"), "rivals.nodes").level == "ok"


@pytest.mark.parametrize(
    ("renewed_s_ago", "holder", "level"),
    [(3, "ca", "warn"), (14.9, "ca", "warn"), (15, "ca", "ok"), (3, "", "ok"), (3, "plimsoll-up_1", "ok")],
)
def test_a_held_lease_is_a_warning_until_it_expires(renewed_s_ago: float, holder: str, level: str):
    with DiagnosedCluster() as cluster:
        hold_lease(cluster, holder=holder, renewed_s_ago=renewed_s_ago)
        assert found(cluster.examined("requests"), "rivals.nodes").level == level


def test_the_holder_is_named():
    with DiagnosedCluster() as cluster:
        hold_lease(cluster)
        finding = found(cluster.examined("nodes"), "rivals.nodes")
    assert finding.message.startswith("cluster-autoscaler-7d4b9 holds lease kube-system/cluster-autoscaler")
    assert finding.details["holder"] == "cluster-autoscaler-7d4b9"


def test_a_held_lease_and_another_program_are_named_in_one_finding():
    with DiagnosedCluster() as cluster:
        hold_lease(cluster)
        run_pod(cluster, "public.ecr.aws/karpenter/controller:1.8.1")
        findings = [finding for finding in cluster.examined("nodes").findings if finding.check == "rivals.nodes"]
    (finding,) = findings
    assert "cluster-autoscaler-7d4b9 holds lease" in finding.message
    assert "Karpenter runs as Deployment kube-system/scaler (1 pod)" in finding.message


def run_pod(cluster: DiagnosedCluster, image: str, *args: str, namespace: str = "kube-system") -> None:
    labels = {"pod-template-hash": "7d4b9"}
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "scaler-7d4b9", "uid": "1", "controller": True}
    containers = [{"name": "manager", "image": image, "args": list(args)}]
    metadata = {"name": "scaler-7d4b9-x", "labels": labels, "ownerReferences": [owner]}
    path = f"/api/v1/namespaces/{namespace}/pods"
    cluster.made(path, {"metadata": metadata, "spec": {"containers": containers}})


def make_node(cluster: DiagnosedCluster, name: str, **metadata: dict[str, str]) -> None:
    cluster.made("/api/v1/nodes", {"metadata": {"name": name, **metadata}})


def test_without_a_trace_of_others_the_nodes_have_no_other_manager():
    with DiagnosedCluster() as cluster:
        make_node(cluster, "n1")
        run_pod(cluster, "registry.k8s.io/cpa/cluster-proportional-autoscaler:v1.9.0")
        assert found(cluster.examined("nodes"), "rivals.nodes").level == "ok"


@pytest.mark.parametrize(
    ("image", "args", "stated"),
    [
        ("public.ecr.aws/karpenter/controller:1.8.1", (), "Karpenter runs as Deployment kube-system/scaler (1 pod)"),
        (
            "registry.k8s.io/autoscaling/cluster-autoscaler-arm64:v1.34.0",
            ("--leader-elect-resource-name=mine",),
            "Cluster Autoscaler runs as Deployment kube-system/scaler (1 pod)",
        ),
        (
            "registry.k8s.io/autoscaling/cluster-autoscaler:v1.34.0",
            ("--leader-elect=false",),
            "Cluster Autoscaler runs as Deployment kube-system/scaler (1 pod)",
        ),
        ("registry.k8s.io/autoscaling/cluster-autoscaler:v1.34.0", ("--v=4",), ""),
    ],
)
def test_deployments_that_run_another_autoscaler_are_named(image: str, args: tuple[str, ...], stated: str):
    with DiagnosedCluster() as cluster:
        run_pod(cluster, image, *args)
        finding = found(cluster.examined("nodes"), "rivals.nodes")
    assert finding.level == ("warn" if stated else "ok")
    assert stated in finding.message
    assert ("--ignore-other-autoscalers" in finding.fix) is bool(stated)


def test_the_lease_of_karpenter_its_pools_and_its_nodes_are_named():
    with DiagnosedCluster() as cluster:
        cluster.define("nodepools", "karpenter.sh", "v1")
        pool = {"apiVersion": "karpenter.sh/v1", "kind": "Nodepools", "metadata": {"name": "spot"}}
        cluster.made("/apis/karpenter.sh/v1/namespaces/default/nodepools", pool)
        make_node(cluster, "n1", labels={"karpenter.sh/nodepool": "spot"})
        make_node(cluster, "n2", annotations={"karpenter.sh/do-not-disrupt": "true"})
        without_lease = found(cluster.examined("nodes"), "rivals.nodes")
        hold_lease(cluster, name="karpenter-leader-election", holder="karpenter-0")
        finding = found(cluster.examined("nodes"), "rivals.nodes")
    left = "NodePools spot; 1 node of NodePool spot; 1 node with taints or annotations of Karpenter"
    assert without_lease.message == f"Karpenter is not at work, and left: {left}"
    assert "Karpenter holds lease kube-system/karpenter-leader-election (karpenter-0)" in finding.message
    assert left in finding.message


@pytest.mark.parametrize(("replicas", "level"), [(1, "warn"), (0, "ok")])
def test_the_operator_of_strimzi_is_a_rival_while_it_runs(replicas: int, level: str):
    body = deployment("strimzi-cluster-operator", replicas=replicas)
    body["metadata"]["labels"] = {"strimzi.io/kind": "cluster-operator"}
    with DiagnosedCluster() as cluster:
        cluster.namespace("strimzi")
        cluster.made("/apis/apps/v1/namespaces/strimzi/deployments", body)
        cluster.made("/apis/apps/v1/namespaces/strimzi/deployments", deployment("another"))
        finding = found(cluster.examined("kafka"), "rivals.kafka")
    assert finding.level == level
    assert ("strimzi/strimzi-cluster-operator" in finding.message) is (level == "warn")


@pytest.mark.parametrize(
    ("holder", "reported"),
    [
        ("plimsoll-up_1", "Plimsoll leads: plimsoll-up_1 holds lease kube-system/plimsoll-kafka"),
        ("workstation_1", "Plimsoll leads: workstation_1 holds lease kube-system/plimsoll-kafka"),
        ("", "lease kube-system/plimsoll-kafka is not held"),
    ],
)
def test_the_kafka_operator_that_leads_is_named(holder: str, reported: str):
    with DiagnosedCluster() as cluster:
        before = found(cluster.examined("kafka"), "rivals.kafka")
        hold_lease(cluster, name="plimsoll-kafka", holder=holder)
        finding = found(cluster.examined("kafka"), "rivals.kafka")
    assert before.message.endswith("no other Kafka operator: there is no lease kube-system/plimsoll-kafka")
    assert (finding.level, finding.details["holder"]) == ("ok", holder)
    assert finding.message.endswith(reported)


def test_only_controllers_that_were_asked_for_have_rivals():
    with DiagnosedCluster() as cluster:
        checks = {finding.check for finding in cluster.examined("tidb").findings}
    assert not checks & {"rivals.nodes", "rivals.kafka"}


def test_groups_over_several_zones_are_named_with_what_happens_to_pods_with_zone_rules():
    zone, group = "topology.kubernetes.io/zone", "cloud.google.com/gke-nodepool"
    with DiagnosedCluster() as cluster:
        for name, pool, in_zone in [("n1", "wide", "a"), ("n2", "wide", "b"), ("n3", "narrow", "a")]:
            make_node(cluster, name, labels={group: pool, zone: in_zone})
        finding = found(cluster.examined("nodes"), "zones.nodes")
    assert (finding.level, finding.message) == ("warn", "a node group lies in several zones: wide in a, b")
    assert finding.details == {"zones": {"wide": ["a", "b"]}}
    assert "pods bound to one zone" in finding.fix


def test_groups_of_one_zone_each_are_fine():
    with DiagnosedCluster() as cluster:
        make_node(cluster, "n1", labels={"agentpool": "one", "topology.kubernetes.io/zone": "a"})
        assert found(cluster.examined("nodes"), "zones.nodes").level == "ok"
