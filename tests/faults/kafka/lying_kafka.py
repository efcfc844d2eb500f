"""A Kafka cluster whose operator reads false answers: of the API server, of the brokers and of Cruise Control.

A cell is a scenario, a read and a lie. The world is true until the cluster has settled; then the read lies for some
minutes while the operator reconciles. The pod-set controller reads through the same faults. `wrongs` are judged by the
true state at that moment: the deletion of a broker's pod that is wanted or holds replicas, a removal of a wanted broker
at Cruise Control, an unregistration of a broker that runs or holds replicas, and any deletion or unregistration by a
process that lost its lease.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from msgspec.structs import replace

from plimsoll.core.errors import PlimsollError
from plimsoll.kafka.brokers.ports import ClusterNodes, KafkaUnavailable
from plimsoll.web.client import RequestFailed, Response
from tests.faults.faulty_transport import FaultyTransport, Read, TransportFaults
from tests.faults.lies import METRICS_LIES, STATUS_CODES, Lie, change_document, change_items
from tests.kafka.controllers.operator_bench import OperatorBench
from tests.nodes.autoscaler.faulty_clusters import AdjustableClock

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from plimsoll.kafka.brokers.ports import BrokerLogs, KafkaAdmin, KafkaError, Reassignment
    from plimsoll.kafka.model.description import TopicDescription, TopicPartition
    from plimsoll.kube.transport import Request as Call
    from plimsoll.kube.transport import Response as Reply
    from plimsoll.kube.transport import Transport
    from plimsoll.web.client import HttpClient, Request

T = TypeVar("T")

LEAVING = 3
"""The broker that joined last, and leaves in some scenarios."""
STEPS, STEP_S, STALL_S = 6, 20.0, 30.0
A_DAY = timedelta(days=1)
SCENARIOS = ("steady", "an empty broker", "a broker leaves")
FAULTS = tuple(lie for lie in Lie if lie not in METRICS_LIES)
READS = (
    *(Read("list", kind) for kind in ("kafkas", "kafkanodepools", "kafkarebalances", "strimzipodsets", "pods")),
    Read("list", "nodes"),
    *(
        Read("get", kind)
        for kind in ("kafkas", "kafkanodepools", "kafkarebalances", "strimzipodsets", "pods", "configmaps")
    ),
    *(Read("watch", kind) for kind in ("kafkas", "kafkanodepools", "strimzipodsets", "pods", "nodes")),
    *(Read("brokers", call) for call in ("nodes", "topics", "log_dirs", "reassignments")),
    *(Read("engine", endpoint) for endpoint in ("state", "user_tasks", "load", "add_broker", "remove_broker")),
)


class Cell(NamedTuple):
    """One run."""

    scenario: str
    read: Read
    lie: Lie

    def __str__(self) -> str:
        return f"{self.scenario}: {self.read}: {self.lie}"


class Verdict(NamedTuple):
    """What became of a run. `struck` counts falsified answers; `unlisted` are reads that the grid does not have."""

    wrongs: tuple[str, ...]
    struck: int
    unlisted: frozenset[Read]


def list_cells() -> Iterator[Cell]:
    return (Cell(scenario, read, lie) for scenario in SCENARIOS for read in READS for lie in FAULTS)


class LyingKafka(OperatorBench):
    """Four brokers of a pool that had three at first: an old answer lacks one."""

    def __init__(self, cell: Cell) -> None:
        super().__init__()
        self.cell = cell
        self.faults = TransportFaults(self.run.clock)
        self.clock = AdjustableClock(self.run.clock)
        self.wrongs: list[str] = []
        self.is_leaving = False
        self.recorded: dict[str, Any] = {}
        self._through = self._audit_pods

    def get_operator_clock(self) -> AdjustableClock:
        return self.clock

    def wrap(self, port: Any, kind: str) -> Any:
        match kind:
            case "kubernetes":
                return FaultyTransport(port, self.faults)
            case "brokers":
                return FalseBrokers(port, self)
            case "engine":
                return FalseCruiseControl(port, self)
        return port

    def _audit_pods(self, port: Any) -> PodDeletionLog:
        return PodDeletionLog(FaultyTransport(port, self.faults), self)

    # ---- the story

    def settle(self) -> None:
        is_empty = self.cell.scenario == "an empty broker"
        self.make_cluster(modes=None if is_empty else [{"mode": "add-brokers"}, {"mode": "remove-brokers"}])
        self.brokers.create_topic("payments", [[0, 1, 2], [2, 1, 0]])
        self.faults.record_anew()
        self.recorded.clear()
        self.step(2)
        self.run_rebalances()
        self.scale(LEAVING + 1)
        self.step()
        self.make_ready(LEAVING)
        if is_empty:
            self.step(3)
        else:
            self.run_to_the_end()
        self.is_leaving = self.cell.scenario == "a broker leaves"
        if self.is_leaving:
            self.scale(LEAVING)
            self.step()
            self.run_rebalances()

    def live_through_the_lie(self) -> None:
        match self.cell.lie:
            case Lie.CLOCK_AHEAD:
                self.clock.ahead += A_DAY
            case Lie.CLOCK_BEHIND:
                self.clock.ahead -= A_DAY
            case Lie.LEASE_STOLEN:
                self.lease.steal()
        is_about_answers = self.cell.lie not in {Lie.CLOCK_AHEAD, Lie.CLOCK_BEHIND, Lie.LEASE_STOLEN}
        self.faults.start(self.cell.read, self.cell.lie if is_about_answers else Lie.SERVER_ERROR)
        sent = len(self.sent)
        for _ in range(STEPS):
            self.step()
            try:
                self.run_rebalances()
            except PlimsollError:
                continue  # the controller would try again
            finally:
                self.run.advance_by(STEP_S)
        if not self.is_leaving:
            self.wrongs += [call for call in self.sent[sent:] if call.startswith("remove_broker") and "false" in call]

    # ---- the truth

    def judge_deletion(self, name: str) -> None:
        broker = int(name.rpartition("-")[2])
        if self.lease.is_stolen:
            self.wrongs.append(f"{name} was deleted without the lease")
        elif broker != LEAVING or not self.is_leaving:
            self.wrongs.append(f"{name} was deleted and is wanted")
        elif self.count_replicas(broker):
            self.wrongs.append(f"{name} was deleted with {self.count_replicas(broker)} replicas")

    def judge_unregistration(self, broker: int) -> None:
        if self.lease.is_stolen:
            self.wrongs.append(f"broker {broker} was unregistered without the lease")
        elif self.brokers.catch_up().brokers[broker].is_running:
            self.wrongs.append(f"broker {broker} was unregistered while it ran")
        elif self.count_replicas(broker):
            self.wrongs.append(f"broker {broker} was unregistered with replicas")


class PodDeletionLog:
    """Judges the pods that a transport deletes."""

    def __init__(self, transport: Transport, world: LyingKafka) -> None:
        self._transport = transport
        self._world = world

    async def send(self, call: Call) -> Reply:
        *_, kind, name = call.path.split("/")
        if call.method == "DELETE" and kind == "pods":
            self._world.judge_deletion(name)
        return await self._transport.send(call)

    async def aclose(self) -> None:
        await self._transport.aclose()


class FalseBrokers:
    """A `KafkaAdmin` whose descriptions lie. What it is asked to write is passed on, and unregistrations are judged."""

    def __init__(self, admin: KafkaAdmin, world: LyingKafka) -> None:
        self._admin = admin
        self._world = world

    def __getattr__(self, name: str) -> Any:
        return getattr(self._admin, name)

    async def describe_nodes(self) -> ClusterNodes:
        nodes = await self._admin.describe_nodes()
        return replace(nodes, brokers=tuple(await self._falsify("nodes", nodes.brokers)))

    async def describe_topics(self, names: Any = None, *, with_min_isr: bool = False) -> tuple[TopicDescription, ...]:
        described = await self._admin.describe_topics(names, with_min_isr=with_min_isr)
        topics = await self._falsify("topics", described)
        if topics and self._world.faults.lie_about("brokers", "topics") is Lie.UNDECODABLE:
            topics[-1] = replace(topics[-1], partitions=(), problem="INVALID_REQUEST")
        return tuple(topics)

    async def describe_log_dirs(self, broker: int) -> BrokerLogs:
        logs = await self._admin.describe_log_dirs(broker)
        return replace(logs, replicas=tuple(await self._falsify("log_dirs", logs.replicas, key=str(broker))))

    async def list_reassignments(self) -> Mapping[TopicPartition, Reassignment]:
        return dict(await self._falsify("reassignments", [*(await self._admin.list_reassignments()).items()]))

    async def unregister_broker(self, broker: int) -> KafkaError | None:
        self._world.judge_unregistration(broker)
        return await self._admin.unregister_broker(broker)

    async def _falsify(self, call: str, items: Sequence[T], *, key: str = "") -> list[T]:
        faults = self._world.faults
        lie = faults.lie_about("brokers", call)
        if lie is None:
            self._world.recorded.setdefault(call + key, [*items])
            return [*items]
        faults.struck += 1
        if lie in STATUS_CODES or lie is Lie.TRUNCATED:
            raise KafkaUnavailable(f"{call}: {lie}")
        if lie is Lie.STALLED:
            await asyncio.sleep(STALL_S)
            raise KafkaUnavailable(f"{call}: no answer")
        if lie is Lie.STALE:
            recorded: list[T] = self._world.recorded.get(call + key, [*items])
            return recorded
        return change_items(lie, items)


class FalseCruiseControl:
    """A Cruise Control whose answers lie."""

    def __init__(self, web: HttpClient, world: LyingKafka) -> None:
        self._web = web
        self._world = world

    async def send(self, request: Request) -> Response | RequestFailed:
        answer = await self._web.send(request)
        endpoint = request.url.partition("?")[0].rpartition("/")[2]
        faults = self._world.faults
        lie = faults.lie_about("engine", endpoint)
        if isinstance(answer, RequestFailed):
            return answer
        if lie is None:
            self._world.recorded.setdefault(endpoint, answer)
            return answer
        faults.struck += 1
        if lie in STATUS_CODES:
            return Response(status=STATUS_CODES[lie], body=b'"busy"')
        if lie is Lie.STALLED:
            await asyncio.sleep(STALL_S)
            return RequestFailed(problem=f"no answer from {endpoint}")
        if lie is Lie.STALE:
            recorded: Response = self._world.recorded.get(endpoint, answer)
            return recorded
        changed = change_document(lie, answer.body)
        return Response(status=404, body=b'"not found"') if changed is None else replace(answer, body=changed)


def run_cell(cell: Cell) -> Verdict:
    with LyingKafka(cell) as world:
        world.settle()
        world.live_through_the_lie()
        world.faults.stop()
        return Verdict(tuple(world.wrongs), world.faults.struck, frozenset(world.faults.seen - {*READS}))
