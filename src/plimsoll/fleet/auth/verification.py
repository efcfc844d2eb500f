"""Verification of bearer tokens: RS256 only, the keys of known issuers, audience, expiry and not-before.

Times are compared with the `Clock`, so that tokens expire in virtual time. Which issuer a route accepts is the API's
business: a verified token says which one signed it.
"""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING, Any, Final

import jwt

from plimsoll.core.values import Value
from plimsoll.fleet.auth.claims import Caller, ClaimNames, read_caller
from plimsoll.fleet.auth.key_sets import ALGORITHM

if TYPE_CHECKING:
    from plimsoll.core.clock import Clock
    from plimsoll.fleet.auth.key_sets import KeySet

LEEWAY_S: Final = 10.0
"""How far the clocks of an issuer and of this service may differ."""
_LONGEST_TOKEN: Final = 16 * 1024
_SHOWN_ISSUER: Final = 100
# Signature and form are checked by PyJWT; times and names below, by the clock and the settings of the service.
_OPTIONS: Final[Any] = {
    "verify_signature": True,
    "verify_exp": False,
    "verify_nbf": False,
    "verify_iat": False,
    "verify_aud": False,
    "verify_iss": False,
    "verify_sub": False,
    "verify_jti": False,
}


class TokenRefused(Value):
    """The token proves nothing. `problem` goes to the caller and names no claim values."""

    problem: str


class TokenVerifier:
    """Checks tokens for one audience."""

    def __init__(
        self,
        keys: KeySet,
        *,
        audience: str,
        clock: Clock,
        claim_names: ClaimNames | None = None,
    ) -> None:
        self._keys = keys
        self._audience = audience
        self._clock = clock
        self._claim_names = claim_names or ClaimNames()

    async def verify(self, token: str) -> Caller | TokenRefused:
        """The bearer of the token."""
        if len(token) > _LONGEST_TOKEN:
            return TokenRefused(problem="the token is too long")
        claims = await self._read_signed_claims(token)
        if isinstance(claims, TokenRefused):
            return claims
        problem = self._find_problem(claims)
        if problem:
            return TokenRefused(problem=problem)
        digest = hashlib.sha256(token.encode()).hexdigest()
        return read_caller(claims, self._claim_names, token_digest=digest)

    async def _read_signed_claims(self, token: str) -> dict[str, Any] | TokenRefused:
        try:
            header = jwt.get_unverified_header(token)
        except (jwt.PyJWTError, ValueError, RecursionError):
            return TokenRefused(problem="the token is not a JWT")
        if header.get("alg") != ALGORITHM:
            return TokenRefused(problem=f"the token is not signed by {ALGORITHM}")
        key_id = header.get("kid")
        key = await self._keys.find_key(key_id) if isinstance(key_id, str) else None
        if key is None:
            return TokenRefused(problem="the token names no known key")
        try:
            claims: dict[str, Any] = jwt.decode(token, key, algorithms=[ALGORITHM], options=_OPTIONS)
        except (jwt.PyJWTError, ValueError, RecursionError):
            return TokenRefused(problem="the signature of the token is not valid")
        issuer = claims.get("iss")
        name = issuer if isinstance(issuer, str) else ""
        if not self._keys.may_sign(str(key_id), name):
            return TokenRefused(
                problem=f"the key of the token does not sign for its issuer {name[:_SHOWN_ISSUER]!r} here"
            )
        return claims

    def _find_problem(self, claims: dict[str, Any]) -> str:
        now_s = self._clock.now().timestamp()
        if not _is_time(claims.get("exp")):
            return "the token has no expiry"
        if claims["exp"] + LEEWAY_S <= now_s:
            return "the token has expired"
        if "nbf" in claims and not (_is_time(claims["nbf"]) and claims["nbf"] - LEEWAY_S <= now_s):
            return "the token is not valid yet"
        audience = claims.get("aud")
        if self._audience not in (audience if isinstance(audience, list) else [audience]):
            return "the token is for another audience"
        return ""


def _is_time(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) <= 2**53 and math.isfinite(value)
