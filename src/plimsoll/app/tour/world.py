"""The world of the tour: a fleet with the clusters that it makes, and a cluster of its own with TiDB, the main one.

It is what `plimsoll up` runs, with stores in memory. Nothing is left behind. The same parts run in virtual time and on
the clock of the machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import msgspec

from plimsoll.app.embedded_cluster import AUTOSCALER_OPTIONS as MAIN_OPTIONS
from plimsoll.app.embedded_cluster import EmbeddedCluster, EmbeddedSettings
from plimsoll.app.embedded_dependencies import EmbeddedDependencies
from plimsoll.app.fleet.addons import KAFKA_OPERATOR_ADDON, KafkaOperatorAddon
from plimsoll.app.fleet.cluster_stores import MemoryStores
from plimsoll.app.fleet.embedded_clusters import AUTOSCALER_OPTIONS as FLEET_OPTIONS
from plimsoll.app.fleet.embedded_clusters import EmbeddedClustersSettings
from plimsoll.app.fleet.embedded_fleet import EmbeddedFleet, EmbeddedFleetDependencies, EmbeddedFleetSettings
from plimsoll.app.fleet.service import ClusterSettings as FleetClusterSettings
from plimsoll.app.fleet.service import ServiceSettings, TokenSources
from plimsoll.app.fleet.service import World as ServiceWorld
from plimsoll.app.fleet.up_fleet import write_configuration
from plimsoll.core.errors import PlimsollError
from plimsoll.fleet.api.errors import BASE_PATH
from plimsoll.fleet.api.ports import RateLimit
from plimsoll.fleet.auth.issuer import UserIdentity
from plimsoll.fleet.auth.issuer_keys import KEYS_FILE, IssuerKeys
from plimsoll.fleet.config.files import FleetFiles, read_configuration
from plimsoll.fleet.model.access import DEFAULT_ADMIN_ROLES
from plimsoll.fleet.model.statuses import ScalingType
from plimsoll.fleet.store.database import open_database
from plimsoll.local.cluster import ClusterSettings
from plimsoll.local.initial_cluster import InitialCluster, prepare_cluster
from plimsoll.local.kubelet.settings import KubeletSettings
from plimsoll.local.ocm.settings import OcmDelays, OcmSettings
from plimsoll.runtime.supervisor import Service
from plimsoll.web.asgi_client import call_application
from plimsoll.web.client import Response

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from plimsoll.core.clock import Clock
    from plimsoll.core.entropy import Entropy
    from plimsoll.journal.ports import Journal
    from plimsoll.kube.client import Client
    from plimsoll.nodes.plan_runner import PlanRunner

Json = dict[str, Any]

MAIN: Final = "main"
FLEET: Final = "fleet"
"""The name of the fleet's journal among those of clusters."""
_URL: Final = "http://fleet"
_MANAGER: Final = "plimsoll-tour"
_NO_LIMIT: Final = RateLimit(per_second=1e6, burst=10**9)
_USER: Final = UserIdentity(user="visitor", organisation="tour")
_ADMIN: Final = UserIdentity(user="tour", roles=(DEFAULT_ADMIN_ROLES["DELETE"][0],))
_DELAYS: Final = OcmDelays(pending_s=5.0, installing_s=30.0, addon_s=10.0, uninstalling_s=10.0)
_PERIOD_S: Final = 15.0
_BOOT_S: Final = 15.0
# Ten minutes at a real cluster. A visitor waits for less.
_PATIENCE: Final = {
    "scale-down-unneeded-time": "60s",
    "scale-down-delay-after-add": "30s",
    "initial-node-group-backoff-duration": "1m",
}
_KUBELET: Final = KubeletSettings(start_s=2.0, emits_events=False, reports_ends=False, resync_s=0.0)


class Refused(PlimsollError):
    """The fleet API did not do what the tour asked for. `status` 0: there was no answer."""

    def __init__(self, message: str, *, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True, kw_only=True)
class TourDependencies:
    """What the world is made from. `folder` is for keys and configuration; it goes with the tour."""

    clock: Clock
    entropy: Entropy
    run_planner: PlanRunner
    folder: Path
    has_kafka_operator: bool = True
    """Without it no Kafka ever becomes ready: the tour must notice."""


class TourWorld:
    """All parts. `prepare` comes before `list_services`."""

    def __init__(self, dependencies: TourDependencies) -> None:
        self.clock = dependencies.clock
        self._dependencies = dependencies
        self._stores = MemoryStores(clock=self.clock, entropy=dependencies.entropy)
        self._server = self._stores.open_server(MAIN)
        self.database = open_database("sqlite://", clock=self.clock)
        self.main = self._build_main()
        self.fleet = self._build_fleet()
        assert self.fleet.clusters is not None, "the fleet has clusters"
        self.clusters = self.fleet.clusters

    async def prepare(self) -> None:
        await self._server.application.start()
        await prepare_cluster(self.connect(MAIN), InitialCluster())

    def list_services(self) -> list[Service]:
        main = Service(name="main cluster", run=self.main.run)
        return [*self._server.list_services(), main, *self.fleet.list_services()]

    async def aclose(self) -> None:
        await self._server.aclose()
        self.database.close()

    # ---- parts

    def _build_main(self) -> EmbeddedCluster:
        dependencies = self._dependencies
        return EmbeddedCluster(
            EmbeddedDependencies(
                transport=self._server.transport,
                clock=self.clock,
                entropy=dependencies.entropy,
                journal=self._stores.open_journal(MAIN),
                run_planner=dependencies.run_planner,
            ),
            EmbeddedSettings(
                cluster=ClusterSettings(plays_kafka=False, writes_heartbeats=False, kubelet=_KUBELET),
                has_kafka=False,
                autoscaler_options={**MAIN_OPTIONS, **_PATIENCE},
            ),
        )

    def _build_fleet(self) -> EmbeddedFleet:
        dependencies = self._dependencies
        folder, clock, entropy = dependencies.folder, self.clock, dependencies.entropy
        files = FleetFiles(scaling_type=ScalingType.AUTO, directory=str(write_configuration(folder)))
        operator = {KAFKA_OPERATOR_ADDON: KafkaOperatorAddon()} if dependencies.has_kafka_operator else {}
        return EmbeddedFleet(
            read_configuration(files),
            EmbeddedFleetSettings(
                service=ServiceSettings(
                    holder=_MANAGER,
                    public_url=_URL,
                    period_s=_PERIOD_S,
                    rate=_NO_LIMIT,
                    clusters=FleetClusterSettings(poll_interval="5s", resync_interval="15s"),
                ),
                ocm=OcmSettings(delays=_DELAYS),
                agents=None,
                clusters=EmbeddedClustersSettings(
                    machine_boot_s=_BOOT_S,
                    cluster=ClusterSettings(plays_tidb=False, writes_heartbeats=False, kubelet=_KUBELET),
                    autoscaler_options={**FLEET_OPTIONS, **_PATIENCE},
                ),
            ),
            EmbeddedFleetDependencies(
                database=self.database,
                tokens=TokenSources(issuer_keys=IssuerKeys(folder / KEYS_FILE, clock=clock, entropy=entropy)),
                world=ServiceWorld(clock=clock, entropy=entropy, lease_clock=clock),
                stores=self._stores,
                addons=operator,
                run_planner=dependencies.run_planner,
            ),
        )

    # ---- clusters

    def list_cluster_ids(self) -> tuple[str, ...]:
        """The main cluster, and the clusters of the fleet that run."""
        return (MAIN, *self.clusters.list_ids())

    def get_cluster(self, cluster_id: str) -> EmbeddedCluster:
        if cluster_id == MAIN:
            return self.main
        running = self.clusters.find(cluster_id)
        if running is None:
            raise Refused(f"cluster {cluster_id} does not run")
        return running.cluster

    def connect(self, cluster_id: str) -> Client:
        return self.get_cluster(cluster_id).connect(_MANAGER)

    async def list_items(self, cluster_id: str, path: str, labels: str = "") -> list[Json]:
        """Objects as the API server of a cluster has them."""
        query = [("labelSelector", labels)] if labels else []
        answer = await self.connect(cluster_id).get_json(path, query)
        items: list[Json] = answer["items"]
        return items

    @property
    def journals(self) -> Mapping[str, Journal]:
        """By cluster; `FLEET` is that of the fleet."""
        return {FLEET: self.database.journal, **self._stores.journals}

    # ---- the fleet API

    async def call(self, method: str, path: str, body: Any = None, *, query: str = "") -> Any:
        """As a user; paths below /admin as an administrator. Raises `Refused`."""
        issuer = self.fleet.service.issuer
        assert issuer is not None, "the service issues its own tokens"
        token = issuer.issue_admin_token(_ADMIN) if path.startswith("/admin") else issuer.issue_user_token(_USER)
        answer = await call_application(
            self.fleet.service.application,
            method,
            f"{BASE_PATH}{path}",
            query=query,
            headers={"authorization": f"Bearer {token}"},
            body=b"" if body is None else msgspec.json.encode(body),
        )
        if not isinstance(answer, Response):
            raise Refused(f"{method} {path}: {answer.problem}")
        if answer.status >= HTTPStatus.BAD_REQUEST:
            problem = answer.body.decode(errors="replace")
            raise Refused(f"{method} {path}: {answer.status}: {problem}", status=answer.status)
        return msgspec.json.decode(answer.body) if answer.body else None

    async def list_rows(self) -> list[Json]:
        """The clusters that the fleet manager knows."""
        answer = await self.call("GET", "/admin/clusters")
        items: list[Json] = answer["items"]
        return items

    async def list_kafkas(self) -> dict[str, Json]:
        """By name."""
        answer = await self.call("GET", "/kafkas")
        return {item["name"]: item for item in answer["items"]}
