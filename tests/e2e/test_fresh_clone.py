"""A newcomer's first minutes: clone, `make up`, the README's commands. Installs from the package registry."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import threading
from pathlib import Path

import pytest

from plimsoll.solver.kernels import find_cache_directory

REPOSITORY = Path(__file__).parents[2]
# Downloads included: the test waits no longer than that.
INSTALLED_WITHIN_S = 900
# What a user of `make up` has no need of.
TOOLS = ["pytest", "mypy", "ruff", "hypothesis", "kubernetes"]


def environment() -> dict[str, str]:
    """A fresh machine knows nothing of the environment these tests run in, but for kernels that took a minute."""
    known = {key: value for key, value in os.environ.items() if key not in {"VIRTUAL_ENV", "PYTHONPATH", "MAKEFLAGS"}}
    return {**known, "NUMBA_CACHE_DIR": str(find_cache_directory().parent)}


def run(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, env=environment())


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The committed state, and nothing of what lies beside it."""
    folder = tmp_path_factory.mktemp("fresh") / "plimsoll"
    assert run("git", "clone", "--quiet", REPOSITORY, folder, cwd=REPOSITORY).returncode == 0
    up_until_ready(folder)
    return folder


def up_until_ready(folder: Path) -> None:
    """`make up`, on the ports it has, or on others if they are taken, until it says that it is ready; then Ctrl-C."""
    is_free = not is_taken(6443)
    command = ["make", "up", *([] if is_free else ["UP=--port-base 0"])]
    with subprocess.Popen(
        command, cwd=folder, env=environment(), stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        stated = []
        giving_up = threading.Timer(INSTALLED_WITHIN_S, os.killpg, (process.pid, signal.SIGKILL))
        giving_up.start()
        try:
            for line in process.stdout:
                stated.append(line)
                if line.endswith("Ctrl-C stops it.\n"):
                    break
            # As a terminal does it: to make and to what it started.
            os.killpg(process.pid, signal.SIGINT)
            process.communicate()
        finally:
            giving_up.cancel()
        assert any(line.startswith(f"ready at https://127.0.0.1:{6443 if is_free else ''}") for line in stated), stated


def is_taken(port: int) -> bool:
    with socket.socket() as trying:
        return trying.connect_ex(("127.0.0.1", port)) == 0


def test_up_installs_the_runtime_only(clone: Path):
    listed = run(clone / ".venv/bin/python", "-m", "pip", "list", "--format=freeze", cwd=clone)
    installed = {line.split("==")[0].lower() for line in listed.stdout.splitlines()}
    assert "msgspec" in installed
    assert not installed & set(TOOLS)


def test_everything_installed_is_pinned(clone: Path):
    pins = {}
    for line in (clone / "constraints.txt").read_text().splitlines():
        if "==" in line:
            name, version = line.split("==")
            pins[re.sub(r"[-_.]+", "-", name).lower()] = version
    listed = run(clone / ".venv/bin/python", "-m", "pip", "list", "--format=freeze", cwd=clone)
    installed = dict(line.split("==") for line in listed.stdout.splitlines() if "==" in line)
    came_with_venv = {"pip", "setuptools", "plimsoll"}
    assert {
        name: version
        for name, version in installed.items()
        if name not in came_with_venv and pins.get(re.sub(r"[-_.]+", "-", name).lower()) != version
    } == {}


def test_the_commands_of_the_readme_do_what_the_readme_shows(clone: Path):
    """Every `$` line of the block about manifests is typed into one shell, and its output compared.

    What `make up` answers is compared in tests/e2e/up.
    """
    blocks = (clone / "README.md").read_text().split("## Try it")[1].split("```console\n")
    shown = next(block for block in blocks if "plimsoll validate" in block).split("```")[0]
    commands = [line.removeprefix("$ ") for line in shown.splitlines() if line.startswith("$ ")]
    expected = [line for line in shown.splitlines() if line and not line.startswith("$ ")]
    typed = run("bash", "-c", "\n".join(commands), cwd=clone)
    assert typed.stdout.splitlines() == expected, typed.stderr


def test_nothing_is_left_behind_by_clean(clone: Path):
    assert run("make", "clean", cwd=clone).returncode == 0
    assert run("git", "status", "--porcelain", "--ignored", cwd=clone).stdout == ""
