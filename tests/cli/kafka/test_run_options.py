"""Mistakes in the options of `plimsoll run kafka` are named before anything is connected."""

from __future__ import annotations

import pytest

from tests.cli.runner import plimsoll


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--cruise-control-address", ":9090"], "give --users-file, so that clients must log in"),
        (["--cruise-control-address", "9090"], "'9090' is not HOST:PORT"),
        (["--cruise-control-address", "localhost:0", "--tls-cert", "x"], "--tls-cert and --tls-key belong together"),
        (
            ["--cruise-control-address", "localhost:0", "--rebalance-engine", "cruise-control"],
            "there is no engine to serve with --rebalance-engine=cruise-control",
        ),
        (["--cruise-control-address", "localhost:0", "--once"], "there is no engine to serve with --once"),
        (["--users-file", "users"], "--users-file has no effect without --cruise-control-address"),
        (["--tls-cert", "x"], "--tls-cert has no effect without --cruise-control-address"),
    ],
)
def test_options_of_the_served_engines_are_checked(arguments: list[str], problem: str):
    result = plimsoll("run", "kafka", "--server", "http://127.0.0.1:1", *arguments)
    assert result.returncode == 2
    assert problem in " ".join(result.stderr.split())
