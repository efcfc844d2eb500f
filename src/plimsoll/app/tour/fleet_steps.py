"""The steps about clusters and Kafkas: from a request to moved replicas and back (docs/design/fleet.md 18, J01)."""

from __future__ import annotations

import json
from collections import Counter
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from plimsoll.app.tour.steps import Stage, Step, StepFailed, wait_for_kafka
from plimsoll.app.tour.world import FLEET, Refused
from plimsoll.objects.api.kafka import Kafka

if TYPE_CHECKING:
    from plimsoll.app.tour.world import TourWorld

Json = dict[str, Any]

GROUPS: Final = "/apis/cloud.plimsoll.io/v1alpha1/nodegroups"
MANAGED: Final = "/apis/managedkafka.bf2.org/v1alpha1/managedkafkas"
REBALANCES: Final = "/apis/kafka.strimzi.io/v1/kafkarebalances"
CLAIMS: Final = "/api/v1/namespaces/kube-system/configmaps/plimsoll-agent-claims"
POOL: Final = "kafka-standard"
_CAPACITY: Final = "capacity/aws.us-east-1.standard"
_TOPICS: Final = "simulated.plimsoll.io/topics"
_PARTITIONS: Final = 60
_REPLICAS: Final = 3 * _PARTITIONS
_MINUTE_S: Final = 60.0


class FleetSteps:
    """Clusters are named in the order in which they become ready: A, B, C."""

    def __init__(self, world: TourWorld) -> None:
        self._world = world
        self._clusters: dict[str, Json] = {}
        self._orders: Json = {}
        self._bills: Json = {}

    def list_steps(self) -> list[Step]:
        return [
            Step(
                name="first-cluster",
                title="A region without room: the fleet manager orders a cluster",
                run=self.make_the_first_cluster,
            ),
            Step(
                name="first-kafka",
                title="A user orders a Kafka: it is placed, and its pods run on the pool that is there",
                run=self.run_the_first_kafka,
            ),
            Step(
                name="second-kafka",
                title="A larger Kafka waits for a second cluster, which buys machines for its brokers",
                run=self.run_the_second_kafka,
            ),
            Step(
                name="spare-cluster",
                title="A third cluster keeps room for the largest Kafka, and stays though it is empty",
                run=self.keep_a_third_cluster,
            ),
            Step(
                name="grow",
                title="The first Kafka doubles: machines, brokers, then replicas move onto them",
                run=self.let_the_first_kafka_grow,
            ),
            Step(
                name="shrink",
                title="It halves: replicas leave, then brokers, then their claim and machines",
                run=self.let_it_shrink,
            ),
            Step(
                name="second-look",
                title="A cluster that is no longer needed is marked, and kept because a Kafka arrives",
                run=self.keep_the_cluster_that_is_needed_again,
            ),
            Step(
                name="last-cluster",
                title="The Kafka goes, and the cluster with all its machines after it",
                run=self.remove_the_cluster,
            ),
        ]

    # ---- what is to be seen

    async def list_ready(self) -> list[Json]:
        return [row for row in await self._world.list_rows() if row["status"] == "ready"]

    async def describe_rows(self) -> str:
        rows = await self._world.list_rows()
        return f"clusters: {', '.join(row['status'] for row in rows) or 'none'}"

    def get_id(self, letter: str) -> str:
        """The id of a cluster at its provider."""
        return str(self._clusters[letter]["cluster_id"])

    async def name_new(self, stage: Stage, letter: str, number: int) -> None:
        """Wait until so many clusters are ready; the one without a name gets this one."""

        async def are_ready() -> list[Json]:
            ready = await self.list_ready()
            return ready if len(ready) == number else []

        ready = await stage.wait_until(
            f"{number} clusters are ready", are_ready, within_s=10 * _MINUTE_S, describe=self.describe_rows
        )
        known = {row["id"] for row in self._clusters.values()}
        (row,) = [row for row in ready if row["id"] not in known]
        self._clusters[letter] = row
        stage.say(f"cluster {letter} is ready ({row['cluster_id']})")

    async def count_pool_machines(self, cluster_id: str) -> int:
        """Nodes that the groups of the pool are to have."""
        groups = await self._world.list_items(cluster_id, GROUPS)
        return sum(int(group["spec"]["target"]) for group in groups if group["metadata"]["name"].startswith(POOL))

    async def list_brokers(self, cluster_id: str, namespace: str) -> list[Json]:
        path = f"/api/v1/namespaces/{namespace}/pods"
        return await self._world.list_items(cluster_id, path, "plimsoll.io/kafka-role=broker")

    async def count_claim(self, cluster_id: str, namespace: str) -> int:
        data = (await self._world.connect(cluster_id).get_json(CLAIMS)).get("data", {})
        return int(json.loads(data.get(namespace, "{}")).get("units", 0))

    def count_replicas(self, cluster_id: str, namespace: str, name: str) -> tuple[dict[int, int], int]:
        """Replicas by broker, and the fewest that a partition has."""
        simulated = self._world.get_cluster(cluster_id).local.kafka
        kafka = None if simulated is None else simulated.clusters.find(namespace, name)
        if kafka is None:
            return {}, 0
        counted: Counter[int] = Counter()
        fewest = _REPLICAS
        for partition in kafka.catch_up().iterate_partitions():
            counted.update(partition.replicas)
            fewest = min(fewest, len(partition.replicas))
        return dict(counted), fewest

    # ---- steps

    async def make_the_first_cluster(self, stage: Stage) -> None:
        await self.name_new(stage, "A", 1)
        await stage.find_reason(FLEET, _CAPACITY, "BiggestDoesNotFit")
        groups = {
            group["metadata"]["name"]: group["spec"] for group in await self._world.list_items(self.get_id("A"), GROUPS)
        }
        bounds = {name: (spec["min"], spec["max"]) for name, spec in groups.items() if name.startswith(POOL)}
        stage.check(bounds == {f"{POOL}-{zone}": (1, 2) for zone in "abc"}, f"the pool has other groups: {bounds}")
        pool = self._clusters["A"]["dynamic_capacity_info"]["standard"]
        stage.check(pool["max_units"] == 2, f"the agent reports {pool}")

    async def run_the_first_kafka(self, stage: Stage) -> None:
        await self._world.call("POST", "/kafkas", {"name": "orders", "plan": "standard.x1"}, query="async=true")
        self._orders = orders = await wait_for_kafka(stage, "orders")
        cluster_id, namespace = self.get_id("A"), str(orders["namespace"])
        stage.check(orders["cluster_id"] == cluster_id, "orders was placed on another cluster")
        stage.check(str(orders.get("bootstrap_server_host", "")).endswith(":443"), "orders has no bootstrap host")
        await stage.find_reason(FLEET, f"kafka/{orders['id']}", "FirstWithRoom")
        brokers = await self.list_brokers(cluster_id, namespace)
        nodes = {broker["spec"].get("nodeName") for broker in brokers}
        stage.check(len(brokers) == 3 == len(nodes), f"{len(brokers)} brokers on {len(nodes)} nodes")
        machines = await self.count_pool_machines(cluster_id)
        stage.check(machines == 3, f"the pool has {machines} machines: the three that were there have room")

    async def run_the_second_kafka(self, stage: Stage) -> None:
        async def is_ordered() -> bool:
            return len(await self._world.list_rows()) == 2

        await stage.wait_until("a second cluster is ordered", is_ordered, within_s=2 * _MINUTE_S)
        await self._world.call("POST", "/kafkas", {"name": "bills", "plan": "standard.x2"}, query="async=true")
        bills_id = (await self._world.list_kafkas())["bills"]["id"]
        await stage.find_reason(FLEET, f"kafka/{bills_id}", "NoRoom")
        await self.name_new(stage, "B", 2)
        self._bills = bills = await wait_for_kafka(stage, "bills")
        cluster_id = self.get_id("B")
        stage.check(bills["cluster_id"] == cluster_id, "bills was placed on another cluster")
        brokers = await self.list_brokers(cluster_id, bills["namespace"])
        machines = await self.count_pool_machines(cluster_id)
        stage.check(len(brokers) == 6 == machines, f"{len(brokers)} brokers on {machines} machines, not 6 on 6")
        await self.find_purchase(stage, cluster_id)

    async def find_purchase(self, stage: Stage, cluster_id: str) -> None:
        """The node autoscaler of a cluster bought machines for its pool, in each zone."""
        for zone in "abc":
            await stage.find_reason(cluster_id, f"nodegroup/{POOL}-{zone}", "grow")

    async def keep_a_third_cluster(self, stage: Stage) -> None:
        await self.name_new(stage, "C", 3)
        await stage.find_reason(FLEET, f"cluster/{self._clusters['C']['id']}", "ScaleUpWouldFollow", within_s=300)
        stage.check(len(await self.list_ready()) == 3, "the third cluster went")

    async def let_the_first_kafka_grow(self, stage: Stage) -> None:
        world, cluster_id, namespace = self._world, self.get_id("A"), self._orders["namespace"]
        topic = {"name": "orders", "partitions": _PARTITIONS, "replicationFactor": 3, "partitionSize": "512Mi"}
        annotations = {"metadata": {"annotations": {_TOPICS: json.dumps([topic])}}}
        await world.connect(cluster_id).merge_patch(Kafka, "orders", annotations, namespace=namespace)

        async def has_topic() -> bool:
            return sum(self.count_replicas(cluster_id, namespace, "orders")[0].values()) == _REPLICAS

        await stage.wait_until("the topic has its replicas", has_topic, within_s=2 * _MINUTE_S)
        await world.call("PATCH", f"/kafkas/{self._orders['id']}", {"plan": "standard.x2"})
        seen: set[str] = set()

        async def is_rebalanced() -> bool:
            """A rebalance was there, and is gone."""
            present = {item["metadata"]["name"] for item in await world.list_items(cluster_id, REBALANCES)}
            seen.update(present)
            return bool(seen) and not present

        async def describe() -> str:
            machines = await self.count_pool_machines(cluster_id)
            replicas, _ = self.count_replicas(cluster_id, namespace, "orders")
            return f"{machines} machines, {len(await self.list_brokers(cluster_id, namespace))} brokers, replicas " + (
                " ".join(f"{broker}:{count}" for broker, count in sorted(replicas.items()))
            )

        await stage.wait_until("replicas move onto the new brokers", is_rebalanced, within_s=1800, describe=describe)
        stage.check(seen == {"orders-auto-rebalancing-add-brokers"}, f"other rebalances ran: {seen}")
        replicas, fewest = self.count_replicas(cluster_id, namespace, "orders")
        shares = all(27 <= replicas.get(broker, 0) <= 33 for broker in range(6))
        stage.check(shares and sum(replicas.values()) == _REPLICAS, f"replicas by broker: {replicas}")
        stage.check(fewest == 3, "a partition lost a replica")
        await self.find_purchase(stage, cluster_id)

    async def let_it_shrink(self, stage: Stage) -> None:
        cluster_id, namespace = self.get_id("A"), self._orders["namespace"]
        await stage.wait_until("the earlier change has ended", self._ask_for_less, within_s=5 * _MINUTE_S)
        order: list[str] = []

        async def is_small() -> bool:
            replicas, fewest = self.count_replicas(cluster_id, namespace, "orders")
            if fewest < 3:
                raise StepFailed(f"a partition of orders has {fewest} replicas")
            is_so = {
                "replicas moved": sorted(broker for broker, count in replicas.items() if count) == [0, 1, 2],
                "brokers gone": len(await self.list_brokers(cluster_id, namespace)) == 3,
                "claim lowered": await self.count_claim(cluster_id, namespace) == 1,
                "machines gone": await self.count_pool_machines(cluster_id) == 3,
            }
            order.extend(step for step, holds in is_so.items() if holds and step not in order)
            return all(is_so.values())

        async def describe() -> str:
            return ", ".join(order)

        await stage.wait_until("orders is small again", is_small, within_s=3600, describe=describe)
        wanted = ["replicas moved", "brokers gone", "claim lowered", "machines gone"]
        stage.check(order == wanted, f"in another order: {', '.join(order)}")
        await stage.find_action(cluster_id, "remove")

    async def _ask_for_less(self) -> bool:
        """The request is refused as a conflict while the agent still reports the last change as running."""
        try:
            await self._world.call("PATCH", f"/kafkas/{self._orders['id']}", {"plan": "standard.x1"})
        except Refused as refused:
            if refused.status != HTTPStatus.CONFLICT:
                raise
            return False
        return True

    async def keep_the_cluster_that_is_needed_again(self, stage: Stage) -> None:
        """One of two empty clusters is marked. A Kafka that takes the other makes it needed: nothing was deleted."""
        world = self._world
        await world.call("DELETE", f"/kafkas/{self._bills['id']}", query="async=true")

        async def find_marked() -> str:
            statuses = {row["id"]: row["status"] for row in await world.list_rows()}
            found = (letter for letter in "BC" if statuses.get(self._clusters[letter]["id"]) == "deprovisioning")
            return next(found, "")

        marked: str = await stage.wait_until(
            "an empty cluster is marked", find_marked, within_s=10 * _MINUTE_S, describe=self.describe_rows
        )
        stage.say(f"cluster {marked} is marked to go; a Kafka arrives")
        await world.call("POST", "/kafkas", {"name": "late", "plan": "standard.x2"}, query="async=true")
        await stage.find_reason(
            FLEET, f"cluster/{self._clusters[marked]['id']}", "CapacityNeeded", within_s=2 * _MINUTE_S
        )
        late = await wait_for_kafka(stage, "late")
        stage.check(late["cluster_id"] == self.get_id("C" if marked == "B" else "B"), "late is on the marked cluster")
        stage.check(len(await self.list_ready()) == 3, "a cluster went although it was needed")
        stage.check(not world.fleet.ocm.list_calls("clusters.delete"), "a cluster was deleted at the provider")

    async def remove_the_cluster(self, stage: Stage) -> None:
        world = self._world
        late = (await world.list_kafkas())["late"]["id"]
        await world.call("DELETE", f"/kafkas/{late}", query="async=true")

        async def is_gone() -> bool:
            return len(await world.list_rows()) == 2

        await stage.wait_until("a cluster goes", is_gone, within_s=1200, describe=self.describe_rows)
        left = {row["id"] for row in await world.list_rows()}
        (gone,) = (letter for letter in "ABC" if self._clusters[letter]["id"] not in left)
        stage.say(f"cluster {gone} is gone, with its machines")
        stage.check(world.clusters.find(self.get_id(gone)) is None, f"cluster {gone} still runs")
        stage.check(bool(world.fleet.ocm.list_calls("clusters.delete")), "no cluster was deleted at the provider")
        await stage.find_reason(FLEET, f"cluster/{self._clusters[gone]['id']}", "Empty")
        letters = [letter for letter in "ABC" if letter != gone]
        managed = [
            item["metadata"]["name"]
            for letter in letters
            for item in await world.list_items(self.get_id(letter), MANAGED)
        ]
        stage.check(managed == ["orders"], f"Kafkas are left: {managed}")

        async def is_idle() -> bool:
            return [await self.count_pool_machines(self.get_id(letter)) for letter in letters] == [3, 3]

        await stage.wait_until("the pools have three machines each", is_idle, within_s=900)
