"""What a node of a group would be like before there is one (docs/design/nodes.md 9.4, "From zero")."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.local.cluster_api.definitions import build_definition
from plimsoll.local.cluster_api.machines import BOOT_S
from plimsoll.nodes.config.policy import PodRules
from plimsoll.nodes.model.call_outcomes import NotImplementedByProvider
from plimsoll.nodes.model.node_templates import make_template
from plimsoll.nodes.model.snapshot import NodeGroup
from plimsoll.nodes.observing.attach_limits import add_template_limits
from plimsoll.nodes.planning.autoprovisioning.taints import TransientTaints
from plimsoll.nodes.providers.clusterapi.node_templates import (
    Infrastructure,
    TemplateProblem,
    build_template,
    read_capacity,
    read_labels,
    read_taints,
)
from plimsoll.objects.api.cluster_api import MachineDeployment
from plimsoll.objects.api.nodes import Node, Taint
from plimsoll.objects.codec.decoding import convert_object
from plimsoll.scheduling import Storage
from tests.nodes.providers.clusterapi.capi_clusters import DEFINITIONS, CapiCluster
from tests.nodes.providers.clusterapi.capi_objects import CAPACITY, HERE, INFRASTRUCTURE, LARGE_ENOUGH, bounds, scalable

TOLD = Infrastructure(capacity={"cpu": "2", "memory": "8Gi", "nvidia.com/gpu": "1"}, architecture="arm64")


def written(template: dict[str, Any] | None = None, **annotations: str) -> MachineDeployment:
    """Annotations by the end of their names; underscores stand for dashes."""
    named = {f"{CAPACITY}{name.replace('_', '-')}": text for name, text in annotations.items()}
    found = convert_object(MachineDeployment, scalable(annotations=named, template=template or {}))
    assert isinstance(found, MachineDeployment)
    return found


def node(found: MachineDeployment, reported: Infrastructure = TOLD, **like: str) -> Node:
    template = build_template(found, reported, architecture="amd64", like=like)
    assert isinstance(template, Node)
    return template


def test_annotations_describe_what_nodes_have():
    found = written(
        cpu="4", memory="16Gi", ephemeral_disk="100Gi", maxPods="250", gpu_type="amd.com/gpu", gpu_count="2"
    )
    assert read_capacity(found, Infrastructure()) == {
        "cpu": "4",
        "memory": "16Gi",
        "ephemeral-storage": "100Gi",
        "pods": "250",
        "amd.com/gpu": "2",
    }


def test_annotations_go_before_the_infrastructures_word():
    assert read_capacity(written(cpu="4"), TOLD) == {"cpu": "4", "memory": "8Gi", "nvidia.com/gpu": "1", "pods": "110"}


def test_processors_and_memory_must_be_known():
    assert read_capacity(written(cpu="4"), Infrastructure()) == TemplateProblem(
        problem="neither annotations nor the machine template give the memory of its nodes"
    )
    assert isinstance(read_capacity(written(cpu="4", memory="much"), Infrastructure()), TemplateProblem)


def test_accelerators_need_a_type_and_a_count():
    for odd in ({"gpu_type": "nvidia.com/gpu"}, {"gpu_count": "2"}):
        assert read_capacity(written(cpu="1", memory="1Gi", **odd), Infrastructure()) == {  # type: ignore[arg-type]
            "cpu": "1",
            "memory": "1Gi",
            "pods": "110",
        }


def test_a_template_is_a_ready_empty_node():
    template = node(written())
    assert template.status.allocatable == template.status.capacity
    assert [(condition.type, condition.status) for condition in template.status.conditions] == [("Ready", "True")]
    assert template.metadata.labels["kubernetes.io/arch"] == "arm64"
    assert template.metadata.labels["kubernetes.io/os"] == "linux"
    assert template.metadata.labels["kubernetes.io/hostname"] == template.metadata.name


def test_attach_limits_of_volumes_come_with_the_template():
    reported = node(written(cpu="4", memory="16Gi", csi_driver="ebs.csi.aws.com=25,efs.csi.aws.com"))
    group = NodeGroup(id="g", min_size=0, max_size=9, target_size=0, template=reported)
    storage = add_template_limits(Storage(), [group])

    found = storage.find_csi_node(make_template(group, TransientTaints(PodRules())))
    assert found is not None
    limits = [(driver.name, driver.allocatable and driver.allocatable.count) for driver in found.spec.drivers]
    assert limits == [("ebs.csi.aws.com", 25), ("efs.csi.aws.com", None)]


def test_templates_without_limits_leave_storage_as_it_is():
    storage = Storage()
    group = NodeGroup(id="g", min_size=0, max_size=9, target_size=0, template=node(written(cpu="4", memory="16Gi")))
    assert add_template_limits(storage, [group]) is storage


def test_the_default_architecture_is_used_when_none_is_given():
    assert node(written(cpu="1", memory="1Gi"), Infrastructure()).metadata.labels["kubernetes.io/arch"] == "amd64"
    labelled = written(cpu="1", memory="1Gi", labels="kubernetes.io/arch=s390x")
    assert node(labelled).metadata.labels["kubernetes.io/arch"] == "s390x"


def test_labels_merge_and_annotations_win():
    template = {"metadata": {"labels": {"node.cluster.x-k8s.io/a": "1", "node.cluster.x-k8s.io/b": "1", "team": "red"}}}
    found = written(template, labels="node.cluster.x-k8s.io/b=2,c=3,odd,d=x=y")
    assert read_labels(found) == {
        "node.cluster.x-k8s.io/a": "1",
        "node.cluster.x-k8s.io/b": "2",
        "c": "3",
        "d": "x=y",
    }


def test_taints_merge_by_key_and_effect_and_annotations_win():
    spec = {
        "taints": [
            {"key": "a", "value": "1", "effect": "NoSchedule", "propagation": "Always"},
            {"key": "b", "value": "1", "effect": "NoSchedule"},
        ]
    }
    found = written({"spec": spec}, taints="a=2:NoSchedule,a=3:NoExecute,c:NoSchedule,odd,x=y=z:NoSchedule,k=v:Never")
    assert read_taints(found) == (
        Taint(key="a", value="2", effect="NoSchedule"),
        Taint(key="b", value="1", effect="NoSchedule"),
        Taint(key="a", value="3", effect="NoExecute"),
        Taint(key="c", value="", effect="NoSchedule"),
    )


def test_a_real_node_gives_zone_and_type_best():
    labels: dict[str, Any] = {
        "topology.kubernetes.io/zone": "a",
        "node.kubernetes.io/instance-type": "t",
        "team": "red",
    }
    found = node(written(labels="topology.kubernetes.io/zone=b"), **labels).metadata.labels
    assert found["topology.kubernetes.io/zone"] == "a"
    assert found["node.kubernetes.io/instance-type"] == "t"
    assert "team" not in found


@given(
    st.recursive(
        st.none() | st.booleans() | st.text(max_size=5),
        lambda inner: st.dictionaries(
            st.sampled_from(["status", "capacity", "nodeInfo", "cpu", "architecture"]), inner, max_size=3
        ),
    )
)
@settings(deadline=None)
def test_whatever_an_infrastructure_object_is_it_can_be_read(document: object):
    Infrastructure.from_document(document)


# ---- through the provider


def infrastructure_template(world: CapiCluster, **status: Any) -> None:
    world.kube.made(DEFINITIONS, build_definition("DemoMachineTemplate", group=INFRASTRUCTURE, version="v1beta1"))
    world.run.settle()
    body = {
        "apiVersion": f"{INFRASTRUCTURE}/v1beta1",
        "kind": "DemoMachineTemplate",
        "metadata": {"name": "t"},
        "spec": {},
    }
    url = f"/apis/{INFRASTRUCTURE}/v1beta1/namespaces/{HERE}/demomachinetemplates"
    world.kube.made(url, body)
    content = "application/merge-patch+json"
    world.kube.ask("PATCH", f"{url}/t/status", {"status": status}, content=content)


def referring(**reference: str) -> dict[str, Any]:
    return {"spec": {"infrastructureRef": {"kind": "DemoMachineTemplate", "name": "t", **reference}}}


def test_the_infrastructure_is_found_by_both_kinds_of_reference():
    for reference in ({"apiVersion": f"{INFRASTRUCTURE}/v1beta1"}, {"apiGroup": INFRASTRUCTURE}):
        with CapiCluster(runs=False) as world:
            infrastructure_template(world, capacity={"cpu": "2", "memory": "8Gi"}, nodeInfo={"architecture": "arm64"})
            world.deployment("md", template=referring(**reference))
            template = world.do(world.refreshed().template_node_info())
            assert isinstance(template, Node)
            assert template.status.capacity == {"cpu": "2", "memory": "8Gi", "pods": "110"}
            assert template.metadata.labels["kubernetes.io/arch"] == "arm64"


def test_without_the_infrastructures_object_annotations_are_enough():
    with CapiCluster(runs=False) as world:
        for name, annotations in (("told", LARGE_ENOUGH), ("untold", {})):
            template = referring(apiVersion=f"{INFRASTRUCTURE}/v1beta1")
            world.deployment(name, annotations={**bounds(), **annotations}, template=template)
        assert isinstance(world.do(world.refreshed("told").template_node_info()), Node)
        missing = world.do(world.refreshed("untold").template_node_info())
        assert missing == NotImplementedByProvider(call="TemplateNodeInfo")


def test_an_infrastructure_without_data_is_asked_again_later():
    with CapiCluster(runs=False) as world:
        world.deployment("md", template=referring(apiVersion=f"{INFRASTRUCTURE}/v1beta1"))
        assert isinstance(world.do(world.refreshed().template_node_info()), NotImplementedByProvider)
        infrastructure_template(world, capacity={"cpu": "2", "memory": "8Gi"})
        found = [world.do(world.refreshed().template_node_info()) for _ in range(8)]
        assert isinstance(found[0], NotImplementedByProvider)
        assert isinstance(found[-1], Node)


def test_a_group_grows_from_zero():
    with CapiCluster() as world:
        world.deployment("md", annotations={**bounds(), **LARGE_ENOUGH})
        group = world.refreshed()
        assert world.do(group.target_size()) == 0
        assert isinstance(world.do(group.template_node_info()), Node)
        world.do(group.increase_size(1, expected=0))
        world.after(BOOT_S + 5)
        assert len(world.nodes()) == 1
