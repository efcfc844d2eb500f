"""The claims of a token, read into a `Caller`. A claim of another type than expected counts as missing."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.values import Value

if TYPE_CHECKING:
    from collections.abc import Mapping

_LONGEST: Final = 255
_UNSTORABLE: Final = re.compile("[\x00\ud800-\udfff]")
"""No database stores them."""


class ClaimNames(Value):
    """The names of claims (docs/design/fleet.md 3.0). The first one that a token has counts."""

    user: tuple[str, ...] = ("username", "preferred_username")
    organisation: tuple[str, ...] = ("org_id", "rh-org-id")
    account: tuple[str, ...] = ("account_id",)
    org_admin: tuple[str, ...] = ("is_org_admin",)
    client: tuple[str, ...] = ("clientId",)
    roles: tuple[str, ...] = ("realm_access.roles",)
    """A dot leads into a claim that is an object."""


class Caller(Value):
    """The bearer of a verified token. What the token does not say is empty."""

    issuer: str
    token_digest: str
    """Names the token in rate limits. The token itself is not kept."""
    user: str = ""
    organisation: str = ""
    account: str = ""
    is_org_admin: bool = False
    client_id: str = ""
    roles: frozenset[str] = frozenset()
    """In lower case."""


def read_caller(claims: Mapping[str, Any], names: ClaimNames, *, token_digest: str) -> Caller:
    """The caller that verified claims describe."""
    return Caller(
        issuer=_read_text(claims, ("iss",)),
        token_digest=token_digest,
        user=_read_text(claims, names.user),
        organisation=_read_text(claims, names.organisation),
        account=_read_text(claims, names.account),
        is_org_admin=any(claims.get(name) is True for name in names.org_admin),
        client_id=_read_text(claims, names.client),
        roles=_read_roles(claims, names.roles),
    )


def _read_text(claims: Mapping[str, Any], names: tuple[str, ...]) -> str:
    for name in names:
        value = claims.get(name)
        if isinstance(value, str) and 0 < len(value) <= _LONGEST and not _UNSTORABLE.search(value):
            return value
    return ""


def _read_roles(claims: Mapping[str, Any], names: tuple[str, ...]) -> frozenset[str]:
    roles: set[str] = set()
    for name in names:
        value: Any = claims
        for key in name.split("."):
            value = value.get(key) if isinstance(value, dict) else None
        if isinstance(value, list):
            roles |= {role.lower() for role in value if isinstance(role, str)}
    return frozenset(roles)
