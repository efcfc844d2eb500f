"""OCM answers nonsense: the problem is on the row, the call is repeated, and everything else goes on."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from plimsoll.fleet.model.pools import TAINT_EFFECT, TYPE_KEY
from plimsoll.fleet.model.statuses import ClusterStatus
from plimsoll.fleet.planning.terraforming import read_problems
from plimsoll.local.ocm.faults import CallFault, FaultKind
from tests.effort import IS_LONG
from tests.fleet.workers.cluster_lives import ROW_A, ROW_B, UNITS, Lives, OcmWorld

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plimsoll.fleet.model.clusters import Cluster

HTML = b"<html><body>Bad gateway</body></html>"
HALF = b'{"kind": "Cluster", "id": "abc'
OTHER_ID = json.dumps({"kind": "Cluster", "id": "another", "status": {"state": "ready"}}).encode()
NO_STATE = json.dumps({"kind": "Cluster", "id": "another"}).encode()


class Answered(Lives):
    """A is full and in use; another cluster is being made."""

    def __init__(self) -> None:
        super().__init__(lambda run: OcmWorld(run, has_unique_names=False))
        assert isinstance(self.provider, OcmWorld)
        self.ocm = self.provider.ocm
        self.add_ready(ROW_A, used=UNITS)

    def answer(self, call: str, body: bytes, *, status: int = 0, times: int | None = 3) -> None:
        self.ocm.faults.add(CallFault(kind=FaultKind.BODY, call=call, body=body, status=status, times=times))

    def find_new(self) -> Cluster | None:
        return next((row for row in self.list_rows() if row.id != ROW_A), None)

    def get_new_status(self) -> ClusterStatus | None:
        row = self.find_new()
        return None if row is None else row.status


@pytest.fixture
def answered() -> Iterator[Answered]:
    with Answered() as lives:
        yield lives


CALLS = ["clusters.get", "clusters.list", "machine_pools.list", "ingresses.list", "addons.list", "syncsets.get"]
BODIES = [HTML, HALF, OTHER_ID, NO_STATE, b"", b"[]", b"{}", b"9" * 10_000]


@pytest.mark.parametrize("number", range(0, len(CALLS) * len(BODIES), 1 if IS_LONG else 9))
def test_an_answer_that_is_none_is_shown_and_repeated(answered: Answered, number: int):
    call, body = CALLS[number % len(CALLS)], BODIES[number // len(CALLS)]
    answered.answer(call, body)
    seen: set[str] = set()

    def is_ready() -> bool:
        rows = answered.list_rows()
        assert next(row.status for row in rows if row.id == ROW_A) is ClusterStatus.READY
        seen.update(row.status_details for row in rows if row.status_details)
        return answered.get_new_status() is ClusterStatus.READY

    answered.tick_until(is_ready)
    # A list of clusters is read for all rows at once: its failure is that of the pass, unless a creation reads it.
    assert seen or call == "clusters.list"
    assert all(len(text) <= 300 for text in seen)
    assert len(answered.list_ids()) == 2, "one cluster, whatever was answered"
    assert len([made for made in answered.ocm.list_calls("machine_pools.create") if made.status == 201]) == 1


@pytest.mark.parametrize("body", [HTML, HALF, OTHER_ID])
def test_a_creation_with_a_bad_answer_is_found_by_its_name(answered: Answered, body: bytes):
    answered.answer("clusters.create", body, times=2)
    answered.tick_until(lambda: answered.get_new_status() is ClusterStatus.READY)
    assert len(answered.list_ids()) == 2
    row = answered.find_new()
    assert row is not None
    assert row.cluster_id in answered.list_ids()


def test_a_state_that_is_unknown_is_waited_for_and_shown(answered: Answered):
    answered.tick_until(lambda: answered.get_new_status() is ClusterStatus.PROVISIONING)
    row = answered.find_new()
    assert row is not None
    body = json.dumps({"kind": "Cluster", "id": row.cluster_id, "status": {"state": "hibernating"}}).encode()
    answered.answer("clusters.get", body, times=2)
    answered.tick()
    found = answered.find_new()
    assert found is not None
    assert found.status is ClusterStatus.PROVISIONING
    assert "hibernating" in found.status_details
    answered.tick_until(lambda: answered.get_new_status() is ClusterStatus.READY)


def test_repeated_failures_are_farther_and_farther_apart(answered: Answered):
    answered.tick_until(lambda: answered.get_new_status() is ClusterStatus.PROVISIONING)
    answered.answer("clusters.get", HTML, times=None)
    before = len(answered.ocm.list_calls("clusters.get"))
    answered.tick(60)
    calls = [call.at for call in answered.ocm.list_calls("clusters.get")[before:]]
    gaps = [(later - earlier).total_seconds() for earlier, later in pairwise(calls)]
    assert 4 <= len(calls) <= 12
    assert gaps == sorted(gaps)
    assert gaps[-1] >= 300


def test_a_pool_that_the_provider_refuses_is_shown_with_its_reason(answered: Answered):
    problem = json.dumps({"kind": "Error", "reason": "a cluster may have at most 30 workers"}).encode()
    answered.answer("machine_pools.create", problem, status=400, times=None)
    answered.tick_until(lambda: (row := answered.find_new()) is not None and "30 workers" in row.status_details)
    assert answered.get_new_status() is ClusterStatus.PROVISIONED


def test_a_pool_with_other_bounds_gets_those_that_were_ordered(answered: Answered):
    body = json.dumps({"id": "kafka-standard", "autoscaling": {"min_replicas": 3, "max_replicas": 9}}).encode()
    answered.answer("machine_pools.create", body, times=1)
    answered.tick_until(lambda: answered.get_new_status() is ClusterStatus.READY)
    row = answered.find_new()
    assert row is not None
    assert row.dynamic_capacity_info["standard"].max_nodes == 18
    (update,) = answered.ocm.list_calls("machine_pools.update")
    assert update.body["autoscaling"]["max_replicas"] == 18


def test_bounds_that_the_provider_keeps_otherwise_are_shown_and_ordered_again(answered: Answered):
    """It says that it has made the pool, and holds other bounds, whatever it is asked for."""
    pool = {
        "id": "kafka-standard",
        "instance_type": "r5.xlarge",
        "autoscaling": {"min_replicas": 3, "max_replicas": 9},
        "labels": {TYPE_KEY: "standard"},
        "taints": [{"key": TYPE_KEY, "value": "standard", "effect": TAINT_EFFECT}],
    }
    answered.answer("machine_pools.create", json.dumps(pool).encode(), times=1)
    answered.answer("machine_pools.update", json.dumps(pool).encode(), times=None)
    answered.tick_until(lambda: bool(answered.ocm.list_calls("machine_pools.create")))
    answered.answer("machine_pools.get", json.dumps(pool).encode(), times=None)
    answered.answer("machine_pools.list", json.dumps({"items": [pool], "total": 1}).encode(), times=None)
    answered.tick_until(lambda: answered.get_new_status() is ClusterStatus.READY)
    answered.tick(3)
    row = answered.find_new()
    assert row is not None
    assert row.dynamic_capacity_info["standard"].max_nodes == 9, "Kafkas come only for what is there"
    difference = "pool kafka-standard has 3..9 nodes at the provider, and 3..18 were ordered"
    assert read_problems(row) == (difference,)
    before = len(answered.ocm.list_calls("machine_pools.update"))
    answered.tick(60)
    calls = [call.at for call in answered.ocm.list_calls("machine_pools.update")[before:]]
    gaps = [(later - earlier).total_seconds() for earlier, later in pairwise(calls)]
    assert 2 <= len(calls) <= 8
    assert gaps == sorted(gaps)

    answered.ocm.faults.clear()
    answered.tick_until(lambda: (row := answered.find_new()) is not None and not read_problems(row))
    assert answered.get_new_status() is ClusterStatus.READY
    row = answered.find_new()
    assert row is not None
    assert row.dynamic_capacity_info["standard"].max_nodes == 18
    (cluster,) = [found for found in answered.ocm.clusters.list_clusters() if found.id == row.cluster_id]
    assert cluster.pools["kafka-standard"].max_replicas == 18


# ---- deletion: only OCM itself may say that a cluster is gone


@pytest.mark.parametrize(
    ("status", "body"),
    [(404, HTML), (404, b""), (404, b"{}"), (200, HTML), (500, HALF), (410, HTML), (302, b"")],
)
def test_only_an_answer_of_ocm_makes_a_cluster_gone(status: int, body: bytes):
    with Lives(OcmWorld) as lives:
        lives.add_ready(ROW_A, used=2)
        lives.add_ready(ROW_B)
        assert isinstance(lives.provider, OcmWorld)
        faults = lives.provider.ocm.faults
        fault = CallFault(kind=FaultKind.BODY, call="clusters.delete", status=status, body=body, times=None)
        lives.tick_until(lambda: (row := lives.find_row(ROW_B)) is not None and row.status != ClusterStatus.READY)
        faults.add(fault)
        lives.tick(12)
        row = lives.find_row(ROW_B)
        assert row is not None
        assert row.status is ClusterStatus.DEPROVISIONING
        faults.clear()
        lives.tick_until(lambda: lives.find_row(ROW_B) is None)
        assert lives.list_ids() == [lives.list_rows()[0].cluster_id]
