"""The adapter under test, connected to a real cluster, and the changes that tests ask of it."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, TypeVar

from plimsoll.kafka.brokers.connection_settings import parse_connection_settings
from plimsoll.kafka.brokers.kafka_python import KafkaPythonAdmin
from plimsoll.kafka.brokers.ports import ConfigChange, ConfigOperation, ConfigResource
from tests.e2e.timeouts import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.e2e.kafka.real_kafka import RealKafka

T = TypeVar("T")

LEADER_RATE = "leader.replication.throttled.rate"
FOLLOWER_RATE = "follower.replication.throttled.rate"
LEADER_REPLICAS = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS = "follower.replication.throttled.replicas"


def connect_admin(kafka: RealKafka, *, request_timeout_s: float = 20.0) -> KafkaPythonAdmin:
    properties = {"request.timeout.ms": str(int(request_timeout_s * 1000))}
    return KafkaPythonAdmin(parse_connection_settings(kafka.bootstrap, properties))


def change_topic(topic: str, key: str, operation: ConfigOperation, value: str = "") -> ConfigChange:
    return ConfigChange(resource=ConfigResource("topic", topic), key=key, operation=operation, value=value)


def change_broker(broker: int, key: str, operation: ConfigOperation, value: str = "") -> ConfigChange:
    return ConfigChange(resource=ConfigResource("broker", str(broker)), key=key, operation=operation, value=value)


async def hold_back(admin: KafkaPythonAdmin, topic: str, *brokers: int) -> None:
    """Throttle a topic to almost nothing, so that its moves stay under way."""
    changes = [change_topic(topic, key, ConfigOperation.SET, "*") for key in (LEADER_REPLICAS, FOLLOWER_REPLICAS)]
    for broker in brokers:
        changes += [change_broker(broker, key, ConfigOperation.SET, "1") for key in (LEADER_RATE, FOLLOWER_RATE)]
    answer = await admin.alter_configs(changes)
    assert set(answer.values()) == {None}, answer


async def read_until(read: Callable[[], Awaitable[T]], expected: T) -> None:
    """Read until the answer is the expected one: brokers follow the controller within moments."""
    until = time.monotonic() + PATIENCE_S
    while (found := await read()) != expected:
        assert time.monotonic() < until, found
        await asyncio.sleep(0.02)
