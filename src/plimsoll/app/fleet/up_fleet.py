"""The fleet of `plimsoll up`: its configuration, its database and its keys in the data directory."""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from plimsoll.app.fleet.addons import KAFKA_OPERATOR_ADDON, KafkaOperatorAddon
from plimsoll.app.fleet.cluster_stores import CLUSTERS_FOLDER, StoreFolders
from plimsoll.app.fleet.embedded_fleet import EmbeddedFleet, EmbeddedFleetDependencies, EmbeddedFleetSettings
from plimsoll.app.fleet.process import DATABASE_FILE, ISSUER_KEYS_FILE, SECRETS_FILE, build_default_url
from plimsoll.app.fleet.service import ClusterSettings, ServiceSettings, TokenSources, World
from plimsoll.console.views.fleet import FleetView
from plimsoll.fleet.auth.issuer_keys import IssuerKeys
from plimsoll.fleet.config.files import FILE_NAMES, FleetFiles, read_configuration
from plimsoll.fleet.config.policy_documents import DYNAMIC_SCALING, NODE_PREWARMING, PROVIDERS
from plimsoll.fleet.model.statuses import ScalingType
from plimsoll.fleet.store.database import open_database
from plimsoll.fleet.store.secrets import create_key_file, read_key_file
from plimsoll.kube.leases.clocks import SuspendAwareClock
from plimsoll.local.ocm.settings import OcmDelays, OcmSettings
from plimsoll.runtime.supervisor import Service
from plimsoll.web.guards import HostGuard, HostNames
from plimsoll.web.responses import build_text_response
from plimsoll.web.serving import serve_on_socket

if TYPE_CHECKING:
    from pathlib import Path
    from socket import socket

    from starlette.responses import Response
    from starlette.types import ASGIApp

    from plimsoll.core.clock import Clock
    from plimsoll.core.entropy import Entropy
    from plimsoll.fleet.store.database import FleetDatabase
    from plimsoll.journal.ports import Journal
    from plimsoll.local.apiserver.run import Serving
    from plimsoll.web.guards import HostRefusal

CONFIGURATION_FOLDER: Final = "fleet"
HOLDER: Final = "plimsoll-up"
OCM_FILE: Final = "ocm.json"
OCM_USER: Final = "plimsoll"
"""The client id at the simulated OCM; its secret is the administrator's token."""
DEFAULT_MAX_CLUSTERS: Final = 5
# Minutes at a real provider. Here they are seconds that can be watched.
_DELAYS: Final = OcmDelays(pending_s=3.0, installing_s=12.0, addon_s=5.0, uninstalling_s=5.0)
_POLL_INTERVAL: Final = "5s"
_RESYNC_INTERVAL: Final = "15s"
"""How often an agent reports everything, changed or not."""
_PERIOD_S: Final = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class UpFleetSettings:
    """`public_url` is the address of the fleet API."""

    data: Path
    public_url: str
    most_clusters: int = DEFAULT_MAX_CLUSTERS


def delete_fleet(data: Path) -> None:
    """What `--fresh` deletes: rows, clusters, and the state of OCM. Configuration and keys are kept."""
    for suffix in ("", "-wal", "-shm"):
        (data / f"{DATABASE_FILE}{suffix}").unlink(missing_ok=True)
    (data / OCM_FILE).unlink(missing_ok=True)
    shutil.rmtree(data / CLUSTERS_FOLDER, ignore_errors=True)


def write_configuration(data: Path) -> Path:
    """The directory of the files that a user may change. Files that are there are left as they are."""
    folder = data / CONFIGURATION_FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)
    shipped = files("plimsoll.app.fleet").joinpath("shipped")
    for key in (PROVIDERS, DYNAMIC_SCALING, NODE_PREWARMING):
        file = folder / FILE_NAMES[key]
        if not file.exists():
            file.write_bytes(shipped.joinpath(file.name).read_bytes())
    return folder


class UpFleet:
    """Opened by `open_fleet`; its services close the database at the end."""

    def __init__(self, fleet: EmbeddedFleet, database: FleetDatabase) -> None:
        self.fleet = fleet
        self._database = database

    def list_services(self) -> list[Service]:
        # Stopped last: everything else uses it.
        return [Service(name="fleet database", run=self._hold_database), *self.fleet.list_services()]

    def list_socket_services(self, api: socket, ocm: socket) -> list[Service]:
        """What other processes may call."""
        applications: list[tuple[str, ASGIApp, socket]] = [
            ("fleet API", self.fleet.service.application, api),
            ("OCM API", self.fleet.ocm.application, ocm),
        ]
        return [
            Service(name=name, run=partial(serve_on_socket, _guard(application), listening))
            for name, application, listening in applications
        ]

    @property
    def journal(self) -> Journal:
        return self._database.journal

    def build_view(self) -> FleetView:
        """What the console shows of it."""
        return FleetView(self._database.transfer, self._database.journal)

    def expose_metrics(self) -> bytes:
        return self.fleet.service.metrics.expose()

    async def _hold_database(self) -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            await asyncio.to_thread(self._database.close)


async def open_fleet(settings: UpFleetSettings, serving: Serving, *, clock: Clock, entropy: Entropy) -> UpFleet:
    """Raises `InvalidConfiguration` for files that a user broke, before anything runs."""
    assert serving.shared is not None, "plimsoll up listens"
    data = settings.data
    configuration = read_configuration(
        FleetFiles(scaling_type=ScalingType.AUTO, directory=str(write_configuration(data)))
    )
    secrets = data / SECRETS_FILE
    create_key_file(secrets, "1")
    keys = read_key_file(secrets)
    database = await asyncio.to_thread(open_database, build_default_url(data), clock=clock, keys=keys)
    fleet = EmbeddedFleet(
        configuration,
        EmbeddedFleetSettings(
            service=ServiceSettings(
                # One name for all starts: leases of a killed process are this one's, because the directory is.
                holder=HOLDER,
                public_url=settings.public_url,
                period_s=_PERIOD_S,
                clusters=ClusterSettings(poll_interval=_POLL_INTERVAL, resync_interval=_RESYNC_INTERVAL),
            ),
            ocm=OcmSettings(
                delays=_DELAYS,
                most_clusters=settings.most_clusters,
                client_id=OCM_USER,
                client_secret=serving.token,
            ),
            ocm_file=data / OCM_FILE,
            agents=None,
        ),
        EmbeddedFleetDependencies(
            database=database,
            tokens=TokenSources(issuer_keys=IssuerKeys(data / ISSUER_KEYS_FILE, clock=clock, entropy=entropy)),
            world=World(clock=clock, entropy=entropy, lease_clock=SuspendAwareClock()),
            stores=StoreFolders(data, serving.shared, clock=clock, entropy=entropy),
            addons={KAFKA_OPERATOR_ADDON: KafkaOperatorAddon()},
        ),
    )
    return UpFleet(fleet, database)


def _guard(application: ASGIApp) -> ASGIApp:
    """Pages of other sites reach nothing here; tokens are checked by the applications."""
    return HostGuard(application, names=HostNames(), refuse=_refuse)


def _refuse(refusal: HostRefusal) -> Response:
    return build_text_response(refusal.message, refusal.status)
