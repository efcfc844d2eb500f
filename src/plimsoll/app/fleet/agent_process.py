"""The agent against a cluster: `plimsoll run agent`.

Its parameters come from flags, or from the Secret that the add-on has. A dry run takes no lease and reports nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from plimsoll.core.errors import InvalidInput
from plimsoll.fleet.agent.builder import AgentParts, BuiltAgent
from plimsoll.fleet.agent.settings import LEASE, NAME, read_parameters
from plimsoll.kube.errors import NotFound
from plimsoll.objects.api.core import Secret
from plimsoll.operator.process import ControllerProcess, ProcessOwner
from plimsoll.runtime.supervisor import Service, Supervisor
from plimsoll.web.client import AiohttpClient

if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping

    from starlette.types import ASGIApp

    from plimsoll.core.clock import Clock
    from plimsoll.core.entropy import Entropy
    from plimsoll.fleet.agent.builder import AgentCycle
    from plimsoll.fleet.agent.settings import AgentParameters, AgentSettings
    from plimsoll.journal.lazy import LazyJournal
    from plimsoll.kube.client import Client
    from plimsoll.kube.informer.factory import SharedInformerFactory
    from plimsoll.kube.recorder import EventRecorder
    from plimsoll.kube.transport import Guard
    from plimsoll.operator.process import ControllerOptions

_TIMEOUT_S: Final = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentProcessSettings:
    """What a user chose. `parameters` rule over those of the Secret `secret`; empty: no Secret is read."""

    process: ControllerOptions
    settings: AgentSettings
    parameters: Mapping[str, str]
    secret: str = ""
    tls: ssl.SSLContext | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentProgram:
    """The agent as a process runs it."""

    built: BuiltAgent
    informers: SharedInformerFactory
    recorder: EventRecorder
    journal: LazyJournal | None
    pages: ASGIApp

    def list_standby_services(self) -> list[Service]:
        return self.informers.list_services()

    def list_services(self) -> list[Service]:
        return [Service(name="events", run=self.recorder.run), *self.built.list_services()]

    async def leave(self) -> None:
        await self.built.close()
        if self.journal is not None:
            await self.journal.close()


class AgentProcess(ProcessOwner):
    """An agent and its connections, for as long as the block lasts."""

    def __init__(self, settings: AgentProcessSettings, *, clock: Clock, entropy: Entropy) -> None:
        self._settings = settings
        self._clock = clock
        self._entropy = entropy
        self._process = ControllerProcess(
            settings.process.build_settings(
                NAME, lease=LEASE, namespace=settings.settings.namespace, dry_run=settings.settings.dry_run
            ),
            clock=clock,
            entropy=entropy,
        )
        self._journal = self._process.make_journal(settings.process.data)

    async def _open(self) -> None:
        self._web = await self._process.stack.enter_async_context(
            AiohttpClient(timeout_s=_TIMEOUT_S, tls=self._settings.tls)
        )
        self._parameters = await self._read_parameters()

    async def run(self) -> None:
        """Runs until cancelled, or until leadership is lost."""
        self._process.check_address()
        await self._check_cluster()
        await self._process.run(self._build)

    async def run_once(self) -> AgentCycle:
        """Poll, reconcile every instance and report, once, while this process leads."""
        await self._check_cluster()
        try:
            return await self._process.run_once(self._run_cycle)
        finally:
            if self._journal is not None:
                await self._journal.close()

    async def _run_cycle(self, client: Client, _guard: Guard | None) -> AgentCycle:
        informers = self._process.make_informers(client)
        async with self._process.record_events() as recorder:
            built = self._build_agent(client, informers, recorder, keeps_last_plans=False)
            supervisor = Supervisor(informers.list_services(), clock=self._clock, entropy=self._entropy)
            return await built.run_once(supervisor.run())

    async def _read_parameters(self) -> AgentParameters:
        settings, texts = self._settings, {}
        if settings.secret:
            namespace = settings.settings.namespace
            try:
                stored = await self.client.get(Secret, settings.secret, namespace=namespace)
            except NotFound:
                raise InvalidInput(f"there is no Secret {namespace}/{settings.secret}", path="--secret") from None
            texts = {name: value.decode(errors="replace").strip() for name, value in stored.data.items()}
        return read_parameters(texts | {name: text for name, text in settings.parameters.items() if text})

    async def _check_cluster(self) -> None:
        # A server without the definitions, or one that refuses us, is an error now; an informer would only retry.
        for path in (
            "/apis/managedkafka.bf2.org/v1alpha1/managedkafkas",
            "/apis/kafka.strimzi.io/v1/kafkas",
            "/apis/core.strimzi.io/v1/strimzipodsets",
        ):
            await self.client.get_json(path, [("limit", "1")])

    # ---- parts

    def _build(self, client: Client, _guard: Guard | None) -> AgentProgram:
        informers = self._process.make_informers(client)
        # Without the lease's guard: an Event about what was done may still be written after the lease is lost.
        recorder = self._process.make_recorder(self.client)
        built = self._build_agent(client, informers, recorder, keeps_last_plans=True)
        return AgentProgram(
            built=built,
            informers=informers,
            recorder=recorder,
            journal=self._journal,
            pages=self._process.make_pages([], built.expose_metrics),
        )

    def _build_agent(
        self, client: Client, informers: SharedInformerFactory, recorder: EventRecorder, *, keeps_last_plans: bool
    ) -> BuiltAgent:
        settings = self._settings.settings
        return BuiltAgent(
            AgentParts(
                client=client,
                informers=informers,
                clock=self._clock,
                web=self._web,
                parameters=self._parameters,
                settings=settings,
                recorder=None if settings.dry_run else recorder,
                journal=self._journal,
                keeps_last_plans=keeps_last_plans and not settings.dry_run,
            )
        )
