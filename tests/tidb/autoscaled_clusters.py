"""The cluster of the specification's scenarios, its autoscaler, a planner with given answers, and a PD.

    with AutoscaledCluster(EmbeddedServer) as world:
        world.autoscaler().cluster().planner.says(group(1))
        world.once(at_s=0)
        assert world.made().spec.tikv.replicas == 1

Two servers: one that is played and knows next to nothing, and the embedded one. `once` is a pass as `plimsoll run tidb
--once` makes it; before it, whatever TidbClusters say is made so: pods run, stores register, statuses follow.
"""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol, Self

from plimsoll.journal.memory import MemoryJournal
from plimsoll.kube.client import Client
from plimsoll.kube.recorder import EventRecorder
from plimsoll.kube.requests.options import ClientSettings
from plimsoll.local.apiserver.transport.kube_transport import EmbeddedTransport
from plimsoll.objects.api.events import EventSource
from plimsoll.objects.custom_kinds import OUR_KINDS
from plimsoll.objects.validation import list_shipped_definitions
from plimsoll.runtime.entropy import SeededEntropy
from plimsoll.runtime.virtual_run import VirtualRun
from plimsoll.tidb.builder import Dependencies, TidbAutoscalerParts
from plimsoll.tidb.model.reconcile_result import ReconcileResult
from plimsoll.tidb.settings import NAME, TidbSettings
from plimsoll.web.client import Request, RequestFailed, Response
from tests.local.apiserver.builders import ADMIN, ApiServerHarness
from tests.tidb.fake_kubernetes import FakeKubernetes, merge
from tests.tidb.pd.simulated_pd import SimulatedPd

if TYPE_CHECKING:
    import ssl

    from plimsoll.kube.transport import Guard, Transport
    from plimsoll.kube.transport import Request as Call
    from plimsoll.kube.transport import Response as Reply
    from plimsoll.web.client import PinnedUrl

Json = dict[str, Any]

START = datetime(2026, 1, 1, tzinfo=UTC)
PLANNER = "http://planner.test:9092"
TIDB = "/apis/pingcap.com/v1alpha1"
SMALL = {"cpu": "1000m", "memory": "2Gi", "storage": "10Gi", "count": 3}
GROUP = "pd-auto-scaling-tikv-storage_small"
AUTO = "auto-dbf6f9fdd"
LABELS = {"group": GROUP, "resource-type": "storage_small", "specialUse": "hotRegion"}


def group(count: int, **more: Any) -> Json:
    """What a planner says of the group of `storage_small`."""
    return {"component": "tikv", "count": count, "resource_type": "storage_small", "labels": LABELS, **more}


def homogeneous(count: int, component: str = "tikv") -> Json:
    return {"component": component, "count": count, "resource_type": f"default_homogeneous_{component}", "labels": {}}


class FakePlanner:
    """Gives the same answer until the test sets another; None: it does not answer."""

    def __init__(self) -> None:
        self.status = 200
        self.body: bytes | None = b"[]"
        self.asked: list[Json] = []

    def says(self, *plans: Json) -> None:
        self.says_body(json.dumps(plans).encode())

    def says_body(self, body: bytes | None, status: int = 200) -> None:
        self.body, self.status = body, status

    def answer(self, question: bytes) -> Response | RequestFailed:
        self.asked.append(json.loads(question))
        if self.body is None:
            return RequestFailed(problem="cannot reach http://planner.test:9092: Connection refused")
        return Response(status=self.status, body=self.body)


class Server(Protocol):
    """Where objects are."""

    run: VirtualRun

    def prepare(self) -> None: ...

    def transport(self) -> Transport: ...

    def get(self, plural: str, name: str) -> Json | None: ...

    def names(self, plural: str) -> list[str]: ...

    def make(self, plural: str, body: Json) -> None: ...

    def edit(self, plural: str, name: str, patch: Json, *, sub: str = "") -> None: ...

    def delete(self, plural: str, name: str) -> None: ...


class FakeServer:
    """In namespace prod; nodes are nowhere."""

    def __init__(self) -> None:
        self.run = VirtualRun(start=START)
        self.played = FakeKubernetes(now=lambda: f"{self.run.clock.now():%Y-%m-%dT%H:%M:%SZ}")

    def prepare(self) -> None:
        """There is nothing to it."""

    def transport(self) -> Transport:
        return self.played

    def get(self, plural: str, name: str) -> Json | None:
        return self.played.objects.get((plural, "prod", name))

    def names(self, plural: str) -> list[str]:
        return [name for kind, _, name in self.played.objects if kind == plural]

    def make(self, plural: str, body: Json) -> None:
        namespace = {} if plural == "nodes" else {"namespace": "prod"}
        self.played.put(plural, {**body, "metadata": {**namespace, **body["metadata"]}})

    def edit(self, plural: str, name: str, patch: Json, *, sub: str = "") -> None:
        there = self.get(plural, name)
        assert there is not None
        merged = merge(there, patch)
        if not sub:
            merged["metadata"]["generation"] += 1
        self.played.put(plural, merged)

    def delete(self, plural: str, name: str) -> None:
        self.played.answer("DELETE", f"{TIDB}/namespaces/prod/{plural}/{name}", b"")


class EmbeddedServer:
    """The project's own API server, in memory."""

    def __init__(self) -> None:
        self.world = ApiServerHarness()
        self.run = self.world.run

    def prepare(self) -> None:
        self.world.namespace("prod")
        for manifest in list_shipped_definitions():
            if manifest.ref.name.endswith("pingcap.com"):
                self.world.made("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", manifest.body)

    def transport(self) -> Transport:
        return EmbeddedTransport(self.world.application, token=ADMIN)

    def get(self, plural: str, name: str) -> Json | None:
        reply = self.world.ask("GET", f"{TIDB}/namespaces/prod/{plural}/{name}")
        return reply.body if reply.status == 200 else None

    def names(self, plural: str) -> list[str]:
        items = self.world.ask("GET", f"{TIDB}/namespaces/prod/{plural}").body["items"]
        return [item["metadata"]["name"] for item in items]

    def make(self, plural: str, body: Json) -> None:
        if plural == "nodes":
            made = self.world.made("/api/v1/nodes", {**body, "apiVersion": "v1", "kind": "Node"})
            assert made
            reply = self.world.ask(
                "PATCH",
                f"/api/v1/nodes/{body['metadata']['name']}/status",
                {"status": body["status"]},
                content="application/merge-patch+json",
            )
            assert reply.status == 200, reply
            return
        kind = {"tidbclusters": "TidbCluster", "tidbclusterautoscalers": "TidbClusterAutoScaler"}[plural]
        whole = {**body, "apiVersion": "pingcap.com/v1alpha1", "kind": kind}
        self.world.made(f"{TIDB}/namespaces/prod/{plural}", whole)

    def edit(self, plural: str, name: str, patch: Json, *, sub: str = "") -> None:
        # As TiDB Operator defines it, the status of a TidbCluster is part of it.
        sub = "" if plural == "tidbclusters" else sub
        path = f"{TIDB}/namespaces/prod/{plural}/{name}{f'/{sub}' if sub else ''}"
        reply = self.world.ask("PATCH", path, patch, content="application/merge-patch+json")
        assert reply.status == 200, reply

    def delete(self, plural: str, name: str) -> None:
        assert self.world.ask("DELETE", f"{TIDB}/namespaces/prod/{plural}/{name}").status == 200


class RecordingTransport:
    """Keeps what would change something, on its way to the server; `events` apart."""

    def __init__(self, inner: Transport) -> None:
        self.wrote: list[tuple[str, str]] = []
        self.events: list[Json] = []
        self._inner = inner

    async def send(self, call: Call) -> Reply:
        if not call.is_safe and "/events" in call.path:
            self.events.append(json.loads(call.body))
        elif not call.is_safe:
            self.wrote.append((call.method, call.path))
        return await self._inner.send(call)

    async def aclose(self) -> None:
        await self._inner.aclose()


class AutoscaledCluster:
    """`operates` False: no operator acts on TidbClusters."""

    def __init__(self, server: type[FakeServer | EmbeddedServer], **settings: Any) -> None:
        self.server = server()
        self.run = self.server.run
        self.planner = FakePlanner()
        self.pd = SimulatedPd(self.run.clock, leaders_per_s=float("inf"), regions_per_s=float("inf"))
        self.settings = TidbSettings(planner=PLANNER, **settings)
        self.journal = MemoryJournal()
        self.operates = True
        self.advice: Json = {}
        self.called: list[str] = []
        self.silent_stores = False
        """Statuses contain nothing of stores: only PD does."""

    def __enter__(self) -> Self:
        self.run.__enter__()
        self.server.prepare()
        for number in range(10):
            status = {"conditions": [{"type": "Ready", "status": "True"}]}
            self.server.make("nodes", {"metadata": {"name": f"n{number}"}, "status": status})
        return self

    def __exit__(self, *error: object) -> None:
        self.run.__exit__(*error)  # type: ignore[arg-type]

    # ---- what there is

    def autoscaler(self, name: str = "as1", **spec: Any) -> Self:
        rules = {"cpu": {"max_threshold": 0.8, "min_threshold": 0.2}}
        whole = {
            "cluster": {"name": "db"},
            "tikv": {"rules": rules, "resources": {"storage_small": SMALL}},
            **spec,
        }
        self.server.make("tidbclusterautoscalers", {"metadata": {"name": name}, "spec": whole})
        return self

    def cluster(self, **tikv: Any) -> Self:
        requests = {"cpu": "4", "memory": "16Gi"}
        spec = {
            "version": "v8.5.0",
            "pd": {"replicas": 3, "baseImage": "pingcap/pd"},
            "tikv": {
                "replicas": 3,
                "baseImage": "pingcap/tikv",
                "requests": {**requests, "storage": "100Gi"},
                "limits": requests,
                "config": {},
                **tikv,
            },
            "tidb": {"replicas": 2, "baseImage": "pingcap/tidb", "requests": requests},
        }
        self.server.make("tidbclusters", {"metadata": {"name": "db"}, "spec": spec})
        return self

    def operate(self) -> None:
        """What TiDB Operator, a StatefulSet and PD make of it."""
        for name in self.server.names("tidbclusters"):
            found = self.server.get("tidbclusters", name)
            assert found is not None
            status: Json = {}
            for component in ("tikv", "tidb"):
                own = found["spec"].get(component)
                if own is None:
                    continue
                count = own["replicas"]
                status[component] = {"phase": "Normal", "statefulSet": {"replicas": count, "readyReplicas": count}}
                if component == "tikv":
                    self._bury_beyond(name, count)
                    labels = (own.get("config") or {}).get("server", {}).get("labels", {})
                    stores = [self.pd.register(f"{name}-tikv-{index}", labels=labels) for index in range(count)]
                    reported = {
                        str(breathing_store.id): {"id": str(breathing_store.id), "state": "Up"}
                        for breathing_store in stores
                        if breathing_store.state == 0
                    }
                    if not self.silent_stores:
                        status[component]["stores"] = reported
            if found.get("status") != status:
                self.server.edit("tidbclusters", name, {"status": None}, sub="status")
                self.server.edit("tidbclusters", name, {"status": status}, sub="status")

    def _bury_beyond(self, name: str, count: int) -> None:
        """An operator takes out the stores of pods that are no longer wanted; this one is swift."""
        for store in self.pd.stores.values():
            cluster, _, ordinal = store.pod.rpartition("-")
            if cluster == f"{name}-tikv" and int(ordinal) >= count:
                store.state = 2

    # ---- passes

    def once(self, at_s: float = 0, *, transport: Transport | None = None) -> list[ReconcileResult]:
        """One pass over everything, so many seconds after the start, or now if that is over."""
        behind_s = at_s - (self.run.clock.now() - START).total_seconds()
        if behind_s > 0:
            self.run.advance_by(behind_s)
        if self.operates:
            self.operate()
        self.sent = RecordingTransport(transport or self.server.transport())
        return self.run.run_until(self._passed())

    def client(self, transport: Transport, guard: Guard | None = None) -> Client:
        settings = ClientSettings(field_manager=NAME, qps=0)
        clock, entropy = self.run.clock, SeededEntropy("tidb")
        return Client(transport, clock=clock, entropy=entropy, settings=settings, kinds=OUR_KINDS, guard=guard)

    def parts(self, client: Client, **more: Any) -> TidbAutoscalerParts:
        return TidbAutoscalerParts(
            Dependencies(client=client, web=self, caller=self, clock=self.run.clock, settings=self.settings, **more)
        )

    async def _passed(self) -> list[ReconcileResult]:
        client = self.client(self.sent)
        source = EventSource(component=NAME)
        recorder = EventRecorder(client, source, clock=self.run.clock, entropy=SeededEntropy("events"))
        parts = self.parts(client, recorder=recorder, journal=self.journal)
        recording = asyncio.create_task(recorder.run())
        await asyncio.sleep(0)
        results = await parts.reconciler.run_all()
        recording.cancel()
        await asyncio.wait((recording,))
        failed = [result for result in results if not isinstance(result, ReconcileResult)]
        assert not failed, failed
        return [result for result in results if isinstance(result, ReconcileResult)]

    async def send(self, asked: Request) -> Response | RequestFailed:
        """A `Web`: the planner and PD."""
        if asked.url.startswith(PLANNER):
            assert (asked.method, asked.url) == ("POST", f"{PLANNER}/autoscaling")
            return self.planner.answer(asked.body)
        return await self.pd.send(asked)

    # ---- a `Caller`: the external service

    async def resolve(self, host: str, port: int) -> tuple[str, ...] | RequestFailed:
        return ("10.1.2.3",) if host == "advice.test" else RequestFailed(problem=f"{host}:{port} cannot be resolved")

    async def get(self, place: PinnedUrl, *, tls: ssl.SSLContext | None) -> Response | RequestFailed:
        assert tls is None
        self.called.append(place.url)
        return Response(status=200, body=json.dumps(self.advice).encode())

    # ---- what came of it

    def tc(self, name: str = AUTO) -> Json:
        found = self.server.get("tidbclusters", name)
        assert found is not None, f"there is no {name} but {self.clusters}"
        return found

    @property
    def clusters(self) -> list[str]:
        return sorted(self.server.names("tidbclusters"))

    def tac(self, name: str = "as1") -> Json:
        found = self.server.get("tidbclusterautoscalers", name)
        assert found is not None
        return found

    def entry(self, key: str = GROUP, component: str = "tikv") -> Json:
        found: Json = self.tac()["status"][component][key]
        return found

    def condition(self, of_type: str, name: str = "as1") -> tuple[str, str]:
        """Status and reason."""
        found = {condition["type"]: condition for condition in self.tac(name)["status"]["conditions"]}
        return (found[of_type]["status"], found[of_type]["reason"]) if of_type in found else ("", "")

    def message(self, of_type: str) -> str:
        return next(
            condition["message"] for condition in self.tac()["status"]["conditions"] if condition["type"] == of_type
        )
