"""Claims and volumes: matching, waiting for a consumer, provisioning by zone, release and protection."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.local.upkeep.services import volume_services
from tests.local.apiserver.application.worlds import MERGE
from tests.local.local_worlds import LocalWorld

CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
VOLUMES = "/api/v1/persistentvolumes"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
PODS = "/api/v1/namespaces/default/pods"


class VolumeWorld(LocalWorld):
    def __init__(self) -> None:
        super().__init__(volume_services)

    def volume(self, name: str, size: str = "1Gi", *, class_: str = "static", **spec: Any) -> None:
        body = {
            "capacity": {"storage": size},
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": class_,
            "hostPath": {"path": "/data"},
            **spec,
        }
        self.made(VOLUMES, {"metadata": {"name": name}, "spec": body})
        self.run.settle()

    def claim(self, name: str, size: str = "1Gi", *, class_: str = "static", **spec: Any) -> None:
        body = {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": size}},
            "storageClassName": class_,
            **spec,
        }
        self.made(CLAIMS, {"metadata": {"name": name}, "spec": body})
        self.run.settle()

    def storage_class(self, name: str, **fields: Any) -> None:
        self.made(CLASSES, {"metadata": {"name": name}, "provisioner": "plimsoll.io/simulated", **fields})
        self.run.settle()

    def node(self, name: str, zone: str) -> None:
        self.made("/api/v1/nodes", {"metadata": {"name": name, "labels": {"topology.kubernetes.io/zone": zone}}})
        self.run.settle()

    def select(self, claim: str, node: str) -> None:
        body = {"metadata": {"annotations": {"volume.kubernetes.io/selected-node": node}}}
        assert self.ask("PATCH", f"{CLAIMS}/{claim}", body, content=MERGE).status == 200
        self.run.settle()

    def phase(self, claim: str) -> str:
        return str(self.ask("GET", f"{CLAIMS}/{claim}").body["status"]["phase"])

    def bound(self) -> dict[str, str]:
        items = self.ask("GET", CLAIMS).body["items"]
        return {one["metadata"]["name"]: one["spec"].get("volumeName", "") for one in items}

    def volumes(self) -> dict[str, Any]:
        return {one["metadata"]["name"]: one for one in self.ask("GET", VOLUMES).body["items"]}

    def events(self, claim: str) -> list[str]:
        url = f"/api/v1/namespaces/default/events?fieldSelector=involvedObject.name%3D{claim}"
        return [one["reason"] for one in self.ask("GET", url).body["items"]]


def zones_of(volume: Any) -> list[str]:
    terms = volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    return [value for term in terms for one in term["matchExpressions"] for value in one["values"]]


def test_a_claim_gets_the_smallest_volume_that_is_large_enough():
    with VolumeWorld() as world:
        for name, size in (("large", "10Gi"), ("small", "1Gi"), ("middle", "5Gi")):
            world.volume(name, size)
        world.claim("c", "2Gi")
        assert world.bound() == {"c": "middle"}
        claim = world.ask("GET", f"{CLAIMS}/c").body
        assert claim["status"] == {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "5Gi"}}
        assert claim["metadata"]["annotations"] == {
            "pv.kubernetes.io/bind-completed": "yes",
            "pv.kubernetes.io/bound-by-controller": "yes",
        }
        phases = {name: one["status"]["phase"] for name, one in world.volumes().items()}
        assert phases == {"large": "Available", "small": "Available", "middle": "Bound"}


def test_a_claim_waits_for_a_volume_that_fits_and_says_so():
    with VolumeWorld() as world:
        world.volume("other", class_="other")
        world.claim("c", class_="")
        assert world.phase("c") == "Pending"
        assert "FailedBinding" in world.events("c")
        world.volume("v", class_="")
        assert world.bound() == {"c": "v"}


def test_a_claim_that_names_a_volume_gets_no_other():
    with VolumeWorld() as world:
        world.volume("a")
        world.claim("c", volumeName="b")
        assert world.phase("c") == "Pending"
        world.volume("b")
        assert world.phase("c") == "Bound"
        assert world.ask("GET", f"{CLAIMS}/c").body["metadata"]["annotations"] == {
            "pv.kubernetes.io/bind-completed": "yes"
        }


def test_a_volume_kept_for_a_claim_goes_to_no_other():
    with VolumeWorld() as world:
        world.volume("kept", claimRef={"namespace": "default", "name": "mine"})
        world.claim("other")
        assert world.bound() == {"other": ""}
        world.claim("mine")
        assert world.bound() == {"mine": "kept", "other": ""}


def test_a_class_that_waits_for_its_consumer_binds_nothing_before():
    with VolumeWorld() as world:
        world.storage_class("late", volumeBindingMode="WaitForFirstConsumer")
        world.volume("v", class_="late")
        world.claim("c", class_="late")
        assert world.bound() == {"c": ""}
        assert world.events("c") == ["WaitForFirstConsumer"]


def test_a_volume_is_made_in_the_zone_of_the_chosen_node():
    with VolumeWorld() as world:
        world.storage_class("late", volumeBindingMode="WaitForFirstConsumer", reclaimPolicy="Retain")
        world.node("n1", "z1")
        world.node("n2", "z2")
        world.claim("c", "3Gi", class_="late")
        world.select("c", "n2")
        (volume,) = world.volumes().values()
        assert zones_of(volume) == ["z2"]
        assert volume["spec"]["capacity"] == {"storage": "3Gi"}
        assert volume["spec"]["persistentVolumeReclaimPolicy"] == "Retain"
        assert world.bound() == {"c": volume["metadata"]["name"]}
        assert "ProvisioningSucceeded" in world.events("c")


def test_a_chosen_node_that_is_gone_is_chosen_again():
    with VolumeWorld() as world:
        world.storage_class("late", volumeBindingMode="WaitForFirstConsumer")
        world.claim("c", class_="late")
        world.select("c", "gone")
        assert world.volumes() == {}
        annotations = world.ask("GET", f"{CLAIMS}/c").body["metadata"]["annotations"]
        assert "volume.kubernetes.io/selected-node" not in annotations


def test_an_immediate_class_spreads_the_claims_of_a_set_over_its_zones():
    with VolumeWorld() as world:
        topologies = [{"matchLabelExpressions": [{"key": "topology.kubernetes.io/zone", "values": ["a", "b", "c"]}]}]
        world.storage_class("now", allowedTopologies=topologies)
        for number in range(3):
            world.claim(f"data-db-{number}", class_="now")
        assert sorted(zone for one in world.volumes().values() for zone in zones_of(one)) == ["a", "b", "c"]


def test_the_claims_of_another_provisioner_are_left_to_it():
    with VolumeWorld() as world:
        world.made(CLASSES, {"metadata": {"name": "theirs"}, "provisioner": "ex.com/disk"})
        world.claim("c", class_="theirs")
        annotations = world.ask("GET", f"{CLAIMS}/c").body["metadata"]["annotations"]
        assert annotations["volume.kubernetes.io/storage-provisioner"] == "ex.com/disk"
        assert "ExternalProvisioning" in world.events("c")
        assert world.volumes() == {}


def test_a_provisioned_volume_goes_with_its_claim():
    with VolumeWorld() as world:
        world.storage_class("now")
        world.claim("c", class_="now")
        assert len(world.volumes()) == 1
        world.ask("DELETE", f"{CLAIMS}/c")
        world.run.settle()
        assert world.bound() == {}
        assert world.volumes() == {}


def test_a_retained_volume_stays_released():
    with VolumeWorld() as world:
        world.volume("v")
        world.claim("c")
        world.ask("DELETE", f"{CLAIMS}/c")
        world.run.settle()
        assert world.volumes()["v"]["status"]["phase"] == "Released"
        world.claim("c")
        assert world.bound() == {"c": ""}


def test_a_claim_in_use_outlives_its_deletion():
    with VolumeWorld() as world:
        world.volume("v")
        world.claim("c")
        volumes = [{"name": "d", "persistentVolumeClaim": {"claimName": "c"}}]
        spec = {"nodeName": "n", "containers": [{"name": "c", "image": "x"}], "volumes": volumes}
        world.made(PODS, {"metadata": {"name": "p"}, "spec": spec})
        world.ask("DELETE", f"{CLAIMS}/c")
        world.run.settle()
        assert world.bound() == {"c": "v"}
        world.ask("DELETE", f"{PODS}/p?gracePeriodSeconds=0")
        world.run.settle()
        assert world.bound() == {}


def test_a_claim_whose_volume_is_gone_is_lost():
    with VolumeWorld() as world:
        world.volume("v")
        world.claim("c")
        world.ask("PATCH", f"{VOLUMES}/v", {"metadata": {"finalizers": None}}, content=MERGE)
        world.ask("DELETE", f"{VOLUMES}/v")
        world.run.settle()
        assert world.phase("c") == "Lost"
        assert "ClaimLost" in world.events("c")


sizes = st.lists(st.integers(1, 5), max_size=6)


@settings(max_examples=12, deadline=None)
@given(offered=sizes, asked=sizes, killed_after=st.integers(0, 12))
def test_no_volume_is_given_twice_whenever_the_binder_dies(offered: list[int], asked: list[int], killed_after: int):
    with VolumeWorld() as world:
        steps = [("volume", size) for size in offered] + [("claim", size) for size in asked]
        for number, (kind, size) in enumerate(steps):
            if number == killed_after:
                world.kill()
            if kind == "volume":
                world.volume(f"v{number}", f"{size}Gi")
            else:
                world.claim(f"c{number}", f"{size}Gi")
        if killed_after < len(steps):
            world.start()
        world.run.advance_by(5)
        given_out = [name for name in world.bound().values() if name]
        assert len(given_out) == len(set(given_out))
        holders = {
            name: one["spec"]["claimRef"]["name"]
            for name, one in world.volumes().items()
            if one["spec"].get("claimRef")
        }
        assert holders == {volume: claim for claim, volume in world.bound().items() if volume}
        waiting = [
            size for number, (kind, size) in enumerate(steps) if kind == "claim" and not world.bound()[f"c{number}"]
        ]
        free = [
            int(one["spec"]["capacity"]["storage"][:-2]) for name, one in world.volumes().items() if name not in holders
        ]
        assert not any(size <= room for size in waiting for room in free)
