"""The life of `plimsoll apiserver`: start, serve, stop by signal, start again."""

from __future__ import annotations

import signal
import ssl
import subprocess
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from tests.e2e.apiserver.processes import config_map, running, started
from tests.e2e.ports import lasting_port
from tests.e2e.timeouts import PATIENCE_S

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.apiserver.processes import ApiServer

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    with process:
        out, err = process.communicate(timeout=PATIENCE_S)
    return process.returncode, out, err


def watching(server: ApiServer) -> ssl.SSLSocket:
    """A raw connection on which a watch runs."""
    connection = server.connection()
    connection.connect()
    raw = connection.sock
    assert isinstance(raw, ssl.SSLSocket)
    head = f"GET {CONFIG_MAPS}?watch=1 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {server.token}\r\n\r\n"
    raw.sendall(head.encode())
    assert raw.recv(4096).startswith(b"HTTP/1.1 200 OK\r\n")
    return raw


def test_it_says_where_it_is_and_how_to_try_it(tmp_path: Path):
    with running(tmp_path / "data") as server:
        assert server.kubeconfig == tmp_path / "data" / "kubeconfig"
        assert server.kubeconfig.stat().st_mode & 0o777 == 0o600
        assert f"kubectl --kubeconfig {server.kubeconfig} get namespaces" in server.reported
        assert server.url.startswith("https://127.0.0.1:")
        status, namespaces = server.ask("GET", "/api/v1/namespaces")
        assert status == 200
        assert {"default", "kube-system"} <= {namespace["metadata"]["name"] for namespace in namespaces["items"]}
        assert server.ask("GET", "/api/v1/namespaces", token="wrong")[0] == 401


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_watches_cleanly_and_the_process_with_0(tmp_path: Path, number: signal.Signals):
    with running(tmp_path) as server, watching(server) as watch:
        server.process.send_signal(number)
        rest = b""
        while received := watch.recv(4096):
            rest += received
        assert rest.endswith(b"0\r\n\r\n")
        out, err = server.process.communicate(timeout=PATIENCE_S)
        assert (server.process.returncode, out, err) == (0, "", "stopped\n")


def test_a_second_signal_does_not_wait_for_requests(tmp_path: Path):
    with running(tmp_path) as server:
        connection = server.connection()
        connection.putrequest("POST", CONFIG_MAPS)
        connection.putheader("Content-Length", "100")
        connection.putheader("Expect", "100-continue")
        connection.endheaders()
        # A client that got 100 Continue is a request under way; a signal before that would find an idle connection.
        assert connection.sock.recv(4096).startswith(b"HTTP/1.1 100 ")
        connection.send(b"half of the body")
        server.process.send_signal(signal.SIGTERM)
        with pytest.raises(subprocess.TimeoutExpired):
            server.process.wait(timeout=1)
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(timeout=8) == 0, "it waited for the ten seconds of grace"
        connection.close()


@pytest.mark.parametrize("durability", ["process", "power"])
def test_a_restart_keeps_authority_token_and_objects(tmp_path: Path, durability: str):
    options = ("--durability", durability, "--port", str(lasting_port()))
    with running(tmp_path, *options) as server:
        status, made = server.ask("POST", CONFIG_MAPS, config_map("kept"))
        assert status == 201
        ca, token = server.ca_pem, server.token
        assert server.stop() == 0
    with running(tmp_path, *options) as server:
        assert (server.ca_pem, server.token) == (ca, token)
        assert server.ask("GET", f"{CONFIG_MAPS}/kept") == (200, made)


def test_a_kill_loses_nothing_that_was_acknowledged(tmp_path: Path):
    with running(tmp_path) as server:
        made = [server.ask("POST", CONFIG_MAPS, config_map(f"kept-{number}"))[0] for number in range(20)]
        assert made == [201] * 20
        server.stop(signal.SIGKILL)
    with running(tmp_path) as server:
        _, listed = server.ask("GET", CONFIG_MAPS)
        assert {f"kept-{number}" for number in range(20)} <= {item["metadata"]["name"] for item in listed["items"]}


def test_fresh_forgets_objects_and_keeps_the_token(tmp_path: Path):
    with running(tmp_path) as server:
        assert server.ask("POST", CONFIG_MAPS, config_map("old"))[0] == 201
        token, ca = server.token, server.ca_pem
        server.stop()
    with running(tmp_path, "--fresh") as server:
        assert server.ask("GET", f"{CONFIG_MAPS}/old")[0] == 404
        assert (server.token, server.ca_pem) == (token, ca)


def test_a_second_server_on_the_same_directory_is_refused_and_harms_nothing(tmp_path: Path):
    with running(tmp_path) as server:
        before = server.kubeconfig.read_bytes()
        for more in ([], ["--fresh"]):
            code, out, err = ended(started(tmp_path, "--port", "0", *more))
            assert (code, out) == (2, "")
            assert f"the data directory is in use by process {server.process.pid}" in err
        assert server.kubeconfig.read_bytes() == before
        assert server.ask("GET", "/api/v1/namespaces")[0] == 200


def test_a_busy_port_is_reported_with_what_to_do(tmp_path: Path):
    with running(tmp_path / "one") as server:
        port = str(urlsplit(server.url).port)
        code, out, err = ended(started(tmp_path / "other", "--port", port))
        assert (code, out) == (2, "")
        assert err == f"error: port {port} of 127.0.0.1 is in use by another program; choose another one by --port\n"


def test_an_address_that_is_not_ours_is_reported_with_what_to_do(tmp_path: Path):
    code, _, err = ended(started(tmp_path, "--host", "203.0.113.1", "--port", "0"))
    assert code == 2
    assert "cannot listen on 203.0.113.1" in err
    assert "--host" in err


def test_users_of_a_token_file_are_known_and_may_only_what_rules_allow(tmp_path: Path):
    (tmp_path / "tokens").write_text('alices-token,alice,1,"readers,others"\nboss-token,boss,2,system:masters\n')
    with running(tmp_path / "data", "--token-file", str(tmp_path / "tokens")) as server:
        assert server.ask("GET", "/api/v1/namespaces", token="boss-token")[0] == 200
        status, refused = server.ask("GET", "/api/v1/namespaces", token="alices-token")
        assert status == 403
        assert 'User "alice" cannot list resource "namespaces"' in refused["message"]


def test_the_official_client_reads_the_kubeconfig(tmp_path: Path):
    kubernetes = pytest.importorskip("kubernetes", reason="the official client is not installed (make test does)")
    with running(tmp_path) as server:
        kubernetes.config.load_kube_config(str(server.kubeconfig), context="plimsoll")
        api = kubernetes.client.CoreV1Api()
        assert "default" in [item.metadata.name for item in api.list_namespace().items]
        api.create_namespaced_config_map("default", config_map("by-the-client"))
        assert api.read_namespaced_config_map("by-the-client", "default").data == {"key": "by-the-client"}
        api.api_client.close()


def test_a_body_over_3_mib_is_refused_to_a_client_that_sends_all_of_it(tmp_path: Path):
    with running(tmp_path) as server:
        large = config_map("large")
        large["data"] = {"key": "x" * 3_300_000}
        status, refused = server.ask("POST", CONFIG_MAPS, large)
        assert status == 413
        assert refused["message"] == "Request entity too large: limit is 3145728"
        assert refused["reason"] == "RequestEntityTooLarge"
