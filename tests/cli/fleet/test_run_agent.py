"""`plimsoll run agent`: what it needs, and how it says what is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from plimsoll.core.errors import InvalidInput
from plimsoll.fleet.agent.settings import read_parameters
from tests.cli.runner import plimsoll

if TYPE_CHECKING:
    from pathlib import Path

PARAMETERS = {
    "control-plane-url": "https://fleet.example.com/",
    "cluster-id": "c1",
    "sso-auth-server-url": "https://sso.example.com/realms/agents",
    "sso-client-id": "agent-c1",
    "sso-secret": "secret",
}


def test_parameters_are_read_under_the_names_of_the_addon():
    read = read_parameters(PARAMETERS | {"poll-interval": "5s", "resync-interval": "1m"})
    assert (read.control_plane_url, read.poll_interval_s, read.resync_interval_s) == (
        "https://fleet.example.com",
        5,
        60,
    )
    assert "client_secret" not in repr(read)


@pytest.mark.parametrize("missing", PARAMETERS)
def test_a_missing_parameter_is_named(missing: str):
    with pytest.raises(InvalidInput) as error:
        read_parameters({name: text for name, text in PARAMETERS.items() if name != missing})
    assert missing in str(error.value)


@pytest.mark.parametrize("interval", ["0s", "2h", "soon", "-1s"])
def test_an_interval_out_of_range_is_named(interval: str):
    with pytest.raises(InvalidInput) as error:
        read_parameters(PARAMETERS | {"poll-interval": interval})
    assert "poll-interval" in str(error.value)


def test_a_secret_file_that_is_missing_is_named(tmp_path: Path):
    ended = plimsoll("run", "agent", "--sso-secret-file", tmp_path / "none", "--once")
    assert ended.returncode == 2
    assert "--sso-secret-file" in ended.stderr
