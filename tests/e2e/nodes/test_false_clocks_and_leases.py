"""Over TLS: a clock that jumps by a day, a stolen lease, and a node that its name does not find delete nothing.

The clock of the process is moved through a file: a `sitecustomize` of its own adds what the file says.
"""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tests.e2e.nodes.live_clusters import LEASE, NAMESPACE, autoscaling
from tests.e2e.nodes.recording_proxies import Answer, recording
from tests.e2e.nodes.test_false_lists_of_nodes import FLAGS, HALF_OF_NODES, NODES, keep_half, machines_and_pods

if TYPE_CHECKING:
    import pytest

    from tests.e2e.nodes.live_clusters import Cluster
    from tests.e2e.nodes.recording_proxies import ProxyRecording

DAY_S = 86_400
LOOPS = 5
MOVED_CLOCK = """\
import os
from datetime import timedelta
from plimsoll.runtime.clocks import RealClock
true_time = RealClock.now
def now(self):
    with open(os.environ["MOVED_BY_S"]) as file:
        return true_time(self) + timedelta(seconds=float(file.read() or 0))
RealClock.now = now
"""
NOT_FOUND = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}


def wait_for_loops(cluster: Cluster, proxy: ProxyRecording) -> None:
    """Each loop iteration lists the groups."""

    def count() -> int:
        return sum(request.method == "GET" and request.path.endswith("/nodegroups") for request in [*proxy.asked])

    before = count()
    cluster.until(lambda: count() >= before + LOOPS, "some loop iterations")


def test_a_clock_that_jumps_by_a_day_while_half_of_the_nodes_is_missing(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
):
    moved_by = cluster.folder / "moved-by"
    moved_by.write_text("0")
    customized = cluster.folder / "customized"
    customized.mkdir()
    (customized / "sitecustomize.py").write_text(MOVED_CLOCK)
    monkeypatch.setenv("MOVED_BY_S", str(moved_by))
    monkeypatch.setenv("PYTHONPATH", f"{customized}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    with recording(cluster.kubeconfig, cluster.folder) as proxy:
        proxy.has_faults = True
        account = cluster.as_account("jumping", through=proxy)
        cluster.deploy("large", 3, cpu="3")
        with autoscaling(cluster, account, *FLAGS, name="jumping") as autoscaler:
            cluster.until(lambda: cluster.running("large") == 3, "large pods run")
            before = machines_and_pods(cluster)
            for jump_s in (DAY_S, -DAY_S, 0):
                proxy.start_lie(*HALF_OF_NODES)
                moved_by.write_text(str(jump_s))
                wait_for_loops(cluster, proxy)
                proxy.stop_lie()
                wait_for_loops(cluster, proxy)
                assert machines_and_pods(cluster) == before, jump_s
            assert "list_not_believed" in autoscaler.stated


def test_a_process_whose_lease_was_stolen_deletes_nothing_more(cluster: Cluster):
    with recording(cluster.kubeconfig, cluster.folder) as proxy:
        account = cluster.as_account("robbed", through=proxy)
        cluster.deploy("large", 3, cpu="3")
        with autoscaling(cluster, account, *FLAGS, name="robbed") as autoscaler:
            cluster.until(lambda: cluster.running("large") == 3, "large pods run")
            before = machines_and_pods(cluster)
            now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%f}Z"
            spec = {"holderIdentity": "thief", "leaseDurationSeconds": 3600, "renewTime": now, "acquireTime": now}
            patch = json.dumps({"spec": spec})
            cluster.kubectl("patch", "lease", LEASE, "-n", NAMESPACE, "--type=merge", "-p", patch)
            proxy.falsify = lambda path, answer: (
                Answer(answer.status, keep_half(json.loads(answer.body))) if path == NODES else answer
            )
            written = len(proxy.writes)
            cluster.until(lambda: autoscaler.process.poll() is not None, "it gives up")
            assert [request.path for request in proxy.writes[written:] if "/nodegroups" in request.path] == []
            assert machines_and_pods(cluster) == before
        cluster.kubectl("delete", "lease", LEASE, "-n", NAMESPACE)


def test_a_node_that_neither_a_list_nor_its_name_finds_is_kept_for_its_pods(cluster: Cluster):
    with recording(cluster.kubeconfig, cluster.folder) as proxy:
        account = cluster.as_account("hidden", through=proxy)
        cluster.deploy("large", 3, cpu="3")
        with autoscaling(cluster, account, *FLAGS, name="shown"):
            cluster.until(lambda: cluster.running("large") == 3, "large pods run")
        before = machines_and_pods(cluster)
        hidden = sorted(node["metadata"]["name"] for node in cluster.items("nodes"))[1:]
        assert hidden

        def hide(path: str, answer: Answer) -> Answer:
            if path == NODES:
                listed = json.loads(answer.body)
                items = [item for item in listed["items"] if item["metadata"]["name"] not in hidden]
                return Answer(answer.status, json.dumps({**listed, "items": items}).encode())
            if path.removeprefix(f"{NODES}/") in hidden:
                return Answer(404, json.dumps(NOT_FOUND).encode())
            return answer

        proxy.falsify = hide
        with autoscaling(cluster, account, *FLAGS, name="hidden") as autoscaler:
            cluster.until(lambda: "deletion.held_back" in autoscaler.stated, "the deletions are held back")
            wait_for_loops(cluster, proxy)
        assert any(request.path.removeprefix(f"{NODES}/") in hidden for request in proxy.asked), "they were asked for"
        assert machines_and_pods(cluster) == before
