"""The operator and the PD die after any of their calls, and the next process brings TiDB to the same end, safely."""

from __future__ import annotations

from functools import partial

import pytest

from tests.faults import CrashAfter
from tests.local.tidb.builders import CrashingTidbCluster, base_cluster, group_cluster

_CALLS_APART = 4
_MORE_THAN_THERE_ARE = 400


def _story(world: CrashingTidbCluster) -> None:
    """A group comes and goes."""
    for body in (base_cluster(), group_cluster(replicas=2)):
        world.taking(partial(world.have, body))
    world.taking(lambda: world.after(30))
    world.taking(lambda: world.patch("auto-1", tikv={"replicas": 0}))
    for _ in range(20):
        world.taking(lambda: world.after(3))
        assert _is_safe(world)


def _is_safe(world: CrashingTidbCluster) -> bool:
    """No pod is gone whose store still holds something, and stores go one at a time."""
    pods, stores = set(world.names("pods")), world.stores()
    leaving = [pod for pod, state in stores.items() if state == "Offline"]
    return len(leaving) <= 1 and set(leaving) <= pods


def _ended(world: CrashingTidbCluster) -> bool:
    reported = world.cluster("auto-1")["status"]["tikv"]
    return (
        world.stores()
        == {
            "db-tikv-0": "Up",
            "db-tikv-1": "Up",
            "db-tikv-2": "Up",
            "auto-1-tikv-0": "Tombstone",
            "auto-1-tikv-1": "Tombstone",
        }
        and [name for name in world.names("pods") if "tikv" in name] == ["db-tikv-0", "db-tikv-1", "db-tikv-2"]
        and world.replicas("auto-1-tikv") == reported["statefulSet"]["replicas"] == 0
        and (reported["stores"], len(reported["tombstoneStores"])) == ({}, 2)
    )


@pytest.mark.parametrize(
    "first", [1, *(pytest.param(first, marks=pytest.mark.slow) for first in range(2, _CALLS_APART + 1))]
)
def test_a_crash_after_any_call_leads_to_the_same_end(first: int) -> None:
    """Each of the tests takes every fourth call."""
    for number in range(first, _MORE_THAN_THERE_ARE, _CALLS_APART):
        crash = CrashAfter(number)
        with CrashingTidbCluster(crash) as world:
            _story(world)
            assert _ended(world), number
        if crash.struck is None:
            assert number > _CALLS_APART
            return
    pytest.fail("there are more calls than were thought")
