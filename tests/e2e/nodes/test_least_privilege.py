"""The ServiceAccount of deploy/ may do what the autoscaler does, and nothing else.

The autoscaler lives through everything that it does to a cluster, with every call written down: none of them may be
refused, and no right that deploy/ grants may be left without a use.
"""

from __future__ import annotations

import http.client
import json
from typing import TYPE_CHECKING, Any

import yaml

from plimsoll.local.apiserver.authorization.rules import Rule
from tests.e2e.nodes.live_clusters import ACCOUNT, NAMESPACE, STATUS, autoscaling
from tests.e2e.nodes.recording_proxies import recording
from tests.e2e.timeouts import PATIENCE_S

if TYPE_CHECKING:
    from tests.e2e.nodes.live_clusters import AutoscalerProcess, Cluster
    from tests.e2e.nodes.recording_proxies import ProxiedRequest

# What writes more than the rest: a count of removals, again and again the same event, answers to requests.
FLAGS = ("--max-removals-per-hour=1000", "--record-duplicated-events", "--enable-provisioning-requests")
# Who may list an object may read it: these are granted together, as Cluster Autoscaler's roles have it.
READ_BY_LISTING = {"provisioningrequests", "provisioningclasses", "podtemplates", "pods"}
LONG_AGO = "2020-01-01T00:00:00Z"
ON_NODES_OF_THEIR_OWN = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "large"}}}
        ]
    }
}


def test_no_call_is_refused_and_no_right_is_unused(cluster: Cluster):
    with recording(cluster.kubeconfig, cluster.folder) as seen:
        account = cluster.as_account("recorded", through=seen)
        with autoscaling(cluster, account, *FLAGS, name="recorded") as autoscaler:
            stay_paused(cluster)
            grow_in_spite_of_a_fault(cluster)
            show_a_page_to_permitted_users(cluster, autoscaler)
            answer_and_clear_away_a_request(cluster)
            drain_within_the_budget(cluster)
            give_everything_back(cluster)
            assert autoscaler.stop() == 0, autoscaler.stated
    assert seen.refused == []
    assert unused_rights(cluster, seen.asked) == []


def stay_paused(cluster: Cluster) -> None:
    annotations = {"plimsoll.io/paused": "the test says so"}
    metadata = {"name": "plimsoll", "namespace": NAMESPACE, "annotations": annotations}
    cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    # Nowhere is there a machine of this size: it gets that Event again and again.
    cluster.deploy("too-large", 1, cpu="1000")
    cluster.deploy("large", 3, cpu="3", affinity=ON_NODES_OF_THEIR_OWN)
    cluster.until(lambda: cluster.has_map(STATUS), "the status is written")
    assert not cluster.names("nodegroups")


def grow_in_spite_of_a_fault(cluster: Cluster) -> None:
    fault = {"name": "once", "call": "IncreaseSize", "kind": "Fail", "times": 1}
    cluster.kubectl("patch", "cloud", "cloud", "--type=merge", "-p", json.dumps({"spec": {"faults": [fault]}}))
    cluster.kubectl("delete", "configmap", "plimsoll", "-n", NAMESPACE)
    cluster.until(lambda: cluster.running("large") == 3, "large pods run")
    cluster.kubectl("patch", "cloud", "cloud", "--type=merge", "-p", '{"spec": {"faults": null}}')
    struck = json.loads(cluster.kubectl("get", "cloud", "cloud", "-o", "json"))["status"]["faults"]
    assert struck == [{"name": "once", "times": 1}]


def show_a_page_to_permitted_users(cluster: Cluster, autoscaler: AutoscalerProcess) -> None:
    token = cluster.kubectl("create", "token", ACCOUNT, "-n", NAMESPACE).strip()
    connection = http.client.HTTPConnection("127.0.0.1", autoscaler.port)
    # By another name than that of this machine: only then it is asked who that is.
    connection.request("GET", "/plan", headers={"Host": "elsewhere", "Authorization": f"Bearer {token}"})
    assert connection.getresponse().status == 403
    connection.close()


def answer_and_clear_away_a_request(cluster: Cluster) -> None:
    """One that failed long ago, as far as its status says."""
    metadata = {"name": "too-many", "namespace": "default"}
    resources = {"requests": {"cpu": "1000"}}
    pod = {"spec": {"containers": [{"name": "c", "image": "nginx", "resources": resources}]}}
    spec = {
        "provisioningClassName": "check-capacity.autoscaling.x-k8s.io",
        "podSets": [{"count": 1, "podTemplateRef": {"name": "too-many"}}],
        "parameters": {"noRetry": "true", "ValidUntilSeconds": "1"},
    }
    request = {"apiVersion": "autoscaling.x-k8s.io/v1", "kind": "ProvisioningRequest", "metadata": metadata}
    cluster.apply({"apiVersion": "v1", "kind": "PodTemplate", "metadata": metadata, "template": pod})
    cluster.apply({**request, "spec": spec})
    cluster.kubectl("wait", "--for=condition=Failed", "provreq/too-many", f"--timeout={PATIENCE_S:.0f}s")
    failed = {"type": "Failed", "status": "True", "reason": "Expired", "message": "", "lastTransitionTime": LONG_AGO}
    status = json.dumps({"status": {"conditions": [failed]}})
    cluster.kubectl("patch", "provreq", "too-many", "--subresource=status", "--type=merge", "-p", status)
    cluster.until(lambda: not cluster.names("provreq"), "the request is cleared away")
    cluster.kubectl("delete", "podtemplate", "too-many")


def drain_within_the_budget(cluster: Cluster) -> None:
    budget = {"selector": {"matchLabels": {"app": "small"}}, "maxUnavailable": 1}
    metadata = {"name": "small", "namespace": "default"}
    cluster.apply({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata, "spec": budget})
    cluster.deploy("small", 6, cpu="100m", memory="64Mi")
    cluster.until(lambda: cluster.running("small") == 6, "small pods run")
    cluster.kubectl("delete", "deployment", "large", "too-large")
    cluster.until(lambda: len(cluster.names("nodes")) == 1, "one node is enough")
    cluster.until(lambda: cluster.running("small") == 6, "small pods run on one node")


def give_everything_back(cluster: Cluster) -> None:
    cluster.scale("small", 0)
    cluster.until(lambda: not cluster.names("nodegroups"), "no group is left")


def unused_rights(cluster: Cluster, asked: list[ProxiedRequest]) -> list[str]:
    """Of the roles in deploy/: each verb on each resource, of each name, that no call needed."""
    calls = [request.attributes for request in asked]
    unused = []
    for document in yaml.safe_load_all(cluster.kubectl("kustomize", "deploy/nodes-simulated")):
        for rule in rules_of(document):
            place = document["metadata"].get("namespace", "")
            here = [attributes for attributes in calls if not place or attributes.namespace == place]
            asked_for = (
                single_permission
                for single_permission in rule.split_permissions()
                if not is_read_by_listing(single_permission)
            )
            unused += [rule.text for rule in asked_for if not any(map(rule.allows, here))]
    return unused


def is_read_by_listing(right: Rule) -> bool:
    return right.verbs == ("get",) and set(right.resources) <= READ_BY_LISTING


def rules_of(document: dict[str, Any]) -> list[Rule]:
    return [Rule.from_json(rule) for rule in document["rules"]] if document["kind"] in {"Role", "ClusterRole"} else []
