"""Capacities of brokers from Kafka and KafkaNodePool objects."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.kafka.model.description import BrokerCapacity
from plimsoll.kafka.wire.broker_capacities import BrokerCapacities, read_broker_capacities
from plimsoll.objects.api.kafka import Kafka, KafkaNodePool

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


def build_pool(
    name: str = "p", *, ids: tuple[int, ...] = (0, 1), roles: tuple[str, ...] = ("broker",), **spec: Any
) -> KafkaNodePool:
    return msgspec.convert(
        {"metadata": {"name": name}, "spec": {"roles": roles, **spec}, "status": {"nodeIds": ids}}, KafkaNodePool
    )


def read(capacity: Any = None, *pools: KafkaNodePool, **kafka: Any) -> BrokerCapacities:
    spec = {"kafka": kafka, "cruiseControl": {"brokerCapacity": capacity}}
    return read_broker_capacities(msgspec.convert({"spec": spec}, Kafka), pools)


@pytest.mark.parametrize(
    ("storage", "disk_mb"),
    [
        (None, None),
        ({"type": "ephemeral"}, None),
        ({"type": "ephemeral", "sizeLimit": "2Gi"}, 2048.0),
        ({"type": "persistent-claim", "size": "100Gi"}, 102_400.0),
        ({"type": "persistent-claim", "size": "1G"}, 1e9 / 2**20),
        (
            {"type": "jbod", "volumes": [{"id": 0, "type": "persistent-claim", "size": s} for s in ("1Gi", "512Mi")]},
            1536.0,
        ),
        ({"type": "jbod", "volumes": [{"id": 0, "size": "1Gi"}, {"id": 1, "type": "ephemeral"}]}, None),
    ],
)
def test_disks_are_the_volumes_of_the_pool(storage: Any, disk_mb: float | None):
    found = read(None, build_pool(storage=storage))
    assert found.brokers[0].disk_mb == disk_mb
    assert found.problems == ()


@pytest.mark.parametrize(
    ("capacity", "resources", "cores"),
    [
        (None, None, 1.0),
        (None, {"limits": {"cpu": "4"}}, 4.0),
        (None, {"requests": {"cpu": "1500m"}, "limits": {"cpu": "4"}}, 1.5),
        ({"cpu": "3"}, {"requests": {"cpu": "1500m"}}, 3.0),
        ({"cpu": "2500m", "overrides": [{"brokers": [1], "cpu": "9"}]}, None, 2.5),
        ({"cpu": "3", "overrides": [{"brokers": [0], "cpu": "1.25"}]}, {"requests": {"cpu": 8}}, 1.25),
    ],
)
def test_cores_are_an_override_the_common_value_the_requests_the_limits_or_one(
    capacity: Any, resources: Any, cores: float
):
    found = read(capacity, build_pool(resources=resources))
    assert found.brokers[0].num_cores == cores
    assert found.brokers[0].cpu_pct == 100.0
    assert found.problems == ()


def test_networks_are_an_override_or_the_common_value():
    capacity = {
        "inboundNetwork": "10240KiB/s",
        "overrides": [
            {"brokers": [1, 7], "inboundNetwork": "1MiB/s", "outboundNetwork": "1000KB/s"},
            {"brokers": [1], "inboundNetwork": "9MiB/s"},
        ],
    }
    found = read(capacity, build_pool())
    assert found.brokers[0] == BrokerCapacity(nw_in_kb_s=10_240.0)
    assert found.brokers[1] == BrokerCapacity(nw_in_kb_s=1024.0, nw_out_kb_s=1e6 / 1024)
    assert found.brokers[7] == found.brokers[1]
    assert found.problems == ()


def test_pools_have_their_own_and_controllers_none():
    small = build_pool("a", ids=(0,), storage={"type": "persistent-claim", "size": "1Gi"})
    large = build_pool("b", ids=(10, 11), storage={"type": "persistent-claim", "size": "2Gi"})
    controllers = build_pool("c", ids=(100,), roles=("controller",))
    found = read(None, small, large, controllers)
    assert {broker: capacity.disk_mb for broker, capacity in found.brokers.items()} == {
        -1: None,
        0: 1024.0,
        10: 2048.0,
        11: 2048.0,
    }


def test_a_cluster_without_pools_has_one_capacity_for_all():
    found = read(
        {"cpu": "2"}, storage={"type": "persistent-claim", "size": "1Gi"}, resources={"requests": {"cpu": "7"}}
    )
    assert found.brokers == {-1: BrokerCapacity(disk_mb=1024.0, num_cores=2.0)}


@pytest.mark.parametrize(
    ("capacity", "field"),
    [
        ([], "spec.cruiseControl.brokerCapacity"),
        ({"cpu": "two"}, "spec.cruiseControl.brokerCapacity.cpu"),
        ({"cpu": True}, "spec.cruiseControl.brokerCapacity.cpu"),
        ({"cpu": "0"}, "spec.cruiseControl.brokerCapacity.cpu"),
        ({"cpu": "9" * 12}, "spec.cruiseControl.brokerCapacity.cpu"),
        ({"inboundNetwork": "10 MB"}, "spec.cruiseControl.brokerCapacity.inboundNetwork"),
        ({"outboundNetwork": 5}, "spec.cruiseControl.brokerCapacity.outboundNetwork"),
        ({"overrides": {}}, "spec.cruiseControl.brokerCapacity.overrides"),
        ({"overrides": [{"cpu": "1"}]}, "spec.cruiseControl.brokerCapacity.overrides[0].brokers"),
        ({"overrides": [{"brokers": ["1"]}]}, "spec.cruiseControl.brokerCapacity.overrides[0].brokers[0]"),
        ({"overrides": [{"brokers": [-1]}]}, "spec.cruiseControl.brokerCapacity.overrides[0].brokers[0]"),
        ({"overrides": [{"brokers": [0], "cpu": "x"}]}, "spec.cruiseControl.brokerCapacity.overrides[0].cpu"),
    ],
)
def test_a_wrong_field_is_named_and_counts_as_not_set(capacity: Any, field: str):
    found = read(capacity, build_pool())
    (problem,) = found.problems
    assert (problem.code, problem.facts) == ("BrokerCapacityInvalid", {"field": field})
    assert problem.message.startswith(f"{field}: ")
    assert found.brokers[0] == BrokerCapacity()


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"storage": []}, "KafkaNodePool p: spec.storage"),
        ({"storage": {"type": "persistent-claim", "size": "big"}}, "KafkaNodePool p: spec.storage.size"),
        ({"storage": {"type": "persistent-claim", "size": "-1Gi"}}, "KafkaNodePool p: spec.storage.size"),
        ({"storage": {"type": "jbod", "volumes": {}}}, "KafkaNodePool p: spec.storage.volumes"),
        ({"storage": {"type": "jbod", "volumes": [{"size": []}]}}, "KafkaNodePool p: spec.storage.volumes[0].size"),
        ({"resources": {"requests": {"cpu": "many"}}}, "KafkaNodePool p: spec.resources.requests.cpu"),
    ],
)
def test_a_wrong_field_of_a_pool_is_named(spec: dict[str, Any], field: str):
    found = read(None, build_pool(**spec))
    (problem,) = found.problems
    assert problem.facts == {"field": field}
    assert found.brokers[0] == BrokerCapacity()


def test_overrides_are_bounded():
    found = read({"overrides": [{"brokers": [number]} for number in range(100_000)]}, build_pool())
    assert len(found.brokers) < 2_000
    assert len(found.problems) == 1


@given(capacity=JSON, storage=JSON, resources=JSON)
def test_nothing_that_is_written_raises(capacity: Any, storage: Any, resources: Any):
    for spec in (
        {"storage": storage},
        {"storage": {"type": "jbod", "volumes": storage}},
        {"storage": {"size": storage}},
    ):
        for written in (capacity, {"overrides": capacity}, {"overrides": [{"brokers": capacity}]}, {"cpu": capacity}):
            found = read(written, build_pool(resources=resources, **spec))
            assert 0 in found.brokers
