"""Over TLS, behind a proxy that lies: `plimsoll run tidb` removes no group and lowers no replicas.

A part of the grid of `tests/tidb/lying_world.py`, with the reads of one process: first of the API server, while answers
of PD and of the planner are true; then of PD and Prometheus, with the process's own planner, its clock and its lease.
"""

from __future__ import annotations

import json
import os
import random
import ssl
import time
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple, Self
from urllib.parse import parse_qs

import yaml

from tests.e2e.externalgrpc.authorities import CertificateAuthority
from tests.e2e.kube.clusters import cluster_kubeconfig
from tests.e2e.kubeconfigs import ClusterAccess, read_access
from tests.e2e.nodes.recording_proxies import ProxyRecording, recording, run_with_lie
from tests.e2e.nodes.test_false_clocks_and_leases import MOVED_CLOCK
from tests.e2e.tidb.fake_servers import serving
from tests.e2e.tidb.test_run_tidb_live import LEASE, AutoscalerProcess, TidbNamespace, until
from tests.effort import share_of
from tests.faults.faulty_transport import Read
from tests.faults.lies import METRICS_LIES, STATUS_CODES, Lie, change_document
from tests.tidb.autoscaled_clusters import LABELS, group
from tests.tidb.lying_world import KUBERNETES_READS, WATCHES
from tests.tidb.pd.fake_pd import FakePd

if TYPE_CHECKING:
    from pathlib import Path

OTHERS = METRICS_LIES | {Lie.CLOCK_AHEAD, Lie.CLOCK_BEHIND, Lie.LEASE_STOLEN}


def choose_cells(count: int) -> list[tuple[Read, Lie]]:
    reads = [Read(*read.split()) for read in (*KUBERNETES_READS, *WATCHES)]
    cells = [(read, lie) for read in reads for lie in Lie if lie not in OTHERS]
    return random.Random("over TLS").sample(cells, count)


def write_kubeconfig(folder: Path, access: ClusterAccess, proxy: ProxyRecording) -> Path:
    cluster = {"server": proxy.url, "certificate-authority": str(folder / "proxy-authority.crt")}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "it", "cluster": cluster}],
        "users": [{"name": "it", "user": {"token": access.token} if access.token else {}}],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        "current-context": "it",
    }
    file = folder / "proxied.kubeconfig"
    file.touch(mode=0o600)
    file.write_text(yaml.safe_dump(document))
    return file


def test_a_part_of_the_grid_removes_nothing(tmp_path: Path) -> None:
    plans: list[dict[str, Any]] = [group(1)]
    with ExitStack() as stack:
        kubeconfig = stack.enter_context(cluster_kubeconfig(tmp_path / "cluster"))
        access = read_access(kubeconfig)
        namespace = stack.enter_context(TidbNamespace(access))
        proxy = stack.enter_context(recording(kubeconfig, tmp_path, as_owner=not access.token))
        proxy.has_faults = True
        planner = stack.enter_context(serving(lambda *_: (200, json.dumps(plans).encode())))
        pd = stack.enter_context(serving(lambda *_: (200, b'{"count":0,"stores":[]}')))
        through = write_kubeconfig(tmp_path, access, proxy)
        autoscaler = stack.enter_context(AutoscalerProcess(through, planner, pd, namespace=namespace.name))
        (name,) = until(namespace.groups, "a group becomes a cluster")
        struck, cells = 0, choose_cells(share_of(60))
        for read, lie in cells:
            struck += run_with_lie(proxy, read, lie)
            replicas = {cluster: namespace.cluster(cluster)["spec"]["tikv"]["replicas"] for cluster in ("db", name)}
            assert replicas == {"db": 3, name: 1}, (read, lie)
        assert namespace.groups() == [name]
        assert "Traceback" not in autoscaler.stop()
    print(f"{len(cells)} cells over TLS, {struck} with falsified answers, 0 with wrongful removals")  # noqa: T201
    assert struck > len(cells) / 3


# ---- PD and Prometheus

DAY_S = 86_400
STORES, TOPOLOGY, METRICS = "pd stores", "pd topology", "prometheus"


class Cell(NamedTuple):
    """A read of PD or Prometheus, and what it says instead of the truth."""

    read: str
    lie: Lie


AN_IDLE_DAY = Cell(METRICS, Lie.STALE)
A_PARTIAL_RESPONSE = Cell(METRICS, Lie.WARNED)
UNWARNED = """\
from plimsoll.web import prometheus
read = prometheus._read
prometheus._read = lambda answer, query, **more: read(
    __import__("msgspec").structs.replace(answer, body=answer.body.replace(b'"warnings"', b'"infos"')), query, **more
)
"""


SLOW_RENEWALS = """\
from plimsoll.operator import process
settings = process.LeaseSettings
process.LeaseSettings = lambda **more: settings(retry_period_s=8.0, **more)
"""
"""For some passes the process does not notice a stolen lease by itself."""


class LyingServices:
    """PD and Prometheus of a cluster under steady load, three stores and one of a group. One read lies at a time."""

    def __init__(self, namespace: str, group_cluster: str) -> None:
        self._namespace = namespace
        self._pods = [*(f"db-tikv-{ordinal}" for ordinal in range(3)), f"{group_cluster}-tikv-0"]
        self._group_cluster = group_cluster
        self.usage = 0.5
        self.read, self.lie = "", Lie.EMPTY
        self.struck = self.asked = 0

    def start(self, cell: Cell) -> None:
        self.read, self.lie, self.struck = cell.read, cell.lie, 0

    def stop(self) -> None:
        self.read = ""

    def answer_pd(self, method: str, path: str, _body: bytes) -> tuple[int, bytes]:
        if path == "/v3/kv/range":
            return self._falsify(TOPOLOGY, b'{"header": {"revision": "7"}}', b'{"header": {"revision": "7"}}')
        if path != "/pd/api/v1/stores" or method != "GET":
            return 404, b"404 page not found\n"
        return self._falsify(STORES, self._build_stores(self._pods, 0), self._build_stores(self._pods[:3], DAY_S))

    def answer_prometheus(self, _method: str, _path: str, body: bytes) -> tuple[int, bytes]:
        fields = {name: values[0] for name, values in parse_qs(body.decode()).items()}
        query, at_s = fields["query"], float(fields["time"])
        self.asked += 1
        # A lie looks like an idle cluster: that is what would remove the group.
        idle = self._build_vector(query, at_s - DAY_S, usage=0.01)
        return self._falsify(METRICS, self._build_vector(query, at_s, usage=self.usage), idle, query=query)

    def _build_stores(self, pods: list[str], age_s: int) -> bytes:
        pd = FakePd()
        heard = {"last_heartbeat_ts": f"{datetime.now(UTC) - timedelta(seconds=age_s):%Y-%m-%dT%H:%M:%SZ}"}
        for pod in pods:
            cluster = pod.removesuffix(f"-tikv-{pod[-1]}")
            labels = LABELS if cluster == self._group_cluster else {}
            address = f"{pod}.{cluster}-tikv-peer.{self._namespace}.svc:20160"
            pd.add_store(address, labels=labels, start_ts="2025-05-01T00:00:00Z", **heard)
        return pd.answer("GET", "/pd/api/v1/stores", b"")[1]

    def _build_vector(self, query: str, at_s: float, *, usage: float) -> bytes:
        kind = "used" if "increase" in query else "measured" if "timestamp(" in query else "quota"
        value = {"used": usage * 4 * 60, "quota": 4.0, "measured": at_s}[kind]
        metrics = [{"instance": pod, "kubernetes_namespace": self._namespace} for pod in self._pods]
        result = [{"metric": metric, "value": [at_s, str(value)]} for metric in metrics]
        return json.dumps({"status": "success", "data": {"resultType": "vector", "result": result}}).encode()

    def _falsify(self, read: str, body: bytes, stale: bytes, *, query: str = "") -> tuple[int, bytes]:
        if read != self.read:
            return 200, body
        self.struck += 1
        match self.lie:
            case Lie.TOO_MANY_REQUESTS | Lie.SERVER_ERROR:
                return STATUS_CODES[self.lie], b'"busy"'
            case Lie.STALLED:
                time.sleep(2)
                return 504, b""
            case Lie.STALE:
                return 200, stale
            case Lie.WARNED | Lie.FUTURE:
                document = json.loads(stale)
                ahead_s = DAY_S * (2 if self.lie is Lie.FUTURE else 1)
                for sample in document["data"]["result"]:
                    sample["value"][0] += ahead_s
                    if "timestamp(" in query:
                        sample["value"][1] = str(float(sample["value"][1]) + ahead_s)
                if self.lie is Lie.WARNED:
                    document["warnings"] = ["partial response: a store did not answer"]
                return 200, json.dumps(document).encode()
        return 200, change_document(self.lie, body) or b""


def list_service_cells() -> list[Cell]:
    """The heaviest first: what looks like an idle cluster, and stores that are missing."""
    first = [AN_IDLE_DAY, A_PARTIAL_RESPONSE, Cell(METRICS, Lie.FUTURE)]
    first += [Cell(STORES, Lie.STALE), Cell(STORES, Lie.HALF)]
    cells = [Cell(read, lie) for read in (METRICS, STORES) for lie in Lie if lie not in OTHERS]
    return [*first, *(cell for cell in cells if cell not in first)]


class LyingServicesWorld(ExitStack):
    """A cluster with a group of one store, and a process that reads PD and Prometheus over TLS."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder
        self.moved_by = folder / "moved-by"
        self.moved_by.write_text("0")

    def __enter__(self) -> Self:
        super().__enter__()
        self.kubeconfig = self.enter_context(cluster_kubeconfig(self.folder / "cluster"))
        self.access = read_access(self.kubeconfig)
        self.namespace = self.enter_context(TidbNamespace(self.access))
        plans = json.dumps([group(1)]).encode()
        planner = self.enter_context(serving(lambda *_: (200, plans)))
        pd = self.enter_context(serving(lambda *_: (200, b'{"count":0,"stores":[]}')))
        with AutoscalerProcess(self.kubeconfig, planner, pd, namespace=self.namespace.name) as first:
            (self.group,) = until(self.namespace.groups, "a group becomes a cluster")
            first.stop()
        rules = {"cpu": {"max_threshold": 0.8, "min_threshold": 0.2}}
        spec = {"tikv": {"rules": rules, "scaleInIntervalSeconds": 1, "scaleOutIntervalSeconds": 1}}
        path = f"{self.namespace.path('tidbclusterautoscalers')}/as1"
        self.access.ask("PATCH", path, {"spec": spec}, content="application/merge-patch+json")
        self.services = LyingServices(self.namespace.name, self.group)
        files = CertificateAuthority(self.folder, "services-authority").files("services")
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(files["cert"], files["key"])
        self.pd = self.enter_context(serving(self.services.answer_pd, tls=tls))
        self.prometheus = self.enter_context(serving(self.services.answer_prometheus, tls=tls))
        self.environment = {"SSL_CERT_FILE": files["cacert"], "MOVED_BY_S": str(self.moved_by)}
        return self

    def start(self, customized: str) -> AutoscalerProcess:
        """A process that runs this before anything else."""
        folder = self.folder / f"customized-{len(customized)}"
        folder.mkdir()
        (folder / "sitecustomize.py").write_text(customized)
        path = f"{folder}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
        process = self.enter_context(
            AutoscalerProcess(
                self.kubeconfig,
                "",
                self.pd,
                namespace=self.namespace.name,
                more=("--prometheus", self.prometheus, "--registration-grace", "0"),
                environment={**self.environment, "PYTHONPATH": path},
            )
        )
        self.wait_for_passes()
        return process

    def wait_for_passes(self) -> None:
        before = self.services.asked
        until(lambda: self.services.asked >= before + 6, "the process asks Prometheus")

    def sizes(self) -> dict[str, int | None]:
        found = {name: self.namespace.cluster(name) for name in ("db", self.group)}
        return {name: cluster["spec"]["tikv"]["replicas"] if cluster else None for name, cluster in found.items()}

    def is_removal_wanted(self) -> bool:
        """Whether the process decided to shrink the group; the drain of its store comes after that."""
        found = self.access.ask("GET", f"{self.namespace.path('tidbclusterautoscalers')}/as1")[1]
        groups = found.get("status", {}).get("tikv", {}).values()
        return any(group_status.get("desiredReplicas") == 0 for group_status in groups)

    def check(self, what: object) -> None:
        assert self.sizes() == {"db": 3, self.group: 1}, what
        assert not self.is_removal_wanted(), what

    def run_cell(self, cell: Cell) -> bool:
        """Whether any answer was false."""
        self.services.start(cell)
        deadline = time.monotonic() + 8
        while self.services.struck < 6 and time.monotonic() < deadline:
            time.sleep(0.1)
        time.sleep(1)
        self.services.stop()
        return self.services.struck > 0


def test_false_answers_of_pd_and_prometheus_a_clock_and_a_stolen_lease_remove_nothing(tmp_path: Path) -> None:
    with LyingServicesWorld(tmp_path) as world:
        process = world.start(MOVED_CLOCK + SLOW_RENEWALS)
        world.check("before the first lie")
        cells = list_service_cells()[: share_of(60)]
        struck = 0
        for cell in cells:
            struck += world.run_cell(cell)
            world.check(cell)
        for jump_s in (DAY_S, -DAY_S, 0):
            world.services.start(Cell(STORES, Lie.HALF))
            world.moved_by.write_text(str(jump_s))
            time.sleep(3)
            world.services.stop()
            world.check(jump_s)
        now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%f}Z"
        lease = {"holderIdentity": "thief", "leaseDurationSeconds": 3600, "renewTime": now, "acquireTime": now}
        world.access.ask("PATCH", LEASE, {"spec": lease}, content="application/merge-patch+json")
        world.services.usage = 0.01
        until(lambda: process.process.poll() is not None, "it gives up")
        world.check("after the lease was stolen")
        assert "Traceback" not in process.process.communicate()[1]
    print(f"{len(cells) + 3} cells over TLS, {struck} with falsified answers, 0 with wrongful removals")  # noqa: T201
    assert struck > len(cells) / 2


def test_without_a_guard_a_cell_over_tls_fails(tmp_path: Path) -> None:
    """The world is able to fail: a process that ignores warnings of Prometheus wants to remove the group."""
    with LyingServicesWorld(tmp_path) as world:
        world.start(UNWARNED)
        world.services.start(A_PARTIAL_RESPONSE)
        until(world.is_removal_wanted, "the removal of the group is decided")
