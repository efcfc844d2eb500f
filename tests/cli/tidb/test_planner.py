"""`plimsoll tidb planner` refuses what it cannot use before it serves, naming the flag."""

from __future__ import annotations

import pytest

from tests.cli.runner import plimsoll

# The last thing to be looked at is where to listen: with this nothing is ever served here.
GIVEN = {
    "--listen": "nowhere",
    "--pd": "http://pd.test:2379",
    "--prometheus": "http://prometheus.test:9090",
    "--tc": "prod/db",
}


@pytest.mark.parametrize(
    ("flag", "value", "reported"),
    [
        ("--listen", "localhost", "is not HOST:PORT"),
        ("--pd", "pd.test:2379", "--pd: "),
        ("--pd", "http://pd.test/?x=1", "--pd: "),
        ("--prometheus", "ftp://prometheus.test", "--prometheus: "),
        ("--tc", "db", "--tc: "),
        ("--tc", "a/b/c", "--tc: "),
        ("--window", "60", "--window: "),
        ("--window", "1500ms", "whole number of seconds"),
        ("--window", "0s", "--window: "),
        ("--scrape-interval", "often", "--scrape-interval: "),
        ("--time", "yesterday", "--time: "),
        ("--time", "2026-01-01T00:00:00", "has no time zone"),
        ("--query", "tikv.cpu_used", "is not NAME=PROMQL"),
        ("--query", "tikv.memory=up", "tikv.cpu_used"),
    ],
)
def test_a_flag_that_cannot_be_used_is_named(flag: str, value: str, reported: str) -> None:
    words = [word for pair in {**GIVEN, flag: value}.items() for word in pair]
    ended = plimsoll("tidb", "planner", *words)
    assert ended.returncode == 2
    assert reported in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("flag", ["--listen", "--pd", "--tc"])
def test_some_flags_are_required(flag: str) -> None:
    words = [word for name, value in GIVEN.items() if name != flag for word in (name, value)]
    ended = plimsoll("tidb", "planner", *words)
    assert ended.returncode == 2
    assert flag in ended.stderr
