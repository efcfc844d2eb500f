"""A `KafkaAdmin` for brokers that do not know which process leads: it asks the guard before each change.

An execution goes on in the background of a process. After the loss of the lease another process has resumed it, so
nothing more may be sent. Neither that nor credentials that the brokers refuse ends an execution: both are as if no
broker answered. The credentials are read again, because they are rotated.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, TypeVar

from plimsoll.kafka.brokers.ports import CREDENTIALS_REFUSED, KafkaNotSent, KafkaRefused, KafkaUnavailable
from plimsoll.kube.errors import ApiCallFailed, NotAllowed

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence

    from plimsoll.kafka.brokers.ports import (
        BrokerLogs,
        ClusterNodes,
        ConfigChange,
        ConfigEntry,
        ConfigResource,
        KafkaAdmin,
        KafkaError,
        Reassignment,
        ReplicaLogDir,
    )
    from plimsoll.kafka.model.description import TopicDescription, TopicPartition
    from plimsoll.kube.transport import Guard

T = TypeVar("T")

WRITE_TIMEOUT_S: Final = 30.0
"""The longest time that a write is waited for. A shorter rest of the lease is the limit."""


class GuardedKafkaAdmin:
    """The brokers of one cluster. `guard` None: this process need not lead. `on_failure` is called after a failure."""

    def __init__(self, admin: KafkaAdmin, guard: Guard | None, *, on_failure: Callable[[], None]) -> None:
        self._admin = admin
        self._guard = guard
        self._on_failure = on_failure

    # ---- reads

    async def describe_nodes(self) -> ClusterNodes:
        return await self._read(self._admin.describe_nodes())

    async def describe_topics(
        self, names: Collection[str] | None = None, *, with_min_isr: bool = False
    ) -> tuple[TopicDescription, ...]:
        return await self._read(self._admin.describe_topics(names, with_min_isr=with_min_isr))

    async def describe_log_dirs(self, broker: int) -> BrokerLogs:
        return await self._read(self._admin.describe_log_dirs(broker))

    async def list_reassignments(self) -> Mapping[TopicPartition, Reassignment]:
        return await self._read(self._admin.list_reassignments())

    async def describe_configs(
        self, resources: Collection[ConfigResource], keys: Collection[str]
    ) -> Mapping[ConfigResource, Mapping[str, ConfigEntry] | KafkaError]:
        return await self._read(self._admin.describe_configs(resources, keys))

    async def read_end_offsets(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, int]:
        return await self._read(self._admin.read_end_offsets(partitions))

    # ---- writes

    async def alter_reassignments(
        self, targets: Mapping[TopicPartition, tuple[int, ...] | None]
    ) -> Mapping[TopicPartition, KafkaError | None]:
        return await self._write(lambda: self._admin.alter_reassignments(targets))

    async def elect_preferred_leaders(
        self, partitions: Collection[TopicPartition]
    ) -> Mapping[TopicPartition, KafkaError | None]:
        return await self._write(lambda: self._admin.elect_preferred_leaders(partitions))

    async def alter_configs(self, changes: Sequence[ConfigChange]) -> Mapping[ConfigResource, KafkaError | None]:
        return await self._write(lambda: self._admin.alter_configs(changes))

    async def alter_replica_log_dirs(
        self, moves: Collection[ReplicaLogDir]
    ) -> Mapping[ReplicaLogDir, KafkaError | None]:
        return await self._write(lambda: self._admin.alter_replica_log_dirs(moves))

    async def unregister_broker(self, broker: int) -> KafkaError | None:
        await self._confirm_guard()
        return await self._write(lambda: self._admin.unregister_broker(broker))

    # ---- parts

    async def _confirm_guard(self) -> None:
        """Before a broker is removed: make sure that no other process leads by now."""
        try:
            if self._guard is not None:
                await self._guard.confirm()
        except ApiCallFailed as error:
            raise KafkaNotSent(f"nothing is sent to the brokers: {error}") from error

    async def _write(self, send: Callable[[], Awaitable[T]]) -> T:
        if self._guard is None:
            return await self._read(send())
        try:
            # Nothing may be awaited between this answer and the send.
            limit_s = self._guard.limit_duration_s(WRITE_TIMEOUT_S)
        except NotAllowed as error:
            raise KafkaNotSent(f"nothing is sent to the brokers: {error}") from error
        try:
            async with asyncio.timeout(limit_s):
                return await self._read(send())
        except TimeoutError:
            raise KafkaUnavailable(f"the brokers did not answer within {limit_s:.0f} s") from None

    async def _read(self, answer: Awaitable[T]) -> T:
        try:
            return await answer
        except KafkaUnavailable:
            self._on_failure()
            raise
        except KafkaRefused as error:
            self._on_failure()
            if error.code in CREDENTIALS_REFUSED:
                raise KafkaUnavailable(f"the brokers refuse the credentials, which are read again: {error}") from error
            raise
