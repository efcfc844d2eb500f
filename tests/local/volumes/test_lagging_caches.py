"""The volume controllers look at caches that are behind: no data is given up for what the server knows better."""

from __future__ import annotations

from typing import Any

from plimsoll.local.volumes.provisioning import SIMULATED
from tests.faults import LateWatches
from tests.local.volumes.builders import CLAIMS, NODES, PODS, VOLUMES, VolumeCluster, claim, node, pod_with, volume


def provisioned_for(made: Any) -> dict[str, Any]:
    """What the provisioner makes for a claim, and deletes when it is released."""
    meta = made["metadata"]
    reference = {"namespace": meta["namespace"], "name": meta["name"], "uid": meta["uid"]}
    body = volume(claimRef=reference, persistentVolumeReclaimPolicy="Delete")
    body["metadata"]["annotations"] = {"pv.kubernetes.io/provisioned-by": SIMULATED}
    return body


def test_a_volume_is_not_taken_from_a_claim_the_cache_does_not_show():
    late = LateWatches()
    with VolumeCluster(through=late.wrap) as world:
        late.hold("persistentvolumeclaims")
        made = world.make(CLAIMS, claim())
        world.make(VOLUMES, provisioned_for(made))
        world.run.advance_by(1)
        late.release("persistentvolumeclaims")
        world.run.advance_by(5)
        assert world.phases(VOLUMES) == {"v": "Bound"}


def test_a_volume_is_not_taken_from_a_claim_because_the_cache_shows_one_that_had_its_name():
    late = LateWatches()
    with VolumeCluster(through=late.wrap) as world:
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
    with VolumeCluster(through=late.wrap) as world:
        world.make(NODES, node("n"))
        world.make(CLAIMS, claim())
        late.hold("pods")
        world.make(PODS, pod_with("c", on="n"))
        world.delete(f"{CLAIMS}/c")
        world.run.advance_by(1)
        assert "deletionTimestamp" in world.claim()["metadata"]
