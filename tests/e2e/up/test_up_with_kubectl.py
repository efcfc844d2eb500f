"""What a newcomer does with `plimsoll up`, with kubectl, in one cluster and one story."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.e2e.up.up_processes import UpProcess, needs_kubectl, running

if TYPE_CHECKING:
    from collections.abc import Iterator

needs_kubectl()

IMAGE = "-o=jsonpath={.spec.template.spec.containers[0].image}"


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UpProcess]:
    with running(tmp_path_factory.mktemp("up") / "data") as started:
        yield started
        assert started.stop() == 0


def rolled_out(up: UpProcess, name: str) -> None:
    assert "successfully rolled out" in up.kubectl("rollout", "status", f"deployment/{name}", "--timeout=80s")


def pods_on(up: UpProcess, node: str, *arguments: str) -> list[str]:
    reported = up.kubectl("get", "pods", "-o", "name", f"--field-selector=spec.nodeName={node}", *arguments)
    return reported.split()


def test_deployments_are_made_scaled_and_rolled(up: UpProcess):
    up.kubectl("create", "deployment", "rolled", "--image=nginx:1", "--replicas=3")
    rolled_out(up, "rolled")
    up.kubectl("scale", "deployment/rolled", "--replicas=6")
    rolled_out(up, "rolled")
    up.kubectl("set", "image", "deployment/rolled", "nginx=nginx:2")
    rolled_out(up, "rolled")
    up.kubectl("rollout", "undo", "deployment/rolled")
    rolled_out(up, "rolled")
    assert up.kubectl("get", "deployment/rolled", IMAGE) == "nginx:1"
    pods = up.objects("pods", "-l", "app=rolled")
    going = [pod for pod in pods if "deletionTimestamp" in pod["metadata"]]
    assert len(pods) - len(going) == 6
    up.kubectl("delete", "deployment/rolled", "--cascade=foreground", "--timeout=80s")
    assert up.objects("replicasets,pods", "-l", "app=rolled") == []


def test_a_full_cluster_says_why_and_machines_help(up: UpProcess):
    up.kubectl("apply", "-f", "examples/first-steps/big.yaml")
    rolled_out(up, "big")
    up.kubectl("scale", "deployment/big", "--replicas=15")
    pending = ("pods", "-l", "app=big", "--field-selector=status.phase=Pending")
    up.until(lambda: len(up.objects(*pending)) == 3, "three pods have no room")
    up.until(
        lambda: (
            "0/3 nodes are available: 3 Insufficient cpu. no new claims to deallocate, preemption: 0/3 nodes are "
            "available: 3 No preemption victims found for incoming pod."
            in up.kubectl("describe", "pods", "-l", "app=big")
        ),
        "the reason is told",
    )
    up.kubectl("scale", "nodegroup/workers", "--replicas=4")
    rolled_out(up, "big")
    assert len(pods_on(up, "workers-3")) == 3
    up.kubectl("delete", "deployment/big", "--cascade=foreground", "--timeout=80s")
    up.kubectl("scale", "nodegroup/workers", "--replicas=3")
    up.kubectl("wait", "--for=delete", "node/workers-3", "--timeout=80s")


def test_the_cloud_is_one_resource_to_kubectl_and_all_of_it_is_a_category(up: UpProcess):
    up.kubectl("patch", "cloud", "cloud", "--type=merge", "-p", '{"spec": {"bootSeconds": 11}}')
    assert up.kubectl("get", "cloud", "cloud", "-o=jsonpath={.spec.bootSeconds}") == "11"
    names = up.kubectl("get", "plimsoll", "-o", "name").split()
    assert {"cloud.cloud.plimsoll.io/cloud", "nodegroup.cloud.plimsoll.io/workers"} <= set(names)


def test_the_maximum_of_a_group_binds_kubectl_too(up: UpProcess):
    refused = up.stated("scale", "ng", "workers", "--replicas=101")
    assert refused.code == 1
    assert "target may not be more than max" in refused.err
    assert up.kubectl("get", "ng", "workers", "-o=jsonpath={.spec.target}") == "3"


def test_a_stock_out_is_reported_by_describe(up: UpProcess):
    none_left = '{"spec": {"stock": [{"name": "s", "machineType": "n1-standard-4", "machines": 3}]}}'
    up.kubectl("patch", "cloud", "cloud", "--type=merge", "-p", none_left)
    up.kubectl("scale", "ng", "workers", "--replicas=4")
    up.until(
        lambda: "1 machine refused: out of stock: n1-standard-4, 3 in all" in up.kubectl("describe", "ng", "workers"),
        "the group tells it",
    )
    up.kubectl("scale", "ng", "workers", "--replicas=3")
    up.kubectl("patch", "cloud", "cloud", "--type=merge", "-p", '{"spec": {"stock": null}}')


def test_a_drain_waits_for_the_budget_and_then_goes_through(up: UpProcess):
    up.kubectl("create", "deployment", "web", "--image=nginx", "--replicas=5")
    rolled_out(up, "web")
    up.kubectl("apply", "-f", "examples/first-steps/budget.yaml")
    up.until(lambda: up.kubectl("get", "pdb/web", "-o=jsonpath={.status.currentHealthy}") == "5", "budget counts")
    node = up.objects("pods", "-l", "app=web")[0]["spec"]["nodeName"]
    blocked = up.stated("drain", node, "--timeout=6s")
    assert blocked.code == 1
    assert "Cannot evict pod as it would violate the pod's disruption budget." in blocked.err
    assert pods_on(up, node, "-l", "app=web")
    up.kubectl("patch", "pdb/web", "--type=merge", "-p", '{"spec": {"maxUnavailable": 2}}')
    up.kubectl("drain", node, "--timeout=80s")
    assert pods_on(up, node, "-l", "app=web") == []
    rolled_out(up, "web")
    assert "SchedulingDisabled" in up.kubectl("get", "node", node)
    up.kubectl("uncordon", node)
    assert "SchedulingDisabled" not in up.kubectl("get", "node", node)


def test_a_namespace_goes_with_all_that_is_in_it(up: UpProcess):
    up.kubectl("create", "namespace", "short")
    up.kubectl("create", "deployment", "inside", "--image=nginx", "--replicas=2", "-n", "short")
    up.kubectl("rollout", "status", "deployment/inside", "-n", "short", "--timeout=80s")
    up.kubectl("delete", "namespace", "short", "--timeout=80s")
    assert up.objects("pods", "-n", "short") == []
