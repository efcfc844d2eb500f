"""Retries: of a call that failed (`Sender`), and of a read-modify-write that another writer overtook.

`Sender` sends every call of a client: rate-limited, guarded, within a deadline. Which failures it retries depends on
what a second arrival of the call would do (`Effect`), and on how certain it is that the first had no effect:

| failure                              | changes nothing | repeats itself | only once |
|--------------------------------------|-----------------|----------------|-----------|
| not sent (refused, no route)         | again           | again          | again     |
| not sent (certificate not accepted,  | no              | no             | no        |
| or our transport is closed)          |                 |                |           |
| answer lost, timed out               | again           | again          | no        |
| 429, unless a disruption budget's    | again           | again          | again     |
| 502, 503, 504                        | again           | no             | no        |
| 503 with Retry-After                 | again           | again          | again     |
| any other 5xx with Retry-After       | again           | again          | no        |
| everything else                      | no              | no             | no        |
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any, Final

import msgspec

from plimsoll.kube.errors import (
    AnswerLost,
    ApiError,
    Closed,
    Conflict,
    NotAllowed,
    NotSent,
    ServerFailed,
    ServerUnreachable,
    TlsRefused,
    TooManyRequests,
)
from plimsoll.kube.requests.options import DRY_RUN
from plimsoll.kube.requests.status_errors import build_api_error
from plimsoll.kube.transport import APPLY_PATCH, MERGE_PATCH

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import TypeVar

    from plimsoll.core.clock import Clock
    from plimsoll.core.entropy import Entropy
    from plimsoll.kube.requests.options import ClientSettings
    from plimsoll.kube.requests.rate_limiter import RateLimit
    from plimsoll.kube.requests.warnings import ServerWarnings
    from plimsoll.kube.transport import Guard, Request, Response, Transport

    T = TypeVar("T")

# POSTs that change nothing: they ask for permissions, our own identity, or the identity behind a token.
_REVIEWS: Final = (
    "/apis/authorization.k8s.io/",
    "/apis/authentication.k8s.io/v1/tokenreviews",
    "/apis/authentication.k8s.io/v1/selfsubjectreviews",
)
_TOO_BUSY: Final = 503
_PASSING_TROUBLE: Final = frozenset({502, 503, 504})
# With less time left, an attempt would only replace a useful error by "timed out".
_SHORTEST_ATTEMPT_S: Final = 1.0


class Effect(enum.Enum):
    """The effect of a call that arrives a second time."""

    NONE = "changes nothing"
    REPEATS = "leaves things as the first arrival left them"
    ONCE = "may do harm, or hide that the first one succeeded"


def classify_effect(call: Request) -> Effect:
    """Derived from the request itself, so that raw calls get the same care as typed ones."""
    if call.is_safe or _is_dry_run(call) or (call.method == "POST" and call.path.startswith(_REVIEWS)):
        return Effect.NONE
    if call.method == "PATCH" and _get_content_type(call) in {APPLY_PATCH, MERGE_PATCH}:
        return Effect.ONCE if _has_resource_version(call.body) else Effect.REPEATS
    if call.method == "DELETE" and _get_mapping(_decode_object(call.body).get("preconditions")).get("uid"):
        # Without the uid a second arrival could hit a new object of the same name.
        return Effect.REPEATS
    return Effect.ONCE


def is_removal(call: Request) -> bool:
    """Whether something may be gone after the call: a deletion or an eviction."""
    removes = call.method == "DELETE" or (call.method == "POST" and call.path.endswith("/eviction"))
    return removes and classify_effect(call) is not Effect.NONE


def _is_dry_run(call: Request) -> bool:
    """Whether it is a dry run. A server ignores the query of a DELETE that has a body."""
    if call.method == "DELETE" and call.body:
        return _decode_object(call.body).get("dryRun") == ["All"]
    return DRY_RUN in call.query


def _has_resource_version(body: bytes) -> bool:
    """If so, a second arrival would conflict with our own success. YAML is not parsed: it may name one."""
    patch = _decode_object(body)
    return not patch or "resourceVersion" in _get_mapping(patch.get("metadata"))


def _get_content_type(call: Request) -> str:
    return next((value for name, value in call.headers.items() if name.lower() == "content-type"), "")


def _decode_object(body: bytes) -> dict[str, Any]:
    """The JSON object in a body; empty if the body is not an object."""
    try:
        return _get_mapping(msgspec.json.decode(body))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}


def _get_mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def is_retriable(error: ServerUnreachable | ApiError, effect: Effect) -> bool:
    """The table above."""
    match error:
        case TlsRefused() | Closed():
            return False
        case NotSent():
            return True
        case ServerUnreachable():
            return effect is not Effect.ONCE
        case TooManyRequests():
            return not is_budget_refusal(error)
        case ServerFailed():
            if error.retry_after_s is not None:
                # 503 means that the server did not begin; any other failure may follow the effect.
                return effect is not Effect.ONCE or error.status.code == _TOO_BUSY
            return error.status.code in _PASSING_TROUBLE and effect is Effect.NONE
        case _:
            return False


def is_budget_refusal(error: TooManyRequests) -> bool:
    """Whether a disruption budget refused an eviction: an answer, not a sign of load."""
    return any(cause.reason == "DisruptionBudget" for cause in error.causes)


async def retry_on_conflict(
    attempt: Callable[[], Awaitable[T]],
    *,
    attempts: int,
    retriable: tuple[type[ApiError | AnswerLost], ...] = (Conflict,),
    before_retry: Callable[[int], Awaitable[None]] | None = None,
    on_exhausted: Exception | None = None,
) -> T:
    """Run a read-modify-write until no other writer is faster, as client-go's RetryOnConflict.

    `attempt` writes under the version that it, or `before_retry`, has read. `before_retry` gets the number of failures
    so far; it reads again or waits. After the last attempt the conflict is raised, or `on_exhausted` in its place.
    """
    for failures in range(1, attempts + 1):
        try:
            return await attempt()
        except retriable as error:
            if failures == attempts:
                if on_exhausted is None:
                    raise
                raise on_exhausted from error
        if before_retry is not None:
            await before_retry(failures)
    raise AssertionError("attempts must be positive")


class Sender:
    """Sends the calls of a client over its transport. Senders with different guards share the rest (`with_guard`)."""

    def __init__(
        self,
        transport: Transport,
        *,
        clock: Clock,
        entropy: Entropy,
        settings: ClientSettings,
        shared: Shared,
        guard: Guard | None,
    ) -> None:
        self._transport = transport
        self._clock = clock
        self._entropy = entropy
        self._settings = settings
        self._shared = shared
        self.guard = guard

    def with_guard(self, guard: Guard | None) -> Sender:
        return Sender(
            self._transport,
            clock=self._clock,
            entropy=self._entropy,
            settings=self._settings,
            shared=self._shared,
            guard=guard,
        )

    async def send(self, call: Request) -> Response:
        """The successful response. Raises the last attempt's error, with a note of the number of attempts."""
        await self._shared.limit.wait()
        started_s = self._clock.monotonic_s()
        attempts = 0
        last: ServerUnreachable | ApiError | None = None
        while True:
            attempts += 1
            try:
                return await self._attempt(call, self._compute_remaining_s(started_s))
            except NotAllowed as error:
                # The caller must still learn how the attempt before ended.
                raise error from last
            except (ServerUnreachable, ApiError) as error:
                wait_s = self._wait_s(error, call, attempts)
                if wait_s is None or self._compute_remaining_s(started_s) < wait_s + _SHORTEST_ATTEMPT_S:
                    self._note(error, attempts, started_s)
                    raise
                last = error
            await self._clock.sleep(wait_s)
            await self._shared.limit.wait()
            if self._compute_remaining_s(started_s) <= 0:
                self._note(last, attempts, started_s)
                raise last

    async def send_once(self, call: Request) -> Response:
        """The successful response to a single attempt. Watches use it: their reflector retries on its own schedule."""
        await self._shared.limit.wait()
        return await self._attempt(call, call.timeout_s)

    async def _attempt(self, call: Request, left_s: float) -> Response:
        if self.guard is not None and is_removal(call):
            await self.guard.confirm()
        timeout_s = min(call.timeout_s, left_s)
        if self.guard is not None and classify_effect(call) is not Effect.NONE:
            # Nothing may be awaited between this answer and the send.
            timeout_s = min(timeout_s, self.guard.limit_duration_s(timeout_s))
        reply = await self._transport.send(call if timeout_s == call.timeout_s else call._replace(timeout_s=timeout_s))
        self._shared.warnings.log_warnings(call, reply)
        if not reply.is_success:
            raise build_api_error(reply, call, now=self._clock.now())
        return reply

    def _compute_remaining_s(self, started_s: float) -> float:
        return started_s + self._settings.deadline_s - self._clock.monotonic_s()

    def _wait_s(self, error: ServerUnreachable | ApiError, call: Request, failures: int) -> float | None:
        """The delay before the next attempt; None: no further attempt."""
        policy = self._settings.retry
        if policy.is_used_up(failures) or not is_retriable(error, classify_effect(call)):
            return None
        return max(policy.draw_delay_s(failures, self._entropy), policy.read_retry_after_s(error))

    def _note(self, error: ServerUnreachable | ApiError, attempts: int, started_s: float) -> None:
        if attempts > 1:
            error.add_note(f"after {attempts} attempts in {self._clock.monotonic_s() - started_s:.1f} s")


class Shared:
    """State that all senders to one server share."""

    def __init__(self, *, limit: RateLimit, warnings: ServerWarnings) -> None:
        self.limit = limit
        self.warnings = warnings
