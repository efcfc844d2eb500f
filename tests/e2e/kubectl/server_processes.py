"""`plimsoll apiserver` as a process of its own, as a user starts it: for kubectl and the official client."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.e2e.timeouts import PATIENCE_S, speaking_in_time

if TYPE_CHECKING:
    from collections.abc import Iterator

LEAST_KUBECTL = (1, 29)


class ServerProcess(NamedTuple):
    kubeconfig: Path
    data: Path
    process: subprocess.Popen[str]
    errors: Path
    """What it has written to standard error."""


def has_apiserver_command() -> bool:
    asked = subprocess.run(
        [sys.executable, "-m", "plimsoll", "apiserver", "--help"], capture_output=True, text=True, check=False
    )
    return asked.returncode == 0


@contextlib.contextmanager
def running_server(data: Path, *options: str) -> Iterator[ServerProcess]:
    """Start the server on a free port, wait for its ready line, stop it as Ctrl-C does and see that it says goodbye."""
    errors = data.with_name(f"{data.name}.stderr")
    with errors.open("w") as sink:
        process = subprocess.Popen(
            [sys.executable, "-m", "plimsoll", "apiserver", "--data", str(data), "--port", "0", *options],
            stdout=subprocess.PIPE,
            stderr=sink,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
    try:
        yield ServerProcess(_kubeconfig_when_ready(process, errors), data, process, errors)
        assert process.poll() is None, f"the server ended by itself: {errors.read_text()[-2000:]}"
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=PATIENCE_S) == 0, errors.read_text()[-2000:]
    finally:
        if process.poll() is None:
            process.kill()
            process.wait(timeout=PATIENCE_S)
        assert process.stdout is not None
        process.stdout.close()
    assert "Traceback" not in errors.read_text()


def _kubeconfig_when_ready(process: subprocess.Popen[str], errors: Path) -> Path:
    assert process.stdout is not None
    with speaking_in_time(process):
        for line in process.stdout:
            named = re.search(r"ready at .* (/\S*kubeconfig)\b", line)
            if named:
                return Path(named[1])
    pytest.fail(f"no ready line from plimsoll apiserver: {errors.read_text()[-2000:]}")


def kubectl_version() -> tuple[int, int] | None:
    """Major and minor version of the kubectl on PATH, if there is one."""
    program = shutil.which("kubectl")
    if program is None:
        return None
    stated = subprocess.run([program, "version", "--client"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"v(\d+)\.(\d+)", stated)
    return (int(found[1]), int(found[2])) if found else None
