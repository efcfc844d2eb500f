"""Whatever takes longer than two seconds says on stderr what goes on, in every command; JSON output stays alone."""

from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING

import pytest

from tests.cli.runner import plimsoll

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SCENARIO = """
nodeGroups: [{id: g, max: 3, template: {capacity: {cpu: 4, memory: 16Gi}}}]
steps:
- schedule: true
"""
FORBIDDEN = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\nContent-Type: application/json\r\n\r\n{}"
WITHOUT_CLUSTER = [
    (["plan", "-f", "examples/plans/request.yaml"], "", "planning 21 pods, 0 nodes, 0 machine types …"),
    (["simulate", "-f", "-"], SCENARIO, "simulating - …"),
    (["validate", "-f", "examples/provisioning-request.yaml"], "", "validating 2 objects …"),
]
WITH_CLUSTER = [
    ["nodes", "status"],
    ["nodes", "configure", "--show"],
    ["requests", "list"],
    ["requests", "describe", "r"],
    ["requests", "wait", "r"],
    ["why", "node/n"],
    ["pause"],
    ["resume"],
    ["doctor"],
]


class ImpatientTimer(threading.Timer):
    """Rings as soon as it is started: the two seconds are over at once."""

    def start(self) -> None:
        assert self.interval == 2.0
        self.function()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plimsoll.cli.shared.slow_notice.threading.Timer", ImpatientTimer)
    monkeypatch.setattr("plimsoll.cli.shared.progress.PATIENCE_S", 0.0)


@pytest.fixture
def server() -> Iterator[str]:
    """The address of a server that forbids everything."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def forbid() -> None:
            while True:
                try:
                    with listening.accept()[0] as connection:
                        connection.recv(65_536)
                        connection.sendall(FORBIDDEN)
                except OSError:
                    return

        threading.Thread(target=forbid, daemon=True).start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        listening.shutdown(socket.SHUT_RDWR)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    ("words", "stdin", "notice"), WITHOUT_CLUSTER, ids=[words[0] for words, _, _ in WITHOUT_CLUSTER]
)
def test_slow_work_without_a_cluster_is_announced(words: list[str], stdin: str, notice: str):
    ended = plimsoll(*words, stdin=stdin)
    assert (ended.returncode, ended.stderr) == (0, f"{notice}\n")
    assert plimsoll(*words, "-o", "json", stdin=stdin).stderr == ""


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("words", WITH_CLUSTER, ids=" ".join)
def test_a_command_that_waits_for_a_cluster_says_so(server: str, tmp_path: Path, words: list[str]):
    ended = plimsoll(*words, "--server", server, cwd=tmp_path)
    assert ended.returncode != 0, ended
    reported = f"checking {server}" if words == ["doctor"] else f"{server} has not answered yet; waiting …\n"
    assert ended.stderr.startswith(reported)


@pytest.mark.usefixtures("impatient")
def test_a_single_reconcile_says_so(server: str, tmp_path: Path):
    ended = plimsoll("run", "tidb", "--dry-run", "--once", "--server", server, cwd=tmp_path)
    assert "reconciling …\n" in ended.stderr
