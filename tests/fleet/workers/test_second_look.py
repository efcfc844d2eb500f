"""The second look at a marked cluster (docs/design/fleet.md 9, D-6, E18): what comes between mark and delete call."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from plimsoll.fleet.model.clusters import Cluster  # noqa: TC001 - part of a tuple at run time
from plimsoll.fleet.model.statuses import ClusterStatus
from plimsoll.fleet.model.workers import Worker
from plimsoll.local.ocm.faults import CallFault, FaultKind
from tests.faults import CrashAfter
from tests.fleet.workers.cluster_lives import ROW_A, ROW_B, TICK_S, UNITS, Lives, OcmWorld

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plimsoll.fleet.ports import ClusterChanges

SECOND_LOOK = Worker.DEPROVISIONING_CLUSTERS
SCALE_UP = Worker.DYNAMIC_SCALE_UP
SCALE_DOWN = Worker.DYNAMIC_SCALE_DOWN


class Marked(Lives):
    """A is in use, and B is marked."""

    def __init__(self) -> None:
        super().__init__(OcmWorld)
        assert isinstance(self.provider, OcmWorld)
        self.ocm = self.provider.ocm
        self.first, self.second = self.add_ready(ROW_A, used=2), self.add_ready(ROW_B)
        self.run_workers(SCALE_DOWN)
        assert self.get_status() is ClusterStatus.DEPROVISIONING

    def get_status(self) -> ClusterStatus | None:
        """Of B; None: its row is removed."""
        row = self.find_row(ROW_B)
        return None if row is None else row.status

    def fill_up(self) -> None:
        """Requests that need all of A."""
        for number in range(UNITS - 2):
            self.add_kafka(self.first, f"late-{number}")

    def list_deleted(self) -> list[str]:
        """The clusters for which OCM received a delete call."""
        return [call.path.rsplit("/", 1)[-1] for call in self.ocm.list_calls("clusters.delete")]

    def list_new(self) -> list[Cluster]:
        return [row for row in self.list_rows() if row.id not in {ROW_A, ROW_B}]


@pytest.fixture
def marked() -> Iterator[Marked]:
    with Marked() as lives:
        yield lives


def test_without_a_request_the_marked_cluster_is_deleted(marked: Marked):
    assert "Empty" in marked.run_workers(SECOND_LOOK)
    assert marked.list_deleted() == [marked.second.cluster_id]


@pytest.mark.parametrize("order", [(SECOND_LOOK, SCALE_UP), (SCALE_UP, SECOND_LOOK)], ids=["look first", "need first"])
def test_capacity_that_is_needed_again_brings_the_cluster_back(marked: Marked, order: tuple[Worker, Worker]):
    marked.fill_up()
    reasons = marked.run_workers(*order)
    assert "CapacityNeeded" in reasons
    assert marked.get_status() is ClusterStatus.READY
    marked.run_workers(*order, SCALE_DOWN)
    assert marked.get_status() is ClusterStatus.READY
    assert marked.list_new() == [], "the marked cluster is what the need wants"
    assert marked.list_deleted() == []


def test_scale_up_says_that_it_waits_for_the_marked_cluster(marked: Marked):
    marked.fill_up()
    assert marked.run_workers(SCALE_UP) == ["ClusterReturns"]


@pytest.mark.parametrize("order", [(SECOND_LOOK, SCALE_UP), (SCALE_UP, SECOND_LOOK)], ids=["look first", "need first"])
def test_a_kafka_on_it_brings_the_cluster_back(marked: Marked, order: tuple[Worker, Worker]):
    """Its placement was committed after scale-down had counted, and before it wrote the mark."""
    change = marked.fleet.store.change_cluster
    marked.run.run_until(marked.fleet.store.restore_cluster(ROW_B))
    marked.add_kafka(marked.second, "late")
    mark: ClusterChanges = {"status": ClusterStatus.DEPROVISIONING}
    assert marked.run.run_until(change(ROW_B, mark, statuses={ClusterStatus.READY}))
    assert "NotEmpty" in marked.run_workers(*order)
    assert marked.get_status() is ClusterStatus.READY
    assert marked.list_deleted() == []


def test_a_need_that_arises_after_the_delete_call_gets_another_cluster(marked: Marked):
    marked.run_workers(SECOND_LOOK)
    marked.fill_up()
    reasons = marked.run_workers(SECOND_LOOK, SCALE_UP)
    assert reasons[:1] == ["DeleteRequested"]
    assert marked.get_status() is ClusterStatus.DEPROVISIONING
    assert len(marked.list_new()) == 1
    marked.tick_until(lambda: marked.get_status() is None)
    assert marked.second.cluster_id not in marked.list_ids()
    assert set(marked.list_deleted()) == {marked.second.cluster_id}


def test_a_crash_between_the_note_and_the_call_does_not_bring_the_cluster_back(marked: Marked):
    """The call may have been made: `delete_requested_at` alone decides."""
    crash = CrashAfter(3)  # Reads of rows and Kafkas, then the note.
    process = marked.fleet.start(SECOND_LOOK, through=crash.wrap, clusters=marked.build_parts(), holder=SECOND_LOOK)
    with pytest.raises(BaseException, match="request_deletion"):
        marked.run.run_until(process.run_pass())
    assert marked.list_deleted() == []
    marked.fill_up()
    assert "DeleteRequested" in marked.run_workers(SECOND_LOOK, SCALE_UP)
    marked.tick_until(lambda: marked.get_status() is None)
    assert marked.list_deleted()
    assert len(marked.list_new()) == 1


def test_a_crash_between_the_mark_and_the_second_look_loses_nothing(marked: Marked):
    """The process that marked is gone; the look is the next process's."""
    marked.fill_up()
    marked.pass_time(4)
    assert "CapacityNeeded" in marked.run_workers(SECOND_LOOK)
    assert marked.get_status() is ClusterStatus.READY


# ---- brakes


def test_a_dry_run_looks_and_neither_restores_nor_deletes(marked: Marked):
    assert "Empty" in marked.run_workers(SECOND_LOOK, dry_run=True)
    marked.fill_up()
    assert "CapacityNeeded" in marked.run_workers(SECOND_LOOK, dry_run=True)
    assert marked.get_status() is ClusterStatus.DEPROVISIONING
    assert marked.list_deleted() == []


def test_a_pause_holds_the_delete_call_back(marked: Marked):
    marked.run.run_until(marked.fleet.database.leases.set_pause("maintenance"))
    marked.run_workers(SECOND_LOOK)
    row = marked.find_row(ROW_B)
    assert row is not None
    assert (row.status, row.delete_requested_at) == (ClusterStatus.DEPROVISIONING, None)
    assert marked.list_deleted() == []


def test_so_many_clusters_are_deleted_per_hour_whichever_process_deletes(marked: Marked):
    third = marked.add_ready("c" * 20)
    marked.run_workers(SCALE_DOWN)
    assert "Empty" in marked.run_workers(SECOND_LOOK, removals_per_hour=1)
    for _ in range(3600 // TICK_S - 1):
        reasons = marked.run_workers(SECOND_LOOK, removals_per_hour=1)
        assert "RemovalLimit" in reasons
        marked.pass_time()
    assert set(marked.list_deleted()) == {marked.second.cluster_id}
    marked.pass_time(2)
    marked.run_workers(SECOND_LOOK, removals_per_hour=1)
    assert set(marked.list_deleted()) == {marked.second.cluster_id, third.cluster_id}


def test_a_provider_that_does_not_answer_deletes_nothing_else(marked: Marked):
    """Without its answers there is no deletion, and the row says why."""
    marked.ocm.faults.add(CallFault(kind=FaultKind.STATUS, status=503, times=None))
    marked.tick(5)
    row = marked.find_row(ROW_B)
    assert row is not None
    assert row.status is ClusterStatus.DEPROVISIONING
    assert "503" in row.status_details
    assert len(marked.list_ids()) == 2
    marked.ocm.faults.clear()
    marked.tick_until(lambda: marked.get_status() is None)
