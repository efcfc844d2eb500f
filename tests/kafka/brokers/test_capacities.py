"""Capacities from a file in Cruise Control's format."""

from __future__ import annotations

import json

import pytest

from plimsoll.core.errors import InvalidInput
from plimsoll.kafka.brokers.capacities import apply_capacities, parse_capacities
from plimsoll.kafka.model.description import BrokerDescription, ClusterDescription


def make_file(*entries: object) -> bytes:
    return json.dumps({"brokerCapacities": list(entries)}).encode()


def test_a_broker_has_its_own_capacity_and_the_others_the_default():
    capacities = parse_capacities(
        make_file(
            {"brokerId": "-1", "capacity": {"DISK": "100000", "CPU": "100", "NW_IN": "10000", "NW_OUT": "10000"}},
            {"brokerId": "0", "capacity": {"DISK": {"/a": "500", "/b": "700"}, "CPU": {"num.cores": "8"}}},
        ),
        name="capacity.json",
    )
    cluster = ClusterDescription(brokers=(BrokerDescription(id=0), BrokerDescription(id=1)))
    own, default = (broker.capacity for broker in apply_capacities(cluster, capacities).brokers)
    assert (own.disk_mb, own.num_cores, own.nw_in_kb_s, own.is_estimated) == (1200.0, 8.0, None, False)
    assert (default.disk_mb, default.nw_out_kb_s, default.is_estimated) == (100_000.0, 10_000.0, True)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        (b"{", "capacity.json"),
        (b"[]", "brokerCapacities"),
        (make_file({"brokerId": "0"}), "[0]"),
        (make_file({"brokerId": "x", "capacity": {}}), "[0].brokerId"),
        (make_file({"brokerId": "0", "capacity": {"DISK": "-5"}}), "[0].capacity.DISK"),
        (make_file({"brokerId": "0", "capacity": {"DISK": "1e400"}}), "[0].capacity.DISK"),
        (make_file({"brokerId": "0", "capacity": {"DISK": {}}}), "[0].capacity.DISK"),
        (make_file({"brokerId": "0", "capacity": {"DISC": "5"}}), "[0].capacity.DISC"),
        (make_file(*[{"brokerId": "0", "capacity": {}}] * 2), "[1].brokerId"),
    ],
)
def test_a_wrong_file_is_refused_with_the_path_of_the_field(text: bytes, path: str):
    with pytest.raises(InvalidInput) as raised:
        parse_capacities(text, name="capacity.json")
    assert path in raised.value.path
