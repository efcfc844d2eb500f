"""A data plane that consists of agents only: each polls its control plane and reports, and no cluster is behind it.

docs/design/fleet.md 11, "simulated fleetshard". It reports maxUnits = floor(maxNodes * units per node), runs every
Kafka that it is given after a delay, and says so. It speaks HTTP like the real agent, with the parameters of its
add-on, so a scenario of the service sees the same requests.
"""

from __future__ import annotations

from fractions import Fraction
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

import msgspec
import structlog

from plimsoll.core.values import Value
from plimsoll.runtime.supervisor import Service
from plimsoll.web.client import Request, Response

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.core.clock import Clock
    from plimsoll.local.ocm.ports import ClusterSpec, PoolSpec
    from plimsoll.web.client import HttpClient

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

AGENT_ADDON: Final = "kas-fleetshard-operator"
UNITS_PER_NODE: Final = {"standard": Fraction(1, 3), "developer": Fraction(10)}
STRIMZI: Final = [
    {
        "version": "strimzi-cluster-operator.v0.23.0-0",
        "ready": True,
        "kafkaVersions": ["2.7.0"],
        "kafkaIbpVersions": ["2.7"],
    }
]
_BASE: Final = "/api/kafkas_mgmt/v1/agent-clusters"
_READY: Final = [{"type": "Ready", "status": "True", "reason": "", "message": ""}]


class AgentSettings(Value):
    """`kafka_ready_s`: how long a Kafka is being installed."""

    period_s: float = 15.0
    kafka_ready_s: float = 30.0
    addon_id: str = AGENT_ADDON


class _Agent:
    """One agent with what it remembers."""

    def __init__(self, dns: str, parameters: Mapping[str, str]) -> None:
        self.dns = dns
        self.parameters = dict(parameters)
        self.token = ""
        self.since: dict[str, float] = {}
        self.is_silent = False


class SimulatedAgents:
    """Implements `local.ocm.ports.DataPlane`. `run` polls and reports for all agents, one after the other."""

    def __init__(self, *, web: HttpClient, clock: Clock, settings: AgentSettings | None = None) -> None:
        self._web = web
        self._clock = clock
        self._settings = settings or AgentSettings()
        self._dns: dict[str, str] = {}
        self._agents: dict[str, _Agent] = {}

    async def make(self, cluster: ClusterSpec) -> None:
        self._dns[cluster.id] = cluster.dns

    async def set_pools(self, cluster_id: str, pools: tuple[PoolSpec, ...]) -> None:
        """The bounds reach the agent by its control plane."""

    async def install(self, cluster_id: str, addon_id: str, parameters: Mapping[str, str]) -> None:
        if addon_id == self._settings.addon_id and cluster_id in self._dns:
            self._agents[cluster_id] = _Agent(self._dns[cluster_id], parameters)

    async def delete(self, cluster_id: str) -> None:
        self._dns.pop(cluster_id, None)
        self._agents.pop(cluster_id, None)

    def set_silent(self, cluster_id: str, *, is_silent: bool = True) -> None:
        """The agent no longer reports, or reports again."""
        self._agents[cluster_id].is_silent = is_silent

    def list_services(self) -> list[Service]:
        return [Service(name="simulated agents", run=self.run)]

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            for cluster_id, agent in list(self._agents.items()):
                if not agent.is_silent:
                    await self._report(cluster_id, agent)
            await self._clock.sleep(self._settings.period_s)

    async def _report(self, cluster_id: str, agent: _Agent) -> None:
        wanted = await self._call(agent, "GET", f"/{cluster_id}")
        listed = await self._call(agent, "GET", f"/{cluster_id}/kafkas")
        if wanted is None or listed is None:
            return
        kafkas = [item for item in listed["items"] if not item["id"].startswith("reserved-")]
        capacity = _build_capacity(wanted["spec"].get("capacity") or {}, kafkas)
        status = {"conditions": _READY, "capacity": capacity, "strimzi": STRIMZI}
        await self._call(agent, "PUT", f"/{cluster_id}/status", status)
        statuses = {item["id"]: self._build_status(agent, item) for item in listed["items"]}
        if statuses:
            await self._call(agent, "PUT", f"/{cluster_id}/kafkas/status", statuses)

    def _build_status(self, agent: _Agent, item: dict[str, Any]) -> dict[str, Any]:
        now_s = self._clock.monotonic_s()
        if item["spec"]["deleted"]:
            agent.since.pop(item["id"], None)
            return {"conditions": [{"type": "Ready", "status": "False", "reason": "Deleted"}]}
        if now_s - agent.since.setdefault(item["id"], now_s) < self._settings.kafka_ready_s:
            return {"conditions": [{"type": "Ready", "status": "False", "reason": "Installing"}]}
        ingress = agent.dns.removeprefix("apps.")
        return {
            "conditions": _READY,
            "versions": item["spec"]["versions"],
            "routes": [{"name": "bootstrap", "prefix": "", "router": f"router.kas.{ingress}"}],
            "adminServerURI": f"https://admin.{ingress}",
        }

    async def _call(self, agent: _Agent, method: Any, path: str, body: Any = None) -> Any:
        """The document of the answer; None: there is none, and the next round tries again."""
        for _ in range(2):
            token = agent.token or await self._fetch_token(agent)
            answer = await self._web.send(
                Request(
                    method=method,
                    url=f"{agent.parameters['control-plane-url']}{_BASE}{path}",
                    body=b"" if body is None else msgspec.json.encode(body),
                    content_type="" if body is None else "application/json",
                    headers={"Authorization": f"Bearer {token}"},
                )
            )
            if not isinstance(answer, Response) or answer.status != HTTPStatus.UNAUTHORIZED:
                break
            agent.token = ""
        if not isinstance(answer, Response) or answer.status >= HTTPStatus.BAD_REQUEST:
            log.info("simulated_agent.refused", path=path, answer=str(answer)[:200])
            return None
        return msgspec.json.decode(answer.body) if answer.body else {}

    async def _fetch_token(self, agent: _Agent) -> str:
        fields = {
            "grant_type": "client_credentials",
            "client_id": agent.parameters["sso-client-id"],
            "client_secret": agent.parameters["sso-secret"],
        }
        answer = await self._web.send(
            Request(
                method="POST",
                url=f"{agent.parameters['sso-auth-server-url']}/token",
                body=urlencode(fields).encode(),
                content_type="application/x-www-form-urlencoded",
            )
        )
        if isinstance(answer, Response) and answer.is_ok:
            agent.token = str(msgspec.json.decode(answer.body)["access_token"])
        return agent.token


def _build_capacity(wanted: dict[str, Any], kafkas: list[dict[str, Any]]) -> dict[str, dict[str, int]]:
    capacity = {}
    for name, bounds in wanted.items():
        most = int(bounds["maxNodes"] * UNITS_PER_NODE.get(name, Fraction(0)))
        labels = [item["metadata"]["labels"] for item in kafkas]
        used = sum(
            int(found["bf2.org/kafkaInstanceProfileQuotaConsumed"])
            for found in labels
            if found["bf2.org/kafkaInstanceProfileType"] == name
        )
        capacity[name] = {"maxUnits": most, "remainingUnits": most - used}
    return capacity
