"""The recordings about endings, replayed with controllers: they do what the other replay's set-ups do in their name.

    outcomes = replay_with_controllers("delete")

Before every request the controllers come to rest. What they generate names for is found by its owner.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from plimsoll.kube.client import Client
from plimsoll.kube.requests.options import ClientSettings
from plimsoll.local.apiserver.transport.kube_transport import EmbeddedTransport
from plimsoll.local.components import Components
from plimsoll.local.controller_manager.services import (
    build_disruption_services,
    build_garbage_collector_services,
    build_namespace_services,
    build_pod_gc_services,
)
from plimsoll.local.controller_manager.workloads.deployments.controller import build_deployment_services
from plimsoll.local.controller_manager.workloads.replica_sets.controller import build_replica_set_services
from plimsoll.runtime.entropy import SeededEntropy
from plimsoll.runtime.supervisor import Supervisor
from plimsoll.runtime.virtual_run import VirtualRun
from tests.conformance import setups
from tests.conformance.recordings import golden
from tests.conformance.replay import Outcome, Replay
from tests.conformance.servers import ADMIN_TOKEN, RECORDED_DAY
from tests.conformance.setups.controlled import INSTEAD, LAST
from tests.conformance.setups.steps import CONTROLLERS, Send, StatusAsRecorded, Step

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.conformance.recordings import RecordedExchange

_PARTS = (
    build_replica_set_services,
    build_deployment_services,
    build_garbage_collector_services,
    build_namespace_services,
    build_disruption_services,
    build_pod_gc_services,
)


@cache
def replay_with_controllers(group: str) -> dict[str, Outcome]:
    with VirtualRun(start=RECORDED_DAY) as run:
        replaying = _ControlledReplay(run)
        return {recorded.id: replaying.answer(recorded) for recorded in with_controllers(group)}


def with_controllers(group: str) -> list[RecordedExchange]:
    """The lines that were recorded while controllers ran."""
    last = LAST.get(group)
    return [recorded for recorded in golden(group) if last is None or recorded.id <= last]


class _ControlledReplay(Replay):
    def __init__(self, run: VirtualRun) -> None:
        super().__init__(run)
        self._named: set[str] = set()
        entropy = SeededEntropy("controllers")
        components = Components(self._connect, clock=run.clock, entropy=entropy)
        services = [service for services_of in _PARTS for service in services_of(components)]
        supervisor = Supervisor([*components.list_services(), *services], clock=run.clock, entropy=entropy)
        run.spawn(supervisor.run(), name="controllers")
        run.settle()

    def _connect(self, manager: str) -> Client:
        transport = EmbeddedTransport(self.server.application, token=ADMIN_TOKEN)
        settings = ClientSettings(user_agent=f"{manager}/v1.34", field_manager=manager, qps=0)
        return Client(transport, clock=self.run.clock, entropy=SeededEntropy(manager), settings=settings)

    def steps_before(self, recorded: RecordedExchange) -> Sequence[Step]:
        return INSTEAD.get(recorded.id, setups.BEFORE.get(recorded.id, ()))

    def take(self, step: Step) -> None:
        match step:
            case Send(agent=agent) if agent == CONTROLLERS:
                self._find_what_was_made(step)
            case StatusAsRecorded():
                pass
            case _:
                super().take(step)
        self.run.settle()

    def _find_what_was_made(self, step: Send) -> None:
        """The recording's name for a pod stands for the name of the pod that our controller made."""
        prefix = (step.body or {}).get("metadata", {}).get("generateName")
        if step.method != "POST" or not prefix:
            return
        for pod in self.client.send("GET", step.path).body["items"]:
            name = pod["metadata"]["name"]
            if pod["metadata"].get("generateName") == prefix and name not in self._named:
                self._named.add(name)
                self.ours.put("name", step.body["metadata"]["name"], name)
                return
        raise AssertionError(f"no controller made {step.body['metadata']['name']}")
