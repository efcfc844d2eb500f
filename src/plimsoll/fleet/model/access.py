"""Which callers may do what: lists of users and organisations, quotas, and roles of administrators.

`fleet/config` reads the files (docs/design/fleet.md 2.6) and builds these. They cannot be invalid.
"""

from __future__ import annotations

from datetime import datetime  # noqa: TC003 - msgspec reads annotations at run time
from typing import Final

import msgspec

from plimsoll.core.values import Value

DEFAULT_ADMIN_ROLES: Final = {
    "GET": ("kas-fleet-manager-admin-full", "kas-fleet-manager-admin-read", "kas-fleet-manager-admin-write"),
    "PATCH": ("kas-fleet-manager-admin-full", "kas-fleet-manager-admin-write"),
    "POST": ("kas-fleet-manager-admin-full", "kas-fleet-manager-admin-write"),
    "DELETE": ("kas-fleet-manager-admin-full",),
}


class BillingQuota(Value):
    """What may be created under one billing model. `instances` None: as many as the grantee as a whole may have."""

    billing_model: str
    instances: int | None = None
    expires_at: datetime | None = None


class GrantedQuota(Value):
    """A quota for one instance type. Without billing models every one is granted."""

    instance_type: str
    billing_models: tuple[BillingQuota, ...] = ()


class Grantee(Value):
    """An organisation or a service account with a quota. `users` empty: every user of the organisation."""

    id: str
    instances: int
    """In streaming units."""
    granted: tuple[GrantedQuota, ...] = ()
    users: frozenset[str] = frozenset()


class QuotaPolicy(Value):
    """The quota list. `is_enforced` False: every caller may create instances of every type."""

    is_enforced: bool = False
    organisations: dict[str, Grantee] = {}
    service_accounts: dict[str, Grantee] = {}
    allow_developer_instances: bool = True
    max_developer_instances: int = 1
    """Per owner, whether or not the list is enforced."""


class AccessPolicy(Value):
    """Which users may use the public routes, and which roles an administrator needs. A list that is None is off."""

    denied_users: frozenset[str] | None = None
    accepted_organisations: frozenset[str] | None = None
    admin_roles: dict[str, tuple[str, ...]] = msgspec.field(default_factory=DEFAULT_ADMIN_ROLES.copy)
    """By HTTP method. A method without roles is closed."""
    quota: QuotaPolicy = QuotaPolicy()
