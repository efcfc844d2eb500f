"""Claims and volumes that are there find each other, and part again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.local.volumes.builders import CLAIMS, CLASSES, VOLUMES, VolumeCluster, claim, storage_class, volume

if TYPE_CHECKING:
    from collections.abc import Iterator

BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
MISBOUND = "Two claims are bound to the same volume, this one is bound incorrectly"


@pytest.fixture(name="world")
def _world() -> Iterator[VolumeCluster]:
    with VolumeCluster() as world:
        yield world


def test_a_new_volume_is_available(world: VolumeCluster):
    world.make(VOLUMES, volume())
    assert world.volume()["status"]["phase"] == "Available"


def test_a_claim_takes_the_smallest_volume_that_is_large_enough(world: VolumeCluster):
    for name, size in (("huge", "100Gi"), ("small", "1Gi"), ("right", "5Gi"), ("large", "10Gi")):
        world.make(VOLUMES, volume(name, size=size))
    world.make(CLAIMS, claim(size="2Gi"))
    assert world.claim()["spec"]["volumeName"] == "right"
    assert world.phases(VOLUMES) == {"huge": "Available", "small": "Available", "right": "Bound", "large": "Available"}


def test_a_binding_is_written_on_both_sides(world: VolumeCluster):
    world.make(VOLUMES, volume(size="5Gi"))
    world.make(CLAIMS, claim())
    bound = world.claim()
    assert bound["metadata"]["annotations"] == {BIND_COMPLETED: "yes", BOUND_BY_CONTROLLER: "yes"}
    assert bound["status"] == {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "5Gi"}}
    taken = world.volume()
    assert taken["metadata"]["annotations"] == {BOUND_BY_CONTROLLER: "yes"}
    reference = taken["spec"]["claimRef"]
    assert (reference["kind"], reference["apiVersion"]) == ("PersistentVolumeClaim", "v1")
    assert (reference["namespace"], reference["name"]) == ("here", "c")
    assert reference["uid"] == bound["metadata"]["uid"]


def test_a_claim_waits_for_a_volume_that_comes_later(world: VolumeCluster):
    world.make(CLAIMS, claim())
    assert world.reported() == [
        ("FailedBinding", "no persistent volumes available for this claim and no storage class is set")
    ]
    world.make(VOLUMES, volume())
    assert world.phases(CLAIMS) == {"c": "Bound"}


def test_of_two_claims_for_one_volume_the_older_has_it(world: VolumeCluster):
    world.make(CLAIMS, claim("first"))
    world.run.advance_by(1)
    world.make(CLAIMS, claim("a-second"))
    world.make(VOLUMES, volume())
    assert world.phases(CLAIMS) == {"first": "Bound", "a-second": "Pending"}


@pytest.mark.parametrize(
    ("offered", "wanted"),
    [
        (volume(storageClassName="x"), claim(storageClassName="y")),
        (volume(accessModes=["ReadOnlyMany"]), claim()),
        (volume(volumeMode="Block"), claim()),
        (volume(size="1Gi"), claim(size="2Gi")),
        (volume(labels={"tier": "a"}), claim(selector={"matchLabels": {"tier": "b"}})),
        (volume(claimRef={"namespace": "here", "name": "other"}), claim()),
    ],
    ids=["class", "access mode", "volume mode", "size", "selector", "kept for another"],
)
def test_a_volume_that_does_not_suit_is_left(
    world: VolumeCluster, offered: dict[str, object], wanted: dict[str, object]
):
    world.make(VOLUMES, offered)
    world.make(CLAIMS, wanted)
    assert world.phases(VOLUMES) == {"v": "Available"}
    assert world.phases(CLAIMS) == {"c": "Pending"}


def test_a_volume_kept_for_a_claim_goes_to_it_before_a_smaller_one(world: VolumeCluster):
    world.make(VOLUMES, volume("small"))
    world.make(VOLUMES, volume("kept", size="9Gi", claimRef={"namespace": "here", "name": "c"}))
    world.make(CLAIMS, claim())
    assert world.claim()["spec"]["volumeName"] == "kept"
    assert BOUND_BY_CONTROLLER not in world.volume("kept")["metadata"].get("annotations", {})


def test_a_claim_that_names_its_volume_gets_that_one(world: VolumeCluster):
    world.make(VOLUMES, volume("small"))
    world.make(VOLUMES, volume("named", size="9Gi"))
    world.make(CLAIMS, claim(volumeName="named"))
    assert world.claim()["status"]["phase"] == "Bound"
    assert world.claim()["metadata"]["annotations"] == {BIND_COMPLETED: "yes"}


def test_a_claim_that_names_a_volume_too_small_is_reported(world: VolumeCluster):
    world.make(VOLUMES, volume())
    world.make(CLAIMS, claim(size="2Gi", volumeName="v"))
    assert world.reported() == [("VolumeMismatch", 'Cannot bind to requested volume "v": requested PV is too small')]


def test_a_claim_that_names_a_taken_volume_is_reported(world: VolumeCluster):
    world.make(VOLUMES, volume())
    world.make(CLAIMS, claim("first"))
    world.make(CLAIMS, claim("second", volumeName="v"))
    assert ("FailedBinding", 'volume "v" already bound to a different claim.') in world.reported()
    assert world.claim("second")["status"]["phase"] == "Pending"


def test_a_claim_that_waits_takes_no_free_volume_by_itself(world: VolumeCluster):
    world.make(CLASSES, storage_class(waits=True))
    world.make(VOLUMES, volume(storageClassName="fast"))
    world.make(CLAIMS, claim(storageClassName="fast"))
    assert world.phases(CLAIMS) == {"c": "Pending"}
    assert world.reported() == [("WaitForFirstConsumer", "waiting for first consumer to be created before binding")]


def test_a_volume_the_scheduler_reserved_is_bound(world: VolumeCluster):
    world.make(CLASSES, storage_class(waits=True))
    world.make(VOLUMES, volume(storageClassName="fast"))
    waiting = world.make(CLAIMS, claim(storageClassName="fast"))
    reference = {
        "kind": "PersistentVolumeClaim",
        "apiVersion": "v1",
        "namespace": "here",
        "name": "c",
        "uid": waiting["metadata"]["uid"],
    }
    marked = {"annotations": {BOUND_BY_CONTROLLER: "yes"}}
    world.patch(f"{VOLUMES}/v", {"metadata": marked, "spec": {"claimRef": reference}})
    assert world.phases(CLAIMS) == {"c": "Bound"}
    assert world.phases(VOLUMES) == {"v": "Bound"}


def test_a_volume_that_is_to_be_kept_is_released_with_its_claim(world: VolumeCluster):
    world.make(VOLUMES, volume())
    world.make(CLAIMS, claim())
    world.delete(f"{CLAIMS}/c")
    assert world.phases(CLAIMS) == {}
    assert world.phases(VOLUMES) == {"v": "Released"}


def test_a_released_volume_is_not_bound(world: VolumeCluster):
    world.make(VOLUMES, volume())
    world.make(CLAIMS, claim())
    world.delete(f"{CLAIMS}/c")
    world.make(CLAIMS, claim())
    assert world.phases(CLAIMS) == {"c": "Pending"}
    assert world.phases(VOLUMES) == {"v": "Released"}


def test_a_volume_to_be_deleted_without_a_provisioner_fails(world: VolumeCluster):
    world.make(VOLUMES, volume(persistentVolumeReclaimPolicy="Delete"))
    world.make(CLAIMS, claim())
    world.delete(f"{CLAIMS}/c")
    status = world.volume()["status"]
    assert status["phase"] == "Failed"
    assert "no deletable volume plugin matched" in status["message"]


def test_a_claim_whose_volume_is_gone_is_lost(world: VolumeCluster):
    world.make(VOLUMES, volume())
    world.make(CLAIMS, claim())
    world.delete(f"{VOLUMES}/v")
    assert world.phases(VOLUMES) == {"v": "Bound"}
    world.patch(f"{VOLUMES}/v", {"metadata": {"finalizers": None}})
    assert world.claim()["status"] == {"phase": "Lost"}
    assert ("ClaimLost", "Bound claim has lost its PersistentVolume. Data on the volume is lost!") in world.reported()


def test_a_claim_made_before_there_was_a_default_class_gets_it(world: VolumeCluster):
    world.make(CLAIMS, claim())
    world.make(CLASSES, storage_class(waits=True, is_default=True))
    assert world.claim()["spec"]["storageClassName"] == "fast"


def test_a_claim_that_asks_for_no_class_gets_no_default_one(world: VolumeCluster):
    world.make(CLAIMS, claim(storageClassName=""))
    world.make(CLASSES, storage_class(is_default=True))
    assert world.claim()["spec"]["storageClassName"] == ""
    assert world.phases(CLAIMS) == {"c": "Pending"}


def test_everything_at_rest_writes_nothing(world: VolumeCluster):
    world.make(VOLUMES, volume())
    world.make(CLAIMS, claim())
    before = world.claim()["metadata"]["resourceVersion"], world.volume()["metadata"]["resourceVersion"]
    world.run.advance_by(3_600)
    assert before == (world.claim()["metadata"]["resourceVersion"], world.volume()["metadata"]["resourceVersion"])


def test_a_claim_whose_volume_names_another_claim_is_misbound_and_both_come_to_rest(world: VolumeCluster):
    """By its uid the volume is the claim's, by its name another's: one writer must not bind what the other releases."""
    world.make(VOLUMES, volume(persistentVolumeReclaimPolicy="Retain"))
    world.make(CLAIMS, claim())
    world.patch(f"{VOLUMES}/v", {"spec": {"claimRef": {"name": "other"}}})
    assert world.claim()["status"]["phase"] == "Lost"
    assert ("ClaimMisbound", MISBOUND) in world.reported()
    assert world.volume()["status"]["phase"] == "Released"
    before = world.claim()["metadata"]["resourceVersion"], world.volume()["metadata"]["resourceVersion"]
    world.run.advance_by(3_600)
    assert before == (world.claim()["metadata"]["resourceVersion"], world.volume()["metadata"]["resourceVersion"])
