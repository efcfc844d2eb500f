"""Access to the debugging pages: for processes of the same machine, and for users that the API server authorizes.

A request from another machine needs a bearer token. The API server says whose it is (TokenReview) and whether that user
may GET the path (SubjectAccessReview), as for kube-apiserver's own pages. A page in a browser must not get in through
the machine it runs on: a request that names another host, or comes from another site, is not local.
"""

from __future__ import annotations

from enum import Enum
from http import HTTPStatus
from ipaddress import IPv6Address, ip_address
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import urlsplit

import msgspec
import structlog

from plimsoll.core.errors import GaveUp
from plimsoll.core.values import Value
from plimsoll.kube.errors import ApiCallFailed, UnreadableAnswer
from plimsoll.kube.transport import JSON
from plimsoll.kube.transport import Request as ApiRequest
from plimsoll.web.responses import build_text_response

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request

    from plimsoll.kube.client import Client
    from plimsoll.web.responses import PageResponse

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

_TOKEN_REVIEWS: Final = "/apis/authentication.k8s.io/v1/tokenreviews"  # noqa: S105 - a path
_ACCESS_REVIEWS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
_BEARER: Final = "bearer "


class Access(Enum):
    """The result of a review."""

    GRANTED = "granted"
    UNAUTHENTICATED = "unauthenticated"
    FORBIDDEN = "forbidden"


class _User(Value):
    username: str = ""
    uid: str = ""
    groups: list[str] = []
    extra: dict[str, list[str]] = {}


class _TokenStatus(Value):
    authenticated: bool = False
    user: _User = _User()


class _TokenReview(Value):
    status: _TokenStatus = _TokenStatus()


class _AccessStatus(Value):
    allowed: bool = False


class _AccessReview(Value):
    status: _AccessStatus = _AccessStatus()


Review = TypeVar("Review", _TokenReview, _AccessReview)


def is_local(peer: str, headers: Mapping[str, str]) -> bool:
    """Whether a request comes from this machine and means it. `headers` have lower-case names."""
    if not _is_loopback(peer) or not _is_loopback_url(f"//{headers.get('host', '')}"):
        return False
    origin = headers.get("origin", "")
    return not origin or _is_loopback_url(origin)


def _is_loopback(host: str) -> bool:
    try:
        address = ip_address(host)
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return (mapped or address).is_loopback


def _is_loopback_url(url: str) -> bool:
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return False
    return host == "localhost" or _is_loopback(host)


class DebugGuard:
    """Decides whether a request may see a debugging page. Without a `reviewer` only local requests may."""

    def __init__(self, reviewer: AccessReviewer | None = None) -> None:
        self._reviewer = reviewer

    async def find_refusal(self, request: Request) -> PageResponse | None:
        """The response of a request that may not see the page; None: it may."""
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in request.scope["headers"]}
        peer = (request.scope.get("client") or ("",))[0]
        if is_local(peer, headers):
            return None
        if self._reviewer is None:
            return build_text_response("this page is served to the same machine only", HTTPStatus.FORBIDDEN)
        path = request.scope["path"]
        try:
            access = await self._reviewer.review(headers.get("authorization", ""), path)
        except (ApiCallFailed, GaveUp) as error:
            log.warning("page.access_unknown", path=path, problem=str(error))
            problem = "the API server cannot be asked for the authorization"
            return build_text_response(problem, HTTPStatus.SERVICE_UNAVAILABLE)
        match access:
            case Access.GRANTED:
                return None
            case Access.UNAUTHENTICATED:
                unauthenticated = {"www-authenticate": "Bearer"}
                return build_text_response("a bearer token is needed", HTTPStatus.UNAUTHORIZED, headers=unauthenticated)
            case Access.FORBIDDEN:
                return build_text_response("you may not see this page", HTTPStatus.FORBIDDEN)


class AccessReviewer:
    """Asks the API server for the user of a token and its permissions."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def review(self, authorization: str, path: str) -> Access:
        """Raises what the client raises if the API server cannot be asked; access is then refused."""
        if not authorization.lower().startswith(_BEARER):
            return Access.UNAUTHENTICATED
        token = authorization[len(_BEARER) :].strip()
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
        review = await self._review(_TOKEN_REVIEWS, body, _TokenReview)
        user = review.status.user
        if not review.status.authenticated or not user.username:
            return Access.UNAUTHENTICATED
        spec = {
            "user": user.username,
            "uid": user.uid,
            "groups": user.groups,
            "extra": user.extra,
            "nonResourceAttributes": {"path": path, "verb": "get"},
        }
        body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
        answer = await self._review(_ACCESS_REVIEWS, body, _AccessReview)
        return Access.GRANTED if answer.status.allowed else Access.FORBIDDEN

    async def _review(self, path: str, body: dict[str, Any], kind: type[Review]) -> Review:
        call = ApiRequest(
            "POST",
            path,
            headers={"content-type": JSON, "accept": JSON},
            body=msgspec.json.encode(body),
            timeout_s=self._client.settings.timeout_s,
        )
        reply = await self._client.call(call)
        try:
            return msgspec.json.decode(reply.body, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise UnreadableAnswer(f"{path}: not a review: {error}") from error
