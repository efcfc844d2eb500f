"""The life of `plimsoll up`: its first screen, its end, being killed, starting anew."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import urllib.error
import urllib.request
from typing import TYPE_CHECKING

from plimsoll.app.ports import OFFSETS, PAGES, find_busy_ports
from tests.cli.runner import plimsoll
from tests.e2e.ports import lasting_port
from tests.e2e.timeouts import PATIENCE_S
from tests.e2e.up.up_processes import UpProcess, command, named, needs_kubectl, running

if TYPE_CHECKING:
    from pathlib import Path

needs_kubectl()

READY_WITHIN_S = 15


def ready_nodes(up: UpProcess) -> list[str]:
    lines = up.kubectl("get", "nodes", "--no-headers").splitlines()
    return [line.split()[0] for line in lines if line.split()[1] == "Ready"]


def running_pods(up: UpProcess) -> dict[str, str]:
    """Uids of the pods that run and do not go, with their nodes."""
    return {
        pod["metadata"]["uid"]: pod["spec"]["nodeName"]
        for pod in up.objects("pods")
        if pod["status"]["phase"] == "Running" and "deletionTimestamp" not in pod["metadata"]
    }


def until_ready(up: UpProcess, count: int) -> None:
    """It says how many nodes there are to be, and does not wait for them for ever before it says so."""
    assert re.search(rf"{count} nodes, ready|\d+ of {count} nodes ready", up.screen), up.screen
    up.until(lambda: len(ready_nodes(up)) == count, f"{count} nodes are ready")


def test_its_first_screen_can_be_typed_off(tmp_path: Path):
    with running(tmp_path / "data") as up:
        assert up.ready_after_s - up.held_up_s < READY_WITHIN_S
        assert "3 nodes, ready" in up.screen or up.held_up_s > 1, "it had all the time it wanted"
        assert named(up.screen, r"ready at (https://127\.0\.0\.1:\d+)\n") in up.kubectl("cluster-info")
        assert named(up.screen, r"export KUBECONFIG=(\S+)") == str(tmp_path / "data" / "kubeconfig")
        until_ready(up, 3)
        typed = [line.split()[1:] for line in up.screen.splitlines() if line.startswith("  kubectl ")]
        assert len(typed) == 3
        for arguments in typed:
            up.kubectl(*arguments)
        assert ready_nodes(up) == ["workers-0", "workers-1", "workers-2"]
        up.kubectl("rollout", "status", "deployment/web", "--timeout=80s")


def test_sigterm_stops_it_cleanly_and_ctrl_c_too(tmp_path: Path):
    with running(tmp_path / "data", "--nodes", "1") as up:
        assert up.stop(signal.SIGTERM) == 0
        stated = up.errors.read_text().splitlines()
        assert stated[-1] == "stopped"
        # Quiet by default: what the cloud did, and nothing about services or informers.
        assert stated[:-1]
        # A start that takes longer than two seconds says so.
        listed = [line for line in stated[:-1] if line != "starting the cluster …"]
        assert all(re.match(r"[\d-]+ [\d:]+ UTC (cloud|nodes): ", line) for line in listed), stated
    with running(tmp_path / "data") as up:
        assert up.stop(signal.SIGINT) == 0


def test_a_second_signal_does_not_wait(tmp_path: Path):
    with running(tmp_path / "data", "--nodes", "0") as up:
        # Both are there when it looks: it cannot have ended between them.
        for number in (signal.SIGSTOP, signal.SIGINT, signal.SIGTERM, signal.SIGCONT):
            up.process.send_signal(number)
        assert up.process.wait(timeout=PATIENCE_S) == 0


def test_after_a_kill_it_goes_on_where_it_was(tmp_path: Path):
    with running(tmp_path / "data") as up:
        up.kubectl("create", "deployment", "web", "--image=nginx", "--replicas=6")
        up.kubectl("rollout", "status", "deployment/web", "--timeout=80s")
        before = running_pods(up)
        # Killed with work half done: some of these pods are made, bound or started, others are not.
        up.kubectl("create", "deployment", "later", "--image=nginx", "--replicas=40")
        up.die()
    with running(tmp_path / "data") as up:
        until_ready(up, 3)
        up.kubectl("rollout", "status", "deployment/later", "--timeout=80s")
        pods = running_pods(up)
        assert len(pods) == 46
        assert before.items() <= pods.items()
        assert len(up.objects("pods")) == 46, "a pod was made twice"
        assert ready_nodes(up) == ["workers-0", "workers-1", "workers-2"]
        assert len(up.objects("machines")) == 3
        assert all(node["spec"].get("taints") is None for node in up.objects("nodes"))


def test_a_fresh_start_forgets_objects_and_keeps_the_kubeconfigs_token(tmp_path: Path):
    with running(tmp_path / "data", "--nodes", "1") as up:
        up.kubectl("create", "configmap", "old")
        up.kubectl("delete", "nodegroup", "workers")
        up.kubectl("wait", "--for=delete", "node/workers-0", "--timeout=80s")
        token = (tmp_path / "data" / "admin.token").read_text()
        assert up.stop() == 0
    with running(tmp_path / "data") as up:
        # What was deleted stays so, also the group everything began with.
        assert "no nodes yet" in up.screen
        assert up.stated("get", "configmap", "old").code == 0
        assert up.stop() == 0
    last = max(journal_times(tmp_path / "data"))
    with running(tmp_path / "data", "--fresh", "--nodes", "2") as up:
        until_ready(up, 2)
        assert up.stated("get", "configmap", "old").code == 1
        assert not [entry for entry in journal_times(tmp_path / "data") if entry <= last]
    assert (tmp_path / "data" / "admin.token").read_text() == token


def journal_times(data: Path) -> list[str]:
    """The times of all entries of the journal."""
    ended = plimsoll("journal", "--data", data, "--limit", "0", "-o", "json")
    return [entry["plan"]["at"] for entry in json.loads(ended.stdout)]


def test_pages_are_on_the_port_that_it_prints_and_the_base_is_remembered(tmp_path: Path):
    while find_busy_ports(base := lasting_port()):
        pass
    data = tmp_path / "data"
    with running(data, "--port-base", str(base), "--nodes", "1") as up:
        address = named(up.screen, r"Metrics, health and plans: (http://\S+)")
        assert address == f"http://127.0.0.1:{base + OFFSETS[PAGES]}"
        up.until(lambda: fetch(f"{address}/plan")[0] == 200, "a loop iteration ends")
        assert fetch(f"{address}/healthz")[1].rstrip().endswith("healthz check passed")
        assert "cluster_autoscaler_nodes_count" in fetch(f"{address}/metrics")[1]
        # The example that the first screen names gives no warnings.
        up.kubectl("apply", "-f", "examples/tidb/breathing.yaml")
        up.until(lambda: "tidb: breathing/breath" in up.errors.read_text(), "the autoscaler looks at the example")
        assert "warning" not in up.errors.read_text()
        busy = find_busy_ports(base)
        assert len(busy) == len(OFFSETS)
        other = tmp_path / "other"
        other.mkdir()
        (other / "port-base").write_text((data / "port-base").read_text())
        second = subprocess.run(command(other), capture_output=True, text=True, check=False, timeout=PATIENCE_S)
        assert second.returncode == 2
        for port, purpose in busy.items():
            assert f"{port} ({purpose})" in second.stderr


def fetch(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=PATIENCE_S) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def ended_by_itself(data: Path, port: int) -> subprocess.CompletedProcess[str]:
    options = ("--port-base", str(port))
    return subprocess.run(command(data, *options), capture_output=True, text=True, check=False, timeout=PATIENCE_S)


def test_a_busy_port_is_named_with_what_to_do(tmp_path: Path):
    port = lasting_port()
    with socket.create_server(("127.0.0.1", port)):
        ended = ended_by_itself(tmp_path / "data", port)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith(f"error: port {port} (the Kubernetes API) is in use")
    wanted = rf'make up UP="--data {re.escape(str(tmp_path / "data"))}( --only \w+)* --port-base \d+"'
    assert re.search(wanted, ended.stderr), ended.stderr
    assert not (tmp_path / "data").exists()


def test_two_do_not_share_a_directory(tmp_path: Path):
    with running(tmp_path / "data", "--nodes", "0"):
        second = ended_by_itself(tmp_path / "data", 0)
    assert second.returncode == 2
    assert "the data directory is in use by process" in second.stderr, second.stderr
