"""A whole fleet manager with a simulated OCM and simulated agents, all over HTTP in this process, in virtual time."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from plimsoll.fleet.config.policy_documents import DYNAMIC_SCALING
from plimsoll.fleet.providers.ocm.provider import OcmProvider
from plimsoll.fleet.providers.ocm.settings import OcmClientSettings
from plimsoll.local.ocm.application import TOKEN_PATH
from plimsoll.local.ocm.documents import BASE
from plimsoll.local.ocm.requests import ClusterBody, read_body
from plimsoll.local.ocm.service import SimulatedOcm
from plimsoll.local.ocm.settings import OcmDelays, OcmSettings
from plimsoll.local.ocm.simulated_agents import SimulatedAgents
from plimsoll.runtime.entropy import SeededEntropy
from plimsoll.web.asgi_client import AsgiClient
from tests.fleet.service import MEMORY, FleetScenario

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from plimsoll.local.ocm.faults import CallFault, ReceivedCall
    from plimsoll.local.ocm.state import OcmCluster
    from plimsoll.web.client import Request, RequestFailed, Response

OCM_URL = "http://ocm.test"
DELAYS = OcmDelays(pending_s=30.0, installing_s=60.0, addon_s=30.0, uninstalling_s=60.0)
ACCOUNT: dict[str, Any] = {"client_id": "fleet", "client_secret": "secret of the fleet"}


class _ServiceClient:
    """The service, which is started after the agents."""

    def __init__(self, fleet: FleetScenario) -> None:
        self._fleet = fleet

    async def send(self, request: Request) -> Response | RequestFailed:
        return await AsgiClient(self._fleet.service.application).send(request)


class OcmFleet(FleetScenario):
    """Clusters take 90 s, and add-ons 30 s, unless the settings of OCM say otherwise: a pass costs processor time."""

    def __init__(self, folder: Path, url: str = MEMORY, *, settings: OcmSettings | None = None) -> None:
        super().__init__(folder, url)
        self.agents = SimulatedAgents(web=_ServiceClient(self), clock=self.clock)
        self.ocm = SimulatedOcm(
            clock=self.clock,
            entropy=SeededEntropy("simulated OCM"),
            data_plane=self.agents,
            settings=settings or OcmSettings(delays=DELAYS, **ACCOUNT),
        )
        client = OcmClientSettings(base_url=OCM_URL, token_url=f"{OCM_URL}{TOKEN_PATH}", **ACCOUNT)
        self.web = AsgiClient(self.ocm.application)
        self.providers = (OcmProvider(client, web=self.web, clock=self.clock),)
        self.further_services = [*self.ocm.list_services(), *self.agents.list_services()]

    def configure_creation(self, **options: Any) -> OcmFleet:
        self.documents[DYNAMIC_SCALING]["cluster_creation"] = options
        return self

    def strike(self, fault: CallFault) -> OcmFleet:
        self.ocm.faults.add(fault)
        return self

    def list_calls(self, call: str = "") -> tuple[ReceivedCall, ...]:
        return self.ocm.list_calls(call)

    def list_provided(self) -> tuple[OcmCluster, ...]:
        return self.ocm.clusters.list_clusters()

    def get_only(self) -> dict[str, Any]:
        (cluster,) = self.list_clusters()
        return cluster

    def wait_for(self, row_id: str, status: str, *, minutes: int = 60) -> dict[str, Any]:
        """Until the row has this status."""
        for _ in range(2 * minutes):
            found = [cluster for cluster in self.list_clusters() if cluster["id"] == row_id]
            if found and found[0]["status"] == status:
                return found[0]
            self.pass_by(30)
        raise AssertionError(f"{row_id} is not {status} after {minutes} minutes: {found}")

    def wait_until_gone(self, row_id: str, *, minutes: int = 60) -> None:
        for _ in range(2 * minutes):
            if all(cluster["id"] != row_id for cluster in self.list_clusters()):
                return
            self.pass_by(30)
        raise AssertionError(f"{row_id} is still there")

    def list_reasons(self, row_id: str) -> list[str]:
        """Of all decisions about a cluster, the oldest first."""
        return [decision["reason"] for decision in reversed(self.list_decisions(f"cluster/{row_id}"))]

    def wait_for_clusters(self, number: int) -> list[dict[str, Any]]:
        """Starts the service, and waits until so many clusters are ready."""
        self.start()
        for _ in range(120):
            ready = self.list_clusters("ready")
            if len(ready) >= number:
                return ready
            self.pass_by(30)
        raise AssertionError(f"only {len(ready)} clusters are ready")

    def add_provided(self, row_id: str, *, provided_region: str = "us-east-1", **changes: Any) -> str:
        """A ready cluster that the provider has as well, as if the service had made it; returns the provider's id."""
        body = {
            "name": f"mk-{row_id}",
            "cloud_provider": {"id": "aws"},
            "region": {"id": provided_region},
            "multi_az": True,
            "nodes": {
                "compute_machine_type": {"id": "r5.xlarge"},
                "autoscale_compute": {"min_replicas": 3, "max_replicas": 18},
            },
        }
        cluster = self.ocm.clusters.create(read_body(body, ClusterBody))
        self.add_cluster(row_id, cluster_id=cluster.id, **changes)
        return cluster.id


@contextmanager
def open_ocm_fleet(folder: Path, url: str = MEMORY, *, settings: OcmSettings | None = None) -> Iterator[OcmFleet]:
    with OcmFleet(folder, url, settings=settings) as fleet:
        yield fleet


def build_path(cluster_id: str, below: str = "") -> str:
    return f"{BASE}/clusters/{cluster_id}{below}"
