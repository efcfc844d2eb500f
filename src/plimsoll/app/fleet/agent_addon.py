"""The agent as an add-on of a cluster in this process. It takes the lease that `plimsoll run agent` takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.core.errors import InvalidInput
from plimsoll.fleet.agent.builder import AgentParts, BuiltAgent
from plimsoll.fleet.agent.settings import LEASE, NAME, AgentSettings, read_parameters
from plimsoll.kube.leases import LeaseSettings
from plimsoll.local.ocm.ports import DataPlaneFailed
from plimsoll.runtime.supervisor import Service

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from plimsoll.app.fleet.addons import AddonHost
    from plimsoll.web.client import HttpClient

AGENT_ADDON: Final = "kas-fleetshard-operator"
"""The id of the agent at OCM."""
AGENT_LEASE: Final = LeaseSettings(name=LEASE, namespace=AgentSettings().namespace, field_manager=NAME)


class AgentAddon:
    """`web` reaches the control plane and its issuer."""

    def __init__(self, web: HttpClient) -> None:
        self._web = web

    def build_services(self, host: AddonHost, parameters: Mapping[str, str]) -> Sequence[Service]:
        try:
            read = read_parameters(parameters)
        except InvalidInput as error:
            raise DataPlaneFailed(f"the agent cannot start: {error}") from error
        components = host.build_components()
        component = components.build_component(NAME, manager=NAME)
        election = host.cluster.build_election("agent", AGENT_LEASE)
        built = BuiltAgent(
            AgentParts(
                client=component.client.with_guard(election),
                informers=component.informers,
                clock=host.dependencies.clock,
                web=self._web,
                parameters=read,
                settings=AgentSettings(),
                recorder=component.recorder,
                journal=host.dependencies.journal,
            )
        )

        async def contend() -> None:
            await election.run(built.list_services(), on_end=built.close)

        return [*components.list_services(whose="agent"), Service(name="agent", run=contend)]
