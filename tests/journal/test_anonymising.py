"""No name leaves in an anonymised recording, and everything still selects, matches and refers as before."""

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.core.selectors import Operator, build_requirement
from plimsoll.journal.anonymising import Anonymiser, Rules

RULES = Rules(
    annotations=(*Rules().annotations, "cluster-autoscaler.kubernetes.io/", "autoscaling.x-k8s.io/"),
    annotated_lists=frozenset({"cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"}),
    prefixes=("nodeautoprovisioning",),
)

POD: dict[str, Any] = {
    "metadata": {
        "name": "secret-web-0",
        "namespace": "secret-shop",
        "uid": "secret-uid",
        "labels": {"app": "secret-web", "tier": "5"},
        "annotations": {
            "kubectl.kubernetes.io/last-applied-configuration": "secret-config",
            "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
            "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes": "secret-tmp,secret-cache",
            "autoscaling.x-k8s.io/consume-provisioning-request": "secret-request",
        },
        "ownerReferences": [{"kind": "ReplicaSet", "name": "secret-web", "uid": "secret-owner", "controller": True}],
    },
    "spec": {
        "nodeName": "secret-node",
        "nodeSelector": {"pool": "secret-pool", "kubernetes.io/arch": "amd64"},
        "priorityClassName": "system-node-critical",
        "containers": [
            {
                "name": "secret-main",
                "image": "secret.example.com/team/web:1",
                "command": ["secret-run"],
                "env": [{"name": "TOKEN", "value": "secret-token"}],
                "resources": {"requests": {"cpu": "1", "nvidia.com/gpu": "1"}},
                "volumeMounts": [{"name": "secret-tmp", "mountPath": "/x"}],
            }
        ],
        "tolerations": [{"key": "dedicated", "operator": "Equal", "value": "secret-team", "effect": "NoSchedule"}],
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {
                            "matchExpressions": [
                                {"key": "pool", "operator": "In", "values": ["secret-pool"]},
                                {"key": "tier", "operator": "Gt", "values": ["3"]},
                            ],
                            "matchFields": [
                                {"key": "metadata.name", "operator": "In", "values": ["secret-node"]},
                            ],
                        }
                    ]
                }
            },
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {
                        "topologyKey": "kubernetes.io/hostname",
                        "namespaces": ["secret-shop", "kube-system"],
                        "labelSelector": {"matchLabels": {"app": "secret-web"}},
                    }
                ]
            },
        },
        "volumes": [
            {"name": "secret-tmp", "emptyDir": {}},
            {"name": "secret-data", "persistentVolumeClaim": {"claimName": "secret-claim"}},
        ],
    },
    "status": {
        "podIP": "10.9.8.7",
        "conditions": [{"type": "PodScheduled", "status": "False", "message": "secret-message"}],
    },
}
NODE = {
    "metadata": {
        "name": "secret-node",
        "labels": {"kubernetes.io/hostname": "secret-node", "pool": "secret-pool", "tier": "5"},
    },
    "spec": {
        "providerID": "cloud://secret-project/secret-node",
        "taints": [{"key": "dedicated", "value": "secret-team", "effect": "NoSchedule"}],
    },
    "status": {"addresses": [{"address": "10.1.2.3"}], "allocatable": {"cpu": "4"}},
}


def hidden(value: Any, salt: str = "pepper") -> Any:
    return Anonymiser(salt, RULES).anonymise(value)


def selects(expression: dict[str, Any], labels: dict[str, str]) -> bool:
    operators = {"In": Operator.IN, "NotIn": Operator.NOT_IN, "Exists": Operator.EXISTS}
    operator = operators.get(expression["operator"], Operator.DOES_NOT_EXIST)
    return build_requirement(expression["key"], operator, expression["values"]).matches(labels)


def test_no_name_is_left():
    text = json.dumps(hidden([POD, NODE]))
    assert "secret" not in text
    assert "10.9" not in text
    assert "10.1" not in text


def test_what_is_not_a_name_stays():
    pod = hidden(POD)
    assert pod["spec"]["containers"][0]["resources"] == POD["spec"]["containers"][0]["resources"]
    assert pod["metadata"]["ownerReferences"][0]["kind"] == "ReplicaSet"
    assert pod["spec"]["priorityClassName"] == "system-node-critical"
    assert pod["spec"]["nodeSelector"]["kubernetes.io/arch"] == "amd64"
    assert pod["metadata"]["labels"]["tier"] == "5"
    assert pod["spec"]["tolerations"][0]["key"] == "dedicated"
    assert pod["status"]["conditions"] == [{"type": "PodScheduled", "status": "False"}]


def test_secrets_are_dropped_and_not_hashed():
    container = hidden(POD)["spec"]["containers"][0]
    assert not {"env", "command", "args"} & container.keys()
    assert "data" not in hidden({"kind": "Secret", "metadata": {"name": "s"}, "data": {"k": "v"}})


def test_references_still_refer():
    pod, node = hidden([POD, NODE])
    assert pod["spec"]["nodeName"] == node["metadata"]["name"] == node["metadata"]["labels"]["kubernetes.io/hostname"]
    assert pod["spec"]["volumes"][0]["name"] == pod["spec"]["containers"][0]["volumeMounts"][0]["name"]
    assert pod["spec"]["tolerations"][0]["value"] == node["spec"]["taints"][0]["value"]
    terms = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    (term,) = terms["nodeSelectorTerms"]
    assert term["matchFields"][0]["values"] == [node["metadata"]["name"]]
    assert term["matchExpressions"][0]["values"] == [node["metadata"]["labels"]["pool"]]
    assert term["matchExpressions"][1]["values"] == ["3"]
    (anti,) = pod["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert anti["namespaces"] == [pod["metadata"]["namespace"], "kube-system"]
    assert anti["labelSelector"]["matchLabels"]["app"] == pod["metadata"]["labels"]["app"]


def test_annotations_that_a_planner_reads_stay_and_lists_in_them_are_hidden_one_by_one():
    pod = hidden(POD)
    annotations = pod["metadata"]["annotations"]
    assert annotations["cluster-autoscaler.kubernetes.io/safe-to-evict"] == "false"
    volumes = annotations["cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"].split(",")
    assert volumes[0] == pod["spec"]["volumes"][0]["name"]
    assert len(annotations) == 3


def test_a_volume_keeps_its_place():
    volume = {
        "spec": {
            "csi": {"driver": "pd.csi.storage.gke.io", "volumeHandle": "secret"},
            "storageClassName": "secret-fast",
            "nodeAffinity": {
                "required": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "z", "operator": "In", "values": ["secret-z"]}]}
                    ]
                }
            },
        }
    }
    kind = {
        "metadata": {"name": "secret-fast"},
        "provisioner": "kubernetes.io/no-provisioner",
        "allowedTopologies": [{"matchLabelExpressions": [{"key": "z", "values": ["secret-z"]}]}],
    }
    found, found_kind = hidden([volume, kind])
    assert "secret" not in json.dumps([found, found_kind])
    assert found["spec"]["storageClassName"] == found_kind["metadata"]["name"]
    assert found["spec"]["csi"]["driver"] == "pd.csi.storage.gke.io"
    assert found_kind["provisioner"] == "kubernetes.io/no-provisioner"
    (term,) = found["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    (topology,) = found_kind["allowedTopologies"]
    assert term["matchExpressions"][0]["values"] == topology["matchLabelExpressions"][0]["values"]


def test_the_claim_of_an_ephemeral_volume_is_still_named_after_pod_and_volume():
    pod = {
        "metadata": {"name": "secret-db-0"},
        "spec": {"volumes": [{"name": "secret-scratch", "ephemeral": {"volumeClaimTemplate": {}}}]},
    }
    claim = {"kind": "PersistentVolumeClaim", "metadata": {"name": "secret-db-0-secret-scratch"}}
    found, found_claim = hidden([{"pods": [pod]}, claim])
    found = found["pods"][0]
    assert "secret" not in json.dumps([found, found_claim])
    assert found_claim["metadata"]["name"] == f"{found['metadata']['name']}-{found['spec']['volumes'][0]['name']}"


def test_the_same_salt_gives_the_same_names_and_another_one_others():
    assert hidden(POD) == hidden(POD)
    assert hidden(POD)["metadata"]["name"] != hidden(POD, "salt")["metadata"]["name"]


def test_a_group_made_at_will_is_still_known_by_its_prefix():
    name = Anonymiser("s", RULES).replace_name("nodeautoprovisioning_n1-standard-4_1a2b")
    assert name.startswith("nodeautoprovisioning_x")
    assert "standard" not in name


def test_a_subsystem_may_name_what_else_is_a_name():
    rules = Rules(names=Rules().names | {"broker"}, name_maps=frozenset({"leaders"}))
    anonymiser = Anonymiser("s", rules)
    found = anonymiser.anonymise({"broker": "b-1", "leaders": {"t-0": "b-1"}})
    assert found == {
        "broker": anonymiser.replace_name("b-1"),
        "leaders": {anonymiser.replace_name("t-0"): anonymiser.replace_name("b-1")},
    }


def test_what_was_given_is_not_changed():
    before = json.dumps(POD)
    hidden(POD)
    assert json.dumps(POD) == before


@pytest.mark.parametrize("odd", [None, 3, [], {"labels": None}, {"annotations": [1]}, {"taints": "x"}, {"name": {}}])
def test_odd_shapes_are_no_obstacle(odd: Any):
    hidden(odd)


words = st.from_regex(r"[a-c]([-a-c]{0,4}[a-c])?", fullmatch=True)
labels = st.dictionaries(st.sampled_from(["app", "tier", "zone"]), words | st.integers(-9, 9).map(str), max_size=3)


@settings(max_examples=80, deadline=None)
@given(first=words, second=words)
def test_equal_stays_equal_and_different_stays_different(first: str, second: str):
    anonymiser = Anonymiser("s")
    assert (anonymiser.replace_name(first) == anonymiser.replace_name(second)) is (first == second)
    assert re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", anonymiser.replace_name(first))


@settings(max_examples=80, deadline=None)
@given(
    held=labels,
    key=st.sampled_from(["app", "tier", "zone"]),
    operator=st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist"]),
    values=st.lists(words, min_size=1, max_size=3),
)
def test_a_selector_selects_the_same(held: dict[str, str], key: str, operator: str, values: list[str]):
    wanted = values if operator in {"In", "NotIn"} else []
    selector = {"matchExpressions": [{"key": key, "operator": operator, "values": wanted}]}
    changed = hidden({"labels": held, "selector": selector})
    (expression,) = changed["selector"]["matchExpressions"]
    assert selects(expression, changed["labels"]) is selects(selector["matchExpressions"][0], held)
