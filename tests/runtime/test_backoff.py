"""Back-off as data: bounds, growth, and forgetting."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.core.errors import InvalidInput
from plimsoll.runtime.backoff import Backoff, BackoffState, BackoffTable
from plimsoll.runtime.entropy import SeededEntropy

ENTROPY = SeededEntropy("backoff")
STEADY = Backoff(initial_s=1, factor=2, cap_s=60, jitter=0)

policies = st.builds(
    Backoff,
    initial_s=st.floats(0, 1e3),
    factor=st.floats(1, 10),
    cap_s=st.floats(0, 1e4),
    jitter=st.floats(0, 1),
)


# -- Backoff


def test_waits_double_until_the_cap():
    assert [STEADY.draw_delay_s(attempt, ENTROPY) for attempt in range(1, 9)] == [1, 2, 4, 8, 16, 32, 60, 60]


@given(policies, st.integers(1, 10_000_000))
def test_no_wait_is_negative_or_longer_than_the_cap(policy: Backoff, attempt: int):
    assert 0 <= policy.draw_delay_s(attempt, ENTROPY) <= policy.cap_s


@given(policies, st.integers(1, 5_000))
def test_waits_before_chance_never_shrink(policy: Backoff, attempt: int):
    assert policy.compute_nominal_s(attempt) <= policy.compute_nominal_s(attempt + 1)


@given(policies, st.integers(1, 100))
def test_jitter_takes_off_no_more_than_its_share(policy: Backoff, attempt: int):
    nominal_s = policy.compute_nominal_s(attempt)
    assert nominal_s * (1 - policy.jitter) <= policy.draw_delay_s(attempt, ENTROPY) <= nominal_s


def test_jitter_spreads_waits():
    policy = Backoff(initial_s=10, jitter=0.5)
    waits = [policy.draw_delay_s(1, ENTROPY) for _ in range(1_000)]
    assert min(waits) < 5.5
    assert max(waits) > 9.5


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("initial_s", -1),
        ("cap_s", math.inf),
        ("cap_s", math.nan),
        ("factor", 0.5),
        ("jitter", 1.1),
        ("jitter", -0.1),
        ("max_attempts", 0),
        ("reset_after_s", -1),
    ],
)
def test_a_senseless_policy_is_refused_by_the_name_of_its_field(field: str, value: float):
    with pytest.raises(InvalidInput, match=f"^{field}: must be"):
        Backoff(**dict[str, Any]({field: value}))


# -- BackoffState


def test_a_state_waits_longer_after_every_failure():
    fresh = BackoffState(policy=STEADY)
    once = fresh.with_failure(100, ENTROPY)
    twice = once.with_failure(101, ENTROPY)
    assert (fresh.is_ready(0), once.ready_at, twice.ready_at) == (True, 101, 103)
    assert (twice.is_ready(102.9), twice.is_ready(103)) == (False, True)


def test_a_long_time_without_failure_counts_as_a_fresh_start():
    policy = Backoff(initial_s=1, factor=2, jitter=0, reset_after_s=50)
    twice = BackoffState(policy=policy).with_failure(0, ENTROPY).with_failure(1, ENTROPY)
    assert twice.with_failure(3 + 49, ENTROPY).failures == 3
    assert twice.with_failure(3 + 50, ENTROPY).failures == 1


def test_a_state_shows_when_its_attempts_are_used_up():
    state = BackoffState(policy=Backoff(max_attempts=2))
    assert not state.with_failure(0, ENTROPY).is_used_up
    assert state.with_failure(0, ENTROPY).with_failure(0, ENTROPY).is_used_up


def test_a_hint_prolongs_a_wait_but_never_shortens_it():
    state = BackoffState(policy=STEADY)
    assert state.with_failure(0, ENTROPY, at_least_s=30).ready_at == 30
    assert state.with_failure(0, ENTROPY, at_least_s=0.1).ready_at == 1


# -- BackoffTable


def test_keys_back_off_independently():
    table = BackoffTable(STEADY, ENTROPY)
    table.record_failure("a", 0)
    table.record_failure("a", 1)
    table.record_failure("b", 1)
    assert [table.get_state(key).ready_at for key in "ab"] == [3, 2]
    assert table.is_ready("never failed", 0)


def test_a_success_forgets_the_key():
    table = BackoffTable(STEADY, ENTROPY)
    table.record_failure("a", 0)
    table.record_success("a")
    assert table.is_ready("a", 0)
    assert len(table) == 0


@given(st.lists(st.integers(0, 50), max_size=200))
def test_a_table_never_grows_beyond_its_bound_and_keeps_the_latest(keys: list[int]):
    table = BackoffTable(STEADY, ENTROPY, max_keys=5)
    for now_s, key in enumerate(keys):
        table.record_failure(key, now_s)
    latest = list(dict.fromkeys(reversed(keys)))[:5]
    assert [table.get_state(key).failures > 0 for key in latest] == [True] * len(latest)
    assert len(table) == len(latest)


def test_stale_keys_are_forgotten():
    table = BackoffTable(Backoff(initial_s=1, jitter=0, reset_after_s=60), ENTROPY)
    for number in range(100):
        table.record_failure(number, 0)
    table.record_failure("new", 100)
    assert len(table) == 1


class Refused(Exception):
    def __init__(self, retry_after_s: object = None) -> None:
        super().__init__("refused")
        self.retry_after_s = retry_after_s


@pytest.mark.parametrize(
    ("hint", "wait_s"), [(30, 30), (0.5, 0.5), (10**9, 600), (-5, 0), ("soon", 0), (math.nan, 0), (None, 0)]
)
def test_retry_after_is_honoured_within_reason(hint: object, wait_s: float):
    assert STEADY.read_retry_after_s(Refused(hint)) == wait_s
