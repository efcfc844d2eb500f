"""What keeps `plimsoll apiserver` from starting is one line with exit code 2. Servers that run: tests/e2e."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.cli.runner import plimsoll

if TYPE_CHECKING:
    from pathlib import Path

    from tests.golden.reviewed_sentences import ReviewedSentences


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


def refused(*arguments: str | Path) -> str:
    ended = plimsoll("apiserver", *arguments)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith("error: ")
    assert "Traceback" not in ended.stderr
    return ended.stderr.splitlines()[0]


def test_a_data_directory_that_is_none(tmp_path: Path):
    (tmp_path / "data").write_text("a file")
    complaint = refused("--data", tmp_path / "data")
    assert complaint == f"error: {tmp_path}/data: cannot be used as data directory: File exists"


def test_a_data_directory_of_a_newer_plimsoll(data: Path):
    data.mkdir(mode=0o700)
    (data / "schema-version").write_text("99\n")
    assert "schema version 99, this Plimsoll reads versions up to 1" in refused("--data", data)


def test_a_store_that_is_damaged(data: Path):
    data.mkdir(mode=0o700)
    (data / "objects.sqlite3").write_bytes(b"nonsense" * 1000)
    (data / "objects.sqlite3").chmod(0o600)
    assert f"{data}/objects.sqlite3: is not a store, or is damaged" in refused("--data", data)


def test_a_store_that_was_cut_off(data: Path):
    data.mkdir(mode=0o700)
    (data / "kubeconfig").write_text("of an earlier start")
    (data / "objects.sqlite3").touch(mode=0o600)
    complaint = refused("--data", data)
    assert f"{data}/objects.sqlite3: is empty, though a server has run here" in complaint
    assert "--fresh" in complaint


def test_a_data_directory_that_anyone_can_write_to(data: Path):
    data.mkdir()
    (data / "admin.token").write_text("x" * 40)
    data.chmod(0o777)
    complaint = refused("--data", data)
    assert f"{data}: every user can write to it (mode 0777)" in complaint
    assert f"chmod 700 {data}" in complaint


def test_a_token_file_that_is_not_there(data: Path, tmp_path: Path):
    complaint = refused("--data", data, "--token-file", tmp_path / "tokens")
    assert complaint == f"error: {tmp_path}/tokens: cannot be read: No such file or directory"
    assert not data.exists()


def test_a_token_file_that_is_wrong_is_reported_by_line_without_the_token(data: Path, tmp_path: Path):
    (tmp_path / "tokens").write_text("secret-one,alice,1\nsecret-two,bob\n")
    complaint = refused("--data", data, "--token-file", tmp_path / "tokens")
    assert "line 2" in complaint
    assert "secret" not in complaint


def test_a_token_file_that_is_no_text(data: Path, tmp_path: Path):
    (tmp_path / "tokens").write_bytes(b"\xff\xfe")
    assert refused("--data", data, "--token-file", tmp_path / "tokens") == f"error: {tmp_path}/tokens: is not text"


@pytest.mark.parametrize(
    "arguments",
    [["--port", "70000"], ["--port", "x"], ["--durability", "never"], ["--event-ttl", "0"], ["--event-ttl", "soon"]],
)
def test_options_that_make_no_sense(data: Path, arguments: list[str]):
    assert arguments[0] in refused("--data", data, *arguments)
    assert not data.exists()


@pytest.mark.parametrize("data", ["", "."])
def test_keys_are_not_strewn_among_other_files(data: str, reviewed: ReviewedSentences):
    ended = plimsoll("apiserver", "--data", data)
    assert ended.returncode == 2
    reviewed(ended.stderr)
