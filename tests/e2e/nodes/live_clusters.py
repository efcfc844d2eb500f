"""A cluster without nodes for the node autoscaler to act on, and the processes that act: all as people run them.

Of PLIMSOLL_E2E_KUBECONFIG, a control plane with kube-scheduler and kube-controller-manager but without nodes; there
`plimsoll run cloud` and `plimsoll run kubelet` play the machines. Else a `plimsoll up --no-autoscaler --nodes 0`, which
plays them itself. Tests do not ask which it is.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import yaml

from tests.e2e.kube.clusters import KUBECONFIG_VARIABLE
from tests.e2e.kubeconfigs import read_access
from tests.e2e.ports import lasting_port
from tests.e2e.timeouts import PATIENCE_S, speaking_in_time
from tests.e2e.up import up_processes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.e2e.nodes.recording_proxies import ProxyRecording

REPOSITORY: Final = Path(__file__).parents[3]
NAMESPACE: Final = "kube-system"
ACCOUNT: Final = "plimsoll-nodes"
STATUS: Final = "cluster-autoscaler-status"
LEASE: Final = "cluster-autoscaler"
QUICK: Final = (
    "--node-autoprovisioning",
    "--max-cpu=400",
    "--max-memory=1600",
    "--scan-interval=500ms",
    "--scale-down-unneeded-time=2s",
    "--scale-down-delay-after-add=2s",
    "--scale-down-delay-after-failure=2s",
    "--unremovable-node-recheck-timeout=1s",
    "--node-delete-delay-after-taint=100ms",
    "--kube-client-qps=50",
    "--kube-client-burst=100",
)
"""Minutes made seconds; what it does is the same."""
MARKS: Final = ("ToBeDeletedByClusterAutoscaler", "DeletionCandidateOfClusterAutoscaler")


class Cluster:
    """kubectl as an administrator, and what tests ask again and again."""

    def __init__(self, kubeconfig: Path, folder: Path) -> None:
        self.kubeconfig = kubeconfig
        self.folder = folder

    def kubectl(self, *arguments: str, stdin: str = "") -> str:
        ended = subprocess.run(
            ["kubectl", *arguments],
            env={**os.environ, "KUBECONFIG": str(self.kubeconfig), "HOME": str(self.folder)},
            cwd=REPOSITORY,
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )
        assert ended.returncode == 0, (arguments, ended.stdout, ended.stderr)
        return ended.stdout

    def apply(self, *objects: dict[str, Any]) -> None:
        self.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(objects))

    def items(self, *arguments: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.kubectl("get", *arguments, "-o", "json"))["items"]
        return found

    def names(self, kind: str) -> set[str]:
        return set(self.kubectl("get", kind, "-o", "name").split())

    def running(self, app: str) -> int:
        return sum(pod["status"].get("phase") == "Running" for pod in self.items("pods", "-l", f"app={app}"))

    def holder(self) -> str:
        held = self.kubectl("get", "lease", LEASE, "-n", NAMESPACE, "--ignore-not-found", "-o", "json")
        return (json.loads(held)["spec"].get("holderIdentity") or "") if held else ""

    def has_map(self, name: str) -> bool:
        return bool(self.kubectl("get", "configmap", name, "-n", NAMESPACE, "--ignore-not-found"))

    def marked(self) -> list[str]:
        """Nodes that carry a mark of the autoscaler, or its cordon."""
        return [
            node["metadata"]["name"]
            for node in self.items("nodes")
            if node["spec"].get("unschedulable")
            or any(taint["key"] in MARKS for taint in node["spec"].get("taints", ()))
        ]

    def until(self, is_so: Callable[[], Any], what: str) -> None:
        until_s = time.monotonic() + PATIENCE_S
        while not is_so():
            assert time.monotonic() < until_s, f"not within {PATIENCE_S} s: {what}"
            time.sleep(0.3)

    def deploy(self, app: str, replicas: int, *, cpu: str = "1", memory: str = "512Mi", **spec: Any) -> None:
        container = {"name": "c", "image": "nginx", "resources": {"requests": {"cpu": cpu, "memory": memory}}}
        whole = {"containers": [container], "terminationGracePeriodSeconds": 1, **spec}
        template = {"metadata": {"labels": {"app": app}}, "spec": whole}
        self.apply(
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": app, "namespace": "default"},
                "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": app}}, "template": template},
            }
        )

    def scale(self, app: str, replicas: int) -> None:
        self.kubectl("scale", "deployment", app, f"--replicas={replicas}")

    def install(self) -> None:
        """Who the autoscaler is and what it may, from deploy/; its pods would need an image and machines."""
        documents = [
            manifest
            for manifest in yaml.safe_load_all(self.kubectl("kustomize", "deploy/nodes-simulated"))
            if manifest["kind"] not in {"Deployment", "Service"}
        ]
        self.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=yaml.safe_dump_all(documents))

    def as_account(self, name: str, *, through: ProxyRecording | None = None) -> Path:
        """A kubeconfig of the ServiceAccount, as a pod would have it."""
        token = self.kubectl("create", "token", ACCOUNT, "-n", NAMESPACE, "--duration=1h").strip()
        cluster = read_access(self.kubeconfig).cluster
        if through is not None:
            authority = self.folder / "proxy-authority.crt"
            cluster = {"server": through.url, "certificate-authority": str(authority)}
        file = self.folder / f"{name}.kubeconfig"
        context = {"name": "it", "context": {"cluster": "it", "user": "it"}}
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "it", "cluster": cluster}],
            "users": [{"name": "it", "user": {"token": token}}],
            "contexts": [context],
            "current-context": "it",
        }
        file.write_text(yaml.safe_dump(document))
        file.chmod(0o600)
        return file


class AutoscalerProcess(NamedTuple):
    process: subprocess.Popen[str]
    errors: Path
    port: int

    @property
    def stated(self) -> str:
        return self.errors.read_text()

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=PATIENCE_S)

    def die(self) -> None:
        self.process.kill()
        self.process.wait(timeout=PATIENCE_S)


def plimsoll(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "plimsoll", *arguments]


@contextmanager
def autoscaling(cluster: Cluster, kubeconfig: Path, *flags: str, name: str = "nodes") -> Iterator[AutoscalerProcess]:
    """`plimsoll run nodes`, killed at the end if it still runs; none of its words may be a traceback."""
    port = lasting_port()
    errors = cluster.folder / f"{name}.stderr"
    words = ("--kubeconfig", str(kubeconfig), f"--address=127.0.0.1:{port}", *QUICK, *flags)
    with errors.open("w") as sink:
        process = subprocess.Popen(plimsoll("run", "nodes", *words), stdout=sink, stderr=sink, text=True)
    try:
        yield AutoscalerProcess(process, errors, port)
    except BaseException:
        sys.stdout.write(errors.read_text()[-10_000:])
        raise
    finally:
        process.kill()
        process.wait(timeout=PATIENCE_S)
    assert "Traceback" not in errors.read_text(), errors.read_text()[-5000:]


@contextmanager
def bare_cluster(folder: Path) -> Iterator[Cluster]:
    with ExitStack() as stack:
        given = os.environ.get(KUBECONFIG_VARIABLE)
        if given:
            cluster = Cluster(Path(given), folder)
            stack.enter_context(playing(cluster, "cloud", "--boot-seconds", "1"))
            stack.enter_context(playing(cluster, "kubelet", "--start-seconds", "0"))
        else:
            up = stack.enter_context(up_processes.running(folder / "data", "--no-autoscaler", "--nodes", "0"))
            cluster = Cluster(up.data / "kubeconfig", folder)
        cluster.install()
        cluster.kubectl("patch", "cloud", "cloud", "--type=merge", "-p", '{"spec": {"bootSeconds": 1}}')
        cleared(cluster)
        yield cluster


@contextmanager
def playing(cluster: Cluster, part: str, *options: str) -> Iterator[None]:
    """`plimsoll run cloud` or `plimsoll run kubelet`, once it has reported that it runs."""
    errors = cluster.folder / f"{part}.stderr"
    words = ("run", part, "--kubeconfig", str(cluster.kubeconfig), *options)
    with errors.open("w") as sink:
        process = subprocess.Popen(plimsoll(*words), stdout=subprocess.PIPE, stderr=sink, text=True)
    try:
        assert process.stdout is not None
        with speaking_in_time(process):
            stated = process.stdout.readline()
        assert stated.startswith("simulating "), (stated, errors.read_text()[-2000:])
        yield
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE_S)
    assert "Traceback" not in errors.read_text(), errors.read_text()[-5000:]


def cleared(cluster: Cluster) -> None:
    """As a test finds it: nothing to run, no group, no node, no status, no leader."""
    cluster.kubectl("delete", "deployment,pdb,pod", "--all", "--wait=false")
    cluster.kubectl("delete", "nodegroup", "--all", "--wait=false")
    for name in ("plimsoll", STATUS, "cluster-autoscaler-removals", "plimsoll-nodes-last-plans"):
        cluster.kubectl("delete", "configmap", name, "-n", NAMESPACE, "--ignore-not-found")
    cluster.kubectl("delete", "lease", LEASE, "-n", NAMESPACE, "--ignore-not-found")
    cluster.until(lambda: not cluster.names("nodes") and not cluster.names("pods"), "an empty cluster")
