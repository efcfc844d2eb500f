"""A report, a mark, a placement and a deletion meet in every order (docs/design/fleet.md 9).

Each of the four reads first and writes later, what it read may be old by then. Reads change nothing, so that two orders
that differ only in which of two reads comes first are one: of the 2520 orders of eight steps 576 are different.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from plimsoll.fleet.model.statuses import ClusterStatus, KafkaStatus
from plimsoll.fleet.ports import ClusterReport
from tests.effort import IS_LONG, SHARE
from tests.fleet.store.databases import CHECK, NOON, build_kafka, build_ready

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plimsoll.fleet.model.clusters import Cluster
    from plimsoll.fleet.ports import FleetStore
    from tests.fleet.store.databases import DatabaseUnderTest

WRITERS = ("report", "mark", "placement", "deletion")
Step = tuple[str, str]
"""A writer, and `read` or `write`."""


def iterate_orders() -> Iterator[tuple[Step, ...]]:
    """For every order of the writes, every position of each read before its write."""
    for writes in itertools.permutations(WRITERS):
        for positions in itertools.product(*(range(index + 1) for index in range(len(writes)))):
            steps: list[Step] = []
            for index, writer in enumerate(writes):
                steps += [(other, "read") for other, slot in zip(writes, positions, strict=True) if slot == index]
                steps.append((writer, "write"))
            yield tuple(steps)


class Fleet:
    """A ready cluster and a Kafka that waits for a place, in a region of their own."""

    def __init__(self, store: FleetStore, number: int) -> None:
        self.store = store
        self.cluster_row, self.kafka_row = f"c{number}", f"k{number}"
        self.cluster_id = f"cid-{self.cluster_row}"
        self._read: dict[str, Cluster | None] = {}
        self.marked = self.delete_called = self.restored = False

    async def create(self) -> None:
        assert await self.store.insert_cluster(build_ready(self.cluster_row, region=self.cluster_row))
        await self.store.insert_kafka(build_kafka(self.kafka_row, region=self.cluster_row), CHECK)

    async def take(self, step: Step) -> None:
        writer, action = step
        if action == "read":
            self._read[writer] = await self.store.get_cluster(self.cluster_row)
        elif (cluster := self._read[writer]) is not None:
            await getattr(self, f"write_{writer}")(cluster)
        await self._check_mark(step)

    async def write_report(self, cluster: Cluster) -> None:
        await self.store.store_report(cluster.cluster_id, ClusterReport(is_ready=True, at=NOON))

    async def write_mark(self, cluster: Cluster) -> None:
        if cluster.status is ClusterStatus.READY:
            changes = await self.store.change_cluster(
                cluster.id, {"status": ClusterStatus.DEPROVISIONING}, statuses=[ClusterStatus.READY]
            )
            self.marked = changes is not None

    async def write_placement(self, cluster: Cluster) -> None:
        changes = {"status": KafkaStatus.PREPARING}
        await self.store.place_kafka(self.kafka_row, cluster, changes, statuses=[KafkaStatus.ACCEPTED])  # type: ignore[arg-type]

    async def write_deletion(self, cluster: Cluster) -> None:
        """The second look, the delete call, and what follows it, by a worker that trusts what it read."""
        if await self.store.request_deletion(cluster.id) is None:
            self.restored = await self.store.restore_cluster(cluster.id) is not None
            return
        self.delete_called = True
        await self.store.change_cluster(
            cluster.id, {"status": ClusterStatus.CLEANUP}, statuses=[ClusterStatus.DEPROVISIONING]
        )
        await self.store.remove_cluster(cluster.id, statuses=[ClusterStatus.CLEANUP])

    async def _check_mark(self, step: Step) -> None:
        """From the mark on only the second look makes the cluster ready again: no report does, however late."""
        if self.marked and not self.delete_called and not self.restored:
            cluster = await self.store.get_cluster(self.cluster_row)
            assert cluster is not None, step
            assert cluster.status is ClusterStatus.DEPROVISIONING, step

    async def check(self, order: tuple[Step, ...]) -> None:
        cluster = await self.store.get_cluster(self.cluster_row)
        kafka = await self.store.get_kafka(self.kafka_row)
        assert kafka is not None, order
        if kafka.cluster_id:
            assert cluster is not None, order
            assert cluster.delete_requested_at is None, order
            assert cluster.empty_since is None, order
        if self.delete_called:
            assert cluster is None, order
            assert kafka.cluster_id == "", order
        last_write = [writer for writer, action in order if action == "write"]
        if self.marked and last_write.index("deletion") < last_write.index("mark"):
            assert cluster is not None, order
            assert cluster.status is ClusterStatus.DEPROVISIONING, order


def test_every_order_of_steps_is_tried():
    orders = list(iterate_orders())
    assert len(orders) == len(set(orders)) == 576
    for order in orders:
        assert all(order.index((writer, "read")) < order.index((writer, "write")) for writer in WRITERS)


def test_no_report_undoes_a_mark_and_no_kafka_is_lost(database: DatabaseUnderTest):
    # Each write on disk waits for the disk: a short run tries every order in memory, and one in five on disk.
    apart = 1 if IS_LONG or database.is_memory else SHARE
    orders = tuple(itertools.islice(iterate_orders(), 0, None, apart))

    async def story(store: FleetStore) -> None:
        outcomes, restored = set(), 0
        for number, order in enumerate(orders):
            fleet = Fleet(store, number)
            await fleet.create()
            for step in order:
                await fleet.take(step)
            await fleet.check(order)
            kafka = await store.get_kafka(fleet.kafka_row)
            outcomes.add((fleet.marked, fleet.delete_called, bool(kafka and kafka.cluster_id)))
            restored += fleet.restored
        # Both ends are reached: the cluster goes, or the Kafka is on it; never both.
        assert (True, True, False) in outcomes
        assert (True, False, True) in outcomes
        assert restored, "the second look never found the Kafka"
        assert not {(True, True, True), (False, True, True)} & outcomes

    database.play_store(story)
