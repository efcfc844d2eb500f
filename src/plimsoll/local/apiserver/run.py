"""A whole API server: built from its parts, and run from a data directory until it is cancelled.

`build_application` takes an existing store (scenarios under virtual time, tests); `run` is the command `plimsoll
apiserver` and part of `plimsoll up`, which passes services to run with it. Nothing here decides about a request.
"""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

import structlog

from plimsoll.core.errors import InvalidInput
from plimsoll.local.apiserver.admission import Admission
from plimsoll.local.apiserver.application import Application
from plimsoll.local.apiserver.authentication import (
    ServiceAccountTokens,
    TokenAuthenticator,
    build_administrator,
    read_token_file,
)
from plimsoll.local.apiserver.authorization import RbacAuthorizer
from plimsoll.local.apiserver.bootstrap.namespace_defaults import NamespaceDefaults
from plimsoll.local.apiserver.data_directory import DataDirectory
from plimsoll.local.apiserver.event_expiry import DEFAULT_TTL_S, EventExpiry
from plimsoll.local.apiserver.long_work import LongWork, start_worker_threads
from plimsoll.local.apiserver.resources.builtin import list_builtin_resources
from plimsoll.local.apiserver.resources.registry import ResourceRegistry
from plimsoll.local.apiserver.server import Server
from plimsoll.local.apiserver.shared_address import KubeconfigFile, SharedAddress
from plimsoll.local.apiserver.storage import Durability, HistoryLimits, SqliteDriver, Store
from plimsoll.local.apiserver.transport.certificates import load_server_certificates
from plimsoll.local.apiserver.transport.cluster_router import ClusterRouter
from plimsoll.local.apiserver.transport.kubeconfig import NAME as KUBECONFIG_NAME
from plimsoll.local.apiserver.transport.kubeconfig import KubeconfigContext, build_url
from plimsoll.local.apiserver.transport.limits import Limits
from plimsoll.local.apiserver.transport.listener import Listener, raise_descriptor_limit
from plimsoll.runtime.supervisor import RestartPolicy, Service, Supervisor

if TYPE_CHECKING:
    import ssl
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from pathlib import Path

    from plimsoll.core.clock import Clock
    from plimsoll.core.entropy import Entropy
    from plimsoll.local.apiserver.auth_types import User

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

DEFAULT_PORT: Final = 6443
_CERTIFICATE_CHECK_S: Final = 12 * 3600.0
# What stopping takes beyond the grace of requests: goodbyes of connections.
_CLOSE_S: Final = 5.0


class Settings(NamedTuple):
    """The settings of a server."""

    data: Path
    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    durability: Durability = Durability.PROCESS
    token_file: Path | None = None
    fresh: bool = False
    event_ttl_s: float = DEFAULT_TTL_S
    limits: Limits = Limits()
    history: HistoryLimits = HistoryLimits()


class Ready(NamedTuple):
    """The address and kubeconfig of a running server."""

    url: str
    kubeconfig: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """A server that is about to serve, for services in the same process, without TLS."""

    application: Application
    token: str = field(repr=False)
    """The administrator's."""
    ready: Ready
    shared: SharedAddress | None = None
    """For further clusters; None: there is no socket."""


async def build_no_services(_serving: Serving) -> Sequence[Service]:
    """Only the server."""
    return ()


class Credentials(NamedTuple):
    """The static users, and the key that signs tokens."""

    users: Mapping[str, User]
    signing_key: bytes
    ca_pem: bytes = b""


def build_application(
    store: Store, *, clock: Clock, entropy: Entropy, credentials: Credentials, long_work: LongWork | None = None
) -> Application:
    """An application over a store, without any transport."""
    authorizer = RbacAuthorizer.build(store)
    tokens = ServiceAccountTokens(credentials.signing_key, entropy=entropy)
    server = Server(
        store=store,
        registry=ResourceRegistry(list_builtin_resources()),
        clock=clock,
        entropy=entropy,
        authenticator=TokenAuthenticator.build(
            store, static=credentials.users, service_accounts=tokens, clock=clock, authorizer=authorizer
        ),
        authorizer=authorizer,
        admission=Admission(store=store, clock=clock, entropy=entropy, authorizer=authorizer),
        tokens=tokens,
        long_work=long_work,
    )
    return Application(server, ca_certificate=credentials.ca_pem.decode("ascii"))


async def run(
    settings: Settings,
    *,
    clock: Clock,
    entropy: Entropy,
    on_ready: Callable[[Ready], None],
    beside: Callable[[Serving], Awaitable[Sequence[Service]]] = build_no_services,
    on_supervised: Callable[[Supervisor], None] = lambda _supervisor: None,
) -> None:
    """Serve until cancelled. Raises, before anything is served, what keeps it from being so.

    The services that `beside` gives are started after the server and stopped before it. `on_supervised` gets the
    supervisor of them all, which knows the state of each.
    """
    users = _load_users(settings.token_file)
    directory = DataDirectory(settings.data)
    if settings.fresh:
        directory.forget_objects()
    directory.check_store()
    driver = SqliteDriver(directory.root, durability=settings.durability)
    async with (
        aclosing(Store.open(driver, clock=clock, limits=settings.history)) as store,
        start_worker_threads() as threads,
    ):
        # From here on the directory is ours alone.
        token = directory.load_admin_token(entropy)
        certificates = load_server_certificates(directory, host=settings.host, now=clock.now())
        credentials = Credentials(
            users={**users, token: build_administrator()},
            signing_key=directory.load_signing_key(entropy),
            ca_pem=certificates.ca_pem,
        )
        long_work = LongWork(threads)
        application = build_application(
            store, clock=clock, entropy=entropy, credentials=credentials, long_work=long_work
        )
        router = ClusterRouter(application)
        raise_descriptor_limit()
        tls = certificates.build_ssl_context()
        listener = Listener(
            router, host=settings.host, port=settings.port, tls=tls, limits=settings.limits, clock=clock
        )
        try:
            url = build_url(settings.host, listener.listen())
            await application.start()
            own = KubeconfigContext(KUBECONFIG_NAME, url, token)
            kubeconfig = KubeconfigFile(directory, own, ca_pem=certificates.ca_pem)
            ready = Ready(url=url, kubeconfig=kubeconfig.write())
            shared = SharedAddress(
                router=router, kubeconfig=kubeconfig, long_work=long_work, ca_pem=certificates.ca_pem
            )
            more = await beside(Serving(application=application, token=token, ready=ready, shared=shared))
            on_ready(ready)
            renewal = CertificateRenewal(directory, host=settings.host, tls=tls, clock=clock)
            services = [
                Service(name="certificate-renewal", run=renewal.run),
                Service(name="event-expiry", run=EventExpiry(application.server, ttl_s=settings.event_ttl_s).run),
                Service(name="namespace-contents", run=_build_namespace_defaults(application, credentials).run),
                Service(name="https", run=listener.serve, policy=RestartPolicy(escalate_after=5)),
                *more,
            ]
            grace_s = settings.limits.grace_s + _CLOSE_S
            supervisor = Supervisor(services, clock=clock, entropy=entropy, grace_s=grace_s)
            on_supervised(supervisor)
            await supervisor.run()
        finally:
            listener.close()


def _load_users(token_file: Path | None) -> dict[str, User]:
    if token_file is None:
        return {}
    try:
        text = token_file.read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"cannot be read: {error.strerror}", path=str(token_file)) from error
    except UnicodeDecodeError:
        raise InvalidInput("is not text", path=str(token_file)) from None
    return read_token_file(text, path=str(token_file))


def _build_namespace_defaults(application: Application, credentials: Credentials) -> NamespaceDefaults:
    return NamespaceDefaults(application.server, ca_certificate=credentials.ca_pem.decode("ascii"))


class CertificateRenewal:
    """Gives a server that runs for a year the certificate of the next one."""

    def __init__(self, directory: DataDirectory, *, host: str, tls: ssl.SSLContext, clock: Clock) -> None:
        self._directory = directory
        self._host = host
        self._tls = tls
        self._clock = clock

    async def run(self) -> None:
        while True:
            await self._clock.sleep(_CERTIFICATE_CHECK_S)
            self.renew_if_due()

    def renew_if_due(self) -> bool:
        certificates = load_server_certificates(self._directory, host=self._host, now=self._clock.now())
        if certificates.renewed:
            certificates.load_into(self._tls)
            log.info("certificate.renewed", file=str(certificates.certificate_file))
        return certificates.renewed
