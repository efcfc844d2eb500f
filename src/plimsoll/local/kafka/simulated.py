"""Simulated brokers on any API server: a pod of a Kafka cluster is a broker while it is ready.

`SimulatedClusters` holds a `SimulatedKafka` per Kafka object. It is made once and given to every process that serves
it, as real brokers go on when their operator restarts. `SimulatedBrokerPods` follows the pods: a ready pod registers
and runs a broker in the rack of its node, and a pod that goes ends the broker's process. Registrations stay until a
request removes them, as in Kafka.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import structlog

from plimsoll.core.errors import InvalidInput
from plimsoll.kube.controller.controller import Again, Controller, Done
from plimsoll.kube.controller.enqueue import enqueue_on, get_own_key
from plimsoll.kube.informer.events import Key
from plimsoll.local.kafka.answers import RequestRefused
from plimsoll.local.kafka.cluster import SimulatedKafka
from plimsoll.local.kafka.kafka_ids import build_cluster_id
from plimsoll.local.kafka.snapshot_store import SnapshotStore
from plimsoll.local.kafka.snapshots import Snapshot, restore_state
from plimsoll.local.kafka.topic_seeds import TOPICS_ANNOTATION, parse_topic_seeds
from plimsoll.local.kafka.topology import KafkaTopology
from plimsoll.runtime.supervisor import Service

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.core.clock import Clock
    from plimsoll.local.components import Components
    from plimsoll.local.kafka.broker_pods import BrokerPod
    from plimsoll.local.kafka.topic_seeds import TopicSeed
    from plimsoll.objects.api.kafka import Kafka

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

NAME: Final = "simulated-kafka"
_STORE_EVERY_S: Final = 10.0
"""How soon changes that came from requests are stored."""


@dataclass(slots=True)
class _Cluster:
    uid: str
    kafka: SimulatedKafka
    is_new: bool = True
    """What an earlier process stored was not looked for yet."""
    seeded: set[str] = field(default_factory=set)
    """Topics that were created once. One that a user deletes does not come back."""
    is_complete: bool = False
    """All brokers that the specs asked for have run at once."""
    problem: str = ""
    """What is wrong with its topics, as it was logged last."""

    def build_snapshot(self) -> Snapshot:
        state = self.kafka.catch_up()
        return Snapshot(
            uid=self.uid,
            brokers=list(state.brokers.values()),
            topics=list(state.topics.values()),
            settings=state.settings.list_all(),
            seeded=sorted(self.seeded),
            is_complete=self.is_complete,
            voters=state.voters,
        )

    def restore(self, snapshot: Snapshot) -> None:
        restore_state(self.kafka.state, snapshot)
        self.seeded, self.is_complete = set(snapshot.seeded), snapshot.is_complete


class SimulatedClusters:
    """The simulated clusters by the keys of their Kafkas. `topics`: of a scenario, beside those of annotations."""

    def __init__(self, clock: Clock, *, topics: Mapping[Key, tuple[TopicSeed, ...]] | None = None) -> None:
        self._clock = clock
        self._topics = dict(topics or {})
        self._clusters: dict[Key, _Cluster] = {}

    def find(self, namespace: str, name: str) -> SimulatedKafka | None:
        """The cluster of a Kafka; None: there is no such Kafka, or none of its pods was seen yet."""
        found = self._clusters.get(Key(namespace, name))
        return None if found is None else found.kafka

    def list_keys(self) -> list[Key]:
        return sorted(self._clusters)

    def open(self, key: Key, uid: str) -> _Cluster:
        """The cluster of a Kafka; a Kafka made anew has new brokers."""
        found = self._clusters.get(key)
        if found is None or found.uid != uid:
            kafka = SimulatedKafka(self._clock, cluster_id=build_cluster_id(uid))
            found = self._clusters[key] = _Cluster(uid=uid, kafka=kafka)
        return found

    def remove(self, key: Key) -> None:
        self._clusters.pop(key, None)

    def list_seeds(self, key: Key, kafka: Kafka | None) -> tuple[TopicSeed, ...]:
        """The topics that a cluster begins with. Raises `InvalidInput` for a wrong annotation."""
        text = kafka.metadata.annotations.get(TOPICS_ANNOTATION, "") if kafka is not None else ""
        path = f"metadata.annotations[{TOPICS_ANNOTATION}]"
        annotated = parse_topic_seeds(text, path=path) if text.strip() else ()
        return (*self._topics.get(key, ()), *annotated)


class SimulatedBrokerPods:
    """The brokers of all clusters. Made before the informers run.

    `keeps_state`: clusters are stored in ConfigMaps, and a later process goes on with them. Without it they live as
    long as `clusters`.
    """

    def __init__(self, components: Components, clusters: SimulatedClusters, *, keeps_state: bool = False) -> None:
        component = components.build_component(NAME, manager=NAME)
        self.clusters = clusters
        self._store = SnapshotStore(component.client) if keeps_state else None
        self.topology = KafkaTopology(component.informers)
        self.controller: Controller[Key] = Controller(
            NAME,
            self.reconcile,
            clock=component.clock,
            entropy=component.entropy,
            all_keys=lambda: [*self.topology.list_keys(), *clusters.list_keys()],
        )
        enqueue_on(self.topology.kafkas, self.controller, get_own_key)
        enqueue_on(self.topology.pods, self.controller, self.topology.find_changed_clusters)
        for source in self.topology.sources:
            self.controller.add_source(source)

    def list_services(self) -> list[Service]:
        return [Service(name=self.controller.name, run=self.controller.run)]

    async def reconcile(self, key: Key) -> Done | Again:
        uid = self.topology.find_uid(key)
        if not uid:
            self.clusters.remove(key)
            return Done()
        cluster = self.clusters.open(key, uid)
        if self._store is not None and cluster.is_new:
            await self._restore(self._store, key, cluster)
        cluster.is_new = False
        self._follow_pods(key, cluster)
        if self._store is None:
            return Done()
        kafka = self.topology.find_kafka(key)
        if kafka is not None:
            await self._store.write(key, kafka, cluster.build_snapshot())
        return Again(after_s=_STORE_EVERY_S)

    async def _restore(self, store: SnapshotStore, key: Key, cluster: _Cluster) -> None:
        snapshot = await store.read(key)
        if snapshot is None or snapshot.uid != cluster.uid:
            return
        try:
            cluster.restore(snapshot)
        except InvalidInput as error:
            log.warning("simulated_kafka.unreadable", kafka=str(key), error=str(error))

    def _follow_pods(self, key: Key, cluster: _Cluster) -> None:
        pods = self.topology.list_broker_pods(key)
        ready = {broker.id: broker for broker in pods if broker.is_ready}
        for broker in ready.values():
            self._run_broker(key, cluster.kafka, broker)
        for known in list(cluster.kafka.catch_up().brokers.values()):
            if known.is_running and known.id not in ready:
                cluster.kafka.kill_broker(known.id)
        cluster.is_complete |= bool(ready) and len(ready) >= self.topology.count_desired_brokers(key)
        if cluster.is_complete:
            self._choose_voters(key, cluster.kafka)
            self._create_topics(key, cluster)

    def _choose_voters(self, key: Key, kafka: SimulatedKafka) -> None:
        """The first controllers are the voters. Later ones are observers, as in a dynamic quorum of Kafka."""
        if not kafka.state.voters:
            kafka.state.voters = frozenset(self.topology.list_controllers(key))

    def _run_broker(self, key: Key, kafka: SimulatedKafka, broker: BrokerPod) -> None:
        state = kafka.catch_up()
        known = state.brokers.get(broker.id)
        rack = self.topology.find_rack(key, broker)
        if known is None or not (known.is_running or known.is_registered or state.has_logs(broker.id)):
            kafka.add_broker(broker.id, rack=rack, log_dirs=self.topology.find_log_dirs(key, broker))
        elif not known.is_running:
            # Its volumes may have followed it to a node in another zone.
            known.rack = rack
            kafka.start_broker(broker.id)

    def _create_topics(self, key: Key, cluster: _Cluster) -> None:
        """Create the topics that were not created yet. What is wrong is logged once."""
        try:
            seeds = self.clusters.list_seeds(key, self.topology.find_kafka(key))
        except InvalidInput as error:
            self._report(key, cluster, str(error))
            return
        problems = [problem for seed in seeds if (problem := _create_topic(cluster, seed))]
        self._report(key, cluster, "; ".join(problems))

    def _report(self, key: Key, cluster: _Cluster, problem: str) -> None:
        if problem and problem != cluster.problem:
            log.warning("simulated_kafka.topics", kafka=str(key), problem=problem)
        cluster.problem = problem


def _create_topic(cluster: _Cluster, seed: TopicSeed) -> str:
    """What hinders it, if anything does."""
    if seed.name in cluster.seeded:
        return ""
    try:
        cluster.kafka.place_topic(
            seed.name,
            partitions=seed.partitions,
            replication_factor=seed.replication_factor,
            size_bytes=seed.partition_bytes,
            is_internal=seed.is_internal,
        )
    except RequestRefused as error:
        return f"{seed.name}: {error}"
    cluster.seeded.add(seed.name)
    if seed.bytes_in_per_s or seed.bytes_out_per_s:
        for number in range(seed.partitions):
            cluster.kafka.set_rates(
                seed.name, number, bytes_in_per_s=seed.bytes_in_per_s, bytes_out_per_s=seed.bytes_out_per_s
            )
    return ""
