"""Which servers get the token of `--pd-token-file`, and that no other ever gets it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from plimsoll.core.errors import InvalidInput
from plimsoll.web.bearer_token import BearerToken
from tests.cli.runner import plimsoll

if TYPE_CHECKING:
    from pathlib import Path

PD = "http://pd.test:2379/prod/db"


def token(text: str = "s3cret\n", *bases: str) -> BearerToken:
    return BearerToken(text, bases=bases or (PD, ""), path="--pd-token-file")


@pytest.mark.parametrize("rest", ["", "/pd/api/v1/stores", "?x=1"])
def test_servers_that_were_given_are_shown_it(rest: str) -> None:
    assert token().build_headers(f"{PD}{rest}") == {"Authorization": "Bearer s3cret"}


@pytest.mark.parametrize(
    "url",
    [
        "http://pd.test:2379/prod/other/pd/api/v1/stores",
        "http://pd.test:2379/prod/db2",
        "http://pd.test:23790/prod/db",
        "https://pd.test:2379/prod/db",
        "http://monitor.test:9090/api/v1/query",
    ],
)
def test_others_are_not(url: str) -> None:
    """Among them a Prometheus that PD names."""
    assert token().build_headers(url) == {}


def test_it_is_not_printed() -> None:
    assert "s3cret" not in repr(token())


@pytest.mark.parametrize("text", ["", " \n", "two words", "a\nb", "naïve"], ids=ascii)
def test_what_is_no_token_is_refused_without_being_quoted(text: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        token(text)
    assert str(refused.value) == "--pd-token-file: holds no token: one word of printable ASCII was expected"


@pytest.mark.parametrize(
    ("content", "reported"),
    [(b"s3\xffcret", "token has no token: byte 2 is not ASCII"), (b"s3 cret", "holds no token: one word")],
    ids=["bytes", "two words"],
)
@pytest.mark.parametrize(
    "command",
    [
        ("run", "tidb", "--once", "--server", "http://127.0.0.1:1", "--pd", PD),
        ("tidb", "planner", "--listen", "nowhere", "--pd", PD, "--tc", "prod/db"),
    ],
    ids=["run tidb", "tidb planner"],
)
def test_the_commands_refuse_a_file_without_one(
    tmp_path: Path, command: tuple[str, ...], content: bytes, reported: str
) -> None:
    (tmp_path / "token").write_bytes(content)
    ended = plimsoll(*command, "--pd-token-file", "token", cwd=tmp_path)
    assert ended.returncode == 2
    assert reported in ended.stderr
    assert "cret" not in ended.stderr


def test_a_token_without_a_server_is_a_mistake(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("s3cret")
    given = ("--once", "--server", "http://127.0.0.1:1", "--pd-token-file", "token")
    ended = plimsoll("run", "tidb", *given, cwd=tmp_path)
    assert ended.returncode == 2
    assert "--pd-token-file: a token is sent only to servers that are given by address" in ended.stderr
