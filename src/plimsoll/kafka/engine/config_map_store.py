"""The record of executions in ConfigMaps: it survives the operator in a cluster without disks (docs/decisions/0014).

The state is in `CLUSTER-execution`. The plan is compressed and cut into parts, `CLUSTER-execution-plan-N`, because an
object has at most one MiB. The parts are written before the state that names them, and deleted after the state that no
longer does. All belong to the Kafka and are garbage with it.
"""

from __future__ import annotations

import zlib
from base64 import b64encode
from typing import TYPE_CHECKING, Any, Final

import msgspec
import structlog

from plimsoll.kafka.executor.errors import RecordUnusable
from plimsoll.kafka.executor.record import (
    ExecutionRecord,
    RecordedPlan,
    RecordedState,
    build_record,
    decode_plan,
    decode_state,
    encode_record,
)
from plimsoll.kafka.wire.names import CLUSTER_LABEL
from plimsoll.kube.errors import ApiCallFailed, Closed, NotFound
from plimsoll.objects.api.core import ConfigMap

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from plimsoll.core.clock import Clock
    from plimsoll.kube.client import Client
    from plimsoll.objects.api.kafka import Kafka

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

PART_BYTES: Final = 768 * 1024
MAX_PARTS: Final = 64
"""About two million movements."""
MAX_BYTES: Final = 1 << 30
"""The largest size of a plan after it is decompressed."""
_STATE: Final = "state"
_PLAN: Final = "plan"
_PARTS: Final = "planParts"
_RETRY_S: Final = (1.0, 2.0, 5.0, 10.0, 30.0)


class ConfigMapExecutionStore:
    """The record of one Kafka cluster.

    A state that cannot be written is written again until it is: an execution that goes on without its record could
    leave throttles that nothing remembers. While it waits, nothing new is sent to the brokers.
    """

    def __init__(self, client: Client, kafka: Kafka, *, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._namespace = kafka.metadata.namespace
        self._name = f"{kafka.metadata.name}-execution"
        self._metadata = _build_metadata(kafka)
        self._existing = 0
        """Parts of plans that may exist."""
        self._plan_parts = 0
        """Parts of the plan of the execution."""
        self._written: RecordedState | None = None
        self._ours: set[str] = set()
        """Names of ConfigMaps that were seen to be ours, or not to exist."""

    @property
    def _where(self) -> str:
        return f"ConfigMap {self._namespace}/{self._name}"

    async def read(self) -> ExecutionRecord | None:
        state = await self.read_state()
        if state is None:
            return None
        try:
            plan = await self._read_plan() if state.execution_id else None
        except ApiCallFailed as error:
            raise RecordUnusable(f"{self._where} cannot be read: {error}") from error
        return build_record(state, plan, source=self._where)

    async def read_state(self) -> RecordedState | None:
        """The state without the plan; None: there is no record."""
        where = self._where
        try:
            held = await self._get(self._name)
        except ApiCallFailed as error:
            raise RecordUnusable(f"{where} cannot be read: {error}") from error
        if held is None:
            return None
        state = decode_state(_decompress(held.binary_data.get(_STATE, b""), where), source=where)
        self._existing = self._plan_parts = _read_parts(held, where)
        return state

    async def _read_plan(self) -> RecordedPlan | None:
        pieces = []
        for number in range(self._plan_parts):
            held = await self._get(self._name_part(number))
            if held is None:
                return None
            pieces.append(held.binary_data.get(_PLAN, b""))
        where = f"ConfigMaps {self._namespace}/{self._name}-plan-0 to -{self._plan_parts - 1}"
        return decode_plan(_decompress(b"".join(pieces), where), source=where)

    async def write_plan(self, plan: RecordedPlan) -> None:
        packed = zlib.compress(encode_record(plan))
        pieces = [packed[begin : begin + PART_BYTES] for begin in range(0, len(packed), PART_BYTES)]
        if len(pieces) > MAX_PARTS:
            raise RecordUnusable(
                f"the plan has {len(plan.proposals)} movements, {len(packed)} bytes when compressed; "
                f"at most {MAX_PARTS * PART_BYTES} can be recorded: move fewer brokers at a time"
            )
        self._existing, self._plan_parts = max(self._existing, len(pieces)), len(pieces)
        try:
            for number, piece in enumerate(pieces):
                await self._put(self._name_part(number), {_PLAN: piece}, {})
            await self._delete_further(len(pieces))
        except ApiCallFailed as error:
            raise RecordUnusable(f"the plan cannot be recorded: {error}") from error

    async def _delete_further(self, number: int) -> None:
        """Parts of a plan that was written and never begun: the process ended between the two."""
        while number < MAX_PARTS and await self._delete(self._name_part(number)):
            number += 1

    async def write_state(self, state: RecordedState) -> None:
        # No object is kept for brokers that were removed lately: the node pools say which brokers there are.
        state = msgspec.structs.replace(state, removed_brokers=())
        if state == self._written:
            return
        self._written = None
        if state.is_empty:
            await self._retry_write(lambda: self._delete(self._name))
        else:
            content = {_STATE: zlib.compress(encode_record(state))}
            parts = self._plan_parts if state.execution_id else 0
            await self._retry_write(lambda: self._put(self._name, content, {_PARTS: str(parts)}))
        self._written = state
        while self._existing and not state.execution_id:
            await self._retry_write(lambda: self._delete(self._name_part(self._existing - 1)))
            self._existing -= 1

    async def _retry_write(self, write: Callable[[], Awaitable[object]]) -> None:
        """Write, and write again."""
        attempt = 0
        while True:
            try:
                await write()
            except Closed as error:
                raise RecordUnusable(f"ConfigMap {self._namespace}/{self._name} cannot be written: {error}") from error
            except ApiCallFailed as error:
                log.warning("record.not_written", namespace=self._namespace, name=self._name, problem=str(error))
                await self._clock.sleep(_RETRY_S[min(attempt, len(_RETRY_S) - 1)])
                attempt += 1
            else:
                return

    # ---- objects

    def _name_part(self, number: int) -> str:
        return f"{self._name}-plan-{number}"

    async def _get(self, name: str) -> ConfigMap | None:
        """The ConfigMap; None: there is none. Raises `RecordUnusable` if another program or a user made it."""
        try:
            found = await self._client.get(ConfigMap, name, namespace=self._namespace)
        except NotFound:
            self._ours.add(name)
            return None
        if any(found.metadata.labels.get(label) != value for label, value in self._metadata["labels"].items()):
            where = f"ConfigMap {self._namespace}/{name}"
            raise RecordUnusable(f"{where} is not ours, and the record of executions needs its name: rename it")
        self._ours.add(name)
        return found

    async def _put(self, name: str, binary: dict[str, bytes], data: dict[str, str]) -> None:
        if name not in self._ours:
            await self._get(name)
        content: dict[str, Any] = {
            "metadata": self._metadata,
            "binaryData": {key: b64encode(value).decode() for key, value in binary.items()},
            "data": data,
        }
        try:
            await self._client.merge_patch(ConfigMap, name, content, namespace=self._namespace)
        except NotFound:
            body = {**content, "metadata": {**self._metadata, "name": name, "namespace": self._namespace}}
            await self._client.create(ConfigMap, body, namespace=self._namespace)

    async def _delete(self, name: str) -> bool:
        """False: it did not exist."""
        if name not in self._ours and await self._get(name) is None:
            return False
        try:
            await self._client.delete(ConfigMap, name, namespace=self._namespace)
        except NotFound:
            return False
        return True


def _build_metadata(kafka: Kafka) -> dict[str, Any]:
    owner = {
        "apiVersion": kafka.api_version or "kafka.strimzi.io/v1",
        "kind": "Kafka",
        "name": kafka.metadata.name,
        "uid": kafka.metadata.uid,
        "controller": False,
        "blockOwnerDeletion": False,
    }
    labels = {CLUSTER_LABEL: kafka.metadata.name, "app.kubernetes.io/managed-by": "plimsoll"}
    return {"labels": labels, "ownerReferences": [owner]}


def _read_parts(held: ConfigMap, where: str) -> int:
    written = held.data.get(_PARTS, "0")
    if not written.isdecimal() or int(written) > MAX_PARTS:
        raise RecordUnusable(f"{where} is damaged: {_PARTS} is {written[:20]!r}")
    return int(written)


def _decompress(packed: bytes, where: str) -> bytes:
    unpacking = zlib.decompressobj()
    try:
        raw = unpacking.decompress(packed, MAX_BYTES)
    except zlib.error as error:
        raise RecordUnusable(f"{where} is damaged: {error}") from error
    if unpacking.unconsumed_tail or not unpacking.eof:
        raise RecordUnusable(f"{where} is damaged: it is cut off, or larger than {MAX_BYTES} bytes")
    return raw
