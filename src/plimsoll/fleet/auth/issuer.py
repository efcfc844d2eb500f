"""A small issuer of our own, for the embedded world and for small installations.

It has three realms, each an issuer of its own: `public` for users, `admin` for administrators, `agent` for agents. So a
token of an agent is worth nothing on the routes of administrators, whatever its claims say.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

import jwt

from plimsoll.core.errors import InvalidInput
from plimsoll.core.values import Value
from plimsoll.fleet.auth.issuer_keys import LONGEST_LIFETIME_S, load_private_key
from plimsoll.fleet.auth.key_sets import ALGORITHM

if TYPE_CHECKING:
    from plimsoll.core.clock import Clock
    from plimsoll.core.entropy import Entropy
    from plimsoll.fleet.auth.issuer_keys import IssuerKeys

AGENT_LIFETIME_S: Final = 300.0
USER_LIFETIME_S: Final = 3600.0
DEFAULT_AUDIENCE: Final = "plimsoll-fleet"


class Realm(StrEnum):
    """The groups of callers. Each has its own issuer."""

    PUBLIC = "public"
    ADMIN = "admin"
    AGENT = "agent"


class UserIdentity(Value):
    """A user or an administrator that a token is made for."""

    user: str
    organisation: str = ""
    account: str = ""
    is_org_admin: bool = False
    roles: tuple[str, ...] = ()


def build_issuer_url(base_url: str, realm: Realm) -> str:
    """The name of a realm's issuer, as it stands in tokens."""
    return f"{base_url.rstrip('/')}/{realm}"


class Issuer:
    """Signs tokens. `base_url` is the address under which the issuer is served, without a realm."""

    def __init__(
        self, keys: IssuerKeys, *, base_url: str, clock: Clock, entropy: Entropy, audience: str = DEFAULT_AUDIENCE
    ) -> None:
        self.keys = keys
        self.base_url = base_url.rstrip("/")
        self._clock = clock
        self._entropy = entropy
        self._audience = audience

    def issue_user_token(self, identity: UserIdentity, *, lifetime_s: float = USER_LIFETIME_S) -> str:
        """A token for the public routes."""
        return self._sign(Realm.PUBLIC, _build_user_claims(identity), lifetime_s=lifetime_s)

    def issue_admin_token(self, identity: UserIdentity, *, lifetime_s: float = USER_LIFETIME_S) -> str:
        """A token for the routes of administrators."""
        claims = {**_build_user_claims(identity), "realm_access": {"roles": list(identity.roles)}}
        return self._sign(Realm.ADMIN, claims, lifetime_s=lifetime_s)

    def issue_agent_token(self, client_id: str, *, lifetime_s: float = AGENT_LIFETIME_S) -> str:
        """A token for the agent of one cluster."""
        return self._sign(Realm.AGENT, {"sub": client_id, "clientId": client_id}, lifetime_s=lifetime_s)

    def _sign(self, realm: Realm, claims: dict[str, Any], *, lifetime_s: float) -> str:
        if not 0 < lifetime_s <= LONGEST_LIFETIME_S:
            raise InvalidInput(f"must be at most {LONGEST_LIFETIME_S / 3600:g} hours", path="lifetime")
        key = self.keys.get_signing_key()
        now_s = int(self._clock.now().timestamp())
        standard = {
            "iss": build_issuer_url(self.base_url, realm),
            "aud": self._audience,
            "iat": now_s,
            "nbf": now_s,
            "exp": now_s + int(lifetime_s),
            "jti": self._entropy.generate_uid(),
        }
        return jwt.encode(
            {**claims, **standard}, load_private_key(key.pem), algorithm=ALGORITHM, headers={"kid": key.id}
        )


def _build_user_claims(identity: UserIdentity) -> dict[str, Any]:
    claims: dict[str, Any] = {"sub": identity.user, "username": identity.user}
    if identity.organisation:
        claims["org_id"] = identity.organisation
    if identity.account:
        claims["account_id"] = identity.account
    if identity.is_org_admin:
        claims["is_org_admin"] = True
    return claims
