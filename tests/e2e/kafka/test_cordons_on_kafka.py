"""Real brokers: cordons are found, set and removed, and certificates from memory are used."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec
import pytest

from plimsoll.kafka.brokers.connection_settings import read_connection_settings
from plimsoll.kafka.brokers.cordons import change_cordons
from plimsoll.kafka.brokers.kafka_python import KafkaPythonAdmin
from plimsoll.kafka.brokers.replica_placement import read_replica_placement
from plimsoll.kube.secret_tls import build_tls_context
from tests.e2e.kafka.test_connection_to_kafka import write_properties

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.kafka.real_kafka import RealKafka

pytestmark = pytest.mark.asyncio


async def wait_for_cordons(admin: KafkaPythonAdmin, expected: set[int]) -> None:
    found: set[int] = set()
    for _ in range(100):
        logs = {broker: (await admin.describe_log_dirs(broker)).log_dirs for broker in range(3)}
        found = {broker for broker, log_dirs in logs.items() if all(log_dir.is_cordoned for log_dir in log_dirs)}
        if found == expected:
            return
        await asyncio.sleep(0.1)
    raise AssertionError(f"{found} are cordoned, not {expected}")


async def test_brokers_are_cordoned_and_uncordoned(kafka: RealKafka, tmp_path: Path) -> None:
    settings = read_connection_settings(kafka.secure_bootstrap, write_properties(kafka, tmp_path))
    with open(settings.ssl_cafile, "rb") as file:  # noqa: ASYNC230, PTH123 - a small file of the test
        context = build_tls_context({"ca.crt": file.read()}, "the authority of the test")
    from_memory = msgspec.structs.replace(settings, ssl_cafile="", ssl_context=context)
    async with KafkaPythonAdmin(from_memory) as admin:
        kafka.create_topic("a", {0: [0, 1]})
        placement = await read_replica_placement(admin)
        assert not placement.unseen
        assert {0, 1} <= set(placement.partitions)
        assert await change_cordons(admin, leaving=(2,), staying=(0, 1)) == ()
        try:
            await wait_for_cordons(admin, {2})
            assert await change_cordons(admin, leaving=(2,), staying=(0, 1)) == ()
        finally:
            assert await change_cordons(admin, leaving=(), staying=(2,)) == ()
        await wait_for_cordons(admin, set())
