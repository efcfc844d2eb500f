from __future__ import annotations

from datetime import timedelta

import pytest

from plimsoll.objects.api.meta import MicroTime
from tests.kube.diagnosis.examinations import DiagnosedCluster, found
from tests.local.apiserver.builders import deployment


def hold_lease(
    cluster: DiagnosedCluster, *, holder: str = "cluster-autoscaler-7d4b9", renewed_s_ago: float = 3
) -> None:
    renewed_at = MicroTime.of(cluster.clock.now() - timedelta(seconds=renewed_s_ago)).text()
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": renewed_at}
    body = {"metadata": {"name": "cluster-autoscaler"}, "spec": spec}
    cluster.made("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases", body)


def test_without_a_lease_there_is_no_other_autoscaler():
    with DiagnosedCluster() as cluster:
        assert found(cluster.examined("nodes"), "rivals.nodes").level == "ok"


@pytest.mark.parametrize(
    ("renewed_s_ago", "holder", "level"),
    [(3, "ca", "warn"), (14.9, "ca", "warn"), (15, "ca", "ok"), (3, "", "ok")],
)
def test_a_lease_that_somebody_holds_is_a_warning_until_it_expires(renewed_s_ago: float, holder: str, level: str):
    with DiagnosedCluster() as cluster:
        hold_lease(cluster, holder=holder, renewed_s_ago=renewed_s_ago)
        assert found(cluster.examined("requests"), "rivals.nodes").level == level


def test_the_holder_is_named():
    with DiagnosedCluster() as cluster:
        hold_lease(cluster)
        finding = found(cluster.examined("nodes"), "rivals.nodes")
    assert finding.message.startswith("cluster-autoscaler-7d4b9 holds lease kube-system/cluster-autoscaler")
    assert finding.details["holder"] == "cluster-autoscaler-7d4b9"


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


def test_only_controllers_that_were_asked_for_have_rivals():
    with DiagnosedCluster() as cluster:
        checks = {finding.check for finding in cluster.examined("tidb").findings}
    assert not checks & {"rivals.nodes", "rivals.kafka"}
