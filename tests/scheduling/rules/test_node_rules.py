"""Rules about the node alone: cordon, name, taints, affinity, ports, resources, and the order they are asked in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from plimsoll.core.errors import InvalidInput
from plimsoll.objects.api.pods import Pod, PodStatus
from plimsoll.scheduling.cluster_view import ClusterView
from plimsoll.scheduling.feasibility import Profile, check_node, explain
from plimsoll.scheduling.verdicts import FITS, DoesNotFit, Refusal
from tests.scheduling.builders import node, node_affinity, pod

if TYPE_CHECKING:
    from plimsoll.objects.api.nodes import Node
    from tests.golden.reviewed_sentences import ReviewedSentences

NO_EXECUTE = {"key": "maintenance", "effect": "NoExecute"}
DEDICATED = {"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}
CORDON = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}


def refusal(made: Pod, on: Node, *others: Pod) -> Refusal | None:
    verdict = check_node(made, on, ClusterView.from_objects([on], others))
    return verdict.reason if isinstance(verdict, DoesNotFit) else None


def words(made: Pod, on: Node, *others: Pod) -> tuple[str, ...]:
    found = refusal(made, on, *others)
    return () if found is None else found.messages


def test_a_plain_pod_fits_an_empty_node():
    assert check_node(pod(), node(), ClusterView.from_objects([node()])) is FITS


def test_a_cordoned_node_refuses():
    found = refusal(pod(), node(unschedulable=True))

    assert found == Refusal(plugin="NodeUnschedulable", messages=("node(s) were unschedulable",))


def test_a_pod_that_tolerates_the_cordon_may_come():
    tolerant = pod(tolerations=[{"key": CORDON["key"], "operator": "Exists"}])

    assert refusal(tolerant, node(unschedulable=True, taints=[CORDON])) is None


def test_a_pinned_pod_fits_only_its_node():
    pinned = pod(on="n2")

    assert words(pinned, node("n1")) == ("node(s) didn't match the requested node name",)
    assert words(pinned, node("n2")) == ()


@pytest.mark.parametrize(
    ("toleration", "taint", "tolerated"),
    [
        (None, DEDICATED, False),
        (None, {**DEDICATED, "effect": "PreferNoSchedule"}, True),
        (None, NO_EXECUTE, False),
        ({"key": "dedicated", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"}, DEDICATED, True),
        ({"key": "dedicated", "value": "gpu"}, DEDICATED, True),
        ({"key": "dedicated", "value": "cpu"}, DEDICATED, False),
        ({"key": "dedicated", "operator": "Exists"}, DEDICATED, True),
        ({"key": "dedicated", "operator": "Exists", "effect": "NoExecute"}, DEDICATED, False),
        ({"operator": "Exists"}, NO_EXECUTE, True),
        ({"key": "other", "operator": "Exists"}, DEDICATED, False),
        ({"key": "dedicated", "operator": "Sometimes", "value": "gpu"}, DEDICATED, False),
    ],
)
def test_tolerations(toleration: dict[str, str] | None, taint: dict[str, str], tolerated: bool):
    made = pod(tolerations=[toleration] if toleration else [])

    assert (words(made, node(taints=[taint])) == ()) is tolerated


def test_an_untolerated_taint_is_named_beside_the_words():
    found = refusal(pod(), node(taints=[DEDICATED]))

    assert found == Refusal(
        plugin="TaintToleration", messages=("node(s) had untolerated taint(s)",), detail="dedicated=gpu:NoSchedule"
    )


EXPRESSION = {"key": "disk", "operator": "In", "values": ["ssd"]}
BY_NAME = {"key": "metadata.name", "operator": "In", "values": ["n1"]}


@pytest.mark.parametrize(
    ("spec", "fits"),
    [
        ({"nodeSelector": {"disk": "ssd"}}, True),
        ({"nodeSelector": {"disk": "hdd"}}, False),
        ({"nodeSelector": {"absent": ""}}, False),
        (node_affinity({"matchExpressions": [EXPRESSION]}), True),
        (node_affinity({"matchExpressions": [{**EXPRESSION, "operator": "NotIn"}]}), False),
        (node_affinity({"matchExpressions": [{"key": "cpus", "operator": "Gt", "values": ["7"]}]}), True),
        (node_affinity({"matchExpressions": [{"key": "cpus", "operator": "Lt", "values": ["8"]}]}), False),
        (node_affinity({"matchFields": [BY_NAME]}), True),
        (node_affinity({"matchFields": [{**BY_NAME, "values": ["n2"]}]}), False),
        (node_affinity({"matchFields": [{**BY_NAME, "values": ["n2"]}]}, {"matchExpressions": [EXPRESSION]}), True),
        (node_affinity({"matchFields": [BY_NAME], "matchExpressions": [{"key": "gpu", "operator": "Exists"}]}), False),
        (node_affinity({}), False),
        (node_affinity(), False),
        ({"nodeSelector": {"disk": "hdd"}, **node_affinity({"matchExpressions": [EXPRESSION]})}, False),
        ({"affinity": {"nodeAffinity": {}}}, True),
    ],
)
def test_node_affinity(spec: dict[str, Any], fits: bool):
    place = node(labels={"disk": "ssd", "cpus": "8"})

    assert words(pod(**spec), place) == (() if fits else ("node(s) didn't match Pod's node affinity/selector",))


def test_affinity_that_cannot_be_read_is_refused_by_its_path():
    found = refusal(pod(**node_affinity({"matchExpressions": [{"key": "disk", "operator": "Near"}]})), node())

    assert found is not None
    assert found.plugin == "NodeAffinity"
    assert found.messages == (
        (
            "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]"
            '.matchExpressions[0]: "Near" is not a valid node selector operator'
        ),
    )


def ports(*listed: dict[str, Any]) -> dict[str, Any]:
    return {"containers": [{"name": "c", "ports": list(listed)}]}


@pytest.mark.parametrize(
    ("mine", "theirs", "clash"),
    [
        ({"hostPort": 80}, {"hostPort": 80}, True),
        ({"hostPort": 80}, {"hostPort": 81}, False),
        ({"hostPort": 80, "protocol": "UDP"}, {"hostPort": 80}, False),
        ({"hostPort": 80, "protocol": "TCP"}, {"hostPort": 80}, True),
        ({"hostPort": 80, "hostIP": "10.0.0.1"}, {"hostPort": 80, "hostIP": "10.0.0.2"}, False),
        ({"hostPort": 80, "hostIP": "10.0.0.1"}, {"hostPort": 80}, True),
        ({"hostPort": 80, "hostIP": "10.0.0.1"}, {"hostPort": 80, "hostIP": "0.0.0.0"}, True),
        ({"containerPort": 80}, {"containerPort": 80}, False),
    ],
)
def test_host_ports(mine: dict[str, Any], theirs: dict[str, Any], clash: bool):
    taken = pod("other", on="n1", **ports(theirs))
    found = refusal(pod(**ports(mine)), node(), taken)

    assert (found is not None) is clash
    if found is not None:
        assert found.messages == ("node(s) didn't have free ports for the requested pod ports",)
        assert found.resolvable


def test_on_the_host_network_container_ports_are_host_ports():
    taken = pod("other", on="n1", hostNetwork=True, **ports({"containerPort": 9100}))

    assert refusal(pod(**ports({"hostPort": 9100})), node(), taken) is not None


def test_sidecars_have_host_ports_and_other_init_containers_do_not():
    port = [{"hostPort": 80}]
    sidecar = pod("other", on="n1", initContainers=[{"name": "s", "restartPolicy": "Always", "ports": port}])
    setup = pod("other", on="n1", initContainers=[{"name": "s", "ports": port}])

    assert refusal(pod(**ports({"hostPort": 80})), node(), sidecar) is not None
    assert refusal(pod(**ports({"hostPort": 80})), node(), setup) is None


def test_every_short_resource_is_listed():
    large = pod(requests={"cpu": "3", "memory": "7Gi", "nvidia.com/gpu": "1"})
    found = refusal(large, node(pods="1"), pod("other", on="n1", requests={"cpu": "2", "memory": "2Gi"}))

    assert found is not None
    assert found.messages == (
        "Too many pods",
        "Insufficient cpu",
        "Insufficient memory",
        "Insufficient nvidia.com/gpu",
    )
    assert found.detail.startswith("pods needs 1, 0 left; cpu needs 3, 2 left; memory needs 7Gi, 6Gi left")


@pytest.mark.parametrize(("cpu", "resolvable"), [("3", True), ("4", True), ("4001m", False)])
def test_preemption_can_help_only_with_what_the_node_has_at_all(cpu: str, resolvable: bool):
    found = refusal(pod(requests={"cpu": cpu}), node(), pod("other", on="n1", requests={"cpu": "2"}))

    assert found is not None
    assert found.resolvable is resolvable
    assert found.code == ("Unschedulable" if resolvable else "UnschedulableAndUnresolvable")


def test_preemption_is_tried_even_where_a_node_takes_no_pods():
    found = refusal(pod(), node(pods="0"))

    assert found is not None
    assert (found.messages, found.resolvable) == (("Too many pods",), True)


def test_a_request_of_nothing_fits_an_overbooked_node():
    assert refusal(pod(), node(), pod("other", on="n1", requests={"cpu": "9"})) is None


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_ended_pods_take_no_room(phase: str):
    running = pod("done", on="n1", requests={"cpu": "4"})
    done = msgspec.structs.replace(running, status=PodStatus(phase=phase))

    assert refusal(pod(requests={"cpu": "4"}), node(), running) is not None

    assert refusal(pod(requests={"cpu": "4"}), node(), done) is None


def test_claims_on_devices_are_refused_in_so_many_words():
    found = refusal(pod(resourceClaims=[{"name": "gpu", "resourceClaimName": "g"}]), node())

    assert found is not None
    assert found.plugin == "DynamicResources"
    assert found.messages == ("pod has spec.resourceClaims, and dynamic resource allocation is not supported",)


def test_a_gated_pod_fits_nowhere():
    found = refusal(pod(schedulingGates=[{"name": "a.io/x"}, {"name": "b"}]), node())

    assert found == Refusal(plugin="SchedulingGates", messages=("waiting for scheduling gates: [a.io/x b]",))


def test_the_first_rule_in_kube_schedulers_order_decides_and_explain_gives_all():
    place = node(unschedulable=True, taints=[DEDICATED])
    made = pod(nodeSelector={"disk": "ssd"}, overhead={"cpu": "9"}, **ports({"hostPort": 80}))
    view = ClusterView.from_objects([place], [pod("other", on="n1", **ports({"hostPort": 80}))])

    verdict = check_node(made, place, view)

    assert isinstance(verdict, DoesNotFit)
    assert verdict.reason.plugin == "NodeUnschedulable"
    assert [reason.plugin for reason in explain(made, view)["n1"]] == [
        "NodeUnschedulable",
        "TaintToleration",
        "NodeAffinity",
        "NodePorts",
        "NodeResourcesFit",
    ]


def test_a_profile_switches_rules_off():
    place = node(taints=[DEDICATED])
    lenient = Profile(disabled=frozenset({"TaintToleration"}))

    assert check_node(pod(), place, ClusterView.from_objects([place]), profile=lenient) is FITS
    assert check_node(pod(), place, ClusterView.from_objects([place])) is not FITS


def test_a_profile_knows_only_rules_that_there_are(reviewed: ReviewedSentences):
    with pytest.raises(InvalidInput) as raised:
        Profile(disabled=frozenset({"NoSuchRule"}))
    reviewed(str(raised.value))


def test_a_refusal_says_which_rule_and_how_much_is_lacking():
    verdict = check_node(pod(requests={"cpu": "64"}), node(), ClusterView.from_objects([node()]))
    assert isinstance(verdict, DoesNotFit)
    reason = verdict.reason
    assert (reason.plugin, str(reason)) == ("NodeResourcesFit", "Insufficient cpu: cpu needs 64, 4 left")
    assert reason.code == "UnschedulableAndUnresolvable"
