"""The operator's bench for sweeps and histories: watches what must never happen, and knows when nothing is left to do.

The record of executions is in ConfigMaps, as in production: its calls are calls to Kubernetes.
"""

from __future__ import annotations

import zlib
from base64 import b64decode
from typing import TYPE_CHECKING, Any, NamedTuple

from plimsoll.kafka.engine.config_map_store import ConfigMapExecutionStore
from plimsoll.kafka.executor.record import decode_state
from plimsoll.kafka.settings import RebalanceEngine
from plimsoll.kafka.wire.names import AUTO_REBALANCING_FINALIZER
from plimsoll.solver.kernels import is_compiled
from plimsoll.solver.replicas.dealing_kernel import deal_compiled
from tests.faults import Crashed
from tests.kafka.controllers.operator_bench import OperatorBench, RecordingStore, read_rebalance_state
from tests.kafka.controllers.test_k11_k31_automatic_rebalancing import ADD, LIVE, REMOVE
from tests.objects.crds.kafka_definitions import NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.kafka.executor.record import ExecutionStore, RecordedState
    from plimsoll.kafka.reporting.cluster_reporter import ClusterResult
    from plimsoll.kube.client import Client
    from plimsoll.objects.api.kafka import Kafka

PASSES = 80
RECORD = f"/api/v1/namespaces/{NAMESPACE}/configmaps/c-execution"


class End(NamedTuple):
    """What is left of a story. Plans may differ: a new process asks again."""

    pods: list[str]
    ids: list[int]
    state: str
    lists: tuple[list[int], list[int]]
    rebalances: dict[str, str]
    conditions: dict[str, list[str]]
    filled: list[bool]


class SweptBench(OperatorBench):
    """`pools`: of the cluster, in the order of their ids."""

    pools: tuple[str, ...] = ("p",)

    def __init__(self, *, definitions: Iterable[dict[str, Any]] | None = None) -> None:
        super().__init__(definitions=definitions)
        if self.settings.engine is RebalanceEngine.PLIMSOLL and is_compiled():
            deal_compiled.get_compiled()  # each copy of the process would load the machine code again

    def open_store(self, client: Client, kafka: Kafka) -> ExecutionStore:
        return _ConfigMapRecord(ConfigMapExecutionStore(client, kafka, clock=self.run.clock), self)

    def step(self, times: int = 1) -> ClusterResult | None:
        result = None
        for _ in range(times):
            result = super().step()
            self.check()
        return result

    def run_rebalances(self) -> None:
        super().run_rebalances()
        self.check()

    def check(self) -> None:
        live = self.list_live_rebalances()
        assert len(live) <= 1, live

    def list_live_rebalances(self) -> list[str]:
        """Automatic ones. An object of a user may have the name of one."""
        ours = {
            name: rebalance
            for name, rebalance in self.rebalances.items()
            if name in (ADD, REMOVE) and AUTO_REBALANCING_FINALIZER in rebalance["metadata"].get("finalizers", ())
        }
        return [name for name, rebalance in ours.items() if read_rebalance_state(rebalance) in LIVE]

    def _end_deleted_pods(self) -> None:
        for name, pod in self.pods.items():
            if "deletionTimestamp" in pod["metadata"]:
                broker = int(name.rpartition("-")[2])
                assert self.count_replicas(broker) == 0, f"{name} goes while its broker holds replicas"
        super()._end_deleted_pods()

    def settle(self) -> None:
        """Reconcile until nothing is to be done, and the brokers move nothing."""
        before = ""
        for _ in range(PASSES):
            result = self.step()
            self.make_all_ready()
            self.run_rebalances()
            self.run.advance_by(5)
            is_waiting = result is None or result.problem is not None or result.retry_after_s is not None
            if is_waiting or self.list_live_rebalances():
                before = ""
                continue
            now = f"{self.status_of_kafka}{self.rebalances}{self.live}{self._starts_of_operator}"
            if now == before and not self.is_moving:
                return
            before = now

    def start_rebalance(self, mode: str) -> None:
        """Reconcile until the rebalance of a mode executes."""
        for _ in range(20):
            self.step()
            self.make_all_ready()
            self.run_rebalances()
            if self.list_rebalance_states().get(mode) == "Rebalancing":
                return

    @property
    def is_moving(self) -> bool:
        """Whether replicas move. Seen without a request, which could meet a fault."""
        return any(partition.is_reassigning for partition in self.brokers.catch_up().iterate_partitions())

    @property
    def ids(self) -> list[int]:
        return [node_id for pool in self.pools for node_id in self.pool_ids(pool)]

    def read_end(self, *, is_whole: bool) -> End:
        """`is_whole`: replicas are where they belong."""
        state = self.brokers.catch_up()
        assert not self.is_moving
        left = [
            (kind, name, key)
            for kind, name, values in state.settings.list_all()
            for key in values
            # Kafka takes settings of a broker only from that broker: what has left keeps its cordon until it returns.
            if "throttled" in key or ("cordoned" in key and int(name) in self.ids)
        ]
        assert left == []
        return End(
            pods=self.live,
            ids=self.ids,
            state=self.state or self.shipped.get("state", ""),
            lists=self.lists,
            rebalances=self.list_rebalance_states(),
            conditions=self.conditions,
            filled=[self.count_replicas(broker) >= 5 for broker in self.ids] if is_whole else [],
        )


class _ConfigMapRecord(RecordingStore):
    async def write_state(self, state: RecordedState) -> None:
        try:
            await super().write_state(state)
        except Crashed:
            if await self._is_written(state):
                self.remember(state)
            raise

    async def _is_written(self, state: RecordedState) -> bool:
        """Whether the last write of a process that has ended took effect."""
        found = await self._bench.ask_inside("GET", RECORD)
        if found.status != 200:
            return False
        written: Any = found.body["binaryData"]["state"]
        return decode_state(zlib.decompress(b64decode(written)), source=RECORD).execution_id == state.execution_id
