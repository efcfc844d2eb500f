"""The process of a fleet manager: `plimsoll run fleet`. It connects the database and the providers, and serves.

No Kubernetes is needed: leases, pause and journal are rows of the database.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final, Self

import structlog
from msgspec import structs

from plimsoll.app.fleet.kubernetes_providers import use_cluster_class
from plimsoll.app.fleet.providers import ProviderOptions, open_providers
from plimsoll.app.fleet.service import FleetService, ServiceSettings, TokenSources, World
from plimsoll.core.errors import InvalidInput
from plimsoll.fleet.auth.issuer import Realm
from plimsoll.fleet.auth.issuer_keys import IssuerKeys
from plimsoll.fleet.auth.key_sets import KeyAddress, KeyFile
from plimsoll.fleet.config.files import read_configuration
from plimsoll.fleet.store.database import open_database
from plimsoll.fleet.store.secrets import create_key_file, read_key_file
from plimsoll.kube.leases.clocks import SuspendAwareClock
from plimsoll.runtime.supervisor import Service, Supervisor
from plimsoll.web.client import AiohttpClient
from plimsoll.web.serving import check_address, serve

if TYPE_CHECKING:
    from pathlib import Path

    from plimsoll.core.clock import Clock
    from plimsoll.core.entropy import Entropy
    from plimsoll.fleet.auth.key_sets import KeySource
    from plimsoll.fleet.config.files import Configuration, FleetFiles
    from plimsoll.fleet.providers.port import ClusterProvider
    from plimsoll.fleet.store.database import FleetDatabase
    from plimsoll.fleet.store.secrets import SecretKeys
    from plimsoll.fleet.workers.passes import PassResult

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

DATABASE_FILE: Final = "fleet.sqlite3"
SECRETS_FILE: Final = "fleet-secrets.keys"
ISSUER_KEYS_FILE: Final = "fleet-issuer-keys.json"
"""Files in the directory of data."""

_DRAIN_S: Final = 8.0
"""How long requests under way may take when a process stops: less than the supervisor waits for a service."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Addresses:
    """Where a process listens, HOST:PORT each."""

    api: str = "127.0.0.1:8000"
    health: str = "127.0.0.1:8083"
    metrics: str = "127.0.0.1:8080"

    def check(self) -> None:
        """Raises `InvalidInput` unless all can be bound."""
        check_address(self.api, example="--listen=127.0.0.1:8001")
        for address in dict.fromkeys((self.health, self.metrics)):
            check_address(address, example="--health-listen=127.0.0.1:8084")


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetOptions:
    """What a user chose. `data` holds what has no place of its own: the database, and keys."""

    files: FleetFiles
    service: ServiceSettings
    data: Path
    database_url: str = ""
    secrets_key_file: Path | None = None
    jwks_urls: tuple[str, ...] = ()
    jwks_files: tuple[Path, ...] = ()
    addresses: Addresses = field(default_factory=Addresses)
    providers: ProviderOptions = field(default_factory=ProviderOptions)

    def get_database_url(self) -> str:
        return self.database_url or build_default_url(self.data)


def build_default_url(data: Path) -> str:
    """The database of a data directory."""
    return f"sqlite:///{data / DATABASE_FILE}"


class FleetProcess:
    """Connected for as long as its block lasts."""

    def __init__(self, options: FleetOptions, *, clock: Clock, entropy: Entropy) -> None:
        self._options = options
        self._clock = clock
        self._entropy = entropy
        found = read_configuration(options.files)
        policy = use_cluster_class(found.policy, options.providers.kubernetes.cluster_class)
        self.configuration: Configuration = structs.replace(found, policy=policy)

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as opened:
            self._web = await opened.enter_async_context(AiohttpClient())
            providers = await opened.enter_async_context(
                open_providers(
                    self._options.providers, environment=os.environ, clock=self._clock, entropy=self._entropy
                )
            )
            keys = await asyncio.to_thread(self._read_secret_keys)
            if providers and keys is None:
                raise InvalidInput("the accounts of agents are stored encrypted: give it", path="--secrets-key-file")
            database = await asyncio.to_thread(self._open_database, keys)
            opened.push_async_callback(asyncio.to_thread, database.close)
            if not self._options.service.dry_run and (secrets := await database.rotate_secrets()):
                log.info("secrets.encrypted_again", secrets=secrets)
            self.service = self._build_service(database, providers)
            self._opened = opened.pop_all()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._opened.aclose()

    async def run(self) -> None:
        """Serves and works until cancelled."""
        addresses, service = self._options.addresses, self.service
        addresses.check()
        # Stopped in reverse order: no new requests, then the pass that is under way, then the leases.
        pages = [
            Service(name=f"pages on {address}", run=partial(serve, service.pages, address))
            for address in dict.fromkeys((addresses.health, addresses.metrics))
        ]
        api = Service(name="fleet API", run=lambda: serve(service.application, addresses.api, drain_s=_DRAIN_S))
        services = [*pages, *service.list_services(), api]
        await Supervisor(services, clock=self._clock, entropy=self._entropy).run()

    async def run_once(self) -> tuple[PassResult, ...]:
        """One pass of every worker that no other process leads. Nothing is served."""
        return await self.service.run_once()

    def _open_database(self, keys: SecretKeys | None) -> FleetDatabase:
        return open_database(self._options.get_database_url(), clock=self._clock, keys=keys)

    def _read_secret_keys(self) -> SecretKeys | None:
        """The keys of secrets. A database in the data directory gets a key beside it; any other needs the option."""
        file = self._options.secrets_key_file
        if file is None and not self._options.database_url:
            file = self._options.data / SECRETS_FILE
            create_key_file(file, "1")
        return None if file is None else read_key_file(file)

    def _build_service(self, database: FleetDatabase, providers: tuple[ClusterProvider, ...]) -> FleetService:
        options = self._options
        others: list[KeySource] = [KeyFile(file) for file in options.jwks_files]
        others += [KeyAddress(url, web=self._web) for url in options.jwks_urls]
        needs_own = any(realm not in options.service.issuers for realm in Realm)
        keys = IssuerKeys(options.data / ISSUER_KEYS_FILE, clock=self._clock, entropy=self._entropy)
        return FleetService(
            self.configuration,
            database,
            options.service,
            tokens=TokenSources(issuer_keys=keys if needs_own else None, others=others),
            world=World(clock=self._clock, entropy=self._entropy, lease_clock=SuspendAwareClock()),
            providers=providers,
        )
