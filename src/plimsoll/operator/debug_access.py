"""Who may see the debugging pages: processes of the same machine, and whoever the API server says may.

From elsewhere a bearer token is put to the API server (TokenReview), and then whether its owner may GET this path
(SubjectAccessReview), as kube-apiserver's own pages do. A page in a browser must not get in by way of the machine it
runs on: what names another host, or comes from another site, is not local.
"""

from __future__ import annotations

from enum import Enum
from ipaddress import IPv6Address, ip_address
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import urlsplit

import msgspec

from plimsoll.core.values import Value
from plimsoll.kube.errors import UnreadableAnswer
from plimsoll.kube.transport import JSON, Request

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.kube.client import Client

_TOKEN_REVIEWS: Final = "/apis/authentication.k8s.io/v1/tokenreviews"  # noqa: S105 - a path
_ACCESS_REVIEWS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
_BEARER: Final = "bearer "


class Access(Enum):
    """What a caller is told."""

    GRANTED = 200
    UNAUTHENTICATED = 401
    FORBIDDEN = 403


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
    """`headers` by lower-case names."""
    if not _is_loopback(peer) or not _names_loopback(f"//{headers.get('host', '')}"):
        return False
    origin = headers.get("origin", "")
    return not origin or _names_loopback(origin)


def _is_loopback(host: str) -> bool:
    try:
        address = ip_address(host)
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return (mapped or address).is_loopback


def _names_loopback(url: str) -> bool:
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return False
    return host == "localhost" or _is_loopback(host)


class Reviewer:
    """Asks the API server."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def access(self, authorization: str, path: str) -> Access:
        """Raises what the client raises when the server cannot be asked: then nobody gets in."""
        if not authorization.lower().startswith(_BEARER):
            return Access.UNAUTHENTICATED
        token = authorization[len(_BEARER) :].strip()
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
        review = await self._review(_TOKEN_REVIEWS, body, _TokenReview)
        user = review.status.user
        if not review.status.authenticated or not user.username:
            return Access.UNAUTHENTICATED
        asked = {
            "user": user.username,
            "uid": user.uid,
            "groups": user.groups,
            "extra": user.extra,
            "nonResourceAttributes": {"path": path, "verb": "get"},
        }
        body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": asked}
        answer = await self._review(_ACCESS_REVIEWS, body, _AccessReview)
        return Access.GRANTED if answer.status.allowed else Access.FORBIDDEN

    async def _review(self, path: str, body: dict[str, Any], kind: type[Review]) -> Review:
        call = Request(
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
