"""Our own Cruise Control server in process, behind the client that reaches a real one. Executions last as tests say."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager  # noqa: TC003 - a field of a dataclass
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

from plimsoll.kafka.cruise_control.client.client import CruiseControlClient
from plimsoll.web.asgi_client import AsgiClient
from plimsoll.web.client import FailureKind, RequestFailed
from tests.faults.crashes import Crashed
from tests.kafka.cruise_control.server.server_bench import Bench, describe_cluster, start_server

if TYPE_CHECKING:
    from plimsoll.kafka.model.description import ClusterDescription
    from plimsoll.objects.api.kafka import Kafka
    from plimsoll.runtime.virtual_run import VirtualRun
    from plimsoll.web.client import Request, Response

BASE = "http://engine/kafkacruisecontrol"
GOOD = describe_cluster(brokers=4, hosting=3)
WITHOUT_RACKS = describe_cluster(brokers=4, hosting=3, racks=1)


@dataclass
class EngineControl:
    """A `CruiseControls` with one server, and the `HttpClient` in front of it."""

    run: VirtualRun
    is_down: bool = False
    crashes_after: str = ""
    """The process of the operator dies after this call."""
    calls: list[str] = field(default_factory=list)
    _server: AbstractAsyncContextManager[Bench] | None = None
    _bench: Bench | None = None

    async def find(self, _kafka: Kafka) -> CruiseControlClient:
        return CruiseControlClient(BASE, web=self)

    async def send(self, request: Request) -> Response | RequestFailed:
        if self.is_down:
            return RequestFailed(problem="connection refused", kind=FailureKind.UNCONNECTED)
        parts = urlsplit(request.url)
        endpoint = parts.path.rpartition("/")[2]
        if request.method == "POST":
            dry_run = parse_qs(parts.query).get("dryrun", [""])[0]
            self.calls.append(f"{endpoint} {dry_run}".strip())
        answer = await AsgiClient(self.bench.client.server).send(request)
        if self.crashes_after and self.calls[-1:] == [self.crashes_after]:
            self.crashes_after = ""
            raise Crashed(f"after {request.url}")
        return answer

    # ---- what happens

    @property
    def bench(self) -> Bench:
        assert self._bench is not None
        return self._bench

    @property
    def executions(self) -> int:
        return len(self.bench.executor.executions)

    def open(self) -> None:
        self._server = start_server(self.run.clock, cluster=GOOD)
        self._bench = self.run.run_until(self._server.__aenter__())

    def close(self) -> None:
        assert self._server is not None
        self.run.run_until(self._server.__aexit__(None, None, None))

    def restart(self) -> None:
        """It knows no task any more, and executes nothing."""
        self.close()
        self.open()

    def describe(self, cluster: ClusterDescription) -> None:
        self.bench.cluster = cluster

    def finish(self) -> None:
        self.bench.executor.finish()
        self.run.settle()
