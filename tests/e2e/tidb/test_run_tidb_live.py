"""`plimsoll run tidb` as processes against an API server: one leads and acts, the other takes over when it ends."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Self

from plimsoll.objects.validation import shipped_definitions
from tests.e2e.apiserver import processes as apiservers
from tests.e2e.ports import lasting_port
from tests.e2e.tidb.fake_servers import serving
from tests.e2e.timeouts import PATIENCE_S
from tests.tidb.autoscaled_clusters import AUTO, SMALL, TIDB, group, homogeneous

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.e2e.apiserver.processes import ApiServer

Json = dict[str, Any]

LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/plimsoll-tidb"


class AutoscalerProcess:
    """A process, and where it serves its pages."""

    def __init__(self, kubeconfig: Path, planner: str, pd: str) -> None:
        self.port = lasting_port()
        flags = ("--planner", planner, "--pd", pd, "--resync", "1", "--address", f"127.0.0.1:{self.port}")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "plimsoll", "run", "tidb", "--kubeconfig", str(kubeconfig), *flags],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def page(self, path: str) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=PATIENCE_S) as answer:
            text: str = answer.read().decode()
        return text

    def answers(self, path: str) -> str:
        """Nothing, before it listens."""
        try:
            return self.page(path)
        except urllib.error.URLError:
            return ""

    def stop(self) -> str:
        self.process.send_signal(signal.SIGTERM)
        return self.process.communicate(timeout=PATIENCE_S)[1]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.process.kill()
        self.process.communicate()


def until(holds: Callable[[], Any], what: str) -> Any:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if found := holds():
            return found
        time.sleep(0.1)
    raise AssertionError(f"in vain: {what}")


def prepared(server: ApiServer) -> None:
    for manifest in shipped_definitions():
        if manifest.ref.name.endswith("pingcap.com"):
            server.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", manifest.body)
    server.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "prod"}})
    requests = {"cpu": "4", "memory": "16Gi", "storage": "100Gi"}
    tikv = {"replicas": 3, "requests": requests}
    made = {
        "tidbclusters": ("TidbCluster", "db", {"tikv": tikv, "tidb": {"replicas": 2}}),
        "tidbclusterautoscalers": (
            "TidbClusterAutoScaler",
            "as1",
            {
                "cluster": {"name": "db"},
                "tikv": {"rules": {"cpu": {"max_threshold": 0.8}}, "resources": {"storage_small": SMALL}},
            },
        ),
    }
    for plural, (kind, name, spec) in made.items():
        body = {"apiVersion": "pingcap.com/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}
        status, told = server.ask("POST", f"{TIDB}/namespaces/prod/{plural}", body)
        assert status == 201, told


def cluster(server: ApiServer, name: str) -> Json | None:
    status, found = server.ask("GET", f"{TIDB}/namespaces/prod/tidbclusters/{name}")
    return found if status == 200 else None


def holder(server: ApiServer) -> str:
    status, lease = server.ask("GET", LEASE)
    return (lease["spec"].get("holderIdentity") or "") if status == 200 else ""


def test_one_leads_and_another_takes_over(tmp_path: Path) -> None:
    plans: list[Json] = [group(1)]
    with ExitStack() as stack:
        server = stack.enter_context(apiservers.running(tmp_path / "cluster"))
        prepared(server)
        planner = stack.enter_context(serving(lambda *_: (200, json.dumps(plans).encode())))
        pd = stack.enter_context(serving(lambda *_: (200, b'{"count":0,"stores":[]}')))
        first = stack.enter_context(AutoscalerProcess(server.kubeconfig, planner, pd))
        until(lambda: cluster(server, AUTO), "a group becomes a cluster")
        leading = until(lambda: holder(server), "somebody leads")
        until(lambda: 'plimsoll_tidb_acts_total{component="tikv"' in first.page("/metrics"), "it is counted")
        assert first.page("/healthz") == "ok\n"
        until(lambda: server.ask("GET", "/api/v1/namespaces/prod/events")[1]["items"], "it is told")

        second = stack.enter_context(AutoscalerProcess(server.kubeconfig, planner, pd))
        assert until(lambda: second.answers("/healthz"), "who waits to lead is well") == "ok\n"
        assert "stopped" in first.stop()
        until(lambda: holder(server) not in {"", leading}, "the other one leads")
        plans[:] = [group(1), homogeneous(5)]
        until(lambda: (cluster(server, "db") or {})["spec"]["tikv"]["replicas"] == 5, "it acts")
        assert "Traceback" not in second.stop()
