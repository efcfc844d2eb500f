"""How long ago, in the words of kubectl."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.local.apiserver.presentation.durations import format_duration, format_since
from tests.local.apiserver.presentation.recordings import NOW, ago

MINUTE, HOUR, DAY, YEAR = 60, 3_600, 86_400, 31_536_000

TABLE = [
    (-2, "<invalid>"),
    (-1.9, "0s"),
    (-1, "0s"),
    (0, "0s"),
    (0.9, "0s"),
    (59, "59s"),
    (119, "119s"),
    (120, "2m"),
    (130, "2m10s"),
    (10 * MINUTE - 1, "9m59s"),
    (10 * MINUTE, "10m"),
    (10 * MINUTE + 30, "10m"),
    (3 * HOUR - 1, "179m"),
    (3 * HOUR, "3h"),
    (3 * HOUR + 5 * MINUTE, "3h5m"),
    (8 * HOUR - 1, "7h59m"),
    (8 * HOUR, "8h"),
    (8 * HOUR + 59 * MINUTE, "8h"),
    (48 * HOUR - 1, "47h"),
    (48 * HOUR, "2d"),
    (5 * DAY + 3 * HOUR, "5d3h"),
    (8 * DAY - 1, "7d23h"),
    (8 * DAY, "8d"),
    (2 * YEAR - 1, "729d"),
    (2 * YEAR, "2y"),
    (2 * YEAR + 3 * DAY, "2y3d"),
    (8 * YEAR - 1, "7y364d"),
    (8 * YEAR, "8y"),
    (500 * YEAR, "292y"),
]


@pytest.mark.parametrize(("seconds", "expected"), TABLE)
def test_human_duration(seconds: float, expected: str):
    assert format_duration(timedelta(seconds=seconds)) == expected


_UNITS = {"y": YEAR, "d": DAY, "h": HOUR, "m": MINUTE, "s": 1}


def _read(text: str) -> int:
    total, digits = 0, ""
    for character in text:
        if character.isdigit():
            digits += character
        else:
            total, digits = total + int(digits) * _UNITS[character], ""
    return total


@settings(max_examples=300, deadline=None)
@given(st.integers(min_value=0, max_value=200 * YEAR))
def test_what_is_shown_is_true_and_not_off_by_more_than_a_seventh(seconds: int):
    stated = _read(format_duration(timedelta(seconds=seconds)))
    assert stated <= seconds
    assert seconds - stated <= seconds / 7


@settings(max_examples=300, deadline=None)
@given(st.integers(min_value=0, max_value=YEAR * 20), st.integers(min_value=0, max_value=YEAR * 20))
def test_a_longer_time_is_never_shown_as_shorter(item: int, other: int):
    short, long = sorted((item, other))
    assert _read(format_duration(timedelta(seconds=short))) <= _read(format_duration(timedelta(seconds=long)))


@pytest.mark.parametrize(
    "stamp", [None, "", "yesterday", "2026-13-01T00:00:00Z", "2026-01-01", 5, "0001-01-01T00:00:00Z"]
)
def test_no_time_is_unknown(stamp: object):
    assert format_since(stamp, NOW) == "<unknown>"


@pytest.mark.parametrize("stamp", [ago(seconds=90), "2026-11-15T04:28:30.000000Z", "2026-11-15T06:28:30+02:00"])
def test_times_are_read_in_every_form_that_objects_have(stamp: str):
    assert format_since(stamp, NOW) == "90s"
