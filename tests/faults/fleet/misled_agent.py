"""An agent that reads false answers of its control plane and of its API server.

A cell is a scenario, a read and a lie. Two instances run, and room is reserved for a third. Then the read lies for some
polls. `wrongs` are judged by the true state after every poll: an instance that goes, or loses brokers, although nothing
deleted it or made it smaller, and a reserved one that goes before three lists in a row lacked it.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlsplit

from msgspec.structs import replace

from plimsoll.fleet.agent.planning.intake import LISTS_IN_A_ROW
from plimsoll.web.client import FailureKind, RequestFailed, Response
from tests.faults.faulty_transport import FaultyTransport, Read, TransportFaults
from tests.faults.lies import METRICS_LIES, STATUS_CODES, Lie, change_document
from tests.fleet.agent.agent_world import AgentWorld
from tests.fleet.agent.control_planes import PlayedControlPlane, build_item, build_reserved_item
from tests.nodes.autoscaler.faulty_clusters import AdjustableClock

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plimsoll.web.client import HttpClient, Request

LIE_POLLS: Final = 8
A_DAY: Final = timedelta(days=1)
SCENARIOS: Final = ("running", "one is deleted", "one grows")
FAULTS: Final = tuple(lie for lie in Lie if lie not in METRICS_LIES and lie is not Lie.LEASE_STOLEN)
"""Agents hold no lease: several may run."""
_KINDS: Final = ("managedkafkas", "namespaces", "kafkas", "kafkanodepools", "strimzipodsets", "deployments")
_LIVE_KINDS: Final = (
    "namespaces",
    "configmaps",
    "managedkafkas",
    "kafkas",
    "kafkanodepools",
    "strimzipodsets",
    "deployments",
)
"""Kinds of objects that are read one by one: always, or when a write was refused."""
CONTROL_PLANE_READS: Final = tuple(Read("control plane", document) for document in ("cluster", "kafkas", "token"))
KAFKA_LIST: Final = Read("control plane", "kafkas")
READS: Final = (
    *CONTROL_PLANE_READS,
    *(Read("list", kind) for kind in _KINDS),
    *(Read("watch", kind) for kind in _KINDS),
    *(Read("get", kind) for kind in _LIVE_KINDS),
)
_GONE: Final = "kafka-b"
_RESERVED: Final = "reserved-kafka-standard-1"


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


class MisledAgent(AgentWorld):
    """`with MisledAgent(cell) as world:`, then `prepare`, `live_through_the_lie`, and `judge_the_end`."""

    def __init__(self, cell: Cell) -> None:
        super().__init__()
        self.cell = cell
        self.faults = TransportFaults(self.run.clock)
        self.clock = AdjustableClock(self.run.clock)
        self.wrongs: dict[str, None] = {}
        self.recorded: dict[str, Response] = {}
        self._kafkas: dict[str, str] = {}
        self._replicas: dict[str, dict[str, int]] = {}

    # ---- the story

    def prepare(self) -> None:
        """The first answers lack the second instance."""
        self.control_plane.max_nodes = {"standard": 60}
        first, second, reserved = build_item("a"), build_item("b", units=2), build_reserved_item(1)
        self.list_items(first).start_agent(through=self._falsify, clock=self.clock)
        self.pass_polls().operate()
        self.list_items(first, second, reserved).pass_polls(2).operate()
        self.pass_polls()
        self._kafkas = self._list_uids()
        self._replicas = {namespace: self.count_replicas(namespace) for namespace in self._kafkas}
        assert len(self._kafkas) == 2, self._kafkas
        assert _RESERVED in self._list_remaining()

    def live_through_the_lie(self) -> None:
        self._begin_to_lie()
        units = 4 if self.cell.scenario == "one grows" else 1
        second = build_item("b", units=2, deleted=self.cell.scenario == "one is deleted")
        self.list_items(build_item("a", units=units), second, build_reserved_item(1))
        for number in range(1, LIE_POLLS + 1):
            self.pass_polls().operate()
            self._judge(lacked_long=number >= LISTS_IN_A_ROW and self.cell.read == KAFKA_LIST)
        self.faults.stop()

    def judge_the_end(self) -> None:
        """The answers are true again."""
        self.pass_polls(12).operate().pass_polls(2)
        self._judge()
        # A change that a watch did not deliver, or not readably, is seen with the next one.
        if self.cell.read.verb == "watch" and self.cell.lie in {Lie.HALF, Lie.OTHER_HALF, Lie.UNDECODABLE}:
            return
        if self.cell.scenario == "one is deleted" and _GONE in self._list_remaining():
            self.wrongs[f"{_GONE} was deleted, and stays"] = None
        if self.cell.scenario == "one grows" and self.count_replicas("kafka-a") == self._replicas["kafka-a"]:
            self.wrongs["kafka-a does not grow"] = None

    # ---- parts

    def _falsify(self, port: Any) -> Any:
        if isinstance(port, PlayedControlPlane):
            return FalseControlPlane(port, self)
        return FaultyTransport(port, self.faults)

    def _begin_to_lie(self) -> None:
        match self.cell.lie:
            case Lie.CLOCK_AHEAD:
                self.clock.ahead += A_DAY
            case Lie.CLOCK_BEHIND:
                self.clock.ahead -= A_DAY
        is_about_time = self.cell.lie in {Lie.CLOCK_AHEAD, Lie.CLOCK_BEHIND}
        self.faults.start(self.cell.read, Lie.SERVER_ERROR if is_about_time else self.cell.lie)

    def _judge(self, *, lacked_long: bool = False) -> None:
        kafkas, remaining = self._list_uids(), self._list_remaining()
        for namespace, uid in self._kafkas.items():
            if namespace == _GONE and self.cell.scenario == "one is deleted":
                continue
            if kafkas.get(namespace) != uid or namespace not in remaining:
                self.wrongs[f"{namespace} was removed"] = None
                continue
            held = self.count_replicas(namespace)
            for pool, replicas in self._replicas[namespace].items():
                if held.get(pool, 0) < replicas:
                    self.wrongs[f"pool {pool} of {namespace} fell from {replicas} to {held.get(pool, 0)}"] = None
        if _RESERVED not in remaining and not lacked_long:
            self.wrongs["the reserved instance was removed"] = None

    def _list_uids(self) -> dict[str, str]:
        return {kafka["metadata"]["namespace"]: kafka["metadata"]["uid"] for kafka in self.list_kafkas()}

    def _list_remaining(self) -> set[str]:
        """The agent's namespaces that are not being deleted."""
        found = [item["metadata"] for item in self.list_all("/api/v1/namespaces", labels="bf2.org/managedkafka-id")]
        return {metadata["name"] for metadata in found if "deletionTimestamp" not in metadata}


class FalseControlPlane:
    """A control plane whose documents lie. Reports pass."""

    def __init__(self, web: HttpClient, world: MisledAgent) -> None:
        self._web = web
        self._world = world

    async def send(self, request: Request) -> Response | RequestFailed:
        answer = await self._web.send(request)
        if request.method == "PUT" or isinstance(answer, RequestFailed):
            return answer
        read, faults = find_document(request), self._world.faults
        faults.seen.add(read)
        lie = faults.lie_about(*read)
        if lie is None:
            self._world.recorded.setdefault(request.url, answer)
            return answer
        faults.struck += 1
        if lie in STATUS_CODES:
            return Response(status=STATUS_CODES[lie], body=b'{"kind": "Error"}')
        if lie is Lie.STALLED:
            await self._world.run.clock.sleep(min(request.timeout_s, 60.0))
            return RequestFailed(problem="no answer in time", kind=FailureKind.TIMED_OUT)
        if lie is Lie.STALE:
            return self._world.recorded.get(request.url, answer)
        changed = change_document(lie, answer.body)
        return Response(status=404, body=b'{"kind": "Error"}') if changed is None else replace(answer, body=changed)


def find_document(request: Request) -> Read:
    path = urlsplit(request.url).path
    if "/agent-clusters/" not in path:
        return Read("control plane", "token")
    return Read("control plane", "kafkas" if path.endswith("/kafkas") else "cluster")


def run_cell(cell: Cell) -> Verdict:
    with MisledAgent(cell) as world:
        world.prepare()
        world.live_through_the_lie()
        struck = world.faults.struck
        world.judge_the_end()
        return Verdict((*world.wrongs,), struck, frozenset(world.faults.seen - {*READS}))
