"""A fleet manager on one database: its API, its workers, its journal and its metrics.

It opens no socket and no thread of its own, so that a process serves it and a test runs it in virtual time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from plimsoll.fleet.api.application import ISSUER_PATH, FleetApi
from plimsoll.fleet.api.ports import ApiPorts, ApiSettings
from plimsoll.fleet.auth.claims import ClaimNames
from plimsoll.fleet.auth.issuer import DEFAULT_AUDIENCE, Issuer, Realm, build_issuer_url
from plimsoll.fleet.auth.key_sets import KeySet
from plimsoll.fleet.auth.verification import TokenVerifier
from plimsoll.fleet.planning.terraforming import SetupSettings
from plimsoll.fleet.reporting.metrics import FleetMetrics
from plimsoll.fleet.reporting.reporter import FleetReporter
from plimsoll.fleet.workers.builder import ClusterParts, build_workers
from plimsoll.fleet.workers.leases import GrantedLeases, LeaseTimes, WorkerLeases
from plimsoll.fleet.workers.runner import RunnerParts, WorkerRunner
from plimsoll.operator.health import Health, HealthTimeouts
from plimsoll.operator.pages import OperatorPages, check_health
from plimsoll.web.responses import build_text_response

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.responses import Response
    from starlette.types import ASGIApp

    from plimsoll.core.clock import Clock
    from plimsoll.core.entropy import Entropy
    from plimsoll.fleet.api.ports import RateLimit
    from plimsoll.fleet.auth.issuer_keys import IssuerKeys
    from plimsoll.fleet.auth.key_sets import KeySource
    from plimsoll.fleet.config.files import Configuration
    from plimsoll.fleet.providers.port import ClusterProvider
    from plimsoll.fleet.store.database import FleetDatabase
    from plimsoll.fleet.workers.passes import PassResult
    from plimsoll.runtime.supervisor import Service

_PASS_TIMEOUTS: Final = HealthTimeouts(inactivity_s=600.0, failing_s=900.0, startup_s=600.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSettings:
    """What a user chose for clusters. `removals_per_hour` None: no limit; intervals are those of agents."""

    removals_per_hour: int | None = None
    keeps_ready: bool = True
    poll_interval: str = "15s"
    resync_interval: str = "60s"
    has_logging: bool = False
    pull_secret: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSettings:
    """What a user chose. `holder` names this process in leases; `public_url` is the address of the API for clients."""

    holder: str
    public_url: str
    period_s: float = 30.0
    lease: LeaseTimes = field(default_factory=LeaseTimes)
    dry_run: bool = False
    audience: str = DEFAULT_AUDIENCE
    claim_names: ClaimNames = field(default_factory=ClaimNames)
    issuers: dict[Realm, str] = field(default_factory=dict)
    """Issuers that are not the built-in one, by group of routes."""
    rate: RateLimit | None = None
    browser_url: str = ""
    quota_type: str = "quota-management-list"
    clusters: ClusterSettings = field(default_factory=ClusterSettings)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenSources:
    """Where keys of tokens come from. `issuer_keys` None: there is no built-in issuer."""

    issuer_keys: IssuerKeys | None = None
    others: Sequence[KeySource] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Time and randomness. `lease_clock` continues while the machine is suspended."""

    clock: Clock
    entropy: Entropy
    lease_clock: Clock


class FleetService:
    """All parts. `application` is the API, `pages` are the probes and metrics."""

    def __init__(
        self,
        configuration: Configuration,
        database: FleetDatabase,
        settings: ServiceSettings,
        *,
        tokens: TokenSources,
        world: World,
        providers: Sequence[ClusterProvider] = (),
    ) -> None:
        self._settings = settings
        self._world = world
        self.database = database
        self.metrics = FleetMetrics(configuration.policy)
        database.transactions.observe_queries(self.metrics, world.clock)
        self.health = Health(_PASS_TIMEOUTS)
        self.issuer = self._build_issuer(tokens)
        planners = build_workers(
            configuration.policy,
            configuration.access,
            observer=self.metrics,
            entropy=world.entropy,
            clusters=self._build_cluster_parts(providers),
        )
        self.leases = WorkerLeases(
            GrantedLeases(database.leases) if settings.dry_run else database.leases,
            [planner.name for planner in planners],
            holder=settings.holder,
            times=settings.lease,
            clock=world.lease_clock,
        )
        self.metrics.show_leaders([planner.name for planner in planners], self.leases.list_leading)
        parts = RunnerParts(
            store=database.store,
            pause=database.leases,
            leases=self.leases,
            reporter=FleetReporter(self.metrics, journal=database.journal),
            health=self.health,
            clock=world.clock,
        )
        self.runner = WorkerRunner(planners, parts, period_s=settings.period_s, dry_run=settings.dry_run)
        self.api = FleetApi(self._build_api_ports(configuration, tokens))
        self.pages: ASGIApp = self._build_pages()

    @property
    def application(self) -> ASGIApp:
        return self.api.application

    def list_services(self) -> list[Service]:
        """The workers and their leases."""
        return self.runner.list_services()

    async def run_once(self) -> tuple[PassResult, ...]:
        """One pass of every worker that no other process leads."""
        await self.leases.renew()
        try:
            return await self.runner.run_once()
        finally:
            await self.leases.release()

    # ---- parts

    def _build_cluster_parts(self, providers: Sequence[ClusterProvider]) -> ClusterParts | None:
        """None: without a provider nothing creates or deletes clusters."""
        if not providers:
            return None
        settings = self._settings
        setup = SetupSettings(
            control_plane_url=settings.public_url.rstrip("/"),
            agent_issuer_url=self._get_issuers()[Realm.AGENT],
            poll_interval=settings.clusters.poll_interval,
            resync_interval=settings.clusters.resync_interval,
            has_logging=settings.clusters.has_logging,
            pull_secret=settings.clusters.pull_secret,
        )
        return ClusterParts(
            providers={provider.type: provider for provider in providers},
            setup=setup,
            clock=self._world.clock,
            removals_per_hour=settings.clusters.removals_per_hour,
            keeps_ready=settings.clusters.keeps_ready,
        )

    def _get_issuers(self) -> dict[Realm, str]:
        """The issuers of tokens by group of routes."""
        own = self._issuer_base_url
        return {realm: self._settings.issuers.get(realm) or build_issuer_url(own, realm) for realm in Realm}

    @property
    def _issuer_base_url(self) -> str:
        """The address of the built-in issuer."""
        return f"{self._settings.public_url.rstrip('/')}{ISSUER_PATH}"

    def _build_issuer(self, tokens: TokenSources) -> Issuer | None:
        if tokens.issuer_keys is None:
            return None
        return Issuer(
            tokens.issuer_keys,
            base_url=self._issuer_base_url,
            clock=self._world.clock,
            entropy=self._world.entropy,
            audience=self._settings.audience,
        )

    def _build_api_ports(self, configuration: Configuration, tokens: TokenSources) -> ApiPorts:
        settings, clock = self._settings, self._world.clock
        own = () if tokens.issuer_keys is None else (tokens.issuer_keys,)
        own_issuers = {keys.name: [build_issuer_url(self._issuer_base_url, realm) for realm in Realm] for keys in own}
        verifier = TokenVerifier(
            KeySet([*own, *tokens.others], clock=clock, issuers=own_issuers),
            audience=settings.audience,
            clock=clock,
            claim_names=settings.claim_names,
        )
        issuers = self._get_issuers()
        api_settings = ApiSettings(issuers=issuers, browser_url=settings.browser_url, quota_type=settings.quota_type)
        if settings.rate is not None:
            api_settings = ApiSettings(
                issuers=issuers,
                browser_url=settings.browser_url,
                quota_type=settings.quota_type,
                rate=settings.rate,
            )
        return ApiPorts(
            store=self.database.store,
            journal=self.database.journal,
            clock=clock,
            entropy=self._world.entropy,
            policy=configuration.policy,
            verifier=verifier,
            settings=api_settings,
            signals=self.runner,
            metrics=self.metrics,
            access=configuration.access,
            issuer=self.issuer,
        )

    def _build_pages(self) -> OperatorPages:
        check = check_health(self.health, self._world.clock, self._describe_role)
        return OperatorPages(
            metrics=(self.metrics.expose,),
            health={"/healthz": check, "/livez": check, "/readyz": self._check_readiness},
        )

    def _describe_role(self) -> str:
        leading = self.leases.list_leading()
        return f"leader of {', '.join(leading)}" if leading else "standby"

    def _check_readiness(self) -> Response:
        if self.leases.is_connected:
            return build_text_response("ok")
        return build_text_response("the database does not answer", HTTPStatus.SERVICE_UNAVAILABLE)
