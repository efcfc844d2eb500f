"""A fleet of clusters whose workers read false answers of their provider: OCM, Cluster API, or a cluster's owner.

A cell is a provider, a scenario, a read (or the answer to a change) and a lie. The world is true until the clusters
have settled; then the answers lie for some minutes while the workers run. `wrongs` are judged by the true state: a
deletion of a cluster that is in use, needed or just made, or by a process that lost its leases; a pool that goes; and
at the end a row that is lost or failed, a cluster without a row, and a second cluster for one need.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import replace

from plimsoll.fleet.model.statuses import ClusterStatus, KafkaStatus
from plimsoll.fleet.model.workers import Worker
from plimsoll.local.ocm.documents import build_error
from plimsoll.web.client import FailureKind, RequestFailed, Response
from tests.faults.faulty_transport import FaultyTransport, Read, TransportFaults
from tests.faults.lies import METRICS_LIES, STATUS_CODES, Lie, change_document
from tests.fleet.workers.cluster_lives import ROW_A, ROW_B, TICK_S, UNITS, WORKERS, WORLDS, Lives, OcmWorld
from tests.nodes.autoscaler.faulty_clusters import AdjustableClock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from plimsoll.fleet.model.clusters import Cluster
    from plimsoll.kube.transport import Request as Call
    from plimsoll.kube.transport import Response as Reply
    from plimsoll.kube.transport import Transport
    from plimsoll.web.client import HttpClient, Request
    from tests.fleet.workers.cluster_lives import ProviderWorld

LIE_TICKS: Final = 8
THIEF: Final = "thief"
A_DAY: Final = timedelta(days=1)
_WANTED: Final = {
    "in use": (ROW_A, ROW_B),
    "needed": (ROW_A, ROW_B),
    "leaving": (ROW_A,),
    "being made": (),
}
SCENARIOS: Final = (*_WANTED,)
"""Of two clusters both have Kafkas, one is full, or one was left by its Kafkas; or the first cluster is being made."""
FAULTS: Final = tuple(lie for lie in Lie if lie not in METRICS_LIES)
_DATA_PLANE_READS: Final = (
    *(Read("get", kind) for kind in ("namespaces", "deployments")),
    Read("list", "nodes"),
)
READS: Final = {
    "ocm": (
        *(Read("list", part) for part in ("clusters", "machine_pools", "ingresses", "addons")),
        *(Read("get", part) for part in ("clusters", "machine_pools", "syncsets")),
        *(Read("create", part) for part in ("clusters", "machine_pools", "addons", "syncsets", "token")),
        Read("change", "machine_pools"),
        Read("delete", "clusters"),
    ),
    "cluster_api": (
        Read("list", "clusters"),
        *(Read("get", kind) for kind in ("clusters", "secrets")),
        *_DATA_PLANE_READS,
    ),
    "standalone": (*_DATA_PLANE_READS, Read("get", "secrets")),
}
_VERBS: Final = {"POST": "create", "PATCH": "change", "DELETE": "delete"}


class Cell(NamedTuple):
    """One run."""

    provider: str
    scenario: str
    read: Read
    lie: Lie

    def __str__(self) -> str:
        return f"{self.provider}: {self.scenario}: {self.read}: {self.lie}"


class Verdict(NamedTuple):
    """What became of a run. `struck` counts falsified answers; `unlisted` are reads that the grid does not have."""

    wrongs: tuple[str, ...]
    struck: int
    unlisted: frozenset[Read]


def list_cells() -> Iterator[Cell]:
    return (
        Cell(provider, scenario, read, lie)
        for provider, reads in READS.items()
        for scenario in SCENARIOS
        for read in reads
        for lie in FAULTS
    )


class LyingProvider(Lives):
    """`with LyingProvider(cell) as lives:`, then `settle`, `live_through_the_lie`, and `judge_the_end`."""

    def __init__(self, cell: Cell) -> None:
        super().__init__(WORLDS[cell.provider])
        self.cell = cell
        self.faults = TransportFaults(self.run.clock)
        self.wrongs: list[str] = []
        self.recorded: dict[str, Response] = {}
        self.is_robbed = False
        self._pools: dict[str, list[str]] = {}

    def get_fleet_clock(self) -> AdjustableClock:
        self.adjustable = AdjustableClock(self.run.clock)
        return self.adjustable

    def build_parts(self, through: Callable[[Any], Any] | None = None, **options: Any) -> Any:
        del through  # no call is struck here
        return super().build_parts(self._falsify, **options)

    def _falsify(self, port: Any) -> Any:
        if isinstance(self.provider, OcmWorld):
            return FalseOcm(port, self)
        return FaultyTransport(ClusterDeletionLog(port, self), self.faults)

    # ---- the story

    def settle(self) -> None:
        """Every read is made once, and answered truly."""
        match self.cell.scenario:
            case "in use" | "leaving":
                self.add_ready(ROW_A, used=2)
                self.add_ready(ROW_B, used=2)
            case "needed":
                self.add_ready(ROW_A, used=UNITS)
                self.add_ready(ROW_B)
            case "being made":
                self.run_workers(Worker.CLUSTER, dry_run=True)
                self.run.run_until(self.fleet.database.leases.release_lease(Worker.CLUSTER, Worker.CLUSTER))
                return
        self.tick(2)
        self._pools = {row.cluster_id: self._list_pools(row.cluster_id) for row in self.list_rows()}

    def live_through_the_lie(self) -> None:
        self._begin_to_lie()
        match self.cell.scenario:
            case "leaving":
                for number in range(2):
                    kafka_id = f"{ROW_B}-{number}"
                    self.run.run_until(self.fleet.store.remove_kafka(kafka_id, statuses={KafkaStatus.READY}))
            case "being made" if not self.provider.deletes:
                self.register(ROW_B)
        self.tick(LIE_TICKS)
        if self.cell.lie is Lie.LEASE_STOLEN:
            self._give_leases_back()
        self.faults.stop()

    def judge_the_end(self) -> None:
        """What is left when the answers are true again, and everything had time to settle."""
        for _ in range(60):
            self.tick()
            if self._is_settled():
                break
        else:
            self.wrongs.append(f"it does not settle: {[(row.id, row.status_details) for row in self.list_rows()]}")
        # The provider of an owner's clusters makes none.
        rows = tuple(row for row in self.list_rows() if self.provider.deletes or row.id in {ROW_A, ROW_B})
        ids = self.list_ids()
        self.wrongs += [f"row {row.id} is {row.status}" for row in rows if row.status is ClusterStatus.FAILED]
        self.wrongs += [f"row {row.id} lost its cluster" for row in rows if row.cluster_id not in ids]
        names = {row.id for row in rows}
        self.wrongs += [f"row {name} is lost" for name in _WANTED[self.cell.scenario] if name not in names]
        surplus = len(rows) - max(1, len(_WANTED[self.cell.scenario]))
        if surplus > 0:
            self.wrongs.append(f"{surplus} clusters more than there is need for: {sorted(names)}")
        known = {row.cluster_id for row in rows}
        if self.provider.deletes:
            self.wrongs += [f"cluster {found} has no row" for found in ids if found not in known]
        for cluster_id, pools in self._pools.items():
            gone = [pool for pool in pools if pool not in self._list_pools(cluster_id)] if cluster_id in known else []
            self.wrongs += [f"pool {pool} of {cluster_id} is gone" for pool in gone]

    # ---- the truth

    def judge_deletion(self, cluster_id: str) -> None:
        row = next((row for row in self.list_rows_now() if row.cluster_id == cluster_id), None)
        is_leaving = self.cell.scenario == "leaving" and row is not None and row.id == ROW_B
        if not is_leaving:
            self.wrongs.append(f"cluster {cluster_id} was deleted and is wanted")
        elif self.is_robbed:
            self.wrongs.append(f"cluster {cluster_id} was deleted without the lease")

    def list_rows_now(self) -> tuple[Cluster, ...]:
        """Also while the loop runs: the database in memory answers at once."""
        listing = self.fleet.store.list_clusters()
        try:
            listing.send(None)
        except StopIteration as stop:
            return tuple(stop.value)
        raise AssertionError("the database does not answer at once")

    # ---- parts

    def _begin_to_lie(self) -> None:
        lie = self.cell.lie
        match lie:
            case Lie.CLOCK_AHEAD:
                self.adjustable.ahead += A_DAY
            case Lie.CLOCK_BEHIND:
                self.adjustable.ahead -= A_DAY
            case Lie.LEASE_STOLEN:
                self._steal_leases()
            case _:
                self.faults.start(self.cell.read, lie)
                return
        self.faults.start(self.cell.read, Lie.SERVER_ERROR)

    def _steal_leases(self) -> None:
        self.is_robbed = True
        leases = self.fleet.database.leases
        for worker, holder in self.run.run_until(leases.list_holders()).items():
            self.run.run_until(leases.release_lease(worker, holder))
            self.run.run_until(leases.acquire_lease(worker, THIEF, duration_s=LIE_TICKS * TICK_S))

    def _give_leases_back(self) -> None:
        self.is_robbed = False
        for worker in WORKERS:
            self.run.run_until(self.fleet.database.leases.release_lease(worker, THIEF))

    def _is_settled(self) -> bool:
        rows = tuple(row for row in self.list_rows() if self.provider.deletes or row.id in {ROW_A, ROW_B})
        if self.cell.scenario == "leaving":
            return self.find_row(ROW_B) is None
        is_quiet = all(row.status is ClusterStatus.READY and not row.status_details for row in rows)
        return bool(rows) and is_quiet

    def _list_pools(self, cluster_id: str) -> list[str]:
        return self.run.run_until(list_pools(self.provider, cluster_id))


async def list_pools(provider: ProviderWorld, cluster_id: str) -> list[str]:
    """The ids of a cluster's pools, as its provider has them."""
    if isinstance(provider, OcmWorld):
        found = provider.ocm.clusters.find(cluster_id)
        return [] if found is None else sorted(found.pools)
    world: Any = getattr(provider, "world", None)
    if not hasattr(world, "list_clusters"):
        return []
    for body in await world.list_clusters():
        if body["metadata"]["uid"] == cluster_id:
            workers = body["spec"]["topology"].get("workers", {})
            return sorted(item["name"] for item in workers.get("machineDeployments", ()))
    return []


class ClusterDeletionLog:
    """Judges the `Cluster` objects that a transport deletes."""

    def __init__(self, transport: Transport, lives: LyingProvider) -> None:
        self._transport = transport
        self._lives = lives

    async def send(self, call: Call) -> Reply:
        if call.method == "DELETE":
            *_, kind, name = call.path.split("/")
            uids = {row.cluster_id for row in self._lives.list_rows_now() if name == f"mk-{row.id}"[:15]}
            self._lives.judge_deletion(next(iter(uids), f"{kind}/{name}"))
        return await self._transport.send(call)

    async def aclose(self) -> None:
        await self._transport.aclose()


class FalseOcm:
    """An OCM whose answers lie: those to reads, and those to changes after they took effect."""

    def __init__(self, web: HttpClient, lives: LyingProvider) -> None:
        self._web = web
        self._lives = lives

    async def send(self, request: Request) -> Response | RequestFailed:
        read, faults = find_exchange(request), self._lives.faults
        faults.seen.add(read)
        if read == ("delete", "clusters"):
            self._lives.judge_deletion(request.url.rpartition("/")[2])
        answer = await self._web.send(request)
        lie = faults.lie_about(*read)
        if isinstance(answer, RequestFailed):
            return answer
        if lie is None:
            self._lives.recorded.setdefault(f"{request.method} {request.url}", answer)
            return answer
        faults.struck += 1
        if lie in STATUS_CODES:
            return Response(status=STATUS_CODES[lie], body=build_refusal(STATUS_CODES[lie]))
        if lie is Lie.STALLED:
            await self._lives.clock.sleep(request.timeout_s)
            return RequestFailed(problem="no answer in time", kind=FailureKind.TIMED_OUT)
        if lie is Lie.STALE:
            return self._lives.recorded.get(f"{request.method} {request.url}", answer)
        return falsify_answer(lie, answer)


def find_exchange(request: Request) -> Read:
    """`list machine_pools`, `get clusters`, `create addons`, …"""
    parts = urlsplit(request.url).path.strip("/").split("/")
    if parts[0] != "api":
        return Read("create", "token")
    below = [part for part in parts[3:] if part != "external_configuration"]
    verb = _VERBS.get(request.method) or ("list" if len(below) % 2 else "get")
    return Read(verb, below[-1] if len(below) % 2 else below[-2])


def falsify_answer(lie: Lie, answer: Response) -> Response:
    """Lists say that they are whole; an object that is missing is missing in the words of OCM."""
    document = msgspec.json.decode(answer.body) if answer.body else {}
    is_list = "items" in document
    changed = change_document(lie, msgspec.json.encode(_drop_links(document)))
    if changed is None:
        return Response(status=404, body=build_refusal(404))
    if is_list and lie is not Lie.TRUNCATED:
        document = msgspec.json.decode(changed)
        document["total"] = document["size"] = len(document["items"])
        changed = msgspec.json.encode(document)
    return replace(answer, body=changed)


def _drop_links(document: dict[str, Any]) -> dict[str, Any]:
    """Without the fields that nothing reads, of which a lie could be about."""
    kept = {name: value for name, value in document.items() if name not in {"kind", "href"}}
    return {**kept, "items": [_drop_links(item) for item in kept["items"]]} if "items" in kept else kept


def build_refusal(status: int) -> bytes:
    return msgspec.json.encode(build_error(status, "a false answer", operation="op"))


def run_cell(cell: Cell) -> Verdict:
    with LyingProvider(cell) as lives:
        lives.settle()
        lives.live_through_the_lie()
        struck = lives.faults.struck
        lives.judge_the_end()
        return Verdict(tuple(lives.wrongs), struck, frozenset(lives.faults.seen - {*READS[cell.provider]}))
