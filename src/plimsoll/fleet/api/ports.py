"""What the API is built from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from plimsoll.core.values import Value
from plimsoll.fleet.auth.issuer import Realm  # noqa: TC001 - msgspec reads annotations at run time
from plimsoll.fleet.model.access import AccessPolicy
from plimsoll.fleet.wire.managed_kafkas import OAuthSettings

if TYPE_CHECKING:
    from plimsoll.core.clock import Clock
    from plimsoll.core.entropy import Entropy
    from plimsoll.fleet.auth.issuer import Issuer
    from plimsoll.fleet.auth.verification import TokenVerifier
    from plimsoll.fleet.model.policy import FleetPolicy
    from plimsoll.fleet.ports import ApiMetrics, FleetStore, Signals
    from plimsoll.journal.ports import Journal


class RateLimit(Value):
    """A steady rate, and how many requests may come at once."""

    per_second: float = 20.0
    burst: int = 40


class ApiSettings(Value):
    """Settings of the API besides the policies."""

    issuers: dict[Realm, str]
    """The issuer whose tokens each group of routes accepts."""
    rate: RateLimit = RateLimit()
    browser_url: str = ""
    quota_type: str = "quota-management-list"
    oauth: OAuthSettings = OAuthSettings()
    """Where the brokers of Kafkas verify tokens of their clients."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiPorts:
    """The ports and policies. `issuer` None: tokens come from elsewhere, and no issuer is served."""

    store: FleetStore
    journal: Journal
    clock: Clock
    entropy: Entropy
    policy: FleetPolicy
    verifier: TokenVerifier
    settings: ApiSettings
    signals: Signals
    metrics: ApiMetrics
    access: AccessPolicy = field(default_factory=AccessPolicy)
    issuer: Issuer | None = None
