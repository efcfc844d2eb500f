"""Exponential back-off as data: delays are values that can be printed, compared and tested.

`Backoff` is the policy, `BackoffState` the history of one subject under it, `BackoffTable` the histories of many keys
(a work queue). Nothing here reads a clock or decides *what* is retried.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from plimsoll.core.errors import InvalidInput
from plimsoll.core.values import Value

if TYPE_CHECKING:
    from collections.abc import Hashable

    from plimsoll.core.entropy import Entropy


class Backoff(Value):
    """Delays of `initial_s`, each `factor` times the previous one, at most `cap_s`.

    `jitter` takes a random share off each wait (0: none, 1: anything down to nothing), so `cap_s` is never exceeded.
    `max_attempts` counts the first try; None means without end. After `reset_after_s` without a failure it starts
    again. A server's Retry-After is honoured up to `retry_after_cap_s`: it may not park us for a year.
    """

    initial_s: float = 1.0
    factor: float = 2.0
    cap_s: float = 60.0
    jitter: float = 0.1
    max_attempts: int | None = None
    reset_after_s: float = 600.0
    retry_after_cap_s: float = 600.0

    def __post_init__(self) -> None:
        for field in ("initial_s", "cap_s", "reset_after_s", "retry_after_cap_s"):
            value = getattr(self, field)
            if not 0 <= value < math.inf:
                raise InvalidInput(f"must be a number of seconds from 0 on, is {value}", path=field)
        if not 1 <= self.factor < math.inf:
            raise InvalidInput(f"must be at least 1, is {self.factor}", path="factor")
        if not 0 <= self.jitter <= 1:
            raise InvalidInput(f"must be between 0 and 1, is {self.jitter}", path="jitter")
        if self.max_attempts is not None and self.max_attempts < 1:
            raise InvalidInput(f"must be at least 1, is {self.max_attempts}", path="max_attempts")

    def compute_nominal_s(self, attempt: int) -> float:
        """The delay after the `attempt`-th failure (from 1), without jitter."""
        if attempt < 1:
            raise InvalidInput(f"failures are counted from 1, not {attempt}", path="attempt")
        try:
            return min(self.cap_s, self.initial_s * self.factor ** (attempt - 1))
        except OverflowError:
            return self.cap_s if self.initial_s else 0.0

    def draw_delay_s(self, attempt: int, entropy: Entropy) -> float:
        """The delay after the `attempt`-th failure (from 1), with jitter."""
        nominal_s = self.compute_nominal_s(attempt)
        return entropy.draw_uniform(nominal_s * (1 - self.jitter), nominal_s) if self.jitter else nominal_s

    def is_used_up(self, failures: int) -> bool:
        return self.max_attempts is not None and failures >= self.max_attempts

    def read_retry_after_s(self, error: object) -> float:
        """The delay that a failed call requests by its attribute `retry_after_s`, up to our own limit."""
        hint_s = getattr(error, "retry_after_s", None)
        if not isinstance(hint_s, int | float) or math.isnan(hint_s):
            return 0.0
        return min(max(0.0, hint_s), self.retry_after_cap_s)


class BackoffState(Value):
    """The number of consecutive failures, and the time of the next attempt in seconds of a monotonic clock."""

    policy: Backoff
    failures: int = 0
    ready_at: float = -math.inf

    def is_ready(self, now_s: float) -> bool:
        return now_s >= self.ready_at

    @property
    def is_used_up(self) -> bool:
        return self.policy.is_used_up(self.failures)

    def is_stale(self, now_s: float) -> bool:
        """Whether the last failure is so long ago that the next one counts as the first."""
        return now_s - self.ready_at >= self.policy.reset_after_s

    def with_failure(self, now_s: float, entropy: Entropy, *, at_least_s: float = 0.0) -> BackoffState:
        failures = 1 if self.is_stale(now_s) else self.failures + 1
        wait_s = max(self.policy.draw_delay_s(failures, entropy), at_least_s)
        return BackoffState(policy=self.policy, failures=failures, ready_at=now_s + wait_s)


class BackoffTable:
    """A `BackoffState` per key that failed recently; above `max_keys`, the key with the oldest failure is dropped."""

    def __init__(self, policy: Backoff, entropy: Entropy, *, max_keys: int = 10_000) -> None:
        if max_keys < 1:
            raise InvalidInput(f"must be at least 1, is {max_keys}", path="max_keys")
        self._policy = policy
        self._entropy = entropy
        self._max_keys = max_keys
        self._states: dict[Hashable, BackoffState] = {}

    def __len__(self) -> int:
        return len(self._states)

    def record_failure(self, key: Hashable, now_s: float, *, at_least_s: float = 0.0) -> BackoffState:
        # Removed and inserted again, so that the dict stays in order of the last failure.
        state = self._states.pop(key, None) or BackoffState(policy=self._policy)
        state = self._states[key] = state.with_failure(now_s, self._entropy, at_least_s=at_least_s)
        self._forget(now_s)
        return state

    def record_success(self, key: Hashable) -> None:
        self._states.pop(key, None)

    def get_state(self, key: Hashable) -> BackoffState:
        return self._states.get(key) or BackoffState(policy=self._policy)

    def is_ready(self, key: Hashable, now_s: float) -> bool:
        return self.get_state(key).is_ready(now_s)

    def _forget(self, now_s: float) -> None:
        while self._states:
            oldest = next(iter(self._states))
            if len(self._states) <= self._max_keys and not self._states[oldest].is_stale(now_s):
                return
            del self._states[oldest]
