"""A TiDB cluster with its PD and Prometheus, all in memory: what the planner's collectors see, without a socket.

Prometheus is played by its answers: three vectors, found by the text of the query. `tests/e2e/tidb` has a real one.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from plimsoll.testing import run_virtual
from plimsoll.tidb.model.components import Component
from plimsoll.tidb.pd.client import PdClient
from plimsoll.tidb.pd.members import BaseCluster
from plimsoll.tidb.planner.collector import CollectedSnapshot, Collector, CollectorSettings
from plimsoll.tidb.planner.service import PlannerService
from plimsoll.web.client import Request, RequestFailed, Response
from tests.tidb.pd.fake_pd import FakePd

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from plimsoll.tidb.model.snapshot import ObservedInstance
    from plimsoll.web.responses import PageResponse

NOW = datetime(2026, 1, 1, tzinfo=UTC)
WINDOW_S = 60
LONG_AGO = "2025-06-01T08:00:00.123456789+08:00"
PD = "http://pd.test:2379"
PROMETHEUS = "http://prometheus.test:9090"


class FakePrometheus:
    """Answers by what is asked for. `failing` replaces every answer, `silent` gives none."""

    def __init__(self) -> None:
        self.vectors: dict[str, list[tuple[dict[str, str], str]]] = {"used": [], "quota": [], "measured": []}
        self.failing: Response | None = None
        self.silent = False
        self.knows_post = True
        self.warnings: list[str] = []
        self.evaluated_s: dict[str, float] = {}
        """When answers of a kind were evaluated, if not at the time asked for."""
        self.asked: list[tuple[str, str, str]] = []

    def answer(self, asked: Request) -> Response:
        written = asked.body.decode() if asked.method == "POST" else urlsplit(asked.url).query
        fields = {name: values[0] for name, values in parse_qs(written).items()}
        self.asked.append((asked.method, fields["query"], fields["time"]))
        if asked.method == "POST" and not self.knows_post:
            return Response(status=405, body=b"method not allowed")
        if self.failing is not None:
            return self.failing
        kind = "used" if "increase" in fields["query"] else "measured" if "timestamp(" in fields["query"] else "quota"
        wants_tidb = "tidb" in fields["query"] or "process_cpu" in fields["query"]
        result = [
            {"metric": labels, "value": [self.evaluated_s.get(kind, float(fields["time"])), value]}
            for labels, value in self.vectors[kind]
            if ("-tidb-" in labels.get("instance", "")) == wants_tidb
        ]
        warned = {"warnings": self.warnings} if self.warnings else {}
        data = {"resultType": "vector", "result": result}
        return Response(status=200, body=json.dumps({"status": "success", "data": data, **warned}).encode())


@dataclass
class MonitoredCluster:
    """Instances are put into PD and Prometheus at once; either can then be made to say something else."""

    pd: FakePd = field(default_factory=FakePd)
    prometheus: FakePrometheus = field(default_factory=FakePrometheus)
    pd_is_silent: bool = False

    def add(self, *usages: float | None, tc: str = "db", component: str = "tikv", **more: Any) -> MonitoredCluster:
        """Pods of a TidbCluster, by their usage; None has no metrics at all. `quota`, `namespace`, and PD's fields."""
        quota, namespace = more.pop("quota", 4), more.pop("namespace", "prod")
        for usage in usages:
            first = sum(self._is_pod_of(pod, f"{tc}-{component}") for pod in self._pods())
            pod = f"{tc}-{component}-{first}"
            self._register(f"{pod}.{tc}-{component}-peer.{namespace}.svc", component, **more)
            if usage is not None:
                self.measure(pod, namespace, used=usage * quota * WINDOW_S, quota=quota)
        return self

    def add_group(
        self, kind: str, *usages: float | None, component: str = "tikv", quota: float = 2
    ) -> MonitoredCluster:
        labels = {"group": f"pd-auto-scaling-{component}-{kind}", "resource-type": kind, "specialUse": "hotRegion"}
        return self.add(*usages, tc=f"auto-{kind}", component=component, quota=quota, labels=labels)

    def measure(
        self,
        pod: str,
        namespace: str = "prod",
        *,
        used: float | str | None = None,
        quota: float | str | None = None,
        ago_s: float = 0,
    ) -> None:
        """A series each for what is given."""
        labels = {"instance": pod, "kubernetes_namespace": namespace}
        vectors = self.prometheus.vectors
        if used is not None:
            vectors["used"].append((labels, f"{used}"))
        if quota is not None:
            vectors["quota"].append(({"__name__": "quota", **labels}, f"{quota}"))
            vectors["measured"].append((labels, f"{(NOW - timedelta(seconds=ago_s)).timestamp()}"))

    def forget(self, kind: str, pod: str) -> None:
        """The series of a pod that a query no longer gives."""
        vectors = self.prometheus.vectors
        vectors[kind] = [vector for vector in vectors[kind] if vector[0]["instance"] != pod]

    def measured(self, pod: str, *, ago_s: float) -> None:
        self.forget("measured", pod)
        moment = f"{(NOW - timedelta(seconds=ago_s)).timestamp()}"
        labels = {"instance": pod, "kubernetes_namespace": "prod"}
        self.prometheus.vectors["measured"].append((labels, moment))

    async def send(self, asked: Request) -> Response | RequestFailed:
        """A `Web`: this is all the network there is."""
        place = urlsplit(asked.url)
        if f"{place.scheme}://{place.netloc}" == PROMETHEUS:
            return await _never() if self.prometheus.silent else self.prometheus.answer(asked)
        if f"{place.scheme}://{place.netloc}" != PD:
            return RequestFailed(problem=f"cannot reach {place.netloc}: no such host")
        if self.pd_is_silent:
            return await _never()
        path = place.path + (f"?{place.query}" if place.query else "")
        status, body = self.pd.answer(asked.method, path, asked.body)
        return Response(status=status, body=body)

    # ---- asking

    def collector(self, **settings: Any) -> Collector:
        chosen = {"base": BaseCluster(namespace="prod", name="db"), "prometheus": PROMETHEUS, **settings}
        return Collector(CollectorSettings(**chosen), pd=PdClient(PD, web=self), web=self)

    def collected(self, component: Component = Component.TIKV, **settings: Any) -> CollectedSnapshot:
        found = in_virtual_time(self.collector(**settings).collect(component, at=NOW))
        assert isinstance(found, CollectedSnapshot), found
        return found

    def seen(self, component: Component = Component.TIKV, **settings: Any) -> dict[str, ObservedInstance]:
        return {
            instance_seen.name: instance_seen
            for instance_seen in self.collected(component, **settings).snapshot.instances
        }

    def answered(self, question: Any, *, falls_back: bool = False, **settings: Any) -> PageResponse:
        """The service's answer to a question, as JSON or as bytes."""
        body = question if isinstance(question, bytes) else json.dumps(question).encode()
        service = PlannerService(self.collector(**settings), now=lambda: NOW, falls_back=falls_back)
        return in_virtual_time(service.answer_request(body))

    # ---- inside

    def _register(self, host: str, component: str, **more: Any) -> None:
        if component == "tidb":
            self.pd.add_tidb(f"{host}:4000", **more)
        else:
            self.pd.add_store(f"{host}:20160", **{"start_ts": LONG_AGO, **more})

    def _pods(self) -> list[str]:
        stores = [store["store"]["address"] for store in self.pd.stores]
        return [*stores, *(key.split("/")[3] for key in self.pd.keys if key.endswith("/ttl"))]

    def _is_pod_of(self, address: str, stateful_set: str) -> bool:
        return address.split(".", maxsplit=1)[0].rpartition("-")[0] == stateful_set


async def _never() -> RequestFailed:
    await asyncio.sleep(3600)
    return RequestFailed(problem="nobody waits that long")


def in_virtual_time(asking: Coroutine[Any, Any, Any]) -> Any:
    return run_virtual(asking, start=NOW)


def plans_of(page: PageResponse) -> dict[str, int]:
    """Counts by resource type of an answer that must be a whole one."""
    assert (page.status_code, page.headers["x-plan-complete"]) == (200, "true"), page
    return {plan["resource_type"]: plan["count"] for plan in json.loads(bytes(page.body))}


def error_of(page: PageResponse) -> tuple[int, str]:
    assert "x-plan-complete" not in page.headers
    return page.status_code, json.loads(bytes(page.body))["error"]
