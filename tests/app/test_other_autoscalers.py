"""Beside another autoscaler: it is noticed and reported, and this one does not act."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.cli.journal.why import _read_pause_reason
from plimsoll.cli.nodes.nodes import _format_status
from plimsoll.journal.last_plans import read_last_plans
from plimsoll.kube.requests.options import DeleteOptions
from plimsoll.nodes.permissions import LAST_PLANS_MAP
from plimsoll.objects.api.coordination import Lease
from plimsoll.objects.api.core import ConfigMap
from plimsoll.objects.api.meta import MicroTime
from plimsoll.objects.api.nodes import Node
from plimsoll.objects.api.pods import Pod
from tests.app.elected_nodes import NodeWorld
from tests.nodes.autoscaler.loop_scenarios import group, replica_set

if TYPE_CHECKING:
    from collections.abc import Mapping

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
CA_IMAGE = "registry.k8s.io/autoscaling/cluster-autoscaler:v1.34.0"
KARPENTER_IMAGE = "public.ecr.aws/karpenter/controller:1.8.1@sha256:0123"
NODE_RULES = [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch", "patch"]}]
SHORT = {"scale-down-unneeded-time": "1m", "scale-down-delay-after-add": "1m"}


class SharedCluster(NodeWorld):
    """A cluster in which another autoscaler may be at work."""

    def __init__(self, **scenario: Any) -> None:
        super().__init__(**{"nodeGroups": [group("g", target=1)], **scenario})

    def renew_lease(self, name: str, holder: str = "other-0") -> None:
        spec = {
            "holderIdentity": holder,
            "leaseDurationSeconds": 15,
            "renewTime": MicroTime.of(self.run.clock.now()).to_text(),
        }
        body = {"metadata": {"name": name, "namespace": "kube-system"}, "spec": spec}
        found = self.run_now(self.client.get_json(LEASES))["items"]
        if any(lease["metadata"]["name"] == name for lease in found):
            self.run_now(self.client.merge_patch(Lease, name, body, namespace="kube-system"))
        else:
            self.run_now(self.client.create(Lease, body, namespace="kube-system"))

    def start_pod(self, image: str, *args: str, namespace: str = "kube-system") -> None:
        """On the one node that there is."""
        containers = [{"name": "manager", "image": image, "args": list(args)}]
        spec = {"containers": containers, "nodeName": self.list_nodes()[0], "serviceAccountName": "scaler"}
        self.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _meta("scaler", namespace)})
        self.apply({"apiVersion": "v1", "kind": "Pod", "metadata": _meta("other-0", namespace), "spec": spec})

    def allow_node_changes(self, namespace: str) -> None:
        rbac = "rbac.authorization.k8s.io"
        subject = {"kind": "ServiceAccount", "name": "scaler", "namespace": namespace}
        self.apply(
            {"apiVersion": f"{rbac}/v1", "kind": "ClusterRole", "metadata": {"name": "scaler"}, "rules": NODE_RULES},
            {
                "apiVersion": f"{rbac}/v1",
                "kind": "ClusterRoleBinding",
                "metadata": {"name": "scaler"},
                "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "scaler"},
                "subjects": [subject],
            },
        )

    def list_nodes(self) -> list[str]:
        return [node["metadata"]["name"] for node in self.run_now(self.client.get_json("/api/v1/nodes"))["items"]]

    def read_plans(self) -> str:
        """What `plimsoll why` reads from the cluster."""
        found = self.run_now(self.client.get(ConfigMap, LAST_PLANS_MAP, namespace="kube-system"))
        plans = read_last_plans(found.data)
        return " ".join(str(plan) for plan in plans.values())

    def list_events(self, reason: str) -> list[str]:
        found = self.run_now(self.client.get_json("/api/v1/namespaces/kube-system/events"))["items"]
        return [event["message"] for event in found if event["reason"] == reason]


def _meta(name: str, namespace: str) -> Mapping[str, str]:
    return {"name": name, "namespace": namespace}


def test_while_karpenter_renews_its_lease_nothing_is_done_and_that_is_reported_everywhere():
    with SharedCluster() as cluster:
        cluster.renew_lease("karpenter-leader-election", "karpenter-7d4b9_1")
        cluster.start_autoscaler("first")
        cluster.apply(replica_set("more", 4, cpu="2"))
        for _ in range(12):
            cluster.run.advance_by(10)
            cluster.renew_lease("karpenter-leader-election", "karpenter-7d4b9_1")
        stated = "Karpenter (lease kube-system/karpenter-leader-election is held by karpenter-7d4b9_1)"
        assert cluster.get_target() == 1
        assert cluster.list_events("OtherAutoscaler") == [f"Nothing is done: another autoscaler is at work: {stated}"]
        status = cluster.get_status()
        assert stated in status["message"]
        assert stated in status["lastTurn"]
        assert f"held back    another autoscaler is at work: {stated}" in map(str, _format_status(status))
        pause_reason = cluster.run_now(_read_pause_reason(cluster.client, "kube-system", of_nodes=True))
        assert str(pause_reason) == f"another autoscaler is at work: {stated}"
        assert stated in cluster.read_plans()
        # It is gone without having given the lease back.
        cluster.run.advance_by(60)
        assert cluster.get_target() == 2
        assert cluster.get_status()["otherAutoscaler"] == ""


def test_an_upstream_cluster_autoscaler_with_a_lease_of_its_own_holds_this_one_back():
    with SharedCluster() as cluster:
        cluster.start_pod(CA_IMAGE, "--leader-elect-resource-name=upstream", "--v=4")
        cluster.start_autoscaler("first")
        cluster.apply(replica_set("more", 4, cpu="2"))
        cluster.run.advance_by(120)
        assert cluster.get_target() == 1
        assert "Cluster Autoscaler (pod kube-system/other-0 runs it)" in cluster.read_plans()
        cluster.run_now(
            cluster.client.delete(Pod, "other-0", namespace="kube-system", options=DeleteOptions(grace_s=0))
        )
        cluster.run.advance_by(60)
        assert cluster.get_target() == 2


@pytest.mark.parametrize("words", [("--v=4",), ("--leader-elect=true", "--namespace=kube-system")])
def test_one_that_contends_for_the_same_lease_is_a_standby_like_others(words: tuple[str, ...]):
    with SharedCluster() as cluster:
        cluster.start_pod(CA_IMAGE, *words)
        cluster.start_autoscaler("first")
        cluster.apply(replica_set("more", 4, cpu="2"))
        cluster.run.advance_by(60)
        assert cluster.get_target() == 2


@pytest.mark.parametrize("is_allowed", [False, True])
@pytest.mark.parametrize("image", [CA_IMAGE, KARPENTER_IMAGE])
def test_a_pod_of_another_namespace_counts_only_if_it_may_change_nodes(image: str, is_allowed: bool):
    with SharedCluster() as cluster:
        cluster.start_pod(image, "--leader-elect=false", namespace="default")
        if is_allowed:
            cluster.allow_node_changes("default")
        cluster.start_autoscaler("first")
        cluster.apply(replica_set("more", 4, cpu="2"))
        cluster.run.advance_by(60)
        assert cluster.get_target() == (1 if is_allowed else 2)


def test_with_ignore_other_autoscalers_it_acts_all_the_same():
    with SharedCluster(options={"ignore-other-autoscalers": "true"}) as cluster:
        cluster.start_pod(KARPENTER_IMAGE)
        cluster.start_autoscaler("first")
        cluster.apply(replica_set("more", 4, cpu="2"))
        cluster.run.advance_by(60)
        assert cluster.get_target() == 2


def test_a_node_of_karpenter_is_never_removed():
    with SharedCluster(nodeGroups=[group("g", target=3)], options=SHORT) as cluster:
        nodes = cluster.list_nodes()
        patch = {"metadata": {"labels": {"karpenter.sh/nodepool": "default"}}}
        cluster.run_now(cluster.client.merge_patch(Node, nodes[0], patch))
        cluster.start_autoscaler("first")
        cluster.run.advance_by(900)
        assert cluster.list_nodes() == nodes[:1]
