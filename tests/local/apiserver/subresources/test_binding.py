from __future__ import annotations

from typing import Any

import pytest

from tests.local.apiserver.admission.lagging_driver import LaggingDriver
from tests.local.apiserver.subresources.builders import PODS, cluster, pod

Json = dict[str, Any]


def binding(name: str = "p", node: str = "n1", **metadata: Any) -> Json:
    return {"metadata": {"name": name, **metadata}, "target": {"kind": "Node", "name": node}}


def test_annotations_of_the_binding_are_added_to_the_pods():
    with cluster() as world:
        made = pod("p", nodeName="")
        made["metadata"]["annotations"] = {"own": "1", "both": "pod"}
        world.made(PODS, made)
        assert world.send("POST", f"{PODS}/p/binding", binding(annotations={"both": "binding"})).status == 201
        assert world.get(f"{PODS}/p")["metadata"]["annotations"] == {"own": "1", "both": "binding"}


def test_a_binding_changes_neither_generation_nor_managed_fields():
    with cluster() as world:
        before = world.made(PODS, pod("p", nodeName=""))["metadata"]
        world.send("POST", f"{PODS}/p/binding", binding())
        after = world.get(f"{PODS}/p")["metadata"]
        assert (after["generation"], after["managedFields"]) == (before["generation"], before["managedFields"])


def test_a_pod_that_is_being_deleted_gets_no_node():
    with cluster() as world:
        made = pod("p", nodeName="")
        made["metadata"]["finalizers"] = ["ex.com/hold"]
        world.made(PODS, made)
        world.send("DELETE", f"{PODS}/p")
        reply = world.send("POST", f"{PODS}/p/binding", binding())
        reported = (
            'Operation cannot be fulfilled on pods/binding "p": pod p is being deleted, cannot be assigned to a host'
        )
        assert (reply.status, reply.body["message"]) == (409, reported)


def test_the_name_in_the_address_is_the_bindings():
    with cluster() as world:
        world.made(PODS, pod("p", nodeName=""))
        reply = world.send("POST", f"{PODS}/p/binding", binding("other"))
        assert (reply.status, reply.body["message"]) == (400, "name in URL does not match name in Binding object")


def test_only_nodes_are_bound_to():
    with cluster() as world:
        world.made(PODS, pod("p", nodeName=""))
        body = {"metadata": {"name": "p"}, "target": {"kind": "Minion", "name": "n"}}
        reply = world.send("POST", f"{PODS}/p/binding", body)
        reported = 'target.kind: Unsupported value: "Minion": supported values: "Node", "<empty>"'
        assert (reply.status, reply.body["message"]) == (500, reported)


def test_a_dry_run_binds_nothing():
    with cluster() as world:
        before = world.made(PODS, pod("p", nodeName=""))
        assert world.send("POST", f"{PODS}/p/binding", binding(), dryRun="All").status == 201
        assert world.get(f"{PODS}/p") == before


@pytest.mark.parametrize("lags", [[], [0, 2], [3, 1]])
def test_of_two_schedulers_one_wins(lags: list[int]):
    with cluster(LaggingDriver(lags)) as world:
        world.made(PODS, pod("p", nodeName=""))
        answers = world.send_all([(f"{PODS}/p/binding", binding(node=node)) for node in ("n1", "n2")])
        assert sorted(answers) == [201, 409]
        winner = ("n1", "n2")[answers.index(201)]
        assert world.get(f"{PODS}/p")["spec"]["nodeName"] == winner
