"""Room asked for by kubectl, waited for, used by a Job, given back: ProvisioningRequests as their users meet them."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

from tests.e2e.nodes.live_clusters import QUICK, autoscaling, plimsoll
from tests.e2e.timeouts import PATIENCE_S

if TYPE_CHECKING:
    from tests.e2e.nodes.live_clusters import Cluster

WAIT = f"--timeout={PATIENCE_S:.0f}s"
REQUESTS = "--enable-provisioning-requests"


def asked(cluster: Cluster, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        plimsoll("requests", *words, "--kubeconfig", str(cluster.kubeconfig)),
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )


def described(cluster: Cluster, name: str) -> dict[str, Any]:
    ended = asked(cluster, "describe", name, "-o", "json")
    assert ended.returncode == 0, ended.stderr
    found: dict[str, Any] = json.loads(ended.stdout)
    return found


def cleaned(cluster: Cluster) -> None:
    cluster.kubectl("delete", "provisioningrequests,podtemplates,jobs", "--all", "--ignore-not-found")


def test_n11_a_request_is_provisioned_and_its_job_runs_on_what_was_added(cluster: Cluster):
    assert "--node-autoprovisioning" in QUICK
    try:
        with autoscaling(cluster, cluster.as_account("requests"), REQUESTS) as autoscaler:
            cluster.kubectl("apply", "-f", "examples/requests/training.yaml")
            cluster.kubectl("wait", "--for=condition=Provisioned", "provreq/training", WAIT)
            header, row = cluster.kubectl("get", "provreq", "training").splitlines()
            assert header.split() == ["NAME", "CLASS", "STATE", "REASON", "AGE"]
            assert row.split()[2:4] == ["Provisioned", "CapacityIsProvisioned"]
            reported = described(cluster, "default/training")
            assert reported["state"] == "Provisioned"
            assert sum(reported["nodeGroups"].values()) == sum(
                group["spec"]["target"] for group in cluster.items("nodegroups")
            )
            cluster.kubectl("apply", "-f", "examples/requests/training-job.yaml")
            cluster.kubectl("wait", "--for=condition=BookingExpired", "provreq/training", WAIT)
            assert described(cluster, "training")["state"] == "Consumed"
            cluster.kubectl("wait", "--for=condition=complete", "job/training", WAIT)
            assert asked(cluster, "wait", "training", "--for", "consumed").returncode == 0
            cleaned(cluster)
            cluster.until(lambda: not cluster.names("nodegroups"), "everything that was added is gone")
            assert autoscaler.process.poll() is None, autoscaler.stated
    finally:
        cleaned(cluster)


def test_n03_a_check_says_yes_and_no_without_adding_anything(cluster: Cluster):
    try:
        with autoscaling(cluster, cluster.as_account("checks"), REQUESTS, "--scale-down-enabled=false") as autoscaler:
            cluster.kubectl("apply", "-f", "examples/requests/check.yaml")
            cluster.until(lambda: described(cluster, "reports")["state"] == "Waiting", "there is no room")
            cluster.kubectl("delete", "provreq/reports")
            cluster.deploy("small", 1, cpu="2", memory="2Gi")
            cluster.until(lambda: cluster.running("small") == 1, "a node is there")
            before = cluster.names("nodes")
            cluster.scale("small", 0)
            cluster.until(lambda: cluster.running("small") == 0, "and nobody is on it")
            cluster.kubectl("apply", "-f", "examples/requests/check.yaml")
            cluster.kubectl("wait", "--for=condition=Provisioned", "provreq/reports", WAIT)
            assert cluster.names("nodes") == before
            assert autoscaler.process.poll() is None, autoscaler.stated
    finally:
        cleaned(cluster)
