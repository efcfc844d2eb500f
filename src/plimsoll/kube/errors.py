"""What can go wrong between us and an API server.

PlimsollError
├── Unreachable                  (core)
│   ├── NotSent                  nothing arrived: refused, no route, no such name; may be tried again
│   │   ├── Closed               our own transport is closed: we are stopping
│   │   └── TlsRefused           we do not trust the server, or it does not trust us; trying again will not help
│   │       └── UnknownAuthority
│   └── AnswerLost               sent and not answered: it may or may not have been done
│       └── TimedOut
├── CredentialsFailed            a token file, certificate or exec plugin gave nothing usable
│   └── CredentialsLate          it gave nothing yet, and the call's time was up
├── NotAllowed                   we keep ourselves from it: the lease is not ours, somebody pulled the brake
├── UnreadableAnswer             the server answered with something that is not what was asked for
└── ApiError                     the server said no, with a Status
    ├── BadRequest 400   ├── Unauthorized 401   ├── Forbidden 403    ├── NotFound 404
    ├── MethodNotAllowed 405                    ├── Conflict 409     │   └── AlreadyExists
    ├── Expired 410      ├── TooLarge 413       ├── Unsupported 415  ├── Invalid 422
    ├── TooManyRequests 429                     └── ServerFailed 5xx

`exit_code` is what the command line ends with.
"""

from __future__ import annotations

from typing import ClassVar, Final

from plimsoll.core.errors import InvalidInput, PlimsollError, Unreachable
from plimsoll.core.values import Wire


class NotSent(Unreachable):
    """The call did not reach the server, so it did nothing."""


class Closed(NotSent):
    """Our transport was closed; no other attempt will get through it."""


class TlsRefused(NotSent):
    """A certificate was not accepted; the message says whose and why."""


class UnknownAuthority(TlsRefused):
    """The server's certificate is signed by somebody we do not know, or by nobody but itself."""


class AnswerLost(Unreachable):
    """The connection broke, or time was up, after the call was sent."""


class TimedOut(AnswerLost):
    """No answer in time."""


class CredentialsFailed(InvalidInput):
    """Credentials could not be had; the message names the file or the plugin, never a secret."""


class CredentialsLate(CredentialsFailed):
    """A call ended before it had credentials, and was not sent; they may be there for the next one."""


class NotAllowed(PlimsollError):
    """A `Guard` keeps us from making the call."""


class UnreadableAnswer(PlimsollError):
    """A success that cannot be used: not JSON, another kind, an object with a field of the wrong type."""


class StatusCause(Wire):
    """One of the reasons in a Status."""

    reason: str = ""
    message: str = ""
    field: str = ""


class StatusDetails(Wire):
    """What a Status is about."""

    name: str = ""
    group: str = ""
    kind: str = ""
    uid: str = ""
    causes: tuple[StatusCause, ...] = ()
    retry_after_seconds: int = 0


class Status(Wire):
    """Kubernetes' answer where there is no object to give."""

    kind: str = ""
    status: str = ""
    message: str = ""
    reason: str = ""
    details: StatusDetails = StatusDetails()
    code: int = 0


class ApiError(PlimsollError):
    """The server's no. `retry_after_s` is what it asks us to wait (None: it does not say)."""

    code: ClassVar[int] = 0

    def __init__(self, status: Status, *, retry_after_s: float | None = None) -> None:
        super().__init__(status.message or status.reason or f"the server answered {status.code}")
        self.status = status
        self.retry_after_s = retry_after_s

    @property
    def reason(self) -> str:
        return self.status.reason

    @property
    def causes(self) -> tuple[StatusCause, ...]:
        return self.status.details.causes


class BadRequest(ApiError):
    """The request makes no sense to the server."""

    code = 400


class Unauthorized(ApiError):
    """The server does not know who we are."""

    code = 401


class Forbidden(ApiError):
    """The server knows who we are, and we may not; also what admission and quota refuse."""

    code = 403


class NotFound(ApiError):
    """No such object, or no such resource."""

    code = 404


class MethodNotAllowed(ApiError):
    """The resource does not take this verb."""

    code = 405


class Conflict(ApiError):
    """Somebody else was there first: another version, another uid, another field manager."""

    code = 409


class AlreadyExists(Conflict):
    """There is an object of this name."""


class Expired(ApiError):
    """The version asked for is gone: list again."""

    code = 410


class TooLarge(ApiError):
    """The body is larger than the server takes."""

    code = 413


class Unsupported(ApiError):
    """The server does not speak this media type."""

    code = 415


class Invalid(ApiError):
    """The object breaks rules; `causes` lists them by field."""

    code = 422


class TooManyRequests(ApiError):
    """Slow down; for an eviction: a disruption budget does not allow it now."""

    code = 429


class ServerFailed(ApiError):
    """Any 5xx: the server could not. It may have acted before it failed."""

    code = 500
    exit_code: ClassVar[int] = 4


_BY_CODE: Final = {
    kind.code: kind
    for kind in (
        BadRequest,
        Unauthorized,
        Forbidden,
        NotFound,
        MethodNotAllowed,
        Conflict,
        Expired,
        TooLarge,
        Unsupported,
        Invalid,
        TooManyRequests,
    )
}


def error_of(status: Status, *, retry_after_s: float | None = None) -> ApiError:
    """The exception for a Status: by its code, where 409 means two things by its reason."""
    kind: type[ApiError] = _BY_CODE.get(status.code, ServerFailed if status.code >= 500 else ApiError)
    if kind is Conflict and status.reason == "AlreadyExists":
        kind = AlreadyExists
    return kind(status, retry_after_s=retry_after_s)
