"""Impersonation: the Impersonate headers, each checked against the permissions of the real user.

Repeated headers arrive joined by commas, as HTTP allows; so a group whose name contains a comma cannot be requested.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import unquote

from plimsoll.local.apiserver import status_errors
from plimsoll.local.apiserver.auth_types import Attributes, User
from plimsoll.local.apiserver.authorization.forbidden import forbidden
from plimsoll.local.apiserver.authorization.groups import AUTHENTICATED, UNAUTHENTICATED

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from plimsoll.local.apiserver.auth_types import Authorizer

_PREFIX: Final = "impersonate-"
_EXTRA: Final = "impersonate-extra-"
_GROUP: Final = "authentication.k8s.io"
_ANONYMOUS: Final = "system:anonymous"
_SERVICE_ACCOUNT: Final = "system:serviceaccount:"


class _ImpersonationRequest(NamedTuple):
    """What the headers ask for."""

    user: str
    uid: str
    groups: tuple[str, ...]
    extra: dict[str, tuple[str, ...]]

    @property
    def service_account(self) -> tuple[str, str] | None:
        """Namespace and name, if the user is a ServiceAccount's."""
        if not self.user.startswith(_SERVICE_ACCOUNT):
            return None
        namespace, colon, name = self.user.removeprefix(_SERVICE_ACCOUNT).partition(":")
        return (namespace, name) if namespace and colon and name and ":" not in name else None


def resolve_acting_user(user: User, headers: Mapping[str, str], authorizer: Authorizer | None) -> User:
    """The effective user: `user`, unless Impersonate headers name another one and the rules allow it."""
    # Impersonation is rare: all headers are checked at once.
    if _PREFIX not in " ".join(headers):
        return user
    requested = _read_impersonation_request(headers)
    if not requested.user:
        if requested.uid or requested.groups or requested.extra:
            raise status_errors.bad_request("requested uid, groups or extra without impersonating a user")
        return user
    for attributes in _list_attributes(user, requested):
        if authorizer is None:
            raise forbidden(attributes)
        decision = authorizer.decide(attributes)
        if not decision.allowed:
            raise forbidden(attributes, decision)
    return User(name=requested.user, uid=requested.uid, groups=_resolve_groups(requested), extra=requested.extra)


def _read_impersonation_request(headers: Mapping[str, str]) -> _ImpersonationRequest:
    extra = {
        unquote(name.removeprefix(_EXTRA)): _split_values(value)
        for name, value in sorted(headers.items())
        if name.startswith(_EXTRA)
    }
    return _ImpersonationRequest(
        user=headers.get("impersonate-user", ""),
        uid=headers.get("impersonate-uid", ""),
        groups=_split_values(headers.get("impersonate-group", "")),
        extra=extra,
    )


def _split_values(header: str) -> tuple[str, ...]:
    return tuple(value.strip() for value in header.split(",") if value.strip())


def _list_attributes(user: User, requested: _ImpersonationRequest) -> Iterator[Attributes]:
    """What the caller must be allowed to do, in the order in which Kubernetes asks."""
    account = requested.service_account
    if account is not None:
        namespace, name = account
        yield Attributes(user=user, verb="impersonate", resource="serviceaccounts", namespace=namespace, name=name)
    else:
        yield Attributes(user=user, verb="impersonate", resource="users", name=requested.user)
    for group in requested.groups:
        yield Attributes(user=user, verb="impersonate", resource="groups", name=group)
    for key, values in requested.extra.items():
        for value in values:
            yield Attributes(
                user=user, verb="impersonate", group=_GROUP, resource="userextras", subresource=key, name=value
            )
    if requested.uid:
        yield Attributes(user=user, verb="impersonate", group=_GROUP, resource="uids", name=requested.uid)


def _resolve_groups(requested: _ImpersonationRequest) -> tuple[str, ...]:
    """The groups that were asked for, or those every ServiceAccount has; and whether one is authenticated at all."""
    groups = requested.groups
    account = requested.service_account
    if account is not None and not groups:
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{account[0]}")
    if requested.user == _ANONYMOUS:
        return groups if UNAUTHENTICATED in groups else (*groups, UNAUTHENTICATED)
    if AUTHENTICATED in groups or UNAUTHENTICATED in groups:
        return groups
    return (*groups, AUTHENTICATED)
