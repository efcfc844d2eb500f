"""Kafka in `plimsoll up`: the operator over simulated brokers, and Cruise Control's API of every cluster.

Inside the process the operator calls the engine of a cluster without a socket. Other processes reach it under
`/NAMESPACE/KAFKA/kafkacruisecontrol`, and under `/kafkacruisecontrol` while there is one cluster, with the
administrator's token.
"""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING

from plimsoll.app.kafka.simulated_connector import SimulatedBrokers
from plimsoll.kafka.builder import KafkaOperatorParts, OperatorDependencies
from plimsoll.kafka.cruise_control.server.application import BASE_PATH
from plimsoll.kafka.engine.config_map_store import ConfigMapExecutionStore
from plimsoll.kafka.engine.engine import run_in_thread
from plimsoll.kafka.settings import NAME, KafkaSettings
from plimsoll.local.tidb.server import HEALTH, guard_server
from plimsoll.web.client import RequestFailed
from plimsoll.web.responses import build_json_response

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any

    from starlette.types import ASGIApp, Receive, Scope, Send

    from plimsoll.core.clock import Clock
    from plimsoll.core.entropy import Entropy
    from plimsoll.journal.ports import Journal
    from plimsoll.kafka.engine.engines import BrokerConnections
    from plimsoll.local.components import Components
    from plimsoll.local.kafka.simulated import SimulatedClusters
    from plimsoll.runtime.supervisor import Service
    from plimsoll.web.client import Request, Response


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedKafkaDependencies:
    """What the parts are made from."""

    clusters: SimulatedClusters
    clock: Clock
    entropy: Entropy
    journal: Journal
    run_blocking: Callable[[Callable[[], Any]], Awaitable[Any]] = run_in_thread


class EmbeddedKafka:
    """The Kafka operator and its engines; made before the informers run."""

    def __init__(self, components: Components, dependencies: EmbeddedKafkaDependencies) -> None:
        component = components.build_component(NAME, manager=NAME)
        client, clock = component.client, dependencies.clock
        self._parts = KafkaOperatorParts(
            OperatorDependencies(
                client=client,
                clock=clock,
                entropy=dependencies.entropy,
                connector=SimulatedBrokers(dependencies.clusters.find),
                open_store=lambda kafka: ConfigMapExecutionStore(client, kafka, clock=clock),
                settings=KafkaSettings(),
                web=NoCruiseControls(),
                recorder=component.recorder,
                journal=dependencies.journal,
                run_blocking=dependencies.run_blocking,
            )
        )
        self._controllers = self._parts.build_controllers(component.informers)

    def list_services(self) -> list[Service]:
        return self._controllers.list_services()

    def expose_metrics(self) -> bytes:
        return self._controllers.reconciling.expose_metrics()

    def build_cruise_control_app(self, *, token: str) -> ASGIApp:
        return guard_server(CruiseControlRouter(self._parts.connections), token=token)


class NoCruiseControls:
    """Every cluster has our engine, and nothing else is asked."""

    async def send(self, request: Request) -> Response | RequestFailed:
        return RequestFailed(problem=f"cannot reach {request.url}: every cluster has the engine of this process")


class CruiseControlRouter:
    """Routes to the engine of each cluster, as ASGI."""

    def __init__(self, connections: BrokerConnections) -> None:
        self._connections = connections

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == HEALTH:
            await build_json_response({"status": "ok"})(scope, receive, send)
            return
        engines = dict(self._connections.list_engines())
        key, path = _route(scope["path"], only=next(iter(engines)) if len(engines) == 1 else None)
        engine = None if key is None else engines.get(key)
        if engine is None:
            problem = {
                "errorMessage": f"there is /NAMESPACE/KAFKA{BASE_PATH}, for clusters with spec.cruiseControl whose "
                f"brokers run; now: {', '.join('/'.join(known) for known in engines) or 'none'}",
                "version": 1,
            }
            await build_json_response(problem, HTTPStatus.NOT_FOUND)(scope, receive, send)
            return
        await engine.application({**scope, "path": path, "raw_path": path.encode()}, receive, send)


def _route(path: str, *, only: tuple[str, str] | None) -> tuple[tuple[str, str] | None, str]:
    """The cluster that a path names, and the rest of the path. `only`: the cluster, if there is one."""
    if path.startswith(BASE_PATH):
        return only, path
    namespace, _, rest = path.removeprefix("/").partition("/")
    name, _, rest = rest.partition("/")
    return (namespace, name), f"/{rest}"
