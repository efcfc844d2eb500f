"""What keeps `plimsoll run kubelet` from starting is told in one line. Kubelets that run: tests/e2e/kubelet."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import structlog

from tests.cli.commands import plimsoll

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def _own_logging() -> Iterator[None]:
    """The command says where logs go; that must not outlive it here."""
    yield
    structlog.reset_defaults()


def test_a_kubeconfig_that_is_not_there(tmp_path: Path):
    ended = plimsoll("run", "kubelet", "--kubeconfig", tmp_path / "none")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert str(tmp_path / "none") in ended.stderr


def test_a_selector_that_is_none():
    ended = plimsoll("run", "kubelet", "--selector", "a in (")
    assert ended.returncode == 2
    assert "unable to parse requirement" in ended.stderr


def test_a_time_that_is_less_than_nothing():
    ended = plimsoll("run", "kubelet", "--boot-seconds", "-3")
    assert ended.returncode == 2
    assert "--boot-seconds" in ended.stderr
    assert "plimsoll run --help" in ended.stderr


def test_the_group_tells_what_can_be_run():
    ended = plimsoll("run", "--help")
    assert ended.returncode == 0
    assert "kubelet" in ended.stdout
