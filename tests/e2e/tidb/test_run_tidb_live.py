"""`plimsoll run tidb` as processes against an API server: one leads and acts, the other takes over when it ends.

The API server is that of PLIMSOLL_E2E_KUBECONFIG, or one of our own. Tests do not ask which it is.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from plimsoll.objects.validation import list_shipped_definitions
from tests.e2e.kube.clusters import cluster_kubeconfig
from tests.e2e.kubeconfigs import ClusterAccess, read_access
from tests.e2e.ports import lasting_port
from tests.e2e.tidb.fake_servers import serving
from tests.e2e.timeouts import PATIENCE_S
from tests.tidb.autoscaled_clusters import SMALL, TIDB, group, homogeneous

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path


Json = dict[str, Any]

LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/plimsoll-tidb"


class AutoscalerProcess:
    """A process, and where it serves its pages."""

    def __init__(
        self,
        kubeconfig: Path,
        planner: str,
        pd: str,
        *,
        namespace: str,
        more: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """`planner` empty: it plans itself."""
        self.port = lasting_port()
        flags = (
            *more,
            *(("--planner", planner) if planner else ()),
            "--pd",
            pd,
            "--resync",
            "1",
            "--namespace",
            namespace,
            "--address",
            f"127.0.0.1:{self.port}",
        )
        self.process = subprocess.Popen(
            [sys.executable, "-m", "plimsoll", "run", "tidb", "--kubeconfig", str(kubeconfig), *flags],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **(environment or {})},
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


class TidbNamespace:
    """A namespace of the cluster with a TidbCluster and its autoscaler. Nothing of it is left at the end."""

    def __init__(self, server: ClusterAccess) -> None:
        self._server = server
        self.name = f"plimsoll-tidb-{secrets.token_hex(4)}"

    def __enter__(self) -> Self:
        for manifest in list_shipped_definitions():
            if manifest.ref.name.endswith("pingcap.com"):
                self._make("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", manifest.body)
        self._server.ask("DELETE", LEASE)
        self._make("/api/v1/namespaces", {"metadata": {"name": self.name}})
        requests = {"cpu": "4", "memory": "16Gi", "storage": "100Gi"}
        tikv = {"replicas": 3, "requests": requests}
        scaled = {"rules": {"cpu": {"max_threshold": 0.8}}, "resources": {"storage_small": SMALL}}
        made = {
            "tidbclusters": ("TidbCluster", "db", {"tikv": tikv, "tidb": {"replicas": 2}}),
            "tidbclusterautoscalers": ("TidbClusterAutoScaler", "as1", {"cluster": {"name": "db"}, "tikv": scaled}),
        }
        for plural, (kind, name, spec) in made.items():
            body = {"apiVersion": "pingcap.com/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}
            # A definition that was just made is served a moment later.
            until(partial(self._is_made, self.path(plural), body), f"{kind} {name}")
        return self

    def __exit__(self, *error: object) -> None:
        """The autoscaler's finalizer would keep it, and so the namespace: no autoscaler is left to drain its group."""
        patch = {"metadata": {"finalizers": None}}
        scaler = f"{self.path('tidbclusterautoscalers')}/as1"
        self._server.ask("PATCH", scaler, patch, content="application/merge-patch+json")
        for plural in ("tidbclusterautoscalers", "tidbclusters"):
            self._server.ask("DELETE", self.path(plural))
        self._server.ask("DELETE", f"/api/v1/namespaces/{self.name}")
        self._server.ask("DELETE", LEASE)

    def path(self, plural: str) -> str:
        return f"{TIDB}/namespaces/{self.name}/{plural}"

    def _is_made(self, path: str, body: Json) -> bool:
        return self._make(path, body) in {201, 409}

    def _make(self, path: str, body: Json) -> int:
        return self._server.ask("POST", path, body)[0]

    def cluster(self, name: str) -> Json:
        status, found = self._server.ask("GET", f"{self.path('tidbclusters')}/{name}")
        return found if status == 200 else {}

    def groups(self) -> list[str]:
        listed = self._server.ask("GET", self.path("tidbclusters"))[1].get("items", [])
        return [found["metadata"]["name"] for found in listed if found["metadata"]["name"].startswith("auto-")]

    def events(self) -> list[Json]:
        items: list[Json] = self._server.ask("GET", f"/api/v1/namespaces/{self.name}/events")[1]["items"]
        return items

    def holder(self) -> str:
        status, lease = self._server.ask("GET", LEASE)
        return (lease["spec"].get("holderIdentity") or "") if status == 200 else ""


def test_one_leads_and_another_takes_over(tmp_path: Path) -> None:
    plans: list[Json] = [group(1)]
    with ExitStack() as stack:
        kubeconfig = stack.enter_context(cluster_kubeconfig(tmp_path / "cluster"))
        namespace = stack.enter_context(TidbNamespace(read_access(kubeconfig)))
        planner = stack.enter_context(serving(lambda *_: (200, json.dumps(plans).encode())))
        pd = stack.enter_context(serving(lambda *_: (200, b'{"count":0,"stores":[]}')))
        first = stack.enter_context(AutoscalerProcess(kubeconfig, planner, pd, namespace=namespace.name))
        until(namespace.groups, "a group becomes a cluster")
        leading = until(namespace.holder, "somebody leads")
        until(lambda: 'plimsoll_tidb_acts_total{component="tikv"' in first.page("/metrics"), "it is counted")
        assert first.page("/healthz").startswith("ok\nleader\n")
        until(namespace.events, "it is told")

        second = stack.enter_context(AutoscalerProcess(kubeconfig, planner, pd, namespace=namespace.name))
        until(lambda: second.answers("/healthz") == f"ok\nstandby: {leading} leads\n", "who waits to lead is well")
        assert 'leader_election_master_status{name="plimsoll-tidb"} 0.0' in second.page("/metrics")
        assert "stopped" in first.stop()
        until(lambda: namespace.holder() not in {"", leading}, "the other one leads")
        plans[:] = [group(1), homogeneous(5)]
        until(lambda: namespace.cluster("db")["spec"]["tikv"]["replicas"] == 5, "it acts")
        assert "Traceback" not in second.stop()
