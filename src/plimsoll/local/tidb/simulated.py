"""Simulated TiDB on any API server: its operator, its PDs, its load and its monitoring, combined.

`LocalCluster` runs the services. Requests to PD or Prometheus are routed to `answer`: in memory by the address
(`route_to_simulated`), over a socket by `server.SimulatedServers`. Without a TidbCluster nothing runs.
"""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import msgspec

from plimsoll.kube.informer.events import Key
from plimsoll.local.tidb.instances import OPERATOR
from plimsoll.local.tidb.load.cluster_loads import ClusterLoads
from plimsoll.local.tidb.operator import controller as clusters
from plimsoll.local.tidb.operator.controller import TidbOperator
from plimsoll.local.tidb.pd.api import PdRequest
from plimsoll.local.tidb.pd.simulated_pds import SimulatedPds
from plimsoll.local.tidb.prometheus.queries import answer_query, format_exposition
from plimsoll.local.tidb.prometheus.scraper import Scraper
from plimsoll.local.tidb.topology import Topology
from plimsoll.runtime.supervisor import Service

if TYPE_CHECKING:
    from plimsoll.local.components import Components

PROMETHEUS_HOST: Final = "simulated-prometheus"
PROMETHEUS: Final = f"http://{PROMETHEUS_HOST}:9090"
"""The address of Prometheus that PD reports by default. It is never resolved."""
METRICS: Final = "/metrics"
QUERY: Final = "/api/v1/query"
# http://TC-pd.NAMESPACE:2379, with or without the rest of a name in a cluster.
_PD_HOST: Final = re.compile(r"(?P<name>[a-z0-9-]+)-pd\.(?P<namespace>[a-z0-9-]+)(?:\.svc(?:\.[a-z0-9.-]+)?)?")


class SimulatedTidb:
    """Made before the informers run. `speed` is how many regions PD moves in a second; 0: as many as usual."""

    def __init__(self, components: Components, *, metric_storage: str = PROMETHEUS, speed: float = 0.0) -> None:
        component = components.build_component(clusters.NAME, manager=OPERATOR)
        self._clock = component.clock
        self.topology = Topology(component.informers)
        self._loads = ClusterLoads(component.client)
        self.pds = SimulatedPds(component, self.topology, self._loads, metric_storage=metric_storage, speed=speed)
        self._clusters = TidbOperator(component, self.topology, self.pds)
        self._monitoring = Scraper(self.topology, self.pds, self._loads, clock=component.clock)

    def build_services(self) -> list[Service]:
        controllers = (self.pds.controller, self._clusters.controller)
        made = [Service(name=controller.name, run=controller.run) for controller in controllers]
        return [*made, self._monitoring.build_service()]

    async def answer(self, method: str, target: str, body: bytes = b"") -> tuple[int, bytes]:
        """To one request: `/NAMESPACE/TIDBCLUSTER/…` is that cluster's PD; metrics and queries are about all."""
        path, _, query = target.partition("?")
        now_s = self._clock.now().timestamp()
        if path == METRICS:
            return HTTPStatus.OK, format_exposition(self._monitoring.series, now_s=now_s)
        if path == QUERY:
            return answer_query(self._monitoring.series, query=query, body=body, now_s=now_s)
        parts = target.split("/", 3)
        if len(parts) < 4 or parts[0]:
            return HTTPStatus.NOT_FOUND, _encode_problem(
                f"there are {METRICS}, {QUERY} and /NAMESPACE/TIDBCLUSTER/pd/api/v1/…"
            )
        base = Key(parts[1], parts[2])
        answer = await self.pds.answer(base, PdRequest(method=method, target=f"/{parts[3]}", body=body))
        if answer is None:
            return HTTPStatus.SERVICE_UNAVAILABLE, _encode_problem(f"no PD of {base} runs")
        return answer.status, answer.body


def route_to_simulated(url: str) -> str | None:
    """Where `answer` has what is at a cluster's own address; None: not ours."""
    split = urlsplit(url)
    rest = f"{split.path}?{split.query}" if split.query else split.path
    if split.hostname == PROMETHEUS_HOST:
        return rest
    found = _PD_HOST.fullmatch(split.hostname or "")
    return None if found is None else f"/{found['namespace']}/{found['name']}{rest}"


def _encode_problem(problem: str) -> bytes:
    return msgspec.json.encode(problem)
