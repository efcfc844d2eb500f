"""The rates of partitions: from Prometheus, or from how far end offsets and sizes went on between two looks.

Prometheus mostly has rates per topic only. A topic's rate is then shared among its partitions by their sizes: that is
what a partition got of the topic's records so far.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, Final

import msgspec

from plimsoll.core.values import Value
from plimsoll.kafka.model.description import TopicPartition, bound_bytes, bound_rate
from plimsoll.web.prometheus import QueryFailed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from plimsoll.kafka.brokers.ports import KafkaAdmin
    from plimsoll.kafka.model.description import (
        BrokerDescription,
        ClusterDescription,
        PartitionDescription,
        TopicDescription,
    )
    from plimsoll.web.prometheus import Prometheus, Sample, Vector

PROMETHEUS: Final = "prometheus"
OFFSETS: Final = "offsets"
_LEAST_S: Final = 1.0
"""Two looks nearer to each other give no rate."""
_WINDOW_S: Final = 60.0
"""How far back rates look, about, if looks are frequent."""
_BROKER_LABELS: Final = ("broker", "broker_id", "node_id", "brokerid")


class RateQueries(Value):
    """Queries to Prometheus. Series have the label `topic`, and `partition` where the exporter has it.

    The defaults are for the JMX exporter with Strimzi's and Kafka's own example rules. Where a Prometheus server holds
    several clusters, the queries must select one of them.
    """

    bytes_in: str = 'sum by (topic, partition) (rate(kafka_server_brokertopicmetrics_bytesin_total{topic!=""}[5m]))'
    bytes_out: str = 'sum by (topic, partition) (rate(kafka_server_brokertopicmetrics_bytesout_total{topic!=""}[5m]))'
    broker_cpu: str = ""
    """Percent of all cores per broker; label `broker`, `broker_id` or `node_id`. Empty: not asked for."""


QUERY_NAMES: Final = {"bytes-in": "bytes_in", "bytes-out": "bytes_out", "broker-cpu": "broker_cpu"}
"""The queries by the names that users give, and their fields."""
_LONGEST_QUERY: Final = 10_000
_QUOTED: Final = re.compile(r""""(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|`[^`]*`""")
_BRACKETS: Final = {")": "(", "]": "[", "}": "{"}


def find_query_problem(query: str) -> str:
    """What makes a text no query, as far as that can be seen without Prometheus; empty: nothing."""
    if not query:
        return "the query is empty"
    if len(query) > _LONGEST_QUERY or not query.isprintable():
        return f"the query has more than {_LONGEST_QUERY} characters, or some that cannot be printed"
    unquoted = _QUOTED.sub("", query)
    if any(quote in unquoted for quote in "\"'`"):
        return "a quotation mark is not closed"
    opened: list[str] = []
    for character in unquoted:
        if character in _BRACKETS.values():
            opened.append(character)
        elif character in _BRACKETS and (not opened or opened.pop() != _BRACKETS[character]):
            return f"{character} closes nothing"
    return f"{opened[-1]} is not closed" if opened else ""


class OffsetSample(Value):
    """End offsets and sizes at one moment."""

    at_s: float
    offsets: dict[TopicPartition, int]
    sizes: dict[TopicPartition, int]


class OffsetSampler:
    """Remembers earlier end offsets, so that each later look gives rates."""

    def __init__(self) -> None:
        self._base: OffsetSample | None = None
        self._newer: OffsetSample | None = None

    async def add_rates(self, description: ClusterDescription, admin: KafkaAdmin, *, at_s: float) -> ClusterDescription:
        """The description with rates, or as it is at the first look."""
        sizes = _read_sizes(description)
        sample = OffsetSample(at_s=at_s, offsets=dict(await admin.read_end_offsets(list(sizes))), sizes=sizes)
        base, newer = self._base, self._newer
        if base is None or newer is None or at_s < base.at_s:
            self._base = self._newer = sample
            return description
        if at_s - newer.at_s >= _WINDOW_S / 2:
            self._base, self._newer = newer, sample
        return add_offset_rates(description, base, sample)


def add_offset_rates(description: ClusterDescription, before: OffsetSample, after: OffsetSample) -> ClusterDescription:
    """The description with the rates of produced bytes between two samples; none if they are too near."""
    elapsed_s = after.at_s - before.at_s
    if elapsed_s < _LEAST_S:
        return description
    record_bytes = _read_record_bytes(before, after)
    rates: dict[TopicPartition, float] = {}
    for partition, offset in after.offsets.items():
        # A partition without an earlier offset is new; one that went back was created anew.
        produced = max(0, offset - before.offsets.get(partition, offset))
        rates[partition] = produced * record_bytes.get(partition, 0.0) / elapsed_s
    return _replace_rates(description, rates, {}, source=OFFSETS)


async def add_prometheus_rates(
    description: ClusterDescription, prometheus: Prometheus, *, at: datetime, queries: RateQueries | None = None
) -> ClusterDescription:
    """The description with rates. Where Prometheus has none, it gains a problem that says so."""
    queries = queries or RateQueries()
    found: dict[str, Vector] = {}
    problems: dict[str, list[str]] = defaultdict(list)
    for name, field in QUERY_NAMES.items():
        query = getattr(queries, field)
        if not query:
            continue
        answer = await prometheus.query(query, at=at)
        if isinstance(answer, QueryFailed):
            problems[answer.problem].append(name)
        elif not answer.samples:
            problems[f"Prometheus has no series for {query}"].append(name)
        else:
            found[query] = answer
    described = msgspec.structs.replace(
        description,
        problems=(
            *description.problems,
            *(f"rates: {', '.join(names)}: {problem}" for problem, names in problems.items()),
        ),
    )
    if queries.broker_cpu in found:
        described = _add_cpu(described, found[queries.broker_cpu].samples)
    if queries.bytes_in not in found:
        return described
    rates_in = _share(described, found[queries.bytes_in].samples)
    rates_out = _share(described, found[queries.bytes_out].samples) if queries.bytes_out in found else {}
    return _replace_rates(described, rates_in, rates_out, source=PROMETHEUS)


def _read_sizes(description: ClusterDescription) -> dict[TopicPartition, int]:
    """The size of each partition that has a leader."""
    return {
        TopicPartition(topic.name, partition.partition): _get_size(partition)
        for topic in description.topics
        for partition in topic.partitions
        if partition.leader >= 0
    }


def _get_size(partition: PartitionDescription) -> int:
    """The leader's size, or the largest reported one."""
    sizes = {log.broker: bound_bytes(log.size_bytes) for log in partition.logs if not log.is_future}
    return sizes.get(partition.leader, max(sizes.values(), default=0))


def _read_record_bytes(before: OffsetSample, after: OffsetSample) -> dict[TopicPartition, float]:
    """The mean record size of each partition: its own growth, else that of its topic, else its size over its offset.

    A partition whose old segments were deleted in between shrank. Its own growth then means nothing.
    """
    own: dict[TopicPartition, float] = {}
    grown: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for partition, offset in after.offsets.items():
        records = offset - before.offsets.get(partition, offset)
        size = after.sizes.get(partition, 0) - before.sizes.get(partition, 0)
        if records > 0 and size > 0 and partition in before.sizes:
            own[partition] = size / records
            grown[partition.topic].append((size, records))
    of_topic = {
        topic: sum(size for size, _ in pairs) / sum(records for _, records in pairs) for topic, pairs in grown.items()
    }
    return {
        partition: own.get(partition)
        or of_topic.get(partition.topic)
        or (after.sizes.get(partition, 0) / offset if offset > 0 else 0.0)
        for partition, offset in after.offsets.items()
    }


def _share(description: ClusterDescription, samples: Iterable[Sample]) -> dict[TopicPartition, float]:
    """The rates of partitions. Those of a topic alone are shared among its partitions."""
    rates: dict[TopicPartition, float] = defaultdict(float)
    of_topic: dict[str, float] = defaultdict(float)
    for sample in samples:
        rate = bound_rate(sample.value)
        topic = sample.labels.get("topic", "")
        if rate is None or not topic:
            continue
        number = sample.labels.get("partition", "")
        if number.isascii() and number.isdigit() and len(number) <= 9:
            rates[TopicPartition(topic, int(number))] += rate
        elif not number:
            of_topic[topic] += rate
    for described in description.topics:
        if described.name in of_topic:
            _share_topic(described, of_topic[described.name], rates)
    return rates


def _share_topic(topic: TopicDescription, rate: float, rates: dict[TopicPartition, float]) -> None:
    without = [part for part in topic.partitions if TopicPartition(topic.name, part.partition) not in rates]
    sizes = [_get_size(partition) for partition in without]
    total = sum(sizes)
    for partition, size in zip(without, sizes, strict=True):
        share = size / total if total else 1 / len(without)
        rates[TopicPartition(topic.name, partition.partition)] = rate * share


def _add_cpu(description: ClusterDescription, samples: Iterable[Sample]) -> ClusterDescription:
    found: dict[str, float] = {}
    for sample in samples:
        label = next((sample.labels[name] for name in _BROKER_LABELS if name in sample.labels), "")
        if label and 0 <= sample.value <= 100:
            found[label] = sample.value

    def replace(broker: BrokerDescription) -> BrokerDescription:
        cpu = found.get(str(broker.id))
        return broker if cpu is None else msgspec.structs.replace(broker, cpu_pct=cpu)

    return msgspec.structs.replace(description, brokers=tuple(replace(broker) for broker in description.brokers))


def _replace_rates(
    description: ClusterDescription,
    rates_in: Mapping[TopicPartition, float],
    rates_out: Mapping[TopicPartition, float],
    *,
    source: str,
) -> ClusterDescription:
    def replace(topic: str, partition: PartitionDescription) -> PartitionDescription:
        key = TopicPartition(topic, partition.partition)
        if key not in rates_in and key not in rates_out:
            return partition
        return msgspec.structs.replace(
            partition,
            bytes_in_per_s=bound_rate(rates_in.get(key)),
            bytes_out_per_s=bound_rate(rates_out.get(key)),
        )

    topics = tuple(
        msgspec.structs.replace(
            topic, partitions=tuple(replace(topic.name, partition) for partition in topic.partitions)
        )
        for topic in description.topics
    )
    return msgspec.structs.replace(description, topics=topics, rate_source=source)
