from __future__ import annotations

import pytest

from plimsoll.core.errors import InvalidInput
from plimsoll.simulation.runs import NO_AUTOSCALER
from tests.simulation.stories import group, node, outcome, pod, replica_set, template, told


def test_a_target_makes_ready_empty_nodes_at_the_start_whatever_their_boot_time():
    ended = outcome(nodeGroups=[group(target=2, bootSeconds=600)])
    assert ended["nodes"] == {
        "g-0": {"group": "g", "machineType": "small", "pods": []},
        "g-1": {"group": "g", "machineType": "small", "pods": []},
    }
    assert ended["nodeGroups"]["g"]["target"] == 2


def test_the_nodes_of_the_start_take_pods():
    ended = outcome({"schedule": True}, nodeGroups=[group(target=1)], objects=[pod()])
    assert ended["pods"] == {"default/p": "g-0"}


def test_node_objects_of_the_only_group_stand_for_its_target():
    ended = outcome(nodeGroups=[group(target=2)], objects=[node("n1"), node("n2")])
    assert {name: one["group"] for name, one in ended["nodes"].items()} == {"n1": "g", "n2": "g"}
    assert ended["nodeGroups"]["g"]["target"] == 2


def test_a_node_that_names_no_group_belongs_to_none():
    ended = outcome(nodeGroups=[group(target=1)], objects=[node("x"), node("g-0")])
    assert {name: one["group"] for name, one in ended["nodes"].items()} == {"g-0": "g", "x": None}


def test_pods_of_the_shorthand_are_pending_and_have_a_controller_that_is_not_there():
    ended = outcome({"advance": "1h"}, pods=[{"name": "web", "namespace": "team", "count": 3, "template": template()}])
    assert ended["pods"] == {"team/web-0": None, "team/web-1": None, "team/web-2": None}


def test_pods_bind_only_when_scheduling_is_a_step():
    nodes = {"nodeGroups": [group(target=1)], "objects": [replica_set(replicas=2)]}
    waiting = outcome({"advance": "1h"}, **nodes)
    assert list(waiting["pods"].values()) == [None, None]
    assert list(outcome({"schedule": True}, **nodes)["pods"].values()) == ["g-0", "g-0"]


def test_a_pod_that_is_deleted_is_gone_at_once_and_its_replica_set_makes_another():
    scenario = {"nodeGroups": [group(target=1)], "objects": [replica_set(replicas=1)]}
    before = outcome({"schedule": True}, **scenario)
    (name,) = before["pods"]
    delete = {"delete": {"kind": "Pod", "name": name.removeprefix("default/")}}
    after = outcome({"schedule": True}, delete, **scenario)
    assert name not in after["pods"]
    assert list(after["pods"].values()) == [None]


def test_growth_yields_nodes_after_the_boot_time_and_at_once_without_one():
    grow = {"provider": {"calls": [{"call": "IncreaseSize", "group": "g", "arg": 2}]}}
    assert len(outcome(grow, nodeGroups=[group()])["nodes"]) == 2
    assert len(outcome(grow, {"advance": "59s"}, nodeGroups=[group(bootSeconds=60)])["nodes"]) == 0
    assert len(outcome(grow, {"at": 60}, nodeGroups=[group(bootSeconds=60)])["nodes"]) == 2


def test_pods_of_a_node_that_is_removed_go_with_it():
    remove = {"provider": {"calls": [{"call": "DeleteNodes", "group": "g", "arg": ["g-0"]}]}}
    ended = outcome({"schedule": True}, remove, nodeGroups=[group(target=1)], objects=[pod()])
    assert (ended["pods"], ended["nodes"]) == ({}, {})


def test_loops_without_an_autoscaler_only_move_the_clock_and_say_so():
    story = told({"loop": 2, "every": "10s"})
    assert story.outcome["loops"] == [{"time": "2025-01-01T00:00:00Z"}, {"time": "2025-01-01T00:00:10Z"}]
    assert story.warnings == (NO_AUTOSCALER,)


def test_given_times_and_status_are_kept():
    requests = {
        "apiVersion": "autoscaling.x-k8s.io/v1",
        "kind": "ProvisioningRequest",
        "metadata": {"name": "r", "creationTimestamp": "2024-12-31T00:00:00Z"},
        "spec": {
            "provisioningClassName": "check-capacity.autoscaling.x-k8s.io",
            "podSets": [{"count": 1, "podTemplateRef": {"name": "t"}}],
        },
        "status": {
            "conditions": [
                {
                    "type": "Provisioned",
                    "status": "True",
                    "reason": "CapacityIsFound",
                    "message": "",
                    "lastTransitionTime": "2024-12-31T00:00:00Z",
                }
            ]
        },
    }
    ended = outcome(objects=[requests])["requests"]["default/r"]
    assert ended["conditions"][0]["reason"] == "CapacityIsFound"
    assert ended["history"] == [
        {"time": "2025-01-01T00:00:00Z", "type": "Provisioned", "status": "True", "reason": "CapacityIsFound"}
    ]


def test_what_the_server_refuses_names_the_place_in_the_file():
    with pytest.raises(InvalidInput, match=r"^objects\[1\]: .*containers") as caught:
        outcome(objects=[pod(), {**pod("q"), "spec": {"containers": []}}])
    assert caught.value.exit_code == 2


def test_a_kind_that_nobody_serves_names_the_place_in_the_file():
    with pytest.raises(InvalidInput, match=r"^steps\[0\]\.apply: ex\.com/v1 Gadget is not served here"):
        outcome({"apply": {"apiVersion": "ex.com/v1", "kind": "Gadget", "metadata": {"name": "x"}}})


@pytest.mark.parametrize(
    ("step", "wanted"),
    [
        ({"delete": {"kind": "Pod", "name": "x"}}, "steps[1].delete: there is no Pod x to delete"),
        ({"at": 1}, "steps[1].at: 2025-01-01T00:00:01Z is over"),
        ({"crash": {"component": "etcd"}}, "steps[1].crash.component: there is no etcd; known are"),
        ({"reconcile": {"kind": "Kafka", "name": "k"}}, "steps[1].reconcile.kind: nothing reconciles Kafka"),
    ],
)
def test_a_step_that_cannot_be_taken_names_itself(step: dict[str, object], wanted: str):
    with pytest.raises(InvalidInput) as caught:
        outcome({"advance": "1m"}, step)
    assert str(caught.value).startswith(wanted)


def test_expectations_that_fail_are_told_and_the_story_goes_on():
    story = told({"expect": {"/pods": {"count": 1}, "/nodes": {"count": 0}}}, {"advance": "1m"}, {"expect": {"/x": 1}})
    assert [str(one) for one in story.failed] == [
        'steps[0].expect at 2025-01-01T00:00:00Z: /pods: wanted {"count": 1}, got {}',
        "steps[2].expect at 2025-01-01T00:01:00Z: /x: wanted 1, got nothing (no x)",
    ]
    assert story.expectations == 3


def test_a_crash_loses_nothing_that_was_done_and_nothing_that_was_to_do():
    for writes in range(1, 8):
        crash = {"crash": {"component": "kube-controller-manager", "afterCalls": writes}}
        ended = outcome(crash, {"apply": replica_set(replicas=3)}, {"advance": "1m"})
        assert len(ended["pods"]) == 3, writes


def test_a_pod_whose_owner_is_deleted_goes_with_it():
    delete = {"delete": {"kind": "ReplicaSet", "name": "web"}}
    assert outcome(delete, {"advance": "1m"}, objects=[replica_set()])["pods"] == {}


def test_a_pod_whose_owner_was_never_there_is_left_alone():
    owned = pod(ownerReferences=[{"kind": "ReplicaSet", "name": "unseen"}])
    crash = {"crash": {"component": "kube-controller-manager"}}
    assert list(outcome({"advance": "1h"}, crash, {"advance": "1h"}, objects=[owned])["pods"]) == ["default/p"]


def test_a_pod_may_come_before_its_owner_in_the_file():
    owned = pod("web-x", labels={"app": "web"}, ownerReferences=[{"kind": "ReplicaSet", "name": "web"}])
    ended = outcome({"advance": "1m"}, objects=[owned, replica_set(replicas=2)])
    assert len(ended["pods"]) == 2
    assert "default/web-x" in ended["pods"]
