"""What keeps `plimsoll run kubelet` from starting is reported in one line. Kubelets that run: tests/e2e/kubelet."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from plimsoll.cli.commands.run import report_if_slow
from plimsoll.testing import run_virtual
from tests.cli.runner import plimsoll

if TYPE_CHECKING:
    from pathlib import Path

    from plimsoll.core.clock import Clock


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
    assert "plimsoll run kubelet --help" in ended.stderr


def test_the_group_describes_what_can_be_run():
    ended = plimsoll("run", "--help")
    assert ended.returncode == 0
    assert "kubelet" in ended.stdout


@pytest.mark.parametrize(("takes_s", "reported"), [(1.9, ""), (2.1, "no answer from there\n")])
def test_what_is_waited_for_is_reported_after_two_seconds(
    takes_s: float, reported: str, capsys: pytest.CaptureFixture[str]
):
    async def reach(clock: Clock) -> None:
        with report_if_slow("no answer from there"):
            await clock.sleep(takes_s)
        await clock.sleep(5)

    run_virtual(reach)
    assert capsys.readouterr().err == reported
