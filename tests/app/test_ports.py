"""The ports of `plimsoll up`: checked before anything is installed, all named at once, and remembered."""

from __future__ import annotations

import os
import shlex
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from plimsoll.app.ports import (
    DEFAULT_PORT_BASE,
    HIGHEST_PORT_BASE,
    HOST,
    OFFSETS,
    PD,
    PLANNER,
    find_busy_ports,
    find_free_base,
    read_port_base,
    write_port_base,
)
from plimsoll.app.up import PortBusy, check_ports
from plimsoll.local.apiserver.storage.drivers.store_file import lock_directory
from tests.cli.runner import plimsoll
from tests.e2e.ports import lasting_port

if TYPE_CHECKING:
    from tests.golden.reviewed_sentences import ReviewedSentences

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture
def base() -> int:
    """A base whose ports are all free."""
    while find_busy_ports(found := lasting_port()):
        pass
    return found


def test_all_busy_ports_are_named_at_once_with_the_command_that_uses_others(base: int):
    with ExitStack() as stack:
        for purpose in (PLANNER, PD):
            stack.enter_context(socket.create_server((HOST, base + OFFSETS[purpose])))
        words = ["--nodes", "5", "--port-base", str(base)]
        with pytest.raises(PortBusy) as raised:
            check_ports(base, words)
        first, make, command = str(raised.value).splitlines()
        assert first.startswith(
            f"ports {base + OFFSETS[PLANNER]} (the TiDB planner), {base + OFFSETS[PD]} (the simulated PD) are in use"
        )
        free = int(shlex.split(command)[-1])
        assert make == f'  make up UP="--nodes 5 --port-base {free}"'
        assert command == f"  plimsoll up --nodes 5 --port-base {free}"
        assert free != base
        check_ports(free)


def test_make_checks_ports_without_anything_installed(base: int, tmp_path: Path):
    isolated = [sys.executable, "-S", "-m", "plimsoll.app.ports", f"--port-base={base}", "--data", str(tmp_path)]
    with socket.create_server((HOST, base)):
        ended = subprocess.run(
            isolated, cwd=REPOSITORY / "src", capture_output=True, text=True, check=False, timeout=60
        )
    assert ended.returncode == 1
    assert ended.stderr.startswith(f"error: port {base} (the Kubernetes API) is in use")
    assert subprocess.run(isolated, cwd=REPOSITORY / "src", check=False, timeout=60).returncode == 0


def test_a_cluster_that_runs_already_is_named_before_its_ports(base: int, tmp_path: Path, reviewed: ReviewedSentences):
    data = tmp_path / "data"
    lock = lock_directory(data)
    words = [f"--port-base={base}", "--data", str(data), "--nodes", "5"]
    checked = [sys.executable, "-S", "-m", "plimsoll.app.ports", *words]
    with socket.create_server((HOST, base)):
        ended = subprocess.run(checked, cwd=REPOSITORY / "src", capture_output=True, text=True, check=False, timeout=60)
        started = plimsoll("up", *words)
    lock.release()
    assert (ended.returncode, started.returncode) == (1, 2)
    message, command = ended.stderr.strip().split("  plimsoll up ")
    assert shlex.split(command)[:4] == ["--nodes", "5", "--data", f"{data}-2"]
    reported = message[: message.index("  make up")]
    assert started.stderr.startswith(reported)
    reviewed(reported.replace(str(os.getpid()), "PID"))
    assert subprocess.run(checked, cwd=REPOSITORY / "src", check=False, timeout=60).returncode == 0


def test_make_up_checks_before_it_installs():
    shown = subprocess.run(
        ["make", "--no-print-directory", "-n", "up", "VENV=/nonexistent", "UP=--nodes 5"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout.splitlines()
    assert "plimsoll.app.ports --nodes 5" in shown[0]


def test_free_ports_that_the_system_chooses_are_never_busy():
    check_ports(0)


def test_a_base_near_the_highest_port_is_followed_by_one_that_fits():
    assert find_free_base(HIGHEST_PORT_BASE) == 0


@pytest.mark.parametrize("written", ["", "x", "0", "70000", "9" * 5000, "\u00b2"])
def test_a_base_that_cannot_be_read_is_the_default(tmp_path: Path, written: str):
    (tmp_path / "port-base").write_text(written, encoding="utf-8")
    assert read_port_base(tmp_path) == DEFAULT_PORT_BASE


def test_the_base_is_remembered_in_the_data_directory(tmp_path: Path):
    assert read_port_base(tmp_path / "none") == DEFAULT_PORT_BASE
    write_port_base(tmp_path, 7443)
    assert read_port_base(tmp_path) == 7443
    write_port_base(tmp_path, 0)
    assert read_port_base(tmp_path) == 7443
