"""A TiDB cluster whose answers lie: one read of the controllers at a time is empty, halved, old, broken, and so on.

A cell is a scenario, a read and a lie. The world is true until the group has settled, then the read lies for a quarter
of an hour, with nine passes. `wrongs` are scale-ins, store removals and deletions that the truth does not
allow: nothing shrinks where load is steady, or where a store of the base cluster is Down; and no pod goes before its
store is a Tombstone.
"""

from __future__ import annotations

import asyncio
import base64
import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from msgspec.structs import replace

from plimsoll.kube.errors import NotAllowed, TimedOut
from plimsoll.kube.informer.factory import SharedInformerFactory
from plimsoll.runtime.entropy import SeededEntropy
from plimsoll.runtime.supervisor import Supervisor
from plimsoll.tidb.builder import Dependencies, TidbAutoscalerParts
from plimsoll.tidb.wire.annotations import DRAIN
from plimsoll.web.client import Request, RequestFailed, Response
from tests.faults.faulty_transport import FaultyTransport, Read, TransportFaults, find_read
from tests.faults.lies import METRICS_LIES, STATUS_CODES, Lie, change_document
from tests.kube.leases.stolen_leases import StolenLease
from tests.tidb.actuation.draining_clusters import DrainingCluster
from tests.tidb.autoscaled_clusters import AUTO, PLANNER, SMALL, START, FakeServer, group
from tests.tidb.fake_kubernetes import merge

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plimsoll.core.clock import Clock
    from plimsoll.kube.client import Client
    from plimsoll.kube.transport import Request as Call
    from plimsoll.kube.transport import Response as Reply
    from plimsoll.kube.transport import Transport

PROMETHEUS = "http://prometheus.test:9090"
TIDB_GROUP = "pd-auto-scaling-tidb-servers"
SETTLED_S = 2 * 86_400
LIE_S, PASS_S, MINUTE_S = 900, 100, 60
PASSES_UNTIL_READ = 4
A_DAY = timedelta(days=1)

KUBERNETES_READS = (
    "list tidbclusterautoscalers",
    "get tidbclusterautoscalers",
    "list tidbclusters",
    "get tidbclusters",
    "list pods",
    "list nodes",
)
WATCHES = (
    "watch tidbclusterautoscalers",
    "watch tidbclusters",
    "watch nodes",
)
PD_READS = (
    "pd stores",
    "pd store",
    "pd config/replicate",
    "pd config/rules",
    "pd regions/check",
    "pd schedulers",
    "pd scheduler-config",
    "pd topology",
)
PROMETHEUS_READS = ("prometheus used", "prometheus quota", "prometheus measured", "prometheus")
READS = (*KUBERNETES_READS, *WATCHES, *PD_READS, *PROMETHEUS_READS)
SCENARIOS = (
    "steady",
    "steady guard",
    "store down",
    "store down guard",
    "deleted",
    "deleted, no stores in status",
    "deleted, no pods known",
    "store down, deleted, no stores in status, guard",
)


@dataclass(frozen=True)
class Cell:
    """What lies, and how, in which scenario."""

    scenario: str
    read: str
    lie: Lie

    def __str__(self) -> str:
        return f"{self.scenario}: {self.read}: {self.lie}"


def all_cells() -> Iterator[Cell]:
    for scenario in SCENARIOS:
        for read in READS:
            for lie in Lie:
                if lie not in METRICS_LIES or read.startswith("prometheus"):
                    yield Cell(scenario, read, lie)


class SkewedClock:
    """The process's own clock."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.skew = timedelta(0)

    def now(self) -> datetime:
        return self._clock.now() + self.skew

    def monotonic_s(self) -> float:
        return self._clock.monotonic_s()

    async def sleep(self, seconds: float) -> None:
        await self._clock.sleep(seconds)


class LyingCluster(DrainingCluster):
    """One read of one kind lies while `is_lying`."""

    def __init__(self, cell: Cell) -> None:
        super().__init__(FakeServer)
        self.settings = replace(
            self.settings,
            planner=PLANNER,
            prometheus=PROMETHEUS,
            drains_actively=not cell.scenario.endswith("guard"),
            makes_endpoint_slices=False,
        )
        self.cell = cell
        self.clock = SkewedClock(self.run.clock)
        self.lease = StolenLease(self.run.clock)
        self.usage = 0.05
        self.server_usage = 0.05
        self.silent_stores = "no stores in status" in cell.scenario
        self.is_lying = False
        self.lies_until = datetime.max.replace(tzinfo=START.tzinfo)
        self.first: dict[str, bytes] = {}
        self.lied = 0
        self.written_with_lease = 1_000_000
        self.problems: list[str] = []
        self.seen: set[str] = set()
        """Every read of the API server."""

    # ---- the story

    def settle(self) -> None:
        """The first answers, which stale ones repeat, are of an autoscaler that scales nothing, on an idle day."""
        rules = {"cpu": {"max_threshold": 0.8, "min_threshold": 0.2}}
        self.autoscaler(tikv=None)
        self.server.edit("tidbclusterautoscalers", "as1", {"metadata": {"finalizers": [DRAIN]}})
        self.cluster()
        self.once(0)
        servers = {"servers": {"cpu": "1000m", "memory": "2Gi", "count": 3}}
        spec = {
            "tikv": {"rules": rules, "resources": {"storage_small": SMALL}},
            "tidb": {"rules": rules, "resources": servers},
        }
        self.server.edit("tidbclusterautoscalers", "as1", {"spec": spec})
        self.once(10)
        self.settings = replace(self.settings, planner="")
        self.once(30)
        self.usage = self.server_usage = 0.5
        self.once(60)
        self.once(SETTLED_S - 30)
        if self.cell.scenario.startswith("store down"):
            self.usage = 0.05
            self.pd.stores[1].heard = "Down"
        self.once(SETTLED_S - 20)
        assert self.sizes() == {"db": (3, 2), AUTO: (2, None), self.servers: (None, 2)}, self.sizes()
        if self.is_deleted:
            self.server.delete("tidbclusterautoscalers", "as1")

    def live_through_the_lie(self) -> None:
        self.is_lying = True
        if self.cell.lie in STATUS_CODES:
            self.lies_until = self.run.clock.now() + timedelta(seconds=MINUTE_S)
        for at_s in range(SETTLED_S, SETTLED_S + LIE_S, PASS_S):
            if at_s > SETTLED_S + PASSES_UNTIL_READ * PASS_S and not self.lied:
                # This scenario never makes the read.
                return
            self.once(at_s)
        self.is_lying = False
        self.clock.skew = timedelta(0)
        self.once(SETTLED_S + LIE_S)

    def live_through_the_false_watch(self) -> None:
        """The controller runs by itself, with informers. Everything that it watches changes a little all the time."""
        faults = TransportFaults(self.run.clock)
        task = self.run.spawn(self._start_controller(faults))
        self.run.advance_by(1)
        for at_s in range(SETTLED_S, SETTLED_S + LIE_S, PASS_S):
            self._advance_to(at_s)
            if not self.lied and self.is_read_able_to_lie:
                self.lied += 1
                self._start_false_watch(faults)
            self.operate()
            self._touch_all(str(at_s))
        faults.stop()
        self.clock.skew = timedelta(0)
        self._advance_to(SETTLED_S + LIE_S)
        self.operate()
        self.run.advance_by(PASS_S)
        task.cancel()
        self.lied = faults.struck

    async def _start_controller(self, faults: TransportFaults) -> None:
        transport = FaultyTransport(self.server.transport(), faults)
        client = self.client(transport, guard=self.lease)
        entropy = SeededEntropy("controller")
        informers = SharedInformerFactory(client, clock=self.clock, entropy=entropy)
        parts = self.parts(client, journal=self.journal, informers=informers)
        services = [*parts.build_controller(entropy).list_services(), *informers.list_services()]
        await Supervisor(services, clock=self.clock, entropy=entropy).run()

    def _start_false_watch(self, faults: TransportFaults) -> None:
        """A clock that jumps, or a lease that is stolen, comes with a watch that is refused for a minute."""
        lie = self.cell.lie
        if lie in {Lie.CLOCK_AHEAD, Lie.CLOCK_BEHIND}:
            self.clock.skew = A_DAY if lie is Lie.CLOCK_AHEAD else -A_DAY
            lie = Lie.SERVER_ERROR
        if lie is Lie.LEASE_STOLEN:
            self.lease.steal()
            self.written_with_lease = len(self.pd.wrote)
            lie = Lie.SERVER_ERROR
        faults.start(Read(*self.cell.read.split()), lie)

    def _advance_to(self, at_s: float) -> None:
        self.run.advance_by(max(0.0, at_s - (self.run.clock.now() - START).total_seconds()))

    def _touch_all(self, mark: str) -> None:
        """Write every object that is watched, without a change that matters.

        The autoscaler is edited so that it scales nothing, and put back at once: only a watch that loses the second
        event shows the first.
        """
        played = self.server.played  # type: ignore[union-attr] # it is the fake one
        for (plural, _, _), found in [*played.objects.items()]:
            if f"watch {plural}" in WATCHES:
                touched = merge(found, {"metadata": {"annotations": {"touched": mark}}})
                if plural == "tidbclusterautoscalers":
                    before = found["metadata"].get("generation", 1)
                    edit = {"metadata": {"generation": before + 1}, "spec": {"tikv": None, "tidb": None}}
                    played.put(plural, merge(touched, edit))
                    touched = merge(touched, {"metadata": {"generation": before + 2}})
                played.put(plural, touched)

    @property
    def is_deleted(self) -> bool:
        return "deleted" in self.cell.scenario

    @property
    def servers(self) -> str:
        return next(name for name in self.server.names("tidbclusters") if "tidb" in self._spec(name) and name != "db")

    def _spec(self, name: str) -> dict[str, Any]:
        found = self.server.get("tidbclusters", name)
        assert found is not None
        return found["spec"]

    def sizes(self) -> dict[str, tuple[int | None, int | None]]:
        """Replicas of TiKV and TiDB by TidbCluster."""
        specs = {name: self._spec(name) for name in self.server.names("tidbclusters")}
        return {
            name: (spec.get("tikv", {}).get("replicas"), spec.get("tidb", {}).get("replicas"))
            for name, spec in specs.items()
        }

    def wrongs(self, before: dict[str, tuple[int | None, int | None]]) -> list[str]:
        """What was removed against the truth."""
        found = [f"pod {pod} went with its data" for pod in self.lost]
        found += [f"{wrote} without the lease" for wrote in self.pd.wrote[self.written_with_lease :] if self.lied]
        if self.is_deleted and "store down" not in self.cell.scenario:
            return found
        found += [wrote for wrote in self.pd.wrote if wrote.startswith("DELETE /store")]
        now = self.sizes()
        found += [
            f"{name} from {was} to {now.get(name)}"
            for name, was in before.items()
            if name == AUTO or not self.is_deleted
            if name not in now or any((new or 0) < (old or 0) for new, old in zip(now[name], was, strict=True))
        ]
        if self.server.get("tidbclusterautoscalers", "as1") is None:
            found.append("the autoscaler is gone")
        return found

    # ---- the pods of a cluster

    def operate(self) -> None:
        self._collect_garbage()
        super().operate()
        self.pd.heard_at = self.run.clock.now()
        wanted: dict[str, str] = {}
        for name, (tikv, tidb) in self.sizes().items():
            for component, count in (("tikv", tikv), ("tidb", tidb)):
                wanted |= {f"{name}-{component}-{ordinal}": name for ordinal in range(count or 0)}
        played = self.server.played  # type: ignore[union-attr] # it is the fake one
        for key in [key for key in played.objects if key[0] == "pods" and key[2] not in wanted]:
            del played.objects[key]
        if self.cell.scenario.endswith("no pods known"):
            return
        for pod, cluster in wanted.items():
            if ("pods", "prod", pod) not in played.objects:
                labels = {"app.kubernetes.io/instance": cluster}
                status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
                metadata = {"name": pod, "namespace": "prod", "labels": labels}
                played.put("pods", {"metadata": metadata, "spec": {"nodeName": "n1"}, "status": status})

    def _collect_garbage(self) -> None:
        """What belongs to an autoscaler that is gone goes with it."""
        if self.server.get("tidbclusterautoscalers", "as1") is None:
            for name in self.server.names("tidbclusters"):
                found = self.server.get("tidbclusters", name)
                if found is not None and found["metadata"].get("ownerReferences"):
                    self.server.delete("tidbclusters", name)

    # ---- passes

    def parts(self, client: Client, **more: Any) -> TidbAutoscalerParts:
        return TidbAutoscalerParts(
            Dependencies(client=client, web=self, caller=self, clock=self.clock, settings=self.settings, **more)
        )

    async def _passed(self) -> Any:
        client = self.client(_LyingTransport(self.server.transport(), self), guard=self.lease)
        try:
            return await self.parts(client, journal=self.journal).reconciler.run_all()
        except NotAllowed:
            return []
        except Exception as error:  # noqa: BLE001 - the controller would report it and try again
            self.problems.append(f"{type(error).__name__}: {error}")
            return []

    # ---- answers

    @property
    def is_read_able_to_lie(self) -> bool:
        """A lease is stolen while a store is being removed."""
        return self.cell.lie is not Lie.LEASE_STOLEN or not self.is_deleted or bool(self.pd.evicting)

    @property
    def is_read_lying(self) -> bool:
        return self.is_read_able_to_lie and self.is_lying and self.run.clock.now() < self.lies_until

    def _notice(self, read: str, body: bytes, *, address: str) -> bool:
        """Keep the first answer of each address; whether this read lies now."""
        self.first.setdefault(address, body)
        is_meant = read == self.cell.read or read.startswith(f"{self.cell.read} ")
        if not is_meant or not self.is_read_lying:
            return False
        self.lied += 1
        if self.cell.lie in {Lie.CLOCK_AHEAD, Lie.CLOCK_BEHIND}:
            self.clock.skew = A_DAY if self.cell.lie is Lie.CLOCK_AHEAD else -A_DAY
        if self.cell.lie is Lie.LEASE_STOLEN:
            self.lease.steal()
            self.written_with_lease = min(self.written_with_lease, len(self.pd.wrote))
        return True

    async def lie_about_object(self, call: Call, reply: Reply) -> Reply:
        read = _kubernetes_read(call)
        if read is None or not self._notice(read, reply.body, address=call.url):
            return reply
        match self.cell.lie:
            case Lie.STALLED:
                await asyncio.sleep(call.timeout_s)
                raise TimedOut("no answer")
            case Lie.TOO_MANY_REQUESTS | Lie.SERVER_ERROR:
                return reply._replace(status=STATUS_CODES[self.cell.lie], body=b"{}")
            case Lie.STALE:
                return reply._replace(status=200, body=self.first[call.url])
            case Lie.CLOCK_AHEAD | Lie.CLOCK_BEHIND | Lie.LEASE_STOLEN:
                return reply
        changed = change_document(self.cell.lie, reply.body) if reply.status == 200 else reply.body
        if changed is None:
            status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}
            return reply._replace(status=404, body=json.dumps(status).encode())
        return reply._replace(body=changed)

    async def send(self, asked: Request) -> Response | RequestFailed:
        read, answer = await self._truth(asked)
        if isinstance(answer, RequestFailed) or not read or asked.method == "DELETE":
            return answer
        address = f"{asked.url} {_query_of(asked)}"
        if not self._notice(read, answer.body, address=address):
            return answer
        match self.cell.lie:
            case Lie.STALLED:
                await asyncio.sleep(5)
                return RequestFailed(problem=f"no answer from {asked.url} within 5 s")
            case Lie.TOO_MANY_REQUESTS | Lie.SERVER_ERROR:
                return Response(status=STATUS_CODES[self.cell.lie], body=b'"busy"')
            case Lie.STALE:
                return Response(status=200, body=self.first[address])
            case Lie.CLOCK_AHEAD | Lie.CLOCK_BEHIND | Lie.LEASE_STOLEN:
                return answer
        if read.startswith("prometheus") and self.cell.lie in {Lie.WARNED, Lie.FUTURE, Lie.DUPLICATED}:
            return replace(answer, body=_change_vector(self.cell, read, answer.body))
        changed = change_document(self.cell.lie, answer.body) if answer.is_ok else answer.body
        return Response(status=404, body=b'"not found"') if changed is None else replace(answer, body=changed)

    async def _truth(self, asked: Request) -> tuple[str, Response | RequestFailed]:
        if asked.url.startswith(PLANNER):
            component = json.loads(asked.body)["rules"][0]["component"]
            labels = {"group": TIDB_GROUP, "resource-type": "servers"}
            servers = {"component": "tidb", "count": 2, "resource_type": "servers", "labels": labels}
            plans = [group(2)] if component == "tikv" else [servers]
            return "", Response(status=200, body=json.dumps(plans).encode())
        if asked.url.startswith(PROMETHEUS):
            return self._answer_query(asked)
        path = urlsplit(asked.url).path.removeprefix("/pd/api/v1")
        if path == "/v3/kv/range":
            return "pd topology", Response(status=200, body=json.dumps({"kvs": self._topology()}).encode())
        answer = await self.pd.send(asked)
        return (_pd_read(path) if asked.method == "GET" else ""), answer

    def _servers(self) -> Iterator[tuple[str, str, dict[str, str]]]:
        """TiDB servers: cluster, pod, labels."""
        for name, (_, tidb) in self.sizes().items():
            labels = (self._spec(name).get("tidb", {}).get("config") or {}).get("labels", {})
            yield from ((name, f"{name}-tidb-{ordinal}", labels) for ordinal in range(tidb or 0))

    def _topology(self) -> list[dict[str, str]]:
        now_ns = str(int(self.run.clock.now().timestamp() * 1e9)).encode()
        found = []
        for name, pod, labels in self._servers():
            place = f"/topology/tidb/{pod}.{name}-tidb-peer.prod.svc:4000"
            info = json.dumps({"labels": labels, "start_timestamp": START.timestamp() - 86_400}).encode()
            found += [(f"{place}/info".encode(), info), (f"{place}/ttl".encode(), now_ns)]
        return [{"key": _base64(key), "value": _base64(value)} for key, value in sorted(found)]

    def _answer_query(self, asked: Request) -> tuple[str, Response]:
        fields = {name: values[0] for name, values in parse_qs(asked.body.decode()).items()}
        query, at_s = fields["query"], float(fields["time"])
        kind = "used" if "increase" in query else "measured" if "timestamp(" in query else "quota"
        pods = [store.pod for store in self.pd.stores.values() if store.state != 2]
        if "tidb" in query:
            pods = [pod for _, pod, _ in self._servers()]
        now_s = self.run.clock.now().timestamp()
        usage = self.server_usage if "tidb" in query else self.usage
        if at_s < now_s - 3600:
            # There is history, of an idle day.
            usage = 0.05
        values = {"used": usage * 4 * 60, "quota": 4.0, "measured": min(at_s, now_s)}
        # Nothing is known of what is yet to come.
        result = [
            {"metric": {"instance": pod, "kubernetes_namespace": "prod"}, "value": [at_s, str(values[kind])]}
            for pod in pods
            if at_s <= now_s + 300
        ]
        body = {"status": "success", "data": {"resultType": "vector", "result": result}}
        return f"prometheus {kind}", Response(status=200, body=json.dumps(body).encode())


class _LyingTransport:
    def __init__(self, inner: Transport, world: LyingCluster) -> None:
        self._inner = inner
        self._world = world

    async def send(self, call: Call) -> Reply:
        reply = await self._inner.send(call)
        if (read := find_read(call)) is not None and reply.is_success:
            self._world.seen.add(str(read))
        return await self._world.lie_about_object(call, reply) if call.is_safe else reply

    async def aclose(self) -> None:
        await self._inner.aclose()


def _change_vector(cell: Cell, read: str, body: bytes) -> bytes:
    """Metrics of which a part is missing, that are doubled, or of another clock: they look like an idle cluster."""
    document, lie = json.loads(body), cell.lie
    result = document["data"]["result"]
    kind = read.removeprefix("prometheus ")
    if lie is Lie.WARNED:
        document["warnings"] = ["partial response: a store did not answer"]
    if lie is Lie.DUPLICATED:
        larger = 10 if kind == "quota" else 1
        copies = [
            {
                "metric": {**sample["metric"], "replica": "b"},
                "value": [sample["value"][0], str(float(sample["value"][1]) * larger)],
            }
            for sample in result
        ]
        result += copies
    else:
        for sample in result:
            value = float(sample["value"][1])
            changed = {"used": value / 10, "measured": value + (86_400 if lie is Lie.FUTURE else 0)}
            sample["value"][1] = str(changed.get(kind, value))
            if lie is Lie.FUTURE and cell.read == "prometheus used":
                sample["value"][0] += 86_400
    return json.dumps(document).encode()


def live(cell: Cell) -> tuple[list[str], int]:
    """What was removed wrongly in this cell, and how often the read lied."""
    with LyingCluster(cell) as world:
        world.settle()
        before = world.sizes()
        world.pd.wrote.clear()
        if cell.read in WATCHES:
            world.live_through_the_false_watch()
        else:
            world.live_through_the_lie()
        return world.wrongs(before), world.lied


def _kubernetes_read(call: Call) -> str | None:
    parts = call.path.strip("/").split("/")
    for verb, index in (("list", -1), ("get", -2)):
        if f"{verb} {parts[index]}" in KUBERNETES_READS:
            return f"{verb} {parts[index]}"
    return None


def _pd_read(path: str) -> str:
    return max((read for read in PD_READS if path.startswith(f"/{read.removeprefix('pd ')}")), key=len, default="")


def _query_of(asked: Request) -> str:
    """What is asked for, without the time of the question."""
    body = asked.body.decode()
    return parse_qs(body).get("query", [body])[0]


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode()
