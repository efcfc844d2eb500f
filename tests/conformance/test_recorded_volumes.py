"""The recorded claim that a real controller bound, replayed with the volume controllers."""

from __future__ import annotations

from plimsoll.local.volumes.services import build_volume_services
from tests.conformance.comparison import body_differences
from tests.conformance.recordings import by_id
from tests.conformance.servers import RECORDED_DAY
from tests.local.local_cluster import LocalClusterHarness

_GOLDEN = {"User-Agent": "golden/1.0"}


def _recorded_day() -> LocalClusterHarness:
    world = LocalClusterHarness(build_volume_services)
    world.run.advance_to(RECORDED_DAY)
    return world


def test_the_bound_claim_is_the_recorded_one():
    recorded = by_id("scheduler-040")
    claim = {"metadata": {"name": "zc"}, "spec": {**recorded.response["spec"]}}
    volume = {
        "metadata": {"name": "pvz", "labels": {"topology.kubernetes.io/zone": "far"}},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "zz",
            "hostPath": {"path": "/x"},
        },
    }
    with _recorded_day() as world:
        world.namespace("sched")
        world.ask("POST", "/api/v1/persistentvolumes", volume, headers=_GOLDEN)
        world.ask("POST", "/api/v1/namespaces/sched/persistentvolumeclaims", claim, headers=_GOLDEN)
        world.run.settle()
        ours = world.ask("GET", recorded.path).body
    assert list(body_differences(recorded.response, ours, is_cut=False, id_=recorded.id)) == []


def test_a_claim_without_class_and_volume_stays_as_it_was_created():
    recorded = by_id("create-029")
    with _recorded_day() as world:
        world.namespace("create")
        world.ask("POST", recorded.path, recorded.body, headers=_GOLDEN)
        world.run.advance_by(60)
        ours = world.ask("GET", f"{recorded.path}/data").body
    assert list(body_differences(recorded.response, ours, is_cut=False, id_=recorded.id)) == []
