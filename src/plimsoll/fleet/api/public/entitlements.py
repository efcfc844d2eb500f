"""Which instance type a caller may create, and how many, by the quota list (docs/design/fleet.md 2.6 and 3.2). Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.core.values import Value
from plimsoll.fleet.api.errors import Code, RequestRefused

if TYPE_CHECKING:
    from datetime import datetime

    from plimsoll.fleet.auth.claims import Caller
    from plimsoll.fleet.model.access import GrantedQuota, Grantee, QuotaPolicy
    from plimsoll.fleet.model.policy import FleetPolicy

DEVELOPER: Final = "developer"
STANDARD: Final = "standard"


class Entitlement(Value):
    """What a caller may create. A limit that is None does not exist."""

    instance_type: str
    owner_limit: int | None = None
    """Instances."""
    organisation_limit: int | None = None
    """Streaming units."""


def find_entitlement(
    caller: Caller, wanted_type: str, *, quota: QuotaPolicy, policy: FleetPolicy, now: datetime, billing_model: str = ""
) -> Entitlement:
    """The instance type of a new Kafka. `wanted_type` empty: the plan names none. Raises `RequestRefused`.

    Any quota for another type than developer gives that type. Without enforcement the plan decides.
    """
    grantee = _find_grantee(caller, quota) if quota.is_enforced else None
    granted = None if grantee is None else _find_granted_type(grantee, billing_model=billing_model, now=now)
    if not quota.is_enforced:
        default = next((name for name in policy.instance_types if name != DEVELOPER), DEVELOPER)
        entitled = wanted_type if wanted_type in policy.instance_types else default
    else:
        entitled = granted or DEVELOPER
    if wanted_type and wanted_type != entitled:
        raise RequestRefused(Code.BAD_REQUEST, f"the instance type {wanted_type[:50]!r} of the plan cannot be created")
    if entitled == DEVELOPER:
        if not quota.allow_developer_instances:
            raise RequestRefused(Code.INSUFFICIENT_QUOTA, "there is no quota, and developer instances are not allowed")
        return Entitlement(instance_type=DEVELOPER, owner_limit=quota.max_developer_instances)
    if grantee is None:
        return Entitlement(instance_type=entitled)
    is_organisation = grantee is quota.organisations.get(caller.organisation)
    return Entitlement(
        instance_type=entitled,
        owner_limit=None if is_organisation else grantee.instances,
        organisation_limit=grantee.instances if is_organisation else None,
    )


def _find_grantee(caller: Caller, quota: QuotaPolicy) -> Grantee | None:
    organisation = quota.organisations.get(caller.organisation)
    if organisation is not None and (not organisation.users or caller.user in organisation.users):
        return organisation
    return quota.service_accounts.get(caller.user)


def _find_granted_type(grantee: Grantee, *, billing_model: str, now: datetime) -> str | None:
    """A grantee without a list has a quota for standard instances."""
    if not grantee.granted:
        return STANDARD
    return next(
        (
            granted.instance_type
            for granted in grantee.granted
            if granted.instance_type != DEVELOPER and _covers(granted, billing_model=billing_model, now=now)
        ),
        None,
    )


def _covers(granted: GrantedQuota, *, billing_model: str, now: datetime) -> bool:
    if not granted.billing_models:
        return True
    return any(
        (not billing_model or model.billing_model == billing_model)
        and (model.expires_at is None or model.expires_at > now)
        for model in granted.billing_models
    )
