"""The errors of calls to an API server.

ApiCallFailed                        any call may raise it; a controller logs it and goes on
├── NotAllowed                       our own guard refuses: the lease is lost, or actions are paused
└── ServerTrouble                    everything but our own guard
    ├── ServerUnreachable            also core's Unreachable
    │   ├── NotSent                  nothing arrived: refused, no route, no such name; safe to retry
    │   │   ├── Closed               our own transport is closed: the process is stopping
    │   │   └── TlsRefused           one side does not trust the other; a retry does not help
    │   │       └── UnknownAuthority
    │   └── AnswerLost               sent and not answered: the call may or may not have taken effect
    │       └── TimedOut
    ├── CredentialsFailed            also core's InvalidInput: a token file, certificate or exec plugin is unusable
    │   └── CredentialsLate          the credentials did not arrive within the call's time
    ├── UnreadableAnswer             the answer is not what was asked for
    └── ApiError                     the server refused, with a Status
        ├── BadRequest 400   ├── Unauthorized 401   ├── Forbidden 403    ├── NotFound 404
        ├── MethodNotAllowed 405                    ├── Conflict 409     │   └── AlreadyExists
        ├── Expired 410      ├── TooLarge 413       ├── Unsupported 415  ├── Invalid 422
        ├── TooManyRequests 429                     └── ServerFailed 5xx

`exit_code` is the exit code of the command line.
"""

from __future__ import annotations

from typing import ClassVar, Final

from plimsoll.core.errors import InvalidInput, PlimsollError, Unreachable
from plimsoll.core.values import Wire


class ApiCallFailed(PlimsollError):
    """A call to an API server failed, or our own guard refused it. Any other exception of a call is a bug."""


class NotAllowed(ApiCallFailed):
    """A `Guard` refuses the call: the lease is lost, or actions are paused."""


class ServerTrouble(ApiCallFailed):
    """The server, the connection or our credentials failed the call; our own guard did not."""


class ServerUnreachable(ServerTrouble, Unreachable):
    """The server did not answer."""


class NotSent(ServerUnreachable):
    """The call did not reach the server, so it had no effect."""


class Closed(NotSent):
    """Our transport is closed; no other attempt can succeed."""


class TlsRefused(NotSent):
    """A certificate was rejected; the message says whose and why."""


class UnknownAuthority(TlsRefused):
    """The server's certificate is signed by an unknown authority, or self-signed."""


class AnswerLost(ServerUnreachable):
    """The connection broke, or the time was up, after the call was sent."""


class TimedOut(AnswerLost):
    """No answer in time."""


class CredentialsFailed(ServerTrouble, InvalidInput):
    """Credentials could not be obtained; the message names the file or the plugin, never a secret."""


class CredentialsLate(CredentialsFailed):
    """The call ended before it had credentials, and was not sent; the next call may have them."""


class UnreadableAnswer(ServerTrouble):
    """A successful answer that cannot be used: not JSON, another kind, or a field of the wrong type."""


class StatusCause(Wire):
    """A cause in a Status."""

    reason: str = ""
    message: str = ""
    field: str = ""


class StatusDetails(Wire):
    """The object a Status is about, and its causes."""

    name: str = ""
    group: str = ""
    kind: str = ""
    uid: str = ""
    causes: tuple[StatusCause, ...] = ()
    retry_after_seconds: int = 0


class Status(Wire):
    """The answer of an API server that returns no object."""

    kind: str = ""
    status: str = ""
    message: str = ""
    reason: str = ""
    details: StatusDetails = StatusDetails()
    code: int = 0


class ApiError(ServerTrouble):
    """The server refused the call. `retry_after_s` is the delay it asks for (None: it names none)."""

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
    """The server cannot understand the request."""

    code = 400


class Unauthorized(ApiError):
    """The server does not accept our identity."""

    code = 401


class Forbidden(ApiError):
    """Our identity has no permission; admission and quota refuse with it too."""

    code = 403


class NotFound(ApiError):
    """There is no such object, or no such resource."""

    code = 404


class MethodNotAllowed(ApiError):
    """The resource does not support this verb."""

    code = 405


class Conflict(ApiError):
    """Another write came first: another version, another uid, another field manager."""

    code = 409


class AlreadyExists(Conflict):
    """An object of this name exists."""


class Expired(ApiError):
    """The requested version is compacted: list again."""

    code = 410


class TooLarge(ApiError):
    """The body is larger than the server accepts."""

    code = 413


class Unsupported(ApiError):
    """The server does not support this media type."""

    code = 415


class Invalid(ApiError):
    """The object is invalid; `causes` lists the problems by field."""

    code = 422


class TooManyRequests(ApiError):
    """The server is overloaded; for an eviction: a disruption budget does not allow it now."""

    code = 429


class ServerFailed(ApiError):
    """Any 5xx: the server failed, perhaps after the call took effect."""

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


def build_error(status: Status, *, retry_after_s: float | None = None) -> ApiError:
    """The exception for a Status: by its code, and for 409 also by its reason."""
    kind: type[ApiError] = _BY_CODE.get(status.code, ServerFailed if status.code >= 500 else ApiError)
    if kind is Conflict and status.reason == "AlreadyExists":
        kind = AlreadyExists
    return kind(status, retry_after_s=retry_after_s)
