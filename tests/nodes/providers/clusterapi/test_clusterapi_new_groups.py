"""Auto-provisioning on Cluster API: templates are machine types, groups copy them (docs/design/nodes.md 9.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.core.resources import ResourceVector
from plimsoll.local.cluster_api.definitions import build_definition
from plimsoll.local.cluster_api.machines import BOOT_S
from plimsoll.nodes.model.call_outcomes import CallFailed, Done, FailureKind, NotImplementedByProvider
from plimsoll.nodes.model.group_names import is_ours
from plimsoll.nodes.providers.ports import Created
from plimsoll.nodes.providers.values import Blueprint
from plimsoll.objects.api.nodes import Node, Taint
from tests.nodes.providers.clusterapi.capi_clusters import DEFINITIONS, CapiCluster
from tests.nodes.providers.clusterapi.capi_objects import CAPACITY, HERE, LARGE_ENOUGH, MAX, MIN, bounds, collection

if TYPE_CHECKING:
    from tests.golden.reviewed_sentences import ReviewedSentences

TEMPLATE = "autoscaling.x-k8s.io/nap-template"
SYNCED = "autoscaling.x-k8s.io/nap-synced-labels"
COMES = "node.cluster.x-k8s.io/team"
MADE = f"MachineDeployment/{HERE}/nap-large-1"
RED = Taint(key="dedicated", value="red", effect="NoSchedule")


def template(world: CapiCluster, name: str = "large", **spec: Any) -> None:
    annotations = {TEMPLATE: "true", **LARGE_ENOUGH, **spec.pop("annotations", {})}
    world.deployment(name, annotations=annotations, labels={"kept": "yes", **spec.pop("labels", {})}, **spec)
    world.do(world.provider.refresh())


def blueprint(**changes: Any) -> Blueprint:
    plain: dict[str, Any] = {
        "id": "nap-large-1",
        "machine_type": "large",
        "max_size": 100,
        "labels": {COMES: "red"},
        "taints": (RED,),
    }
    return Blueprint(**{**plain, **changes})


def theoretical(world: CapiCluster, **changes: Any) -> Any:
    group = world.do(world.provider.new_node_group(blueprint(**changes)))
    assert not isinstance(group, CallFailed | NotImplementedByProvider), group
    return group


def document(world: CapiCluster, name: str = "nap-large-1") -> Any:
    return world.kube.ask("GET", f"{collection('MachineDeployment')}/{name}")


# ---- machine types


def test_a_template_with_no_replicas_is_a_machine_type_and_no_group():
    with CapiCluster(runs=False) as world:
        more = {f"{CAPACITY}labels": "node.kubernetes.io/instance-type=m5,topology.kubernetes.io/zone=a", **bounds()}
        template(world, annotations=more)
        (kind,) = world.do(world.provider.get_machine_types())  # type: ignore[misc]  # it is implemented
        assert kind.name == "large"
        assert kind.capacity == ResourceVector.from_quantities({"cpu": 4, "memory": "16Gi", "pods": 110})
        assert kind.zones == ("a",)
        assert kind.labels["node.kubernetes.io/instance-type"] == "m5"
        assert world.groups() == {}


def test_a_template_in_use_or_without_sizes_is_no_machine_type():
    with CapiCluster(runs=False) as world:
        template(world, "in-use", replicas=1)
        world.deployment("bare", annotations={TEMPLATE: "true"})
        world.do(world.provider.refresh())
        assert world.do(world.provider.get_machine_types()) == ()


# ---- groups that could be made


def test_a_theoretical_group_describes_what_its_nodes_would_be():
    with CapiCluster(runs=False) as world:
        template(world)
        group = theoretical(world)
        assert (group.id, group.exists, group.autoprovisioned, group.max_size) == (MADE, False, True, 100)
        node = world.do(group.template_node_info())
        assert node.metadata.labels[COMES] == "red"
        assert RED in node.spec.taints
        assert world.groups() == {}


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"machine_type": "none"}, "there is no MachineDeployment none"),
        ({"labels": {"team": "red"}}, "label team would not come from machines to nodes"),
        ({"zones": ("b",)}, "is not to be had in zone b"),
        ({"extra_resources": {"nvidia.com/gpu": "1"}}, "has no nvidia.com/gpu"),
        ({"id": "nap_large"}, "cannot be the name"),
    ],
)
def test_what_nodes_could_not_be_is_refused(changes: dict[str, Any], why: str):
    with CapiCluster(runs=False) as world:
        template(world, template={"spec": {"failureDomain": "a"}})
        outcome = world.do(world.provider.new_node_group(blueprint(**changes)))
        assert isinstance(outcome, CallFailed)
        assert outcome.kind is FailureKind.REFUSED
        assert why in outcome.message


# ---- making


def test_a_group_is_a_copy_that_loses_nothing():
    with CapiCluster(runs=False) as world:
        inner = {
            "metadata": {"labels": {"inner": "kept"}},
            "spec": {"bootstrap": {"configRef": {"name": "b"}}, "version": "v1.34.0", "unknownYet": [1, {"a": None}]},
        }
        selector = {"matchLabels": {"cluster.x-k8s.io/deployment-name": "large"}}
        template(world, template=inner, selector=selector, strategy={"type": "RollingUpdate"}, annotations=bounds())
        assert world.do(theoretical(world).create()) == Created(id=MADE)
        made, origin = document(world), document(world, "large")
        assert made["metadata"]["uid"] != origin["metadata"]["uid"]
        assert made["metadata"]["labels"]["kept"] == "yes"
        assert not {TEMPLATE, MIN, MAX} & made["metadata"]["annotations"].keys()
        assert made["spec"]["replicas"] == 0
        assert made["spec"]["strategy"] == {"type": "RollingUpdate"}
        mine = {"cluster.x-k8s.io/deployment-name": "nap-large-1"}
        assert made["spec"]["selector"]["matchLabels"] == mine
        labels = made["spec"]["template"]["metadata"]["labels"]
        assert labels.items() >= {"inner": "kept", COMES: "red", **mine}.items()
        kept = {name: value for name, value in made["spec"]["template"]["spec"].items() if name != "taints"}
        assert kept == origin["spec"]["template"]["spec"]
        (taint,) = made["spec"]["template"]["spec"]["taints"]
        assert taint == {"key": "dedicated", "value": "red", "effect": "NoSchedule", "propagation": "Always"}


def test_a_copy_does_not_pass_for_a_part_of_its_clusters_topology():
    with CapiCluster(runs=False) as world:
        owned = {"topology.cluster.x-k8s.io/owned": ""}
        inner = {"metadata": {"labels": {**owned, "inner": "kept"}}}
        template(world, template=inner, selector={"matchLabels": {**owned, "inner": "kept"}}, labels=owned)
        world.do(theoretical(world).create())
        made = document(world)
        words = [
            made["metadata"]["labels"],
            made["spec"]["selector"]["matchLabels"],
            made["spec"]["template"]["metadata"]["labels"],
        ]
        assert not any(owned.keys() & word.keys() for word in words)
        assert all(word["inner"] == "kept" for word in words[1:])


def test_a_group_that_was_made_lives_and_is_deleted_when_empty():
    with CapiCluster() as world:
        template(world)
        world.do(theoretical(world).create())
        group = world.groups()[MADE]
        assert (group.autoprovisioned, group.autoscaled, group.min_size, group.max_size) == (True, False, 0, 100)
        made = world.do(group.template_node_info())
        assert isinstance(made, Node)
        assert made.metadata.labels[COMES] == "red"
        assert RED in made.spec.taints
        assert world.do(group.increase_size(1, expected=0)) == Done()
        refused = world.do(group.delete())
        assert isinstance(refused, CallFailed)
        world.after(BOOT_S + 5)
        (name,) = world.nodes()
        assert world.do(world.refreshed("nap-large-1").delete_nodes([world.node(name)])) == Done()
        world.after(5)
        group = world.refreshed("nap-large-1")
        assert world.do(group.delete()) == Done()
        assert world.do(group.delete()) == Done()
        assert world.groups() == {}
        assert document(world, "large")["spec"]["replicas"] == 0


def test_only_what_auto_provisioning_made_is_deleted():
    with CapiCluster(runs=False) as world:
        world.deployment("md")
        outcome = world.do(world.refreshed().delete())
        assert isinstance(outcome, CallFailed)
        assert outcome.kind is FailureKind.REFUSED


def test_labels_configured_as_synced_are_allowed_and_reported():
    with CapiCluster(runs=False) as world:
        template(world, annotations={SYNCED: "team", f"{CAPACITY}labels": "a=b"})
        world.do(theoretical(world, labels={"team": "red"}).create())
        node = world.do(world.groups()[MADE].template_node_info())
        assert isinstance(node, Node)
        assert node.metadata.labels.items() >= {"team": "red", "a": "b"}.items()


def test_taints_that_nodes_get_in_another_way_are_not_written_again():
    with CapiCluster(runs=False) as world:
        template(world, annotations={f"{CAPACITY}taints": "dedicated=red:NoSchedule"})
        world.do(theoretical(world).create())
        assert "taints" not in document(world)["spec"]["template"]["spec"]
        node = world.do(world.groups()[MADE].template_node_info())
        assert isinstance(node, Node)
        assert node.spec.taints == (RED,)


def test_a_cluster_api_that_drops_taints_makes_no_group_that_needs_them(reviewed: ReviewedSentences):
    with CapiCluster(runs=False, kinds=("MachineSet", "Machine")) as world:
        world.kube.made(DEFINITIONS, without_taints())
        world.run.settle()
        template(world)
        outcome = world.do(theoretical(world).create())
        assert isinstance(outcome, CallFailed)
        assert outcome.kind is FailureKind.REFUSED
        reviewed(outcome.message)
        assert [
            item["metadata"]["name"] for item in world.kube.ask("GET", collection("MachineDeployment"))["items"]
        ] == ["large"]


def without_taints() -> dict[str, Any]:
    """An older MachineDeployment, whose machines have no such field."""
    body = build_definition("MachineDeployment")
    inner = {"type": "object", "properties": {"failureDomain": {"type": "string"}}}
    meta = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    machines = {"type": "object", "properties": {"metadata": meta, "spec": inner}}
    schema = body["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    schema["properties"] = {**schema["properties"], "template": machines}
    return body


def test_making_the_same_group_again_finds_it_made():
    with CapiCluster(runs=False) as world:
        template(world)
        assert world.do(theoretical(world).create()) == Created(id=MADE)
        world.provider = world.restarted()
        assert world.do(theoretical(world).create()) == Created(id=MADE)
        other = world.do(theoretical(world, labels={COMES: "blue"}).create())
        assert isinstance(other, CallFailed)
        assert other.kind is FailureKind.REFUSED


def test_a_template_that_was_taken_away_makes_no_group():
    with CapiCluster(runs=False) as world:
        template(world)
        group = theoretical(world)
        world.kube.ask("DELETE", f"{collection('MachineDeployment')}/large")
        outcome = world.do(group.create())
        assert isinstance(outcome, CallFailed)
        assert outcome.kind is FailureKind.REFUSED


def test_the_prefix_of_a_group_is_looked_for_in_its_own_name():
    assert is_ours(MADE, "nap")
    assert not is_ours(f"MachineDeployment/nap-{HERE}/large-1", "nap")
    assert is_ours("nap_large_1", "nap")
