"""`cccli` of the package cruise-control-client, as a process, against `plimsoll kafka cruise-control` on real Kafka."""

from __future__ import annotations

import json
import socket
import ssl
import subprocess
import sys
from base64 import b64encode
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import pytest

from tests.e2e.ports import lasting_port
from tests.e2e.timeouts import PATIENCE_S
from tests.kube.http.authorities import CertificateAuthority

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.kafka.real_kafka import RealKafka

CCCLI = Path(sys.executable).with_name("cccli")


class CruiseControl:
    """A running server and its client."""

    def __init__(self, address: str, kafka: RealKafka) -> None:
        self.address = address
        self._kafka = kafka

    def call(self, *words: str, code: int = 0) -> str:
        """What cccli prints."""
        ended = subprocess.run(
            [str(CCCLI), "-a", self.address, *words], check=False, capture_output=True, text=True, timeout=120
        )
        assert ended.returncode == code, f"{ended.stdout}\n{ended.stderr}"
        return ended.stdout

    def call_json(self, *words: str) -> Any:
        printed = self.call(*words, "--json", "true")
        return json.loads(printed[printed.index("{") :])

    def wait_for_end(self) -> None:
        self._kafka.wait_until(
            lambda: (
                self.call_json("state", "--substates", "executor")["ExecutorState"]["state"] == "NO_TASK_IN_PROGRESS"
            ),
            "the execution ends",
        )


@contextmanager
def serve(kafka: RealKafka, folder: Path, *flags: str, tls: ssl.SSLContext | None = None) -> Iterator[CruiseControl]:
    port = lasting_port()
    errors = folder / "cruise-control.stderr"
    words = (
        "kafka",
        "cruise-control",
        "--bootstrap",
        kafka.bootstrap,
        "--port",
        str(port),
        "--data",
        str(folder),
        *flags,
    )
    with errors.open("w") as sink:
        process = subprocess.Popen([sys.executable, "-m", "plimsoll", *words], stdout=sink, stderr=sink)
    try:
        kafka.wait_until(lambda: _is_ready(port, tls), "the server answers")
        yield CruiseControl(f"127.0.0.1:{port}", kafka)
    finally:
        process.terminate()
        process.wait(timeout=PATIENCE_S)
    assert "Traceback" not in errors.read_text(), errors.read_text()[-5000:]


def _is_ready(port: int, tls: ssl.SSLContext | None) -> bool:
    scheme = "http" if tls is None else "https"
    try:
        with urlopen(f"{scheme}://127.0.0.1:{port}/healthz", timeout=5, context=tls) as answer:
            return answer.status == 200
    except (URLError, OSError):
        return False


@pytest.fixture
def server(kafka: RealKafka, tmp_path: Path) -> Iterator[CruiseControl]:
    kafka.create_topic("t0", {number: [number % 3, (number + 1) % 3, (number + 2) % 3] for number in range(9)})
    for number in range(9):
        kafka.produce("t0", partition=number, total_bytes=200_000)
    with serve(kafka, tmp_path) as running:
        yield running


def test_every_read_works_as_text_and_as_json(server: CruiseControl):
    assert "NO_TASK_IN_PROGRESS" in server.call("state")
    assert "LEADERS/REPLICAS" in server.call("load")
    assert "t0-0" in server.call("partition-load")
    assert "The cluster has 3 brokers" in server.call("kafka-cluster-state")
    assert "Optimization has" in server.call("proposals")
    assert "USER TASK ID" in server.call("user-tasks")
    assert server.call_json("state")["ExecutorState"]["state"] == "NO_TASK_IN_PROGRESS"
    assert len(server.call_json("load")["brokers"]) == 3
    assert server.call_json("partition-load")["records"]
    assert server.call_json("kafka-cluster-state")["KafkaBrokerState"]["Summary"]["Brokers"] == 3
    assert "summary" in server.call_json("proposals")
    assert server.call_json("user-tasks")["userTasks"]


def test_add_and_remove_brokers_with_the_defaults_of_cccli(server: CruiseControl, kafka: RealKafka):
    """cccli sends `dryrun=False`, plain text, and polls with its cookie only."""
    kafka.start_broker(3)
    kafka.wait_until(lambda: len(server.call_json("load")["brokers"]) == 4, "broker 3 is seen")
    assert "Optimization has" in server.call("add-brokers", "3", "--dry-run")
    assert not _count(kafka, 3)
    server.call("add-brokers", "3")
    server.wait_for_end()
    assert _count(kafka, 3)
    tasks = server.call_json("user-tasks")["userTasks"]
    executed = [task for task in tasks if "/add_broker" in task["RequestURL"] and "dryrun=False" in task["RequestURL"]]
    assert [task["Status"] for task in executed] == ["Completed"]
    server.call("remove-brokers", "3")
    server.wait_for_end()
    assert not _count(kafka, 3)
    server.call("rebalance")
    server.wait_for_end()
    assert "Proposal execution stopped" in server.call("stop")
    for words in (("rebalance",), ("add-brokers", "3"), ("remove-brokers", "3")):
        assert "summary" in server.call_json(*words)
        server.wait_for_end()
    assert not _count(kafka, 3)
    assert server.call_json("stop")["message"] == "Proposal execution stopped."


def test_users_and_tls(kafka: RealKafka, tmp_path: Path):
    authority = CertificateAuthority()
    pair = authority.issue("127.0.0.1")
    (tmp_path / "cert.pem").write_bytes(pair.certificate_pem)
    (tmp_path / "key.pem").write_bytes(pair.key_pem)
    (tmp_path / "users").write_text("viewer: v,VIEWER\nadmin: a,ADMIN\n", encoding="utf-8")
    tls = ssl.create_default_context(cadata=authority.pem.decode())
    flags = ("--tls-cert", str(tmp_path / "cert.pem"), "--tls-key", str(tmp_path / "key.pem"))
    with serve(kafka, tmp_path, *flags, "--users-file", str(tmp_path / "users"), tls=tls) as server:
        url = f"https://{server.address}/kafkacruisecontrol/state?json=true&substates=executor"

        def get_status(user: str) -> int:
            request = Request(url)
            if user:
                request.add_header("Authorization", f"Basic {b64encode(user.encode()).decode()}")
            try:
                with urlopen(request, timeout=30, context=tls) as answer:
                    return int(answer.status)
            except HTTPError as error:
                return error.code

        assert [get_status(user) for user in ("", "admin:wrong", "viewer:v", "admin:a")] == [401, 401, 403, 200]


def test_a_large_body_is_answered_without_being_read(server: CruiseControl):
    """Parameters come in the query; 100 MB of a body must cost the server nothing."""
    host, _, port = server.address.partition(":")
    with socket.create_connection((host, int(port)), timeout=30) as sending:
        head = "POST /kafkacruisecontrol/rebalance?json=true&dryrun=maybe HTTP/1.1\r\nHost: localhost\r\n"
        sending.sendall(f"{head}Content-Length: {100 << 20}\r\n\r\n".encode() + b"x" * 65536)
        assert sending.recv(4096).startswith(b"HTTP/1.1 400")


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize("data", ["", "other"])
def test_a_second_server_is_refused(kafka: RealKafka, tmp_path: Path, data: str):
    """Whether it has the same data directory or another one."""
    words = ("kafka", "cruise-control", "--bootstrap", kafka.bootstrap, "--port", str(lasting_port()))
    ended = subprocess.run(
        [sys.executable, "-m", "plimsoll", *words, "--data", str(tmp_path / data)],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ended.returncode == 1
    assert "Traceback" not in ended.stderr
    assert ("executes on cluster " if data else f"{tmp_path}/kafka is in use by process ") in ended.stderr


def _count(kafka: RealKafka, broker: int) -> int:
    return sum(broker in replicas for replicas in kafka.list_replicas("t0").values())
