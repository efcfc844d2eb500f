"""Volumes are made for claims, in the right zone, once, and go with them. Neither goes while it is used."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.local.volumes.storage_classes import build_default_storage_class
from tests.local.apiserver.builders import MERGE
from tests.local.volumes.builders import (
    CLAIMS,
    CLASSES,
    NODES,
    PODS,
    VOLUMES,
    VolumeCluster,
    claim,
    node,
    pod_with,
    storage_class,
    volume,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

ZONE = "topology.kubernetes.io/zone"


@pytest.fixture(name="world")
def _world() -> Iterator[VolumeCluster]:
    with VolumeCluster() as world:
        yield world


def _zones(value: Any) -> list[str]:
    (term,) = value["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    (expression,) = term["matchExpressions"]
    assert (expression["key"], expression["operator"]) == (ZONE, "In")
    return list(expression["values"])


def _only_volume(world: VolumeCluster) -> Any:
    (only,) = world.ask("GET", VOLUMES).body["items"]
    return only


def test_an_immediate_claim_gets_a_volume_made_for_it(world: VolumeCluster):
    world.make(CLASSES, storage_class())
    made = world.make(CLAIMS, claim(size="3Gi", storageClassName="fast"))
    only = _only_volume(world)
    assert only["metadata"]["name"] == f"pvc-{made['metadata']['uid']}"
    assert only["metadata"]["annotations"] == {"pv.kubernetes.io/provisioned-by": "plimsoll.io/simulated"}
    spec = only["spec"]
    assert (spec["capacity"], spec["storageClassName"]) == ({"storage": "3Gi"}, "fast")
    assert (spec["persistentVolumeReclaimPolicy"], spec["volumeMode"]) == ("Delete", "Filesystem")
    assert only["status"]["phase"] == "Bound"
    assert world.claim()["status"]["phase"] == "Bound"


def test_the_claim_names_the_provisioner_of_its_volume(world: VolumeCluster):
    world.make(CLASSES, storage_class())
    world.make(CLAIMS, claim(storageClassName="fast"))
    assert world.claim()["metadata"]["annotations"] == {
        "pv.kubernetes.io/bind-completed": "yes",
        "pv.kubernetes.io/bound-by-controller": "yes",
        "volume.beta.kubernetes.io/storage-provisioner": "plimsoll.io/simulated",
        "volume.kubernetes.io/storage-provisioner": "plimsoll.io/simulated",
    }
    reasons = [reason for reason, _ in world.reported()]
    assert sorted(set(reasons)) == ["ExternalProvisioning", "Provisioning", "ProvisioningSucceeded"]


def test_a_waiting_claim_gets_its_volume_in_the_zone_of_the_chosen_node(world: VolumeCluster):
    for number in (1, 2, 3):
        world.make(NODES, node(f"n{number}", f"z{number}"))
    world.make(CLASSES, storage_class(waits=True))
    world.make(CLAIMS, claim(storageClassName="fast"))
    assert world.phases(VOLUMES) == {}
    world.select_node("c", "n2")
    assert _zones(_only_volume(world)) == ["z2"]
    assert world.phases(CLAIMS) == {"c": "Bound"}


def test_a_waiting_claim_names_the_pods_it_waits_for(world: VolumeCluster):
    world.make(CLASSES, storage_class(waits=True))
    world.made(PODS, pod_with("c", "q"))
    world.make(PODS, pod_with("c", "p"))
    world.make(CLAIMS, claim(storageClassName="fast"))
    assert ("WaitForPodScheduled", "waiting for pods p,q to be scheduled") in world.reported()


def test_a_node_that_is_gone_is_chosen_again(world: VolumeCluster):
    world.make(CLASSES, storage_class(waits=True))
    world.make(CLAIMS, claim(storageClassName="fast"))
    world.select_node("c", "gone")
    assert "volume.kubernetes.io/selected-node" not in world.claim()["metadata"]["annotations"]
    assert ("ProvisioningFailed", 'failed to get target node: node "gone" not found') in world.reported()
    assert world.phases(VOLUMES) == {}


def test_immediate_volumes_go_round_the_zones_of_nodes(world: VolumeCluster):
    for number in (1, 2, 3):
        world.make(NODES, node(f"n{number}", f"z{number}"))
    world.make(CLASSES, storage_class())
    for number in range(6):
        world.made(CLAIMS, claim(f"c{number}", storageClassName="fast"))
    world.run.settle()
    zones = Counter(_zones(item)[0] for item in world.ask("GET", VOLUMES).body["items"])
    assert zones == {"z1": 2, "z2": 2, "z3": 2}


def test_the_zones_of_a_class_are_respected(world: VolumeCluster):
    for number in (1, 2, 3):
        world.make(NODES, node(f"n{number}", f"z{number}"))
    allowed = [{"matchLabelExpressions": [{"key": ZONE, "values": ["z3"]}]}]
    world.make(CLASSES, storage_class(allowedTopologies=allowed))
    world.make(CLAIMS, claim(storageClassName="fast"))
    assert _zones(_only_volume(world)) == ["z3"]


def test_a_class_that_does_not_exist_is_reported_and_waited_for(world: VolumeCluster):
    world.make(CLAIMS, claim(storageClassName="fast"))
    assert world.reported() == [("ProvisioningFailed", 'storageclass.storage.k8s.io "fast" not found')]
    world.make(CLASSES, storage_class())
    assert world.phases(CLAIMS) == {"c": "Bound"}


def test_a_class_of_another_provisioner_is_left_to_it(world: VolumeCluster):
    world.make(CLASSES, storage_class(provisioner="example.com/p"))
    world.make(CLAIMS, claim(storageClassName="fast"))
    assert world.claim()["metadata"]["annotations"]["volume.kubernetes.io/storage-provisioner"] == "example.com/p"
    assert world.phases(VOLUMES) == {}


def test_a_class_without_provisioner_provisions_nothing(world: VolumeCluster):
    world.make(CLASSES, storage_class(provisioner="kubernetes.io/no-provisioner"))
    world.make(CLAIMS, claim(storageClassName="fast"))
    assert world.reported() == [("ProvisioningFailed", "no volume plugin matched name: kubernetes.io/no-provisioner")]


def test_a_volume_that_was_made_goes_with_its_claim(world: VolumeCluster):
    world.make(CLASSES, storage_class())
    world.make(CLAIMS, claim(storageClassName="fast"))
    world.delete(f"{CLAIMS}/c")
    assert world.phases(CLAIMS) == {}
    assert world.phases(VOLUMES) == {}


def test_a_class_may_have_its_volumes_kept(world: VolumeCluster):
    world.make(CLASSES, storage_class(reclaimPolicy="Retain"))
    world.make(CLAIMS, claim(storageClassName="fast"))
    world.delete(f"{CLAIMS}/c")
    assert list(world.phases(VOLUMES).values()) == ["Released"]


def test_the_class_of_a_new_cluster_is_the_default_one(world: VolumeCluster):
    world.make(NODES, node("n1", "z1"))
    world.make(CLASSES, build_default_storage_class())
    world.make(CLAIMS, claim())
    assert world.claim()["spec"]["storageClassName"] == "standard"
    world.select_node("c", "n1")
    assert world.phases(CLAIMS) == {"c": "Bound"}


# ---- protection


def test_a_claim_stays_while_a_pod_on_a_node_uses_it(world: VolumeCluster):
    world.make(VOLUMES, volume())
    world.make(CLAIMS, claim())
    world.make(PODS, pod_with("c", on="n1"))
    world.delete(f"{CLAIMS}/c")
    assert world.phases(CLAIMS) == {"c": "Bound"}
    assert world.phases(VOLUMES) == {"v": "Bound"}
    world.delete(f"{PODS}/p")
    assert world.phases(CLAIMS) == {}
    assert world.phases(VOLUMES) == {"v": "Released"}


def test_a_pod_without_a_node_does_not_keep_a_claim(world: VolumeCluster):
    world.make(CLAIMS, claim())
    world.make(PODS, pod_with("c"))
    world.delete(f"{CLAIMS}/c")
    assert world.phases(CLAIMS) == {}


def test_a_bound_volume_stays_until_its_claim_is_gone(world: VolumeCluster):
    world.make(VOLUMES, volume())
    world.make(CLAIMS, claim())
    world.delete(f"{VOLUMES}/v")
    assert world.phases(VOLUMES) == {"v": "Bound"}
    world.delete(f"{CLAIMS}/c")
    assert world.phases(VOLUMES) == {}


def test_a_free_volume_goes_at_once(world: VolumeCluster):
    world.make(VOLUMES, volume())
    world.delete(f"{VOLUMES}/v")
    assert world.phases(VOLUMES) == {}


# ---- claims of one pod


def test_a_pod_gets_the_claim_its_volume_describes(world: VolumeCluster):
    pod = pod_with("unused")
    template = {"metadata": {"labels": {"for": "p"}}, "spec": claim(storageClassName="fast")["spec"]}
    pod["spec"]["volumes"] = [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}]
    world.make(CLASSES, storage_class())
    made = world.make(PODS, pod)
    own = world.claim("p-scratch")
    assert own["metadata"]["labels"] == {"for": "p"}
    (owner,) = own["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("Pod", made["metadata"]["uid"], True)
    assert own["status"]["phase"] == "Bound"


def test_a_claim_of_that_name_that_is_not_the_pods_is_left_alone(world: VolumeCluster):
    before = world.make(CLAIMS, claim("p-scratch"))
    pod = pod_with("unused")
    template = {"spec": claim()["spec"]}
    pod["spec"]["volumes"] = [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}]
    world.make(PODS, pod)
    assert world.claim("p-scratch")["metadata"]["uid"] == before["metadata"]["uid"]
    why = "PVC here/p-scratch was not created for pod here/p (pod is not owner)"
    assert ("EphemeralVolumeCreationFailed", why) in world.reported()


def test_a_restart_goes_on_with_what_was_asked_meanwhile(world: VolumeCluster):
    world.make(NODES, node("n1", "z1"))
    world.make(CLASSES, storage_class(waits=True))
    world.make(CLAIMS, claim(storageClassName="fast"))
    world.kill()
    chosen = {"metadata": {"annotations": {"volume.kubernetes.io/selected-node": "n1"}}}
    world.ask("PATCH", f"{CLAIMS}/c", chosen, content=MERGE)
    world.start()
    assert world.phases(CLAIMS) == {"c": "Bound"}
