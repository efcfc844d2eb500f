"""Exchanges with OCM: tokens, statuses and bodies become results, `Absent` or `CallFailed`.

A 404 counts as `Absent` only with an error document of OCM in its body: a proxy or a wrong address answers 404 as well,
and must not make a cluster look gone.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar
from urllib.parse import urlencode

import msgspec

from plimsoll.core.values import Wire
from plimsoll.fleet.model.provided import Absent, CallFailed, FailureKind, build_failure
from plimsoll.fleet.model.records import keep_name
from plimsoll.fleet.providers.ocm.settings import TIMEOUT_S
from plimsoll.web.client import Request, RequestFailed, Response

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.core.clock import Clock
    from plimsoll.fleet.providers.ocm.settings import OcmClientSettings
    from plimsoll.web.client import HttpClient

W = TypeVar("W")
_BASE: Final = "/api/clusters_mgmt/v1"
_MARGIN_S: Final = 30.0
"""A token is renewed so long before it ends, or after half of its life if that is sooner."""
_RETRIED: Final = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS})
_LEAST_LIFETIME_S: Final = 1.0


class _TokenAnswer(Wire, rename=keep_name):
    access_token: str
    expires_in: float = 300.0


class _ErrorAnswer(Wire, rename=keep_name):
    kind: Literal["Error"]
    code: str = ""
    reason: str = ""


class AccessTokens:
    """Tokens by client credentials (RFC 6749, 4.4), kept until they end soon."""

    def __init__(self, settings: OcmClientSettings, web: HttpClient, clock: Clock) -> None:
        self._settings = settings
        self._web = web
        self._clock = clock
        self._lock = asyncio.Lock()
        self._token = ""
        self._until_s = float("-inf")

    async def get(self) -> str | CallFailed:
        """A token; empty: none is needed."""
        if not self._settings.client_id:
            return ""
        async with self._lock:
            if self._clock.monotonic_s() < self._until_s:
                return self._token
            return await self._fetch()

    def discard(self, token: str) -> None:
        """The server refused this token."""
        if token == self._token:
            self._until_s = float("-inf")

    async def _fetch(self) -> str | CallFailed:
        settings, requested_s = self._settings, self._clock.monotonic_s()
        fields = {"grant_type": "client_credentials", "client_id": settings.client_id}
        form = urlencode(fields | {"client_secret": settings.client_secret})
        answer = await self._web.send(
            Request(
                method="POST",
                url=settings.token_url,
                body=form.encode(),
                content_type="application/x-www-form-urlencoded",
                timeout_s=TIMEOUT_S,
            )
        )
        if isinstance(answer, RequestFailed):
            return build_failure(FailureKind.UNREACHABLE, f"no token for OCM: {answer.problem}")
        if not answer.is_ok:
            kind = FailureKind.RETRY if _is_transient(answer.status) else FailureKind.REFUSED
            return build_failure(kind, f"no token for OCM: {settings.token_url} answers {answer.status}")
        found = decode_document(answer.body, _TokenAnswer)
        if isinstance(found, CallFailed) or not found.access_token.isascii() or not found.access_token.isprintable():
            return build_failure(FailureKind.RETRY, f"no token for OCM: {settings.token_url} answers without a token")
        lifetime_s = max(found.expires_in, _LEAST_LIFETIME_S)
        self._token = found.access_token
        self._until_s = requested_s + max(lifetime_s - _MARGIN_S, lifetime_s / 2)
        return self._token


class OcmCalls:
    """Requests below `/api/clusters_mgmt/v1`."""

    def __init__(self, settings: OcmClientSettings, web: HttpClient, clock: Clock) -> None:
        self._base_url = f"{settings.base_url.rstrip('/')}{_BASE}"
        self._web = web
        self._tokens = AccessTokens(settings, web, clock)

    async def send(
        self,
        method: Literal["GET", "POST", "PATCH", "DELETE"],
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        query: Mapping[str, str] | None = None,
    ) -> bytes | Absent | CallFailed:
        """The body of an answer with a status of success."""
        url = f"{self._base_url}{path}" + (f"?{urlencode(query)}" if query else "")
        answer = await self._exchange(method, url, body)
        if isinstance(answer, Response) and answer.status == HTTPStatus.UNAUTHORIZED:
            answer = await self._exchange(method, url, body)
        if isinstance(answer, CallFailed):
            return answer
        if HTTPStatus.OK <= answer.status < HTTPStatus.MULTIPLE_CHOICES:
            return answer.body
        return _classify(answer, what=f"{method} {path}")

    async def _exchange(
        self, method: Literal["GET", "POST", "PATCH", "DELETE"], url: str, body: Mapping[str, Any] | None
    ) -> Response | CallFailed:
        token = await self._tokens.get()
        if isinstance(token, CallFailed):
            return token
        request = Request(
            method=method,
            url=url,
            body=b"" if body is None else msgspec.json.encode(body),
            content_type="" if body is None else "application/json",
            headers={"Authorization": f"Bearer {token}"} if token else {},
            timeout_s=TIMEOUT_S,
        )
        answer = await self._web.send(request)
        if isinstance(answer, RequestFailed):
            return build_failure(FailureKind.UNREACHABLE, answer.problem)
        if answer.status == HTTPStatus.UNAUTHORIZED:
            self._tokens.discard(token)
        return answer


def decode_document(content: bytes, kind: type[W]) -> W | CallFailed:
    """A document of OCM. What is not one is a failed call."""
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.DecodeError, RecursionError) as error:
        return build_failure(FailureKind.RETRY, f"the answer of OCM is unreadable: {error}")


def _classify(answer: Response, *, what: str) -> Absent | CallFailed:
    found = decode_document(answer.body, _ErrorAnswer)
    is_document = isinstance(found, _ErrorAnswer)
    if answer.status == HTTPStatus.NOT_FOUND and is_document:
        return Absent()
    reason = found.reason if isinstance(found, _ErrorAnswer) else answer.excerpt
    problem = f"OCM answers {answer.status} to {what}: {reason}"
    if _is_transient(answer.status) or not is_document:
        return build_failure(FailureKind.RETRY, problem)
    return build_failure(FailureKind.REFUSED, problem)


def _is_transient(status: int) -> bool:
    """Whether a repetition may succeed although nothing is changed. Redirects are not followed."""
    return status >= HTTPStatus.INTERNAL_SERVER_ERROR or status in _RETRIED
