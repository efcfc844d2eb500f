"""`plimsoll run kubelet` as a process, against the cluster of PLIMSOLL_E2E_KUBECONFIG or an API server of its own.

Nodes are watched until their leases were renewed; against a given cluster and with PLIMSOLL_E2E_LONG=1 for minutes past
the time after which a node that says nothing is given up.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import pytest
import pytest_asyncio

from plimsoll.kube.errors import NotFound
from plimsoll.kube.requests.options import DeleteOptions
from plimsoll.objects.api.coordination import Lease
from plimsoll.objects.api.nodes import Node
from plimsoll.objects.api.pods import Pod
from tests.e2e.apiserver.processes import running
from tests.e2e.kube.clusters import (
    ENTROPY,
    KUBECONFIG_VARIABLE,
    access_of,
    connected,
    delete_namespace,
    empty_namespace,
    exists,
    make_namespace,
    until,
)
from tests.e2e.timeouts import PATIENCE_S, speaking_in_time

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from plimsoll.kube.client import Client

# A node is given up 50 s after its last sign of life; 40 s before Kubernetes 1.32.
GRACE_S = 50.0
WATCHED_S = GRACE_S + 190.0 if os.environ.get(KUBECONFIG_VARIABLE) or os.environ.get("PLIMSOLL_E2E_LONG") else 0.0


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    if given := os.environ.get(KUBECONFIG_VARIABLE):
        yield Path(given)
        return
    with running(tmp_path_factory.mktemp("cluster") / "data") as server:
        yield server.kubeconfig


@contextmanager
def kubelet(kubeconfig: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A kubelet that has reported what it simulates; killed at the end if it still runs."""
    command = [sys.executable, "-m", "plimsoll", "run", "kubelet", "--kubeconfig", str(kubeconfig), *arguments]
    # A file, not a pipe: no reader follows, and its output of minutes may be more than a pipe takes.
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as process,
    ):
        assert process.stdout is not None
        try:
            with speaking_in_time(process):
                stated = process.stdout.readline()
            assert stated.startswith("simulating nodes with "), (stated, written(errors))
            yield process
        finally:
            process.kill()
            process.communicate()
        assert "Traceback" not in written(errors), written(errors)


def written(errors: IO[str]) -> str:
    errors.seek(0)
    return errors.read()[-5000:]


class Cluster:
    """A client, a namespace, and a pool of nodes that no other test plays."""

    def __init__(self, client: Client, namespace: str) -> None:
        self.client = client
        self.namespace = namespace
        self.pool = f"e2e-{ENTROPY.generate_suffix()}"

    @property
    def selector(self) -> str:
        return f"plimsoll.io/e2e-pool={self.pool}"

    async def add_node(self, name: str) -> str:
        # No other pods come to a node that takes none but those bound to it.
        taint = {"key": "plimsoll.io/e2e", "value": self.pool, "effect": "NoSchedule"}
        size = {"cpu": "4", "memory": "8Gi", "pods": "110"}
        node = {
            "metadata": {"name": f"{self.pool}-{name}", "labels": {"plimsoll.io/e2e-pool": self.pool}},
            "spec": {"taints": [taint]},
            "status": {"capacity": size, "allocatable": size},
        }
        return (await self.client.create(Node, node)).metadata.name

    async def add_pod(self, name: str, node: str, **spec: Any) -> None:
        annotations = spec.pop("annotations", {})
        whole = {"nodeName": node, "containers": [{"name": "c", "image": "nginx:1.27"}], **spec}
        whole["tolerations"] = [{"operator": "Exists"}]
        metadata = {"name": name, "annotations": annotations}
        await self.client.create(Pod, {"metadata": metadata, "spec": whole}, namespace=self.namespace)

    async def ready(self, name: str) -> str:
        node = await self.client.get(Node, name)
        return next((condition.status for condition in node.status.conditions if condition.type == "Ready"), "")

    async def phase(self, name: str) -> str:
        return (await self.client.get(Pod, name, namespace=self.namespace)).status.phase

    async def renewed(self, name: str) -> Any:
        lease = await self.client.get(Lease, name, namespace="kube-node-lease")
        return lease.spec.renew_time

    async def until_ready(self, name: str) -> None:
        async def is_ready() -> bool:
            return await self.ready(name) == "True"

        await until(is_ready)

    async def until_leased(self, name: str) -> Any:
        """When it was renewed first: a node's status and its lease are written side by side."""

        async def is_leased() -> bool:
            return await exists(self.client, Lease, name, namespace="kube-node-lease")

        await until(is_leased)
        return await self.renewed(name)

    async def until_renewed(self, name: str, *, after: Any) -> None:
        async def is_renewed() -> bool:
            return bool(await self.renewed(name) > after)

        await until(is_renewed)

    async def until_phase(self, name: str, phase: str) -> None:
        async def is_so() -> bool:
            return await self.phase(name) == phase

        await until(is_so)


@pytest_asyncio.fixture
async def cluster(kubeconfig: Path) -> AsyncIterator[Cluster]:
    access = access_of(kubeconfig)
    namespace = await make_namespace(access)
    async with connected(access) as client:
        made = Cluster(client, namespace)
        try:
            yield made
        finally:
            await empty_namespace(client, namespace)
            for node in (await client.list(Node)).items:
                if node.metadata.labels.get("plimsoll.io/e2e-pool") == made.pool:
                    for kind, where in ((Node, ""), (Lease, "kube-node-lease")):
                        with suppress(NotFound):
                            await client.delete(kind, node.metadata.name, namespace=where, options=DeleteOptions())
    await delete_namespace(access, namespace)


@pytest.mark.asyncio
async def test_pods_start_complete_and_go(kubeconfig: Path, cluster: Cluster):
    with kubelet(kubeconfig, "--selector", cluster.selector, "--start-seconds", "0"):
        node = await cluster.add_node("a")
        await cluster.until_ready(node)
        await cluster.add_pod("serves", node)
        await cluster.add_pod("works", node, restartPolicy="Never", annotations={"plimsoll.io/run-seconds": "1"})
        await cluster.until_phase("serves", "Running")
        await cluster.until_phase("works", "Succeeded")
        pod = await cluster.client.get(Pod, "serves", namespace=cluster.namespace)
        assert pod.status.pod_ip
        assert [container_status.ready for container_status in pod.status.container_statuses] == [True]
        await cluster.client.delete(Pod, "serves", namespace=cluster.namespace)

        async def is_gone() -> bool:
            return not await exists(cluster.client, Pod, "serves", namespace=cluster.namespace)

        await until(is_gone)


@pytest.mark.asyncio
async def test_nodes_stay_ready_for_good(kubeconfig: Path, cluster: Cluster):
    with kubelet(kubeconfig, "--selector", cluster.selector):
        names = [await cluster.add_node(f"n{number}") for number in range(3)]
        for name in names:
            await cluster.until_ready(name)
        first = [await cluster.until_leased(name) for name in names]
        clock = asyncio.get_running_loop()
        watched_until_s = clock.time() + WATCHED_S
        while clock.time() < watched_until_s:
            await asyncio.sleep(5.0)
            assert [await cluster.ready(name) for name in names] == ["True"] * 3
        for name, renewed in zip(names, first, strict=True):
            await cluster.until_renewed(name, after=renewed)
        assert [await cluster.ready(name) for name in names] == ["True"] * 3


@pytest.mark.asyncio
async def test_a_killed_kubelet_is_followed_by_another(kubeconfig: Path, cluster: Cluster):
    with kubelet(kubeconfig, "--selector", cluster.selector, "--start-seconds", "0") as process:
        node = await cluster.add_node("a")
        await cluster.until_ready(node)
        await cluster.add_pod("before", node)
        await cluster.until_phase("before", "Running")
        process.kill()
        process.wait(timeout=PATIENCE_S)
    started = (await cluster.client.get(Pod, "before", namespace=cluster.namespace)).status.start_time
    with kubelet(kubeconfig, "--selector", cluster.selector, "--start-seconds", "0"):
        await cluster.add_pod("after", node)
        await cluster.until_phase("after", "Running")
        before = await cluster.client.get(Pod, "before", namespace=cluster.namespace)
        assert before.status.start_time == started


@pytest.mark.asyncio
async def test_it_stops_when_asked(kubeconfig: Path, cluster: Cluster):
    with kubelet(kubeconfig, "--selector", cluster.selector) as process:
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=PATIENCE_S) == 0
