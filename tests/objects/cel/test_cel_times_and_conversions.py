"""Timestamps, durations, and what can be made of what."""

from __future__ import annotations

import pytest

from tests.objects.cel.expressions import evaluated, failure, refusal

NOON = "timestamp('2024-02-29T12:34:56.789Z')"


@pytest.mark.parametrize(
    ("source", "value"),
    [
        (f"{NOON}.getFullYear()", 2024),
        (f"{NOON}.getMonth()", 1),
        (f"{NOON}.getDate()", 29),
        (f"{NOON}.getDayOfMonth()", 28),
        (f"{NOON}.getDayOfYear()", 59),
        (f"{NOON}.getDayOfWeek()", 4),
        (f"{NOON}.getHours()", 12),
        (f"{NOON}.getHours('+05:30')", 18),
        (f"{NOON}.getHours('-01:00')", 11),
        (f"{NOON}.getMinutes()", 34),
        (f"{NOON}.getSeconds()", 56),
        (f"{NOON}.getMilliseconds()", 789),
        ("duration('1h30m').getHours()", 1),
        ("duration('1h30m').getMinutes()", 90),
        ("duration('-90s').getMinutes()", -1),
        ("duration('1.5s').getMilliseconds()", 1500),
        (f"{NOON} + duration('1h') > {NOON}", True),
        (f"{NOON} - duration('1h') < {NOON}", True),
        (f"{NOON} - {NOON} == duration('0s')", True),
        ("duration('1h') + duration('30m') == duration('90m')", True),
        ("timestamp('2024-01-01T01:00:00+01:00') == timestamp('2024-01-01T00:00:00Z')", True),
    ],
)
def test_times(source: str, value: object):
    assert evaluated(source) == value


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("int('42') + int(1.9) + int(2u)", 45),
        ("int(timestamp('1970-01-01T00:01:00Z'))", 60),
        ("uint(3) == 3u && uint('7') == 7u", True),
        ("double('1.5') + double(2)", 3.5),
        ("string(42) + string(3u) + string(true)", "423true"),
        ("string(1.0)", "1"),
        ("string(0.00001)", "1e-05"),
        ("string(1234567.0)", "1.234567e+06"),
        ("string(123456.5)", "123456.5"),
        ("string(b'\\xc3\\xa9')", "é"),
        ("string(duration('90m'))", "5400s"),
        ("string(duration('1500ms'))", "1.5s"),
        ("string(timestamp('2024-01-01T00:00:00.120Z'))", "2024-01-01T00:00:00.12Z"),
        ("bytes('é')", b"\xc3\xa9"),
        ("bool('true') && !bool('0')", True),
        ("timestamp(60) == timestamp('1970-01-01T00:01:00Z')", True),
        ("type(1) == int && type('') == string && type([]) == list && type({}) == map", True),
        ("type(null) == null_type && type(int) == type", True),
        ("type(duration('1s')) == google.protobuf.Duration", True),
    ],
)
def test_conversions(source: str, value: object):
    assert evaluated(source) == value


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("int('x')", "type conversion error from 'string' to 'int'"),
        ("int('9223372036854775808')", "type conversion error from 'string' to 'int'"),
        ("uint('-1')", "type conversion error from 'string' to 'uint'"),
        ("uint(-1)", "unsigned integer overflow"),
        ("int(1e99)", "integer overflow"),
        ("double('x')", "type conversion error from 'string' to 'double'"),
        ("bool('yes')", "type conversion error from 'string' to 'bool'"),
        ("string(b'\\xff')", "invalid UTF-8 in bytes, cannot convert to string"),
        ("duration(dyn('1 day'))", "type conversion error from 'string' to 'google.protobuf.Duration'"),
        ("timestamp(dyn('noon'))", "type conversion error from 'string' to 'google.protobuf.Timestamp'"),
        ("timestamp('9999-12-31T23:59:59Z') + duration('1s')", "timestamp overflow"),
        (f"{NOON}.getHours('Nowhere/Land')", "unknown time zone Nowhere/Land"),
    ],
)
def test_what_cannot_be_converted(source: str, message: str):
    assert failure(source) == message


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ("duration('1 day') > duration('1s')", "1:10: invalid duration argument"),
        ("timestamp('noon') == timestamp('noon')", "1:11: invalid timestamp argument"),
        ("'a'.matches('[')", "1:13: invalid matches argument"),
    ],
)
def test_constants_that_can_only_fail_are_refused_at_once(source: str, complaint: str):
    assert f"ERROR: <input>:{complaint}\n" in refusal(source)
