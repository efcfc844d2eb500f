"""`plimsoll kafka try` says what a machine lacks, before anything is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from plimsoll.app.kafka.trying import TryStatus
from plimsoll.cli.kafka.trying import format_first_screen
from tests.cli.runner import plimsoll

if TYPE_CHECKING:
    from pathlib import Path


def test_what_is_missing_is_named_and_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    result = plimsoll("kafka", "try", "--data", tmp_path / "data")
    assert result.returncode == 2
    for word in ("Java 17 or later (java)", "Maven (mvn)", "setpriv (util-linux)"):
        assert word in " ".join(result.stderr.split())
    assert list(tmp_path.iterdir()) == []


def test_data_must_be_a_directory(tmp_path: Path):
    (tmp_path / "file").touch()
    result = plimsoll("kafka", "try", "--data", tmp_path / "file")
    assert result.returncode == 2
    assert "--data: must name a directory of its own" in result.stderr


@pytest.mark.parametrize("has_login", [False, True])
def test_the_first_screen_names_the_next_commands(tmp_path: Path, *, has_login: bool):
    properties = tmp_path / "client.properties" if has_login else None
    screen = format_first_screen(
        TryStatus("https://127.0.0.1:1", tmp_path / "kubeconfig", ("127.0.0.1:2", "127.0.0.1:3"), 2, properties)
    )
    assert f"  export KUBECONFIG={tmp_path / 'kubeconfig'}\n" in screen
    assert "  kubectl scale kafkanodepool/brokers -n kafka --replicas=3\n" in screen
    assert f"  plimsoll why kafka/kafka/my-cluster --data {tmp_path}\n" in screen
    login = f" --command-config {properties}" if has_login else ""
    assert f"  plimsoll kafka status --bootstrap 127.0.0.1:2{login}\n" in screen
