"""Dumps: equal bytes for equal clusters, and mistakes by the path of their field."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.core.errors import InvalidInput
from plimsoll.kafka.brokers import dump
from plimsoll.kafka.brokers.dump import parse_dump, read_dump, write_dump
from plimsoll.kafka.model.description import (
    BrokerDescription,
    ClusterDescription,
    LogDir,
    PartitionDescription,
    ReplicaDescription,
    TopicDescription,
)

CLUSTER = ClusterDescription(
    cluster_id="c",
    brokers=tuple(
        BrokerDescription(id=broker, rack=f"r{broker}", log_dirs=(LogDir(path="/d", total_bytes=10),))
        for broker in range(3)
    ),
    topics=tuple(
        TopicDescription(
            name=name,
            partitions=tuple(
                PartitionDescription(
                    partition=number,
                    replicas=(2, 0, 1),
                    leader=2,
                    isr=(0, 1, 2),
                    logs=tuple(ReplicaDescription(broker=broker, log_dir="/d", size_bytes=5) for broker in (0, 1, 2)),
                )
                for number in range(3)
            ),
        )
        for name in ("a", "b.c", "x" * 249)
    ),
)


def test_a_dump_reads_back() -> None:
    assert read_dump(write_dump(CLUSTER)) == CLUSTER


@pytest.mark.parametrize("indent", [-1, 0, 2])
def test_a_dump_as_it_was_written_is_read_in_one_pass(monkeypatch: pytest.MonkeyPatch, indent: int) -> None:
    """The strict reader makes an object per field, which takes ten times as long."""
    monkeypatch.setattr(dump, "read_documents", lambda *_arguments, **_options: pytest.fail("read twice"))
    assert parse_dump(msgspec.json.format(write_dump(CLUSTER), indent=indent)) == (CLUSTER, [])


@pytest.mark.parametrize("field", ['"clusterID":"c"', '"rack":"r1"', '"partition":1', '"replicas":[2,0,1]'])
def test_a_key_that_occurs_twice_with_one_value_is_refused(field: str) -> None:
    written = write_dump(CLUSTER).decode()
    assert f"{field}," in written
    with pytest.raises(InvalidInput, match="occurs twice"):
        parse_dump(written.replace(f"{field},", f"{field},{field},", 1).encode())


@pytest.mark.parametrize("place", ['"rack":"r1",', '"partition":1,'])
def test_a_field_that_is_not_known_is_named_in_a_dump_as_it_was_written(place: str) -> None:
    written = write_dump(CLUSTER).decode()
    description, unknown = parse_dump(written.replace(place, f'{place}"rak":"",', 1).encode())
    assert description == CLUSTER
    assert [path.rpartition(".")[2] for path in unknown] == ["rak"]


@given(st.randoms(use_true_random=False))
def test_the_order_of_answers_does_not_change_the_bytes(chance: Any) -> None:
    def shuffle(items: Any) -> Any:
        return tuple(chance.sample(items, len(items)))

    topics = [
        msgspec.structs.replace(
            topic,
            partitions=shuffle(
                [
                    msgspec.structs.replace(entry, isr=shuffle(entry.isr), logs=shuffle(entry.logs))
                    for entry in topic.partitions
                ]
            ),
        )
        for topic in CLUSTER.topics
    ]
    other = msgspec.structs.replace(CLUSTER, brokers=shuffle(CLUSTER.brokers), topics=shuffle(topics))
    assert write_dump(other) == write_dump(CLUSTER)


@pytest.mark.parametrize(
    ("change", "path"),
    [
        (lambda dump: dump.update(format="plimsoll.dev/kafka-dump/v9"), "format"),
        (lambda dump: dump.pop("format"), "format"),
        (lambda dump: dump["brokers"][1].update(id=-1), "brokers[1].id"),
        (lambda dump: dump["brokers"][1].update(id="1"), "brokers[1].id"),
        (lambda dump: dump["topics"][0].update(name="y" * 250), "topics[0].name"),
        (
            lambda dump: dump["topics"][0]["partitions"][2].update(replicas=[0, None]),
            "topics[0].partitions[2].replicas[1]",
        ),
        (lambda dump: dump["topics"][0]["partitions"][2].pop("replicas"), "topics[0].partitions[2]"),
        (lambda dump: dump["topics"][0]["partitions"][0]["logs"][0].update(sizeBytes=1e300), "topics[0].partitions[0]"),
    ],
)
def test_a_mistake_is_named_by_the_path_of_its_field(change: Any, path: str) -> None:
    dump = json.loads(write_dump(CLUSTER))
    change(dump)
    with pytest.raises(InvalidInput) as refused:
        read_dump(json.dumps(dump).encode())
    assert refused.value.path.startswith(path)


@pytest.mark.parametrize("data", [b"", b"[]", b"{", b"\xff", b"null", b'{"format": 3}', b"[" * 100_000])
def test_what_is_no_dump_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidInput):
        read_dump(data)
