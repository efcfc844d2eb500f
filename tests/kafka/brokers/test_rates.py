"""Rates from Prometheus and from end offsets, with every kind of bad answer."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from plimsoll.kafka.brokers.rates import OffsetSample, RateQueries, add_offset_rates, add_prometheus_rates
from plimsoll.kafka.model.cluster import build_model
from plimsoll.kafka.model.description import (
    BrokerDescription,
    ClusterDescription,
    PartitionDescription,
    ReplicaDescription,
    TopicDescription,
    TopicPartition,
)
from plimsoll.testing import run_virtual
from plimsoll.web.client import RequestFailed, Response
from plimsoll.web.prometheus import Prometheus

if TYPE_CHECKING:
    from plimsoll.web.client import Request

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
QUERIES = RateQueries(bytes_in="in", bytes_out="out", broker_cpu="cpu")


def _describe(sizes: dict[TopicPartition, int]) -> ClusterDescription:
    names = sorted({partition.topic for partition in sizes})
    return ClusterDescription(
        brokers=(BrokerDescription(id=0), BrokerDescription(id=1)),
        topics=tuple(
            TopicDescription(
                name=name,
                partitions=tuple(
                    PartitionDescription(
                        partition=partition.partition,
                        replicas=(0,),
                        leader=0,
                        logs=(ReplicaDescription(broker=0, size_bytes=size),),
                    )
                    for partition, size in sorted(sizes.items())
                    if partition.topic == name
                ),
            )
            for name in names
        ),
    )


CLUSTER = _describe({A0: 300, A1: 100, B0: 0})


class FixedAnswers:
    """Prometheus with one answer per query; a missing one is a server that does not answer."""

    def __init__(self, answers: dict[str, str]) -> None:
        self._answers = answers

    async def send(self, request: Request) -> Response | RequestFailed:
        query = request.body.decode().partition("&")[0].removeprefix("query=")
        if query not in self._answers:
            return RequestFailed(problem=f"there is no answer to {query}")
        series = self._answers[query]
        body = f'{{"status":"success","data":{{"resultType":"vector","result":[{series}]}}}}'
        return Response(status=200, body=body.encode())


def _series(value: object, **labels: str) -> str:
    written = ",".join(f'"{name}":"{label}"' for name, label in labels.items())
    return f'{{"metric":{{{written}}},"value":[{NOW.timestamp()},"{value}"]}}'


def _read(answers: dict[str, str]) -> ClusterDescription:
    prometheus = Prometheus("http://prometheus", web=FixedAnswers(answers))
    return run_virtual(add_prometheus_rates(CLUSTER, prometheus, at=NOW, queries=QUERIES))


def _rates(described: ClusterDescription) -> dict[TopicPartition, tuple[float | None, float | None]]:
    return {
        TopicPartition(topic.name, entry.partition): (entry.bytes_in_per_s, entry.bytes_out_per_s)
        for topic in described.topics
        for entry in topic.partitions
    }


def test_rates_of_topics_are_shared_by_size_and_rates_of_partitions_are_kept() -> None:
    series_in = [_series(40, topic="a"), _series(40, topic="a"), _series(7, topic="b"), _series(9, topic="gone")]
    described = _read(
        {
            "in": ",".join(series_in),
            "out": ",".join([_series(5, topic="a", partition="1"), _series(12, topic="a")]),
            "cpu": ",".join([_series(42.5, broker_id="1"), _series(1000, broker="0"), _series(3, host="x")]),
        }
    )
    assert described.rate_source == "prometheus"
    assert described.problems == ()
    assert _rates(described) == {A0: (60, 12), A1: (20, 5), B0: (7, None)}
    assert [broker.cpu_pct for broker in described.brokers] == [None, 42.5]
    assert build_model(described).bytes_in is not None


@pytest.mark.parametrize(
    ("answers", "problem"),
    [
        ({}, "there is no answer to in"),
        ({"in": ""}, "no series for in"),
        ({"in": "}"}, "unreadable"),
    ],
)
def test_without_rates_the_description_says_why_and_has_none(answers: dict[str, str], problem: str) -> None:
    described = _read(answers)
    assert described.rate_source == ""
    assert set(_rates(described).values()) == {(None, None)}
    assert any(problem in text for text in described.problems)
    assert build_model(described).bytes_in is None


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-5", "1e300"])
def test_absurd_rates_are_left_out(value: str) -> None:
    described = _read({"in": ",".join([_series(value, topic="a"), _series(8, topic="b")])})
    assert _rates(described) == {A0: (None, None), A1: (None, None), B0: (8, None)}


def test_odd_partition_labels_are_left_out() -> None:
    odd = [_series(1, topic="a", partition=number) for number in ("-1", "x", "1" * 30, "7")]
    described = _read({"in": ",".join([*odd, _series(2)])})
    assert set(_rates(described).values()) == {(None, None)}


def _sample(at_s: float, **entries: tuple[int, int]) -> OffsetSample:
    keys = {"a0": A0, "a1": A1, "b0": B0}
    return OffsetSample(
        at_s=at_s,
        offsets={keys[name]: offset for name, (offset, _) in entries.items()},
        sizes={keys[name]: size for name, (_, size) in entries.items()},
    )


def test_offsets_times_mean_record_size() -> None:
    before = _sample(0, a0=(10, 1000), a1=(10, 5000), b0=(10, 900))
    # Of a1 old segments were deleted, so that the records of the topic give the size; b0 is its own measure.
    after = _sample(10, a0=(20, 2000), a1=(40, 500), b0=(20, 900))
    rates = _rates(add_offset_rates(CLUSTER, before, after))
    assert rates == {A0: (100, None), A1: (300, None), B0: (45, None)}


def test_a_partition_created_anew_between_two_looks_has_no_rate() -> None:
    before = _sample(0, a0=(1000, 1000))
    after = _sample(10, a0=(5, 10), a1=(50, 100))
    assert _rates(add_offset_rates(CLUSTER, before, after))[A0] == (0, None)
    assert _rates(add_offset_rates(CLUSTER, before, after))[A1] == (0, None)


def test_two_looks_at_the_same_time_give_no_rates() -> None:
    sample = _sample(0, a0=(1, 1))
    assert add_offset_rates(CLUSTER, sample, sample) is CLUSTER
