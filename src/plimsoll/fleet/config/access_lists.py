"""The files about callers: quotas, denied users, accepted organisations, roles (docs/design/fleet.md 2.6)."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, RootModel, model_validator

from plimsoll.fleet.config.strict import Count, Document, Name, find_repeated, raise_mistakes
from plimsoll.fleet.model.access import BillingQuota, GrantedQuota, Grantee


def _check_expiration(text: str) -> str:
    try:
        _parse_expiration(text)
    except ValueError as error:
        raise ValueError("must be a day with an offset like 2026-12-31 +00:00") from error
    return text


def _parse_expiration(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%d %z")


class BillingQuotaDocument(Document):
    """A quota under one billing model."""

    id: Name = Field(description="The billing model.")
    max_allowed_instances: Count | None = Field(default=None, description="Streaming units; absent: no own limit.")
    expiration_date: Annotated[Name, AfterValidator(_check_expiration)] | None = Field(
        default=None, description="The day on which it ends, as `YYYY-MM-DD ±HH:MM`."
    )

    def build_quota(self) -> BillingQuota:
        ends = None if self.expiration_date is None else _parse_expiration(self.expiration_date)
        return BillingQuota(billing_model=self.id, instances=self.max_allowed_instances, expires_at=ends)


class GrantedQuotaDocument(Document):
    """A quota for one instance type."""

    instance_type_id: Name = Field(description="The instance type.")
    kafka_billing_models: list[BillingQuotaDocument] = Field(default=[], description="Absent: every billing model.")

    def build_quota(self) -> GrantedQuota:
        models = tuple(model.build_quota() for model in self.kafka_billing_models)
        return GrantedQuota(instance_type=self.instance_type_id, billing_models=models)


class UserDocument(Document):
    """A user of an organisation."""

    username: Name = Field(description="The name in the token.")
    max_allowed_instances: Count | None = Field(default=None, description="Accepted; the organisation's number counts.")


class OrganisationDocument(Document):
    """An organisation with a quota."""

    id: Name = Field(description="The organisation in the token.")
    any_user: bool = Field(default=False, description="Every user of the organisation, and not only those listed.")
    max_allowed_instances: Count = Field(default=1, description="Streaming units of the whole organisation.")
    registered_users: list[UserDocument] = Field(default=[], description="Users with access to the quota.")
    granted_quota: list[GrantedQuotaDocument] = Field(default=[], description="Absent: every instance type.")

    def build_grantee(self) -> Grantee:
        users = frozenset() if self.any_user else frozenset(user.username for user in self.registered_users)
        granted = tuple(quota.build_quota() for quota in self.granted_quota)
        return Grantee(id=self.id, instances=self.max_allowed_instances, granted=granted, users=users)


class ServiceAccountDocument(Document):
    """A service account, or a user without an organisation, with a quota."""

    username: Name = Field(description="The name in the token.")
    max_allowed_instances: Count = Field(default=1, description="Streaming units.")
    granted_quota: list[GrantedQuotaDocument] = Field(default=[], description="Absent: every instance type.")

    def build_grantee(self) -> Grantee:
        granted = tuple(quota.build_quota() for quota in self.granted_quota)
        return Grantee(id=self.username, instances=self.max_allowed_instances, granted=granted)


class QuotaListDocument(Document):
    """`quota-management-list-configuration.yaml`: read with `--enable-instance-limit-control`."""

    registered_service_accounts: list[ServiceAccountDocument] = Field(default=[], description="Service accounts.")
    registered_users_per_organisation: list[OrganisationDocument] = Field(default=[], description="Organisations.")

    @model_validator(mode="after")
    def _check(self) -> QuotaListDocument:
        accounts = find_repeated(account.username for account in self.registered_service_accounts)
        organisations = find_repeated(found.id for found in self.registered_users_per_organisation)
        raise_mistakes(
            "quota list",
            [
                *((("registered_service_accounts",), f"{name!r} occurs twice") for name in accounts),
                *((("registered_users_per_organisation",), f"{name!r} occurs twice") for name in organisations),
            ],
        )
        return self

    def build_organisations(self) -> dict[str, Grantee]:
        """Organisations whose users may use their quota. One without users, and not for any user, grants nothing."""
        usable = [found for found in self.registered_users_per_organisation if found.any_user or found.registered_users]
        return {found.id: found.build_grantee() for found in usable}

    def build_service_accounts(self) -> dict[str, Grantee]:
        return {found.username: found.build_grantee() for found in self.registered_service_accounts}


class NamesDocument(RootModel[list[Name]]):
    """`deny-list-configuration.yaml` (names of users) and `access-list-configuration.yaml` (ids of organisations)."""


class AdminRoleDocument(Document):
    """The roles that may use one HTTP method of the admin routes."""

    method: Literal["GET", "POST", "PATCH", "PUT", "DELETE"] = Field(description="The HTTP method.")
    roles: list[Name] = Field(min_length=1, description="At least one; one of them is enough.")


class AdminRolesDocument(RootModel[list[AdminRoleDocument]]):
    """`admin-authz-configuration.yaml`: roles of administrators. A method that is not listed is closed."""

    def build_roles(self) -> dict[str, tuple[str, ...]]:
        roles: dict[str, tuple[str, ...]] = {}
        for found in self.root:
            roles[found.method] = (*roles.get(found.method, ()), *found.roles)
        return roles
