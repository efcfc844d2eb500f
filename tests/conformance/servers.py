"""The embedded API server put together for a test: any driver, any clock, seeded chance, one administrator."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from plimsoll.local.apiserver.admission import Admission
from plimsoll.local.apiserver.application import Application
from plimsoll.local.apiserver.authentication import ServiceAccountTokens, TokenAuthenticator, build_administrator
from plimsoll.local.apiserver.authorization import RbacAuthorizer
from plimsoll.local.apiserver.resources.builtin import list_builtin_resources
from plimsoll.local.apiserver.resources.registry import ResourceRegistry
from plimsoll.local.apiserver.server import Server
from plimsoll.local.apiserver.storage import MemoryDriver, Store
from plimsoll.local.apiserver.transport.in_process import InProcessTransport
from plimsoll.runtime.entropy import SeededEntropy

if TYPE_CHECKING:
    from plimsoll.core.clock import Clock
    from plimsoll.local.apiserver.storage.drivers.interface import Driver

ADMIN_TOKEN = "conformance"
CERTIFICATE = "-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n"
# The recordings were made on this day; ages that depend on dates in them come out as recorded.
RECORDED_DAY = datetime(2026, 11, 15, 4, 2, 20, tzinfo=UTC)


class EmbeddedServer(NamedTuple):
    application: Application
    transport: InProcessTransport
    store: Store


async def embedded_server(clock: Clock, *, driver: Driver | None = None) -> EmbeddedServer:
    """A server that is ready to answer. A driver with a past gives a server with that past."""
    entropy = SeededEntropy("conformance")
    store = Store.open(driver or MemoryDriver(), clock=clock)
    tokens = ServiceAccountTokens(b"a key for tests only, of 32 byte", entropy=entropy)
    authorizer = RbacAuthorizer.build(store)
    server = Server(
        store=store,
        registry=ResourceRegistry(list_builtin_resources()),
        clock=clock,
        entropy=entropy,
        authenticator=TokenAuthenticator.build(
            store,
            static={ADMIN_TOKEN: build_administrator()},
            service_accounts=tokens,
            clock=clock,
            authorizer=authorizer,
        ),
        authorizer=authorizer,
        admission=Admission(store=store, clock=clock, entropy=entropy, authorizer=authorizer),
        tokens=tokens,
    )
    application = Application(server, ca_certificate=CERTIFICATE)
    return EmbeddedServer(application, InProcessTransport(application), store)
