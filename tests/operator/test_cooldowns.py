"""Cooldowns after events."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from plimsoll.operator.cooldowns import EventTimes, find_latest, is_cooling_down

NOW = datetime(2025, 1, 6, 12, tzinfo=UTC)


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


@pytest.mark.parametrize(("seconds", "is_cooling"), [(0, True), (59.9, True), (60, False), (61, False), (-5, True)])
def test_a_cooldown_lasts_as_long_as_its_delay(seconds: float, *, is_cooling: bool):
    assert is_cooling_down(ago(seconds), delay_s=60, now=NOW) is is_cooling


def test_without_an_event_there_is_no_cooldown():
    assert not is_cooling_down(None, delay_s=60, now=NOW)


def test_the_latest_credible_record_counts():
    ahead = NOW + timedelta(hours=25)
    latest = find_latest([ago(10), None, ago(5), ahead, NOW + timedelta(hours=1)], now=NOW)
    assert latest.time == NOW + timedelta(hours=1)
    assert latest.ignored == (ahead,)


def test_times_are_kept_by_key_and_for_all():
    times = EventTimes()
    times.note("a", ago(20))
    times.note("b", ago(10))
    assert (times.get_last("a"), times.get_last("b"), times.get_last("c"), times.get_last()) == (
        ago(20),
        ago(10),
        None,
        ago(10),
    )
    times.shift(timedelta(seconds=5))
    assert (times.get_last("a"), times.get_last()) == (ago(15), ago(5))
