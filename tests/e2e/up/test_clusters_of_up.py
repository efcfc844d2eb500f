"""Clusters of the simulated OCM in `plimsoll up`: kubectl reaches each below the one address, over ends and kills."""

from __future__ import annotations

import json
import subprocess
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlencode

import pytest
import yaml

from plimsoll.local.ocm.documents import BASE
from tests.e2e.timeouts import PATIENCE_S
from tests.e2e.up.up_processes import UpProcess, needs_kubectl, running
from tests.local.ocm.ocm_world import build_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

needs_kubectl()
pytestmark = [pytest.mark.slow]
OPTIONS = ("--only", "fleet", "--nodes", "0")


class OcmUser:
    """A client of the simulated OCM, with an account."""

    def __init__(self, up: UpProcess) -> None:
        self._url = next(line for line in up.screen.splitlines() if "simulated OCM at" in line).split()[-1].rstrip(".")
        secret = (up.data / "admin.token").read_text().strip()
        account = {"grant_type": "client_credentials", "client_id": "plimsoll", "client_secret": secret}
        self._token = self._send("POST", "/auth/token", urlencode(account).encode(), {})["access_token"]

    def call(self, method: str, path: str, body: Any = None) -> Any:
        content = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        return self._send(method, f"{BASE}{path}", content, headers)

    def _send(self, method: str, path: str, content: bytes | None, headers: dict[str, str]) -> Any:
        request = urllib.request.Request(f"{self._url}{path}", data=content, headers=headers, method=method)
        with urllib.request.urlopen(request, timeout=30) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def get_state(self, cluster: str) -> str:
        try:
            return str(self.call("GET", f"/clusters/{cluster}")["state"])
        except urllib.error.HTTPError as error:
            if error.code != 404:
                raise
            return "gone"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data directory whose fleet manager makes no clusters of its own."""
    folder = tmp_path / "data"
    (folder / "fleet").mkdir(parents=True, mode=0o700)
    folder.chmod(0o700)
    regions = [{"name": "us-east-1", "default": True, "supported_instance_type": {"standard": {"limit": 0}}}]
    providers = {"supported_providers": [{"name": "aws", "default": True, "regions": regions}]}
    (folder / "fleet" / "provider-configuration.yaml").write_text(yaml.safe_dump(providers))
    return folder


@pytest.fixture
def up(data: Path) -> Iterator[UpProcess]:
    with running(data, *OPTIONS) as started:
        yield started


def find_running(up: UpProcess, cluster: str) -> dict[str, str]:
    """The uids of running pods by name."""
    pods = up.objects("--context", cluster, "pods")
    return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in pods if pod["status"].get("phase") == "Running"}


def find_ready_nodes(up: UpProcess, cluster: str) -> dict[str, str]:
    nodes = up.objects("--context", cluster, "nodes")
    return {
        node["metadata"]["name"]: node["metadata"]["uid"]
        for node in nodes
        if any(found["type"] == "Ready" and found["status"] == "True" for found in node["status"]["conditions"])
    }


class Contents(NamedTuple):
    """What runs in a cluster."""

    pods: dict[str, str]
    nodes: dict[str, str]

    @classmethod
    def read(cls, up: UpProcess, cluster: str) -> Contents:
        return cls(find_running(up, cluster), find_ready_nodes(up, cluster))


def wait_for_contents(up: UpProcess, cluster: str, *, pods: int, nodes: int) -> Contents:
    def are_there() -> bool:
        found = Contents.read(up, cluster)
        return (len(found.pods), len(found.nodes)) == (pods, nodes)

    up.until(are_there, f"{pods} pods and {nodes} nodes in {cluster}")
    return Contents.read(up, cluster)


def list_contexts(up: UpProcess) -> set[str]:
    return set(up.kubectl("config", "get-contexts", "-o", "name").split())


def delete_under_watch(up: UpProcess, ocm: OcmUser, cluster: str) -> str:
    """What `kubectl get pods --watch` printed until it ended by itself."""
    watch = ["kubectl", "--kubeconfig", str(up.data / "kubeconfig"), "--context", cluster, "get", "pods", "--watch"]
    with subprocess.Popen(watch, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as watching:
        assert watching.stdout is not None
        first = watching.stdout.readline()
        ocm.call("DELETE", f"/clusters/{cluster}")
        printed = first + watching.stdout.read()
        watching.wait(timeout=PATIENCE_S)
    return printed


def test_five_clusters_one_deleted_under_a_watch_and_the_others_survive_a_kill(up: UpProcess, data: Path):
    ocm = OcmUser(up)
    clusters = [str(ocm.call("POST", "/clusters", build_cluster(f"mk-{number}"))["id"]) for number in range(5)]
    with pytest.raises(urllib.error.HTTPError) as refused:
        ocm.call("POST", "/clusters", build_cluster("mk-6"))
    assert b"at most 5 clusters" in refused.value.read()
    up.until(lambda: all(ocm.get_state(cluster) == "ready" for cluster in clusters), "five clusters are ready")
    assert list_contexts(up) == {"plimsoll", *clusters}
    for number, cluster in enumerate(clusters):
        up.kubectl("--context", cluster, "create", "deployment", f"web-{number}", "--image=nginx", "--replicas=2")
    before = {cluster: wait_for_contents(up, cluster, pods=2, nodes=3) for cluster in clusters}
    for number, contents in enumerate(before.values()):
        assert all(name.startswith(f"web-{number}-") for name in contents.pods)

    gone, *others = clusters
    assert "web-0-" in delete_under_watch(up, ocm, gone)
    up.until(lambda: ocm.get_state(gone) == "gone", "the cluster is gone")
    assert not (data / "clusters" / gone).exists()
    assert list_contexts(up) == {"plimsoll", *others}
    assert {cluster: Contents.read(up, cluster) for cluster in others} == {id_: before[id_] for id_ in others}

    up.die()
    with running(data, *OPTIONS) as again:
        again.until(lambda: list_contexts(again) == {"plimsoll", *others}, "four clusters are back")
        after = {cluster: wait_for_contents(again, cluster, pods=2, nodes=3) for cluster in others}
        assert after == {cluster: before[cluster] for cluster in others}
        assert {OcmUser(again).get_state(cluster) for cluster in others} == {"ready"}
        again.kubectl("--context", others[0], "scale", "deployment/web-1", "--replicas=3")
        wait_for_contents(again, others[0], pods=3, nodes=3)
