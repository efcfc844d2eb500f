"""The volume controllers look at caches that are behind: no data is given up for what the server knows better."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plimsoll.local.volumes.latest import Latest
from plimsoll.local.volumes.provisioning import SIMULATED
from plimsoll.objects.api.storage import PersistentVolume
from tests.faults import LateWatches
from tests.local.local_worlds import LocalWorld
from tests.local.volumes.volume_worlds import CLAIMS, NODES, PODS, VOLUMES, VolumeWorld, claim, node, pod_with, volume

if TYPE_CHECKING:
    from plimsoll.kube.informer.informer import Informer
    from plimsoll.local.components import Components
    from plimsoll.runtime.services import Service


def provisioned_for(made: Any) -> dict[str, Any]:
    """What the provisioner makes for a claim, and deletes when it is released."""
    meta = made["metadata"]
    reference = {"namespace": meta["namespace"], "name": meta["name"], "uid": meta["uid"]}
    body = volume(claimRef=reference, persistentVolumeReclaimPolicy="Delete")
    body["metadata"]["annotations"] = {"pv.kubernetes.io/provisioned-by": SIMULATED}
    return body


def test_a_volume_is_not_taken_from_a_claim_the_cache_does_not_show():
    late = LateWatches()
    with VolumeWorld(through=late.wrap) as world:
        late.hold("persistentvolumeclaims")
        made = world.make(CLAIMS, claim())
        world.make(VOLUMES, provisioned_for(made))
        world.run.advance_by(1)
        late.release("persistentvolumeclaims")
        world.run.advance_by(5)
        assert world.phases(VOLUMES) == {"v": "Bound"}


def test_a_volume_is_not_taken_from_a_claim_because_the_cache_shows_one_that_had_its_name():
    late = LateWatches()
    with VolumeWorld(through=late.wrap) as world:
        world.make(CLAIMS, claim())
        late.hold("persistentvolumeclaims")
        world.patch(f"{CLAIMS}/c", {"metadata": {"finalizers": None}})
        world.delete(f"{CLAIMS}/c")
        made = world.make(CLAIMS, claim())
        world.make(VOLUMES, provisioned_for(made))
        world.run.advance_by(1)
        late.release("persistentvolumeclaims")
        world.run.advance_by(5)
        assert world.phases(VOLUMES) == {"v": "Bound"}
        assert world.claim()["status"]["phase"] == "Bound"


def test_a_claim_of_a_pod_the_cache_does_not_show_is_kept():
    late = LateWatches()
    with VolumeWorld(through=late.wrap) as world:
        world.make(NODES, node("n"))
        world.make(CLAIMS, claim())
        late.hold("pods")
        world.make(PODS, pod_with("c", on="n"))
        world.delete(f"{CLAIMS}/c")
        world.run.advance_by(1)
        assert "deletionTimestamp" in world.claim()["metadata"]


class WritesWorld(LocalWorld):
    def __init__(self) -> None:
        super().__init__(self._built)

    def _built(self, parts: Components) -> list[Service]:
        self.informer: Informer[PersistentVolume] = parts.informers.of(PersistentVolume)
        self.latest = Latest(self.informer)
        return []

    def seen(self) -> PersistentVolume:
        self.made(VOLUMES, volume())
        self.run.settle()
        found = self.informer.cache.get("v")
        assert found is not None
        return found

    def delete(self) -> None:
        """With the finalizer that nobody else takes off here."""
        self.ask("DELETE", f"{VOLUMES}/v")
        self.ask("PATCH", f"{VOLUMES}/v", {"metadata": {"finalizers": None}}, content="application/merge-patch+json")
        self.run.settle()
        assert self.informer.cache.get("v") is None


def test_a_write_is_forgotten_when_its_object_is_deleted():
    with WritesWorld() as world:
        world.latest.wrote(world.seen())
        assert len(world.latest) == 1
        world.delete()
        assert len(world.latest) == 0


def test_a_write_that_is_answered_after_its_object_is_gone_is_not_kept():
    with WritesWorld() as world:
        written = world.seen()
        world.delete()
        world.latest.wrote(written)
        assert len(world.latest) == 0
