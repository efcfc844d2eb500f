"""Checks of the server itself: reachability, latency, clock and version of Kubernetes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final

import msgspec

from plimsoll.core.errors import Unreachable
from plimsoll.core.values import Value
from plimsoll.kube.configuration.certificates import read_expiry
from plimsoll.kube.diagnosis.findings import Finding, Level, NoExamination
from plimsoll.kube.discovery import ServerVersion
from plimsoll.kube.errors import (
    ApiError,
    BadRequest,
    Forbidden,
    ServerFailed,
    TlsRefused,
    TooManyRequests,
    Unauthorized,
    UnknownAuthority,
    UnreadableAnswer,
)
from plimsoll.kube.transport import JSON, Request

if TYPE_CHECKING:
    from plimsoll.core.clock import Clock
    from plimsoll.kube.access import Access, Credential
    from plimsoll.kube.client import Client
    from plimsoll.kube.transport import Response

LEAST_VERSION: Final = (1, 28)
"""The first with SelfSubjectReview in v1; everything else Plimsoll uses is older."""

SKEW_WORTH_A_WARNING_S: Final = 5.0
LEASE_S: Final = 15.0
"""How long a lease is good by default: with clocks further apart, one that was just renewed looks expired."""

_SAMPLES: Final = 3
_A_PAGE: Final = "a page of HTML"  # what `kube.statuses` makes of one


class Target(Value):
    """The server as it was configured."""

    server: str = "in this process"
    origin: str = ""
    """Where the address comes from: `context kind of /home/x/.kube/config`."""
    is_verified: bool = True
    """Whether its certificate is checked."""
    is_shown_credentials: bool = False
    """Whether credentials are sent that it should recognize."""
    certificate_ends: datetime | None = None
    """Until when the certificate that we show is good."""

    @classmethod
    def from_access(cls, access: Access, credential: Credential) -> Target:
        has_proof = credential.has_certificate or any(name.lower() == "authorization" for name in credential.headers)
        is_as_another = any(name.lower() == "impersonate-user" for name in credential.headers)
        return cls(
            server=access.server,
            origin=access.origin,
            is_verified=access.server.startswith("https://") and not access.tls.is_insecure,
            is_shown_credentials=has_proof and not is_as_another,
            certificate_ends=read_expiry(credential.certificate_pem),
        )

    @property
    def advice_on_address(self) -> str:
        return f"the address comes from {self.origin}; " if self.origin else ""


class ServerProbe(Value):
    """The result of the first few requests to the server."""

    latency_s: float
    version: ServerVersion = ServerVersion()
    ahead_s: float | None = None
    """How far the server's clock is ahead of ours; None if its responses carry no time."""
    is_unknown_to_server: bool = False
    is_odd: bool = False
    """It answers, but not with a version."""


async def probe_server(client: Client, target: Target, *, clock: Clock) -> ServerProbe:
    """Send a small request a few times; the fastest response gives the best latency and clock difference."""
    probes = [await _probe_once(client, target, clock=clock) for _ in range(_SAMPLES)]
    return min(probes, key=lambda probe: (probe.ahead_s is None, probe.latency_s))


async def _probe_once(client: Client, target: Target, *, clock: Clock) -> ServerProbe:
    sent_at, started_s = clock.now(), clock.monotonic_s()
    call = Request("GET", "/version", headers={"accept": JSON}, timeout_s=client.settings.timeout_s)
    try:
        reply = await client.call(call)
    except Unauthorized:
        return ServerProbe(latency_s=clock.monotonic_s() - started_s, is_unknown_to_server=True)
    except ApiError as error:
        if isinstance(error, Forbidden) and _A_PAGE not in str(error):  # some servers hide their version
            return ServerProbe(latency_s=clock.monotonic_s() - started_s)
        raise _build_refused_error(error, target) from error
    except Unreachable as error:
        raise build_unreachable_error(error, target) from error
    latency_s = clock.monotonic_s() - started_s
    ahead_s = _measure_skew_s(reply, sent_at + timedelta(seconds=latency_s / 2))
    try:
        version_ = _read_version(reply)
    except UnreadableAnswer as error:
        raise build_not_kubernetes_error(f"GET /version gave {error}", target) from error
    return ServerProbe(latency_s=latency_s, version=version_, ahead_s=ahead_s, is_odd=not version_.git_version)


def _build_refused_error(error: ApiError, target: Target) -> NoExamination:
    code = error.status.code
    if isinstance(error, ServerFailed):
        return _build_busy_error(f"answers, but cannot work: {error}", target, "it may still be starting")
    if isinstance(error, TooManyRequests):
        return _build_busy_error(
            f"is overloaded and rejects requests (429): {error}", target, "wait until its load drops"
        )
    if isinstance(error, BadRequest) and target.server.startswith("http://") and "HTTPS" in str(error):
        secure = target.server.replace("http://", "https://", 1)
        return NoExamination(f"{target.server}: {error}", hint=f"{target.advice_on_address}it must be {secure}")
    return build_not_kubernetes_error(
        f"GET /version gave {code}{', a redirect' if 300 <= code < 400 else f': {error}'}", target
    )


def _build_busy_error(problem: str, target: Target, guess: str) -> NoExamination:
    hint = f"{target.advice_on_address}{guess}: try again in a minute, and look at its /readyz?verbose"
    return NoExamination(f"{target.server} {problem}", hint=hint)


def build_not_kubernetes_error(evidence: str, target: Target) -> NoExamination:
    """The error for a server that answers but is not an API server."""
    return NoExamination(
        f"{target.server}: this is not a Kubernetes API ({evidence})",
        hint=f"{target.advice_on_address}check host, port and path; a proxy or a login page may answer in its place",
    )


def build_unreachable_error(error: Unreachable, target: Target) -> NoExamination:
    """The error for a server that cannot be reached: its address, the cause, and what may help."""
    cause = str(error)
    message = cause if target.server in cause else f"cannot reach {target.server}: {cause}"
    return NoExamination(message, hint=_format_advice(error, target))


def _format_advice(error: Unreachable, target: Target) -> str:
    origin = target.advice_on_address
    if isinstance(error, UnknownAuthority):
        return f"{origin}a recreated cluster has a new certificate authority: get its kubeconfig again"
    if "client certificate" in str(error) and target.certificate_ends is not None:
        return f"{origin}the client certificate in use is valid until {target.certificate_ends:%Y-%m-%dT%H:%M:%SZ}"
    if isinstance(error, TlsRefused):
        return origin.removesuffix("; ")
    return f"{origin}check host and port, or try another address with --server URL"


def _read_version(reply: Response) -> ServerVersion:
    """Nothing known, if it is of an odd form; `UnreadableAnswer` if it is no JSON at all."""
    try:
        return msgspec.json.decode(reply.body, type=ServerVersion)
    except msgspec.ValidationError:
        return ServerVersion()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        media_type = reply.headers.get("content-type", "").partition(";")[0].strip()
        raise UnreadableAnswer(media_type if media_type not in {"", JSON} else "something that is not JSON") from None


def _measure_skew_s(reply: Response, our_time: datetime) -> float | None:
    """The header has whole seconds, cut off: on the average it was half a second later."""
    try:
        server_time = parsedate_to_datetime(reply.headers.get("date", ""))
    except (ValueError, OverflowError):
        return None
    aware = server_time if server_time.tzinfo is not None else server_time.replace(tzinfo=UTC)
    return (aware + timedelta(seconds=0.5) - our_time).total_seconds()


# ---- what follows from a probe


def check_reachable(probe: ServerProbe, target: Target) -> Finding:
    details = {
        "server": target.server,
        "origin": target.origin,
        "latencyMilliseconds": round(probe.latency_s * 1000, 1),
        "certificateChecked": target.is_verified,
    }
    message = f"{target.server} answers in {probe.latency_s * 1000:.0f} ms"
    if target.is_verified:
        return Finding(check="api", level=Level.OK, message=message, details=details)
    return Finding(
        check="api",
        level=Level.WARN,
        message=f"{message}, but its identity is not verified",
        fix="use https, and give certificate-authority instead of insecure-skip-tls-verify",
        details=details,
    )


def check_version(probe: ServerProbe) -> Finding:
    git_version, number = probe.version.git_version, probe.version.number
    least = ".".join(map(str, LEAST_VERSION))
    if not git_version or not all(number):
        return Finding(check="version", level=Level.UNKNOWN, message="the server does not report its version")
    details = {"gitVersion": git_version, "leastVersion": least}
    if number >= LEAST_VERSION:
        return Finding(check="version", level=Level.OK, message=f"Kubernetes {git_version}", details=details)
    return Finding(
        check="version",
        level=Level.FAIL,
        message=f"Kubernetes {git_version} is older than {least}, the oldest that Plimsoll works with",
        fix=f"upgrade to {least} or later",
        details=details,
    )


def check_clock_skew(probe: ServerProbe) -> Finding:
    if probe.ahead_s is None:
        return Finding(check="clock", level=Level.UNKNOWN, message="the server does not report its time")
    apart_s = abs(probe.ahead_s)
    details = {"serverAheadSeconds": round(probe.ahead_s, 1)}
    # The header's whole seconds and the way there leave about a second of doubt.
    if apart_s <= 1.0:
        return Finding(check="clock", level=Level.OK, message="agrees with the server's to a second", details=details)
    side = "behind" if probe.ahead_s > 0 else "ahead of"
    message = f"our clock is {apart_s:.0f} s {side} the server's"
    if apart_s <= SKEW_WORTH_A_WARNING_S:
        return Finding(check="clock", level=Level.OK, message=message, details=details)
    level = Level.WARN if apart_s <= LEASE_S else Level.FAIL
    fix = "synchronize the clocks of both machines (chrony, systemd-timesyncd)"
    if level is Level.FAIL:
        message += f", more than a lease lasts ({LEASE_S:.0f} s): the times in leases and objects are meaningless"
    return Finding(check="clock", level=level, message=message, fix=fix, details=details)
