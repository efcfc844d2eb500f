"""The identity of this client at the server, and why the server may not recognize it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from plimsoll.core.values import Value
from plimsoll.kube.diagnosis.findings import Finding, Level
from plimsoll.kube.errors import Forbidden, NotFound, Unauthorized, UnreadableAnswer
from plimsoll.kube.transport import JSON, Request

if TYPE_CHECKING:
    from datetime import datetime

    from plimsoll.kube.client import Client
    from plimsoll.kube.diagnosis.servers import Target
    from plimsoll.kube.transport import Response

ANONYMOUS: Final = "system:anonymous"
_WHO_AM_I: Final = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


class Identity(Value):
    """A user of the server."""

    user: str
    groups: tuple[str, ...] = ()


async def identify(client: Client, target: Target, *, now: datetime) -> tuple[Identity | None, Finding]:
    """The identity that the server reports; none if it does not recognize the credentials or does not answer."""
    body = msgspec.json.encode({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"})
    headers = {"content-type": JSON, "accept": JSON}
    call = Request("POST", _WHO_AM_I, headers=headers, body=body, timeout_s=client.settings.timeout_s)
    try:
        identity = _read_identity(await client.call(call))
    except Unauthorized as error:
        return None, build_unknown_identity_finding(str(error), target, now=now)
    except (Forbidden, NotFound, UnreadableAnswer) as error:
        if isinstance(error, Forbidden) and f'"{ANONYMOUS}"' in str(error):  # not even that may be read
            anonymous = Identity(user=ANONYMOUS)
            return anonymous, _build_identity_finding(anonymous, target, now=now)
        return None, Finding(
            check="identity", level=Level.UNKNOWN, message=f"the server does not report the identity: {error}"
        )
    return identity, _build_identity_finding(identity, target, now=now)


def build_unknown_identity_finding(problem: str, target: Target, *, now: datetime) -> Finding:
    expired = _describe_expiry(target, now)
    return Finding(
        check="identity",
        level=Level.FAIL,
        message=f"the server does not recognize the credentials: {expired or problem}",
        fix="get a new certificate (client-certificate and client-key of the user)"
        if expired
        else "get a new token or certificate: the current one is wrong or has expired",
    )


def _build_identity_finding(identity: Identity, target: Target, *, now: datetime) -> Finding:
    details = {"user": identity.user, "groups": list(identity.groups)}
    if identity.user != ANONYMOUS:
        return Finding(check="identity", level=Level.OK, message=f"authenticated as {identity.user}", details=details)
    if not target.is_shown_credentials:
        return Finding(
            check="identity",
            level=Level.WARN,
            message="anonymous: no credentials were given",
            fix="use a kubeconfig with a user, or run as a pod with a service account",
            details=details,
        )
    why = (
        _describe_expiry(target, now)
        or "it does not know the certificate authority, or does not accept such credentials"
    )
    return Finding(
        check="identity",
        level=Level.FAIL,
        message=f"the credentials were ignored, the server treats this client as {ANONYMOUS}: {why}",
        fix="use credentials of this cluster; check the user of the kubeconfig context",
        details=details,
    )


def _describe_expiry(target: Target, now: datetime) -> str:
    ends = target.certificate_ends
    return f"the client certificate expired on {ends:%Y-%m-%dT%H:%M:%SZ}" if ends is not None and ends <= now else ""


class _UserInfo(Value):
    username: str = ""
    groups: list[str] | None = None


class _ReviewStatus(Value):
    user_info: _UserInfo = _UserInfo()


class _Review(Value):
    status: _ReviewStatus = _ReviewStatus()


def _read_identity(reply: Response) -> Identity:
    try:
        info = msgspec.json.decode(reply.body, type=_Review).status.user_info
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UnreadableAnswer(f"not a SelfSubjectReview: {error}") from error
    if not info.username:
        raise UnreadableAnswer("not a SelfSubjectReview: it has no user name")
    return Identity(user=info.username, groups=tuple(info.groups or ()))
