"""A whole API server without a socket of its own: reached in the process, or through the socket of another server.

Its store is a directory, with the layout of `data_directory`, or memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.local.apiserver.authentication import build_administrator
from plimsoll.local.apiserver.bootstrap.namespace_defaults import NamespaceDefaults
from plimsoll.local.apiserver.data_directory import DataDirectory
from plimsoll.local.apiserver.event_expiry import EventExpiry
from plimsoll.local.apiserver.run import Credentials, build_application
from plimsoll.local.apiserver.storage import MemoryDriver, SqliteDriver, Store
from plimsoll.local.apiserver.transport.kube_transport import EmbeddedTransport
from plimsoll.runtime.supervisor import Service

if TYPE_CHECKING:
    from pathlib import Path

    from plimsoll.core.clock import Clock
    from plimsoll.core.entropy import Entropy
    from plimsoll.local.apiserver.application import Application
    from plimsoll.local.apiserver.long_work import LongWork


class InProcessServer:
    """`token` is the administrator's. `aclose` ends all watches."""

    def __init__(self, store: Store, application: Application, *, token: str, ca_pem: bytes) -> None:
        self._store = store
        self._ca_pem = ca_pem
        self.application = application
        self.token = token
        self.transport = EmbeddedTransport(application, token=token)

    def list_services(self) -> list[Service]:
        server = self.application.server
        defaults = NamespaceDefaults(server, ca_certificate=self._ca_pem.decode("ascii"))
        return [
            Service(name="event-expiry", run=EventExpiry(server).run),
            Service(name="namespace-contents", run=defaults.run),
        ]

    async def aclose(self) -> None:
        await self.transport.aclose()
        await self._store.aclose()


def open_in_memory(*, clock: Clock, entropy: Entropy) -> InProcessServer:
    token = entropy.generate_token()
    credentials = Credentials(
        users={token: build_administrator()}, signing_key=entropy.generate_token().encode("ascii")
    )
    return _open(MemoryDriver(), token, credentials, clock=clock, entropy=entropy)


def open_in_directory(
    root: Path, *, clock: Clock, entropy: Entropy, ca_pem: bytes, long_work: LongWork | None = None
) -> InProcessServer:
    """Made, or continued. Raises `StorageError` for a directory that cannot be used, or is in use. Blocks."""
    directory = DataDirectory(root)
    directory.check_store()
    driver = SqliteDriver(directory.root)
    token = directory.load_admin_token(entropy)
    credentials = Credentials(
        users={token: build_administrator()}, signing_key=directory.load_signing_key(entropy), ca_pem=ca_pem
    )
    return _open(driver, token, credentials, clock=clock, entropy=entropy, long_work=long_work)


def _open(
    driver: MemoryDriver | SqliteDriver,
    token: str,
    credentials: Credentials,
    *,
    clock: Clock,
    entropy: Entropy,
    long_work: LongWork | None = None,
) -> InProcessServer:
    store = Store.open(driver, clock=clock)
    application = build_application(store, clock=clock, entropy=entropy, credentials=credentials, long_work=long_work)
    return InProcessServer(store, application, token=token, ca_pem=credentials.ca_pem)
