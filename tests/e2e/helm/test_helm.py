"""The chart with real helm on a running `plimsoll up`: lint, install, upgrade, rollback, uninstall.

`make test-helm` runs it. The pods of the cluster are simulated; what the hook runs is run here as its ServiceAccount.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.deploy.chart.rendered_manifests import CHART, find_helm, render_chart
from tests.e2e.timeouts import PATIENCE_S
from tests.e2e.up.up_processes import UpProcess, needs_kubectl, running

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

RELEASE, NAMESPACE = "plimsoll", "kube-system"
COMPONENTS = ("nodes", "tidb", "kafka", "agent", "fleet", "console")
ALL = tuple(f"{name}.enabled=true" for name in (*COMPONENTS, "requests"))
# The kubelet ends the pod of the hook, as a container that is done would.
ENDING = "definitions.podAnnotations.plimsoll\\.io/run-seconds"
KINDS = (
    *(
        "deployments",
        "services",
        "serviceaccounts",
        "configmaps",
        "jobs",
        "persistentvolumeclaims",
        "poddisruptionbudgets",
        "networkpolicies",
    ),
    *("roles", "rolebindings", "clusterroles", "clusterrolebindings", "secrets"),
)
MONITORING = {"ServiceMonitor": "servicemonitors", "PrometheusRule": "prometheusrules"}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UpProcess]:
    needs_kubectl()
    if find_helm() is None:
        pytest.skip("NOT TESTED: helm is not installed: go install helm.sh/helm/v3/cmd/helm@v3.19.2")
    with running(tmp_path_factory.mktemp("helm") / "cluster") as up:
        yield up


def helm(cluster: UpProcess, *words: str) -> str:
    environment = {**os.environ, "KUBECONFIG": str(cluster.data / "kubeconfig"), "HOME": str(cluster.data)}
    command = [str(find_helm()), *words]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert ended.returncode == 0, f"helm {' '.join(words)}: {ended.stdout}{ended.stderr}"
    return ended.stdout


def change(cluster: UpProcess, verb: str, *values: str) -> str:
    """Install or upgrade, until every pod is ready."""
    words = [word for value in values for word in ("--set", value)]
    ending = ("--set-string", f"{ENDING}=1")
    return helm(cluster, verb, RELEASE, str(CHART), "-n", NAMESPACE, "--wait", "--timeout", "5m", *words, *ending)


def list_objects(cluster: UpProcess) -> set[str]:
    """All objects that may come from the chart."""
    names = cluster.kubectl("get", ",".join(KINDS), "-n", NAMESPACE, "-o", "name").split()
    return {name for name in names if "plimsoll" in name}


def count_replicas(cluster: UpProcess) -> dict[str, int]:
    deployments = cluster.objects("deployments", "-n", NAMESPACE, "-l", "app.kubernetes.io/part-of=plimsoll")
    return {found["metadata"]["name"]: found["status"].get("readyReplicas", 0) for found in deployments}


def test_the_chart_has_no_lint(cluster: UpProcess):
    for values in ((), ALL):
        words = [word for value in values for word in ("--set", value)]
        assert "0 chart(s) failed" in helm(cluster, "lint", "--strict", str(CHART), *words)


def test_a_release_is_installed_upgraded_rolled_back_and_leaves_nothing(cluster: UpProcess):
    before = list_objects(cluster)
    notes = change(cluster, "install", *ALL)
    for named in ("nodes, tidb, kafka, agent, fleet, console", "plimsoll doctor", "port-forward"):
        assert named in notes
    ready = count_replicas(cluster)
    assert ready == {f"plimsoll-{name}": 1 if name in {"console", "fleet"} else 2 for name in COMPONENTS}
    definitions = cluster.kubectl("get", "customresourcedefinitions", "-o", "name").split()

    change(cluster, "upgrade", *ALL, "replicas=3", "clusterSize=upTo5000Nodes")
    assert count_replicas(cluster)["plimsoll-nodes"] == 3
    helm(cluster, "rollback", RELEASE, "1", "-n", NAMESPACE, "--wait", "--timeout", "5m")
    assert count_replicas(cluster) == ready
    change(cluster, "upgrade", "nodes.enabled=true")
    assert set(count_replicas(cluster)) == {"plimsoll-nodes"}

    helm(cluster, "uninstall", RELEASE, "-n", NAMESPACE, "--wait", "--timeout", "5m")
    left = list_objects(cluster) - before
    # Hooks are no part of a release: the account of the next upgrade's hook stays if its Job failed, never otherwise.
    assert left == {"persistentvolumeclaim/plimsoll-fleet-data"}
    assert cluster.kubectl("get", "customresourcedefinitions", "-o", "name").split() == definitions


def test_the_server_accepts_every_object_of_every_kind(cluster: UpProcess):
    for kind, plural in MONITORING.items():
        cluster.kubectl("apply", "-f", "-", stdin=json.dumps(define_monitoring(kind, plural)))
    cluster.kubectl("wait", "--for=condition=Established", "crd/prometheusrules.monitoring.coreos.com")
    cluster.kubectl("wait", "--for=condition=Established", "crd/servicemonitors.monitoring.coreos.com")
    watching = ("watching.rules=true", "watching.serviceMonitors=true", "watching.dashboards=true")
    rendered = render_chart(*ALL, *watching, "definitions.withoutStrimzi=true")
    bodies = [body for text in rendered.values() for body in yaml.safe_load_all(text) if body]
    assert len([body for body in bodies if body["kind"] == "ConfigMap"]) == 6
    assert len([body for body in bodies if body["kind"] == "ServiceMonitor"]) == 5
    (rule,) = [body for body in bodies if body["kind"] == "PrometheusRule"]
    assert len(rule["spec"]["groups"][0]["rules"]) >= 14
    sent = yaml.safe_dump_all(bodies)
    answered = cluster.kubectl("apply", "--dry-run=server", "--validate=strict", "-n", NAMESPACE, "-f", "-", stdin=sent)
    assert len(answered.splitlines()) == len(bodies)


def define_monitoring(kind: str, plural: str) -> dict[str, Any]:
    """As far as Prometheus Operator's own definitions matter here."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": kind, "plural": plural, "singular": plural[:-1], "listKind": f"{kind}List"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.monitoring.coreos.com"},
        "spec": {"group": "monitoring.coreos.com", "scope": "Namespaced", "names": names, "versions": [version]},
    }


def test_what_the_hook_runs_needs_no_more_than_its_own_rights(cluster: UpProcess, tmp_path: Path):
    bodies = list(yaml.safe_load_all(render_chart()["definitions/hook.yaml"]))
    (job,) = [body for body in bodies if body["kind"] == "Job"]
    account = yaml.safe_dump_all(body for body in bodies if body["kind"] != "Job")
    cluster.kubectl("apply", "-n", NAMESPACE, "-f", "-", stdin=account)
    token = cluster.kubectl("create", "token", "plimsoll-definitions", "-n", NAMESPACE).strip()
    kubeconfig = yaml.safe_load((cluster.data / "kubeconfig").read_text())
    for user in kubeconfig["users"]:
        user["user"] = {"token": token}
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(kubeconfig))
    arguments = job["spec"]["template"]["spec"]["containers"][0]["args"]
    command = [sys.executable, "-m", "plimsoll", *arguments, "--kubeconfig", str(tmp_path / "kubeconfig")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    states = {line.partition(": ")[2].partition(" (")[0] for line in ended.stdout.splitlines()}
    assert states <= {"installed", "upgraded", "unchanged", "kept: another project installed it"}
    assert "upgraded" in states
    again = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE_S)
    assert "upgraded" not in again.stdout
    cluster.kubectl("delete", "-n", NAMESPACE, "-f", "-", stdin=account)
