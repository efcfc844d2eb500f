"""A worker that crashes after any call to the store: another process brings the rows to the same end."""

from __future__ import annotations

import sys
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from plimsoll.fleet.model.access import AccessPolicy
from plimsoll.fleet.model.statuses import KafkaStatus
from tests.effort import choose_calls
from tests.faults import sweep_crashes
from tests.fleet.fleet_rows import make_cluster, make_kafka, make_policy, offer
from tests.fleet.workers.worlds import WORKERS, FleetWorld

if TYPE_CHECKING:
    from collections.abc import Callable

    from plimsoll.fleet.model.clusters import Cluster
    from plimsoll.fleet.model.kafkas import KafkaRequest
    from plimsoll.fleet.model.workers import Worker
    from plimsoll.runtime.clocks import VirtualClock
    from tests.fleet.workers.worlds import Instance

DNS = {"cluster_dns": "apps.example.com"}
AT_RANDOM = frozenset({"id", "placement_id", "created_at", "updated_at", "empty_since"})
"""Columns that differ between two runs: they are drawn, or they are times."""


async def build_world(clock: VirtualClock) -> FleetWorld:
    policy = make_policy(offer("standard", slack=1), offer("developer"))
    start = clock.now()
    world = FleetWorld(clock, policy, AccessPolicy(denied_users=frozenset({"mallory"})))
    kafkas = [make_kafka(f"new-{number}", created_at=start) for number in range(3)]
    kafkas += [make_kafka("too-big", created_at=start - timedelta(hours=2), size_id="x2", multi_az=True)]
    kafkas += [make_kafka(f"prepared-{number}", status=KafkaStatus.PREPARING, cluster_id="cid-a") for number in (1, 2)]
    kafkas += [make_kafka(f"refused-{number}", status=KafkaStatus.PROVISIONING) for number in (1, 2)]
    kafkas += [make_kafka(f"gone-{number}", status=KafkaStatus.DELETING) for number in (1, 2)]
    kafkas += [make_kafka("never", status=KafkaStatus.DEPROVISION)]
    kafkas += [make_kafka(f"denied-{number}", status=KafkaStatus.READY, owner="mallory") for number in (1, 2)]
    kafkas += [make_kafka("old", status=KafkaStatus.READY, expires_at=start - timedelta(days=1))]
    await world.insert(
        make_cluster("a", 8, **DNS), make_cluster("b", 3, **DNS), make_cluster("c", 5), make_cluster("d", 5), *kafkas
    )
    return world


async def dump_rows(world: FleetWorld) -> list[dict[str, Any]]:
    """All live rows without what is drawn at random."""
    rows: list[Cluster | KafkaRequest] = [*await world.list_clusters(), *await world.list_kafkas()]
    dumped = [{key: value for key, value in msgspec.to_builtins(row).items() if key not in AT_RANDOM} for row in rows]
    named = [{"named": row.id} for row in rows if len(row.id) < 20]
    return sorted(dumped, key=repr) + sorted(named, key=repr)


async def run_instance(instance: Instance) -> None:
    """Enough ticks for every chain of workers to end; a crashed process keeps its leases until they expire."""
    await instance.settle(4)


@pytest.mark.parametrize("worker", [*WORKERS, pytest.param(None, marks=pytest.mark.slow)], ids=str)
def test_another_process_converges_to_the_same_rows(worker: Worker | None, capsys: pytest.CaptureFixture[str]):
    """`None`: a whole tick of all workers."""
    chosen = () if worker is None else (worker,)
    expected: list[list[dict[str, Any]]] = []

    def build_instance(world: FleetWorld, through: Callable[[Any], Any]) -> Instance:
        return world.start(*chosen, through=through, holder="the holder")

    async def check(world: FleetWorld) -> None:
        rows = await dump_rows(world)
        expected.append(rows)
        assert rows == expected[0]
        locators = [
            cluster.locators for cluster in await world.list_clusters() if cluster.status.value == "cluster_accepted"
        ]
        assert len(locators) == len(set(locators)), "one need gave two rows"

    calls = range(1, 1_000) if worker else choose_calls(1_000)
    last = sweep_crashes(
        build_world=build_world, build_instance=build_instance, run=run_instance, check=check, calls=calls
    )
    runs = len([number for number in calls if number <= last])
    with capsys.disabled():
        sys.stdout.write(f"\n{worker or 'all workers'}: {runs} crashes ")
    assert len(expected) == runs + 1
    assert expected[0]
