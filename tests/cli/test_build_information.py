"""The commit of a program: from its build, from its checkout, or unknown; never an error."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from plimsoll.cli.build_information import BuildInformation, read_build_information

if TYPE_CHECKING:
    from pathlib import Path


def test_a_build_says_its_commit(tmp_path: Path):
    (tmp_path / "build.json").write_text('{"commit": "abc", "builtAt": "2026-01-02T03:04:05Z", "variant": "slim"}')
    built = BuildInformation(commit="abc", built_at="2026-01-02T03:04:05Z", variant="slim")
    assert read_build_information(tmp_path) == built


@pytest.mark.parametrize("written", ["", "{", "[]", "\x00"])
def test_a_file_that_says_nothing_is_unknown(tmp_path: Path, written: str):
    (tmp_path / "build.json").write_text(written)
    assert read_build_information(tmp_path) == BuildInformation()


def test_a_checkout_is_named_by_its_commit_and_changes(tmp_path: Path):
    package = tmp_path / "src" / "plimsoll"
    package.mkdir(parents=True)
    (package / "a.py").write_text("")
    assert read_build_information(package).commit == "unknown"

    def git(*words: str) -> str:
        identity = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
        return subprocess.run(
            ["git", "-C", str(tmp_path), *identity, *words], check=True, capture_output=True, text=True
        ).stdout

    git("init", "-q")
    git("add", ".")
    git("commit", "-q", "-m", "a")
    head = git("rev-parse", "HEAD").strip()
    assert read_build_information(package).commit == head[:12]
    (package / "a.py").write_text("changed")
    assert read_build_information(package).commit == f"{head[:12]}-dirty"


def test_an_installed_package_is_not_named_by_a_checkout_around_it(tmp_path: Path):
    package = tmp_path / "site-packages" / "plimsoll"
    package.mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    assert read_build_information(package).commit == "unknown"
