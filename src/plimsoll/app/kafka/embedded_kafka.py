"""Kafka beside an embedded API server: the operator, and Cruise Control's API of every cluster.

Inside the process the operator calls the engine of a cluster without a socket. Other processes reach it under
`/NAMESPACE/KAFKA/kafkacruisecontrol`, and under `/kafkacruisecontrol` while there is one cluster, with the
administrator's token.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from plimsoll.app.kafka.cruise_control_router import CruiseControlRouter
from plimsoll.kafka.builder import KafkaOperatorParts, OperatorDependencies
from plimsoll.kafka.engine.config_map_store import ConfigMapExecutionStore
from plimsoll.kafka.engine.engine import run_in_thread
from plimsoll.kafka.settings import LEASE, NAME, KafkaSettings
from plimsoll.kube.leases import LeaseSettings
from plimsoll.local.tidb.server import guard_server
from plimsoll.runtime.supervisor import Service
from plimsoll.web.client import RequestFailed

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any

    from starlette.types import ASGIApp

    from plimsoll.app.embedded_election import EmbeddedElection
    from plimsoll.core.clock import Clock
    from plimsoll.core.entropy import Entropy
    from plimsoll.journal.ports import Journal
    from plimsoll.kafka.brokers.ports import BrokerConnector
    from plimsoll.kube.controller.controller import Controller
    from plimsoll.kube.informer.events import Key
    from plimsoll.local.components import Components
    from plimsoll.web.client import Request, Response

KAFKA_LEASE: Final = LeaseSettings(name=LEASE, namespace=KafkaSettings().controller_namespace, field_manager=NAME)
"""The lease that `plimsoll run kafka` takes too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedKafkaDependencies:
    """What the parts are made from."""

    connector: BrokerConnector
    """To the brokers: simulated ones in `plimsoll up`, real ones in `plimsoll kafka try`."""
    clock: Clock
    entropy: Entropy
    journal: Journal
    election: EmbeddedElection | None = None
    """None: it acts at once, because no other operator can be started beside it."""
    run_blocking: Callable[[Callable[[], Any]], Awaitable[Any]] = run_in_thread


class EmbeddedKafka:
    """The Kafka operator and its engines; made before the informers run."""

    def __init__(self, components: Components, dependencies: EmbeddedKafkaDependencies) -> None:
        component = components.build_component(NAME, manager=NAME)
        self._election = election = dependencies.election
        client, clock = component.client.with_guard(election) if election else component.client, dependencies.clock
        self._parts = KafkaOperatorParts(
            OperatorDependencies(
                client=client,
                clock=clock,
                entropy=dependencies.entropy,
                connector=dependencies.connector,
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
        if self._election is None:
            return self._controllers.list_services()
        return [Service(name="Kafka operator", run=self._contend)]

    def list_controllers(self) -> list[Controller[Key]]:
        return self._controllers.list_controllers()

    async def _contend(self) -> None:
        """Reconcile while leading. The engines end with it: another operator may go on with their executions."""
        assert self._election is not None
        await self._election.run(self._controllers.list_services(), on_end=self._parts.close)

    async def close(self) -> None:
        """Close the connections to brokers."""
        await self._parts.close()

    def expose_metrics(self) -> bytes:
        return self._controllers.reconciling.expose_metrics()

    def build_cruise_control_app(self, *, token: str) -> ASGIApp:
        return guard_server(CruiseControlRouter(self._parts.connections), token=token)


class NoCruiseControls:
    """Every cluster has our engine, and nothing else is asked."""

    async def send(self, request: Request) -> Response | RequestFailed:
        return RequestFailed(problem=f"cannot reach {request.url}: every cluster has the engine of this process")
