"""How the autoscaler ends and goes on, waits for another one, and looks without touching anything."""

from __future__ import annotations

import http.client
import json
import subprocess
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from tests.e2e.nodes.live_clusters import LEASE, NAMESPACE, QUICK, STATUS, autoscaling, plimsoll
from tests.e2e.nodes.recording_proxies import recording
from tests.e2e.timeouts import PATIENCE_S

if TYPE_CHECKING:
    from tests.e2e.nodes.live_clusters import AutoscalerProcess, Cluster

# Short enough to be waited for, long enough that a leader on a busy machine renews in time: who does not, ends.
SHORT_LEASE = (
    "--leader-elect-lease-duration=12s",
    "--leader-elect-renew-deadline=10s",
    "--leader-elect-retry-period=1s",
)
NEVER_SMALLER = "--scale-down-unneeded-time=1h"


def test_a_signal_ends_it_and_leaves_nothing_behind(cluster: Cluster):
    with autoscaling(cluster, cluster.as_account("ended"), NEVER_SMALLER) as autoscaler:
        cluster.deploy("web", 4)
        cluster.until(lambda: cluster.running("web") == 4, "pods run")
        cluster.scale("web", 0)
        cluster.until(cluster.marked, "nodes are marked as not needed")
        assert cluster.holder()
        assert cluster.has_map(STATUS)
        assert autoscaler.stop() == 0, autoscaler.stated
        assert cluster.holder() == ""
        assert not cluster.has_map(STATUS)
        assert cluster.marked() == []


def test_after_a_kill_the_next_one_goes_on(cluster: Cluster):
    account = cluster.as_account("killed")
    with autoscaling(cluster, account, *SHORT_LEASE) as autoscaler:
        cluster.deploy("web", 12)
        cluster.until(lambda: cluster.names("nodegroups"), "a group is made")
        autoscaler.die()
    with autoscaling(cluster, account, *SHORT_LEASE, name="next"):
        cluster.until(lambda: cluster.running("web") == 12, "pods run")
        # Pods may run before the last machine has joined, or while an unneeded one is being removed.
        cluster.until(lambda: len(cluster.names("nodes")) == wanted_nodes(cluster), "as many nodes as wanted")
        cluster.scale("web", 0)
        cluster.until(lambda: not cluster.names("nodegroups"), "no group is left")


def test_of_two_only_the_leader_acts_and_the_other_is_well(cluster: Cluster):
    with recording(cluster.kubeconfig, cluster.folder) as seen:
        waiting = cluster.as_account("waiting", through=seen)
        with autoscaling(cluster, cluster.as_account("leading"), *SHORT_LEASE, name="leading") as leader:
            cluster.until(cluster.holder, "somebody leads")
            with autoscaling(cluster, waiting, *SHORT_LEASE, name="waiting") as other:
                cluster.deploy("web", 4)
                cluster.until(lambda: cluster.running("web") == 4, "pods run")
                cluster.until(lambda: "rival.found" in other.stated, "who waits says for whom")
                cluster.until(lambda: health(other)[1].startswith("OK\nstandby: "), "who waits is well")
                assert seen.writes == []
                assert leader.stop() == 0
                cluster.scale("web", 0)
                cluster.until(lambda: not cluster.names("nodegroups"), "the other one has taken over")


def test_whoever_holds_the_lease_already_is_named_and_nothing_is_done(cluster: Cluster):
    hold_the_lease(cluster, "cluster-autoscaler-7d9f")
    with recording(cluster.kubeconfig, cluster.folder) as seen:
        account = cluster.as_account("second", through=seen)
        cluster.deploy("web", 4)
        with autoscaling(cluster, account, name="second") as autoscaler:
            cluster.until(lambda: "rival.found" in autoscaler.stated, "a warning")
            assert "cluster-autoscaler-7d9f holds lease kube-system/cluster-autoscaler" in autoscaler.stated
            entry = looked_once(account)
            assert autoscaler.stop() == 0
        assert entry["scaleUp"]["result"] == "ScaleUpNeeded"
        assert all(scale_up["to"] > scale_up["from"] for scale_up in entry["scaleUp"]["plan"])
        assert entry["scaleUp"]["helped"] == 4
        assert seen.writes == []
        assert not cluster.names("nodegroups")


def wanted_nodes(cluster: Cluster) -> int:
    return sum(int(group["spec"]["target"]) for group in cluster.items("nodegroups"))


def hold_the_lease(cluster: Cluster, holder: str) -> None:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 3600, "renewTime": now, "acquireTime": now}
    metadata = {"name": LEASE, "namespace": NAMESPACE}
    cluster.apply({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec})


def looked_once(kubeconfig: Any) -> dict[str, Any]:
    """What a dry run of one loop iteration prints."""
    words = ("run", "nodes", "--kubeconfig", str(kubeconfig), *QUICK, "--dry-run", "--once", "-o", "json")
    ended = subprocess.run(plimsoll(*words), capture_output=True, text=True, check=True, timeout=PATIENCE_S)
    entry: dict[str, Any] = json.loads(ended.stdout)
    return entry


def health(autoscaler: AutoscalerProcess) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", autoscaler.port)
    try:
        connection.request("GET", "/health-check")
    except ConnectionRefusedError:
        return 0, "not listening yet"
    answer = connection.getresponse()
    reported = answer.status, answer.read().decode()
    connection.close()
    return reported
