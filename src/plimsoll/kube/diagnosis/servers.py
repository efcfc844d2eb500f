"""The server itself: does it answer, how fast, what does its clock say, which Kubernetes is it, who are we to it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final

import msgspec

from plimsoll.core.errors import Unreachable
from plimsoll.core.values import Value
from plimsoll.kube.diagnosis.findings import Finding, Level, NoExamination
from plimsoll.kube.discovery import ServerVersion
from plimsoll.kube.errors import ApiError, Forbidden, NotFound, ServerFailed, TlsRefused, Unauthorized, UnreadableAnswer
from plimsoll.kube.exchange import JSON, Call

if TYPE_CHECKING:
    from plimsoll.core.clock import Clock
    from plimsoll.kube.access import Access
    from plimsoll.kube.client import Client
    from plimsoll.kube.exchange import Reply

LEAST_VERSION: Final = (1, 28)
"""The first with SelfSubjectReview in v1; everything else Plimsoll uses is older."""

SKEW_WORTH_A_WARNING_S: Final = 5.0
LEASE_S: Final = 15.0
"""How long a lease is good by default: with clocks further apart, one that was just renewed looks expired."""

ANONYMOUS: Final = "system:anonymous"
_SAMPLES: Final = 3
_WHO_AM_I: Final = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


class Target(Value):
    """The server as it was configured."""

    server: str = "in this process"
    origin: str = ""
    """Where the address comes from: `context kind of /home/x/.kube/config`."""
    is_verified: bool = True
    """Whether its certificate is checked."""

    @classmethod
    def of(cls, access: Access) -> Target:
        is_verified = access.server.startswith("https://") and not access.tls.is_insecure
        return cls(server=access.server, origin=access.origin, is_verified=is_verified)


class Greeting(Value):
    """What the first few exchanges with the server tell."""

    latency_s: float
    version: ServerVersion = ServerVersion()
    ahead_s: float | None = None
    """How far the server's clock is ahead of ours; None if it does not tell its time."""
    is_unknown_to_server: bool = False


class Identity(Value):
    """Who we are to the server."""

    user: str
    groups: tuple[str, ...] = ()


async def greet(client: Client, target: Target, *, clock: Clock) -> Greeting:
    """Ask a small thing a few times; the quickest answer tells latency and clock best."""
    greetings = [await _greeted(client, target, clock=clock) for _ in range(_SAMPLES)]
    return min(greetings, key=lambda one: (one.ahead_s is None, one.latency_s))


async def _greeted(client: Client, target: Target, *, clock: Clock) -> Greeting:
    sent_at, started_s = clock.now(), clock.monotonic_s()
    try:
        reply = await client.call(Call("GET", "/version", headers={"accept": JSON}))
    except Unauthorized:
        return Greeting(latency_s=clock.monotonic_s() - started_s, is_unknown_to_server=True)
    except ServerFailed as error:
        raise NoExamination(f"{target.server} answers, but cannot work: {error}", hint=_waiting()) from error
    except ApiError:  # it is there, and some servers tell their version only to friends
        return Greeting(latency_s=clock.monotonic_s() - started_s)
    except Unreachable as error:
        raise unreached(error, target) from error
    latency_s = clock.monotonic_s() - started_s
    ahead_s = _ahead_s(reply, sent_at + timedelta(seconds=latency_s / 2))
    return Greeting(latency_s=latency_s, version=_version_in(reply), ahead_s=ahead_s)


def unreached(error: Unreachable, target: Target) -> NoExamination:
    """What to tell whoever asked for an examination: which server, why not, and what may help."""
    told = str(error)
    message = told if target.server in told else f"cannot reach {target.server}: {told}"
    return NoExamination(message, hint=_advice(error, target))


def _advice(error: Unreachable, target: Target) -> str:
    origin = f"the address comes from {target.origin}; " if target.origin else ""
    if isinstance(error, TlsRefused):
        return f"{origin}a cluster that was made anew has a new certificate authority: get its kubeconfig again"
    return f"{origin}check host and port, or try another address with --server URL"


def _waiting() -> str:
    return "it may still be starting: try again in a minute, and look at its /readyz?verbose"


def _version_in(reply: Reply) -> ServerVersion:
    try:
        return msgspec.json.decode(reply.body, type=ServerVersion)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ServerVersion()


def _ahead_s(reply: Reply, our_time: datetime) -> float | None:
    """The header has whole seconds, cut off: on the average it was half a second later."""
    try:
        told = parsedate_to_datetime(reply.headers.get("date", ""))
    except (ValueError, OverflowError):
        return None
    aware = told if told.tzinfo is not None else told.replace(tzinfo=UTC)
    return (aware + timedelta(seconds=0.5) - our_time).total_seconds()


# ---- what follows from a greeting


def reachable(greeting: Greeting, target: Target) -> Finding:
    details = {
        "server": target.server,
        "origin": target.origin,
        "latencyMilliseconds": round(greeting.latency_s * 1000, 1),
        "certificateChecked": target.is_verified,
    }
    message = f"{target.server} answers in {greeting.latency_s * 1000:.0f} ms"
    if target.is_verified:
        return Finding(check="api", level=Level.OK, message=message, details=details)
    return Finding(
        check="api",
        level=Level.WARN,
        message=f"{message}, but whether it is the server we mean is not checked",
        fix="use https, and give certificate-authority instead of insecure-skip-tls-verify",
        details=details,
    )


def version(greeting: Greeting) -> Finding:
    told, number = greeting.version.git_version, greeting.version.number
    least = ".".join(map(str, LEAST_VERSION))
    if not told or not all(number):
        return Finding(check="version", level=Level.UNKNOWN, message="the server does not tell its version")
    details = {"gitVersion": told, "leastVersion": least}
    if number >= LEAST_VERSION:
        return Finding(check="version", level=Level.OK, message=f"Kubernetes {told}", details=details)
    return Finding(
        check="version",
        level=Level.FAIL,
        message=f"Kubernetes {told} is older than {least}, the oldest that Plimsoll works with",
        fix=f"upgrade to {least} or later",
        details=details,
    )


def clock_skew(greeting: Greeting) -> Finding:
    if greeting.ahead_s is None:
        return Finding(check="clock", level=Level.UNKNOWN, message="the server does not tell its time")
    apart_s = abs(greeting.ahead_s)
    details = {"serverAheadSeconds": round(greeting.ahead_s, 1)}
    # The header's whole seconds and the way there leave about a second of doubt.
    if apart_s <= 1.0:
        return Finding(check="clock", level=Level.OK, message="agrees with the server's to a second", details=details)
    side = "behind" if greeting.ahead_s > 0 else "ahead of"
    message = f"our clock is {apart_s:.0f} s {side} the server's"
    if apart_s <= SKEW_WORTH_A_WARNING_S:
        return Finding(check="clock", level=Level.OK, message=message, details=details)
    level = Level.WARN if apart_s <= LEASE_S else Level.FAIL
    fix = "keep both machines at the right time (chrony, systemd-timesyncd)"
    if level is Level.FAIL:
        message += f", more than a lease lasts ({LEASE_S:.0f} s): the times in leases and objects mean nothing"
    return Finding(check="clock", level=level, message=message, fix=fix, details=details)


# ---- who we are


async def identify(client: Client) -> tuple[Identity | None, Finding]:
    """Who the server takes us for; without an identity if it does not know us or does not tell."""
    body = msgspec.json.encode({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"})
    call = Call("POST", _WHO_AM_I, headers={"content-type": JSON, "accept": JSON}, body=body)
    try:
        identity = _identity_in(await client.call(call))
    except Unauthorized as error:
        return None, unknown_to_server(str(error))
    except (Forbidden, NotFound, UnreadableAnswer) as error:
        return None, Finding(check="identity", level=Level.UNKNOWN, message=f"the server does not tell: {error}")
    return identity, _introduced(identity)


def unknown_to_server(told: str) -> Finding:
    return Finding(
        check="identity",
        level=Level.FAIL,
        message=f"the server does not know us: {told}",
        fix="get a fresh token or certificate: the one we have is wrong or has expired",
    )


def _introduced(identity: Identity) -> Finding:
    details = {"user": identity.user, "groups": list(identity.groups)}
    if identity.user == ANONYMOUS:
        return Finding(
            check="identity",
            level=Level.WARN,
            message="we are nobody: no credentials were given",
            fix="use a kubeconfig with a user, or run as a pod with a service account",
            details=details,
        )
    return Finding(check="identity", level=Level.OK, message=f"we are {identity.user}", details=details)


class _UserInfo(Value):
    username: str = ""
    groups: list[str] | None = None


class _ReviewStatus(Value):
    user_info: _UserInfo = _UserInfo()


class _Review(Value):
    status: _ReviewStatus = _ReviewStatus()


def _identity_in(reply: Reply) -> Identity:
    try:
        info = msgspec.json.decode(reply.body, type=_Review).status.user_info
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UnreadableAnswer(f"not a SelfSubjectReview: {error}") from error
    if not info.username:
        raise UnreadableAnswer("not a SelfSubjectReview: it names nobody")
    return Identity(user=info.username, groups=tuple(info.groups or ()))
