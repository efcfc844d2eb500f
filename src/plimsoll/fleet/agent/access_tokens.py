"""The agent's access token: by client credentials, and a new one before the last one expires.

The token endpoint is what the issuer publishes, as OpenID issuers do; without such a document it is ISSUER/token.
Expiry is counted by the monotonic clock from the moment of the request: the hour of the clock does not matter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

import msgspec

from plimsoll.core.value_parsing import InvalidValue, parse_number
from plimsoll.core.values import Value
from plimsoll.web.client import Request, Response

if TYPE_CHECKING:
    from plimsoll.core.clock import Clock
    from plimsoll.fleet.agent.settings import AgentParameters
    from plimsoll.web.client import HttpClient, RequestFailed

DISCOVERY: Final = "/.well-known/openid-configuration"
_MARGIN_S: Final = 60.0
_LEAST_LIFETIME_S: Final = 10.0
_MOST_LIFETIME_S: Final = 1e9


class NoToken(Value):
    """Why there is no token."""

    problem: str


class AgentTokens:
    """Keeps one token, and requests the next before it expires."""

    def __init__(self, parameters: AgentParameters, web: HttpClient, clock: Clock) -> None:
        self._parameters = parameters
        self._web = web
        self._clock = clock
        self._endpoint = ""
        self._token = ""
        self._until_s = float("-inf")

    async def get(self) -> str | NoToken:
        if self._token and self._clock.monotonic_s() < self._until_s:
            return self._token
        return await self._fetch()

    def discard(self) -> None:
        """The control plane refused the token. The endpoint is looked up again, too."""
        self._token, self._endpoint = "", ""

    async def _fetch(self) -> str | NoToken:
        requested_s = self._clock.monotonic_s()
        parameters = self._parameters
        endpoint = self._endpoint or await self._find_endpoint()
        fields = {
            "grant_type": "client_credentials",
            "client_id": parameters.client_id,
            "client_secret": parameters.client_secret,
        }
        answer = await self._web.send(
            Request(
                method="POST",
                url=endpoint,
                body=urlencode(fields).encode(),
                content_type="application/x-www-form-urlencoded",
                is_query=True,
            )
        )
        if not isinstance(answer, Response):
            return NoToken(problem=f"no token: {answer.problem}")
        document = _decode(answer)
        token = document.get("access_token")
        if not answer.is_ok or not isinstance(token, str) or not token.isascii() or not token.isprintable():
            return NoToken(problem=f"no token: {endpoint} answers {answer.status} without one")
        lifetime_s = _read_lifetime_s(document.get("expires_in"))
        self._endpoint, self._token = endpoint, token
        self._until_s = requested_s + max(lifetime_s - _MARGIN_S, lifetime_s / 2)
        return token

    async def _find_endpoint(self) -> str:
        issuer = self._parameters.issuer_url
        answer: Response | RequestFailed = await self._web.send(Request(method="GET", url=f"{issuer}{DISCOVERY}"))
        published = _decode(answer).get("token_endpoint") if isinstance(answer, Response) and answer.is_ok else None
        # Of the same origin only: the secret goes there.
        is_own = isinstance(published, str) and published.startswith(f"{issuer}/")
        return published if isinstance(published, str) and is_own else f"{issuer}/token"


def _read_lifetime_s(value: Any) -> float:
    try:
        return max(parse_number(value, most=_MOST_LIFETIME_S), _LEAST_LIFETIME_S)
    except InvalidValue:  # how long it lives is not known
        return _MARGIN_S


def _decode(answer: Response) -> dict[str, Any]:
    try:
        document = msgspec.json.decode(answer.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}
