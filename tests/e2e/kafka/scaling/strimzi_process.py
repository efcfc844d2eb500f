"""The parts of Strimzi that run by themselves: pods of StrimziPodSets, and KafkaRebalances through a Cruise Control.

    python -m tests.e2e.kafka.scaling.strimzi_process KUBECONFIG HOST:PORT

The Cruise Control of each cluster is at HOST:PORT, as its DNS would resolve it.
"""

from __future__ import annotations

import asyncio
import re
import sys
from typing import TYPE_CHECKING

from msgspec.structs import replace

from plimsoll.cli.shared.connection import Connection
from plimsoll.core.errors import PlimsollError
from plimsoll.kafka.brokers.access import KubernetesBrokers
from plimsoll.kafka.builder import KafkaOperatorParts, OperatorDependencies
from plimsoll.kafka.controllers.pod_set_controller import PodSetController
from plimsoll.kafka.engine.config_map_store import ConfigMapExecutionStore
from plimsoll.kafka.settings import KafkaSettings, RebalanceEngine
from plimsoll.kube.client import Client
from plimsoll.kube.http.transport import HttpTransport
from plimsoll.kube.informer.factory import SharedInformerFactory
from plimsoll.kube.recorder import EventRecorder
from plimsoll.kube.requests.options import ClientSettings
from plimsoll.kube.secret_tls import ClusterSecrets
from plimsoll.objects.api.events import EventSource
from plimsoll.objects.custom_kinds import OUR_KINDS
from plimsoll.runtime.clocks import RealClock
from plimsoll.runtime.entropy import SystemEntropy
from plimsoll.runtime.signals import run_until_signalled
from plimsoll.runtime.supervisor import Service, Supervisor
from plimsoll.web.client import AiohttpClient

if TYPE_CHECKING:
    from plimsoll.kube.transport import Transport
    from plimsoll.web.client import HttpClient, Request, RequestFailed, Response

NAME = "strimzi"
_EVERY_S = 0.5


class RedirectedClient:
    """Sends requests for any Service to one address."""

    def __init__(self, web: HttpClient, address: str) -> None:
        self._web = web
        self._address = address

    async def send(self, request: Request) -> Response | RequestFailed:
        return await self._web.send(
            replace(request, url=re.sub(r"//[^/]+", f"//{self._address}", request.url, count=1))
        )


async def run(kubeconfig: str, address: str) -> None:
    access = Connection(kubeconfig=kubeconfig, context="", server="").build_access(clock=RealClock())
    async with HttpTransport(access, user_agent=NAME) as transport, AiohttpClient(timeout_s=30.0) as web:
        await _run(transport, RedirectedClient(web, address))


async def _run(transport: Transport, web: HttpClient) -> None:
    clock, entropy = RealClock(), SystemEntropy()
    settings = ClientSettings(user_agent=NAME, field_manager=NAME, qps=0)
    client = Client(transport, clock=clock, entropy=entropy, settings=settings, kinds=OUR_KINDS)
    informers = SharedInformerFactory(client, clock=clock, entropy=entropy)
    recorder = EventRecorder(client, EventSource(component=NAME), clock=clock, entropy=entropy)
    pods = PodSetController(client, informers, recorder, clock=clock, entropy=entropy)
    parts = KafkaOperatorParts(
        OperatorDependencies(
            client=client,
            clock=clock,
            entropy=entropy,
            connector=KubernetesBrokers(ClusterSecrets(client)),
            open_store=lambda kafka: ConfigMapExecutionStore(client, kafka, clock=clock),
            settings=KafkaSettings(engine=RebalanceEngine.CRUISE_CONTROL),
            web=web,
            keeps_last_plans=False,
        )
    )

    async def run_rebalances() -> None:
        while True:
            try:
                await parts.rebalances.run_all()
            except PlimsollError as error:
                sys.stderr.write(f"{error}\n")
            await clock.sleep(_EVERY_S)

    services = [
        Service(name="events", run=recorder.run),
        *informers.list_services(),
        *pods.list_services(),
        Service(name="rebalances", run=run_rebalances),
    ]
    await Supervisor(services, clock=clock, entropy=entropy).run()


if __name__ == "__main__":
    asyncio.run(run_until_signalled(run(sys.argv[1], sys.argv[2])))
