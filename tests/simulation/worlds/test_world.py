from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from plimsoll.core.errors import InvalidInput
from plimsoll.kube.errors import NotFound
from plimsoll.objects.api.pods import Pod
from plimsoll.simulation.files.scenario_reader import read_scenario
from plimsoll.simulation.ports import Plugins
from plimsoll.simulation.runner import NO_AUTOSCALER, ScenarioRun, run_scenario
from plimsoll.simulation.worlds.world import AUTOSCALER, World
from tests.simulation.builders import SMALL, group, node, outcome, pod, replica_set, reported, template

if TYPE_CHECKING:
    from plimsoll.simulation.ports import LoopDependencies
    from tests.golden.reviewed_sentences import ReviewedSentences


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
    assert {name: node["group"] for name, node in ended["nodes"].items()} == {"n1": "g", "n2": "g"}
    assert ended["nodeGroups"]["g"]["target"] == 2


def test_a_node_that_names_no_group_belongs_to_none():
    ended = outcome(nodeGroups=[group(target=1)], objects=[node("x"), node("g-0")])
    assert {name: node["group"] for name, node in ended["nodes"].items()} == {"g-0": "g", "x": None}


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
    steps = read_scenario(b"steps: [{loop: 2, every: 10s}]", source="test")
    story = run_scenario(steps, plugs=Plugins())
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


def test_a_pod_that_was_admitted_elsewhere_keeps_its_priority_without_its_class():
    """A recorded cluster has the number and the name of the class; the class itself need not be in the file."""
    recorded = {"priority": -20, "priorityClassName": "batch", "preemptionPolicy": "Never"}
    one = pod("a")
    one["spec"] |= recorded
    of_many = template()
    of_many["spec"] |= {"priority": 7}
    scenario = read_scenario(
        msgspec.json.encode(
            {
                "machineTypes": [SMALL],
                "objects": [one],
                "pods": [{"name": "b", "count": 2, "template": of_many}],
                "steps": [],
            }
        ),
        source="test",
    )
    with World(scenario) as world:
        kept = {found.metadata.name: found.spec for found in world.run_now(world.client.list(Pod)).items}

    assert (kept["a"].priority, kept["a"].priority_class_name, kept["a"].preemption_policy) == (-20, "batch", "Never")
    assert (kept["b-0"].priority, kept["b-1"].priority) == (7, 7)


def test_an_expendable_pod_causes_no_scale_up():
    expendable, ordinary = pod("a"), pod("b")
    expendable["spec"]["priority"] = -20
    grown = [
        outcome({"loop": 1}, nodeGroups=[group()], objects=[manifest])["nodeGroups"]["g"]["target"]
        for manifest in (expendable, ordinary)
    ]
    assert grown == [0, 1]


def test_a_class_that_is_not_there_is_refused_where_no_priority_is_given(reviewed: ReviewedSentences):
    one = pod()
    one["spec"]["priorityClassName"] = "batch"
    with pytest.raises(InvalidInput) as raised:
        outcome(objects=[one])
    reviewed(str(raised.value))


def test_what_the_server_refuses_names_the_place_in_the_file(reviewed: ReviewedSentences):
    with pytest.raises(InvalidInput) as caught:
        outcome(objects=[pod(), {**pod("q"), "spec": {"containers": []}}])
    reviewed(str(caught.value))
    assert caught.value.exit_code == 2


def test_a_kind_that_is_not_served_names_the_place_in_the_file(reviewed: ReviewedSentences):
    with pytest.raises(InvalidInput) as raised:
        outcome({"apply": {"apiVersion": "ex.com/v1", "kind": "Gadget", "metadata": {"name": "x"}}})
    reviewed(str(raised.value))


@pytest.mark.parametrize(
    ("step", "wanted"),
    [
        ({"delete": {"kind": "Pod", "name": "x"}}, "steps[1].delete: there is no Pod x to delete"),
        ({"at": 1}, "steps[1].at: 2025-01-01T00:00:01Z is in the past"),
        ({"crash": {"component": "etcd"}}, "steps[1].crash.component: there is no etcd; known are"),
        ({"reconcile": {"kind": "Kafka", "name": "k"}}, "steps[1].reconcile.kind: nothing reconciles Kafka"),
    ],
)
def test_a_step_that_cannot_be_taken_names_itself(step: dict[str, Any], wanted: str):
    with pytest.raises(InvalidInput) as caught:
        outcome({"advance": "1m"}, step)
    assert str(caught.value).startswith(wanted)


def test_expectations_that_fail_are_reported_and_the_story_goes_on():
    story = reported(
        {"expect": {"/pods": {"count": 1}, "/nodes": {"count": 0}}}, {"advance": "1m"}, {"expect": {"/x": 1}}
    )
    assert [str(failed) for failed in story.failed] == [
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


# ---- crashes


def crash(component: str, *, after: int = 0) -> dict[str, Any]:
    return {"crash": {"component": component, "afterCalls": after}}


@pytest.mark.parametrize("writes", range(1, 8))
def test_the_next_process_starts_at_the_instant_the_last_one_died(writes: int):
    ended = outcome(crash("kube-controller-manager", after=writes), {"apply": replica_set(replicas=3)})
    assert len(ended["pods"]) == 3


def test_a_scheduler_that_crashed_is_replaced_by_one_that_can_be_asked_at_once():
    scenario = {"nodeGroups": [group(target=1)], "objects": [pod("a"), pod("b"), pod("c")]}
    steps = [crash("kube-scheduler", after=1), {"schedule": True}]
    assert sorted(map(str, outcome(*steps, **scenario)["pods"].values())) == ["None", "None", "g-0"]
    assert set(outcome(*steps, {"schedule": True}, **scenario)["pods"].values()) == {"g-0"}


class ScriptedAutoscaler:
    """Grows the group by one in each loop, unless there is something to be refused first."""

    def __init__(self, tools: LoopDependencies) -> None:
        self._tools = tools

    def list_services(self) -> list[Any]:
        return []

    def get_metrics(self) -> dict[str, float]:
        return {}

    async def run_loop(self) -> dict[str, Any]:
        client = self._tools.components.build_component("autoscaler", manager=AUTOSCALER).client
        with suppress(NotFound):
            await client.delete(Pod, "nobody", namespace="default")
        await self._tools.cloud.increase_size("g", 1)
        await self._tools.cloud.increase_size("g", 1)
        return {"whole": True}


def grown(*steps: dict[str, Any]) -> Any:
    whole = {"machineTypes": [SMALL], "nodeGroups": [group()], "steps": list(steps)}
    scenario = read_scenario(msgspec.json.encode(whole), source="test")
    return run_scenario(scenario, plugs=Plugins(make_loop=ScriptedAutoscaler)).outcome


def test_a_loop_that_crashes_ends_there_and_the_next_one_is_another_autoscalers():
    ended = grown(crash(AUTOSCALER, after=1), {"loop": 2, "every": "1s"})
    assert [loop.get("whole") for loop in ended["loops"]] == [None, True]
    assert ended["loops"][1]["time"] == "2025-01-01T00:00:01Z"


def test_a_write_that_was_refused_is_not_counted():
    assert grown(crash(AUTOSCALER, after=1), {"loop": 1})["nodeGroups"]["g"]["target"] == 1
    assert grown(crash(AUTOSCALER, after=2), {"loop": 1})["nodeGroups"]["g"]["target"] == 2


# ---- names in provider steps


@pytest.mark.parametrize(
    ("provider", "wanted"),
    [
        ({"failIncrease": {"pol": "no"}}, "failIncrease.pol: there is no node group pol; did you mean pool?"),
        ({"failIncrease": {"zz.z": "no"}}, "failIncrease[zz.z]: there is no node group zz.z; known are pool"),
        ({"stockout": {"smal": 1}}, "stockout.smal: there is no machine type smal; did you mean small?"),
        ({"stockout": {"zz": 1}}, "stockout.zz: there is no machine type zz; known are small"),
        ({"setGroup": {"zz": {"max": 1}}}, "setGroup.zz: there is no node group zz; known are pool"),
        ({"setGroup": {"pool": {"min": 11}}}, "setGroup.pool: "),
    ],
)
def test_a_provider_step_about_nothing_there_is_names_its_field(provider: dict[str, Any], wanted: str):
    with pytest.raises(InvalidInput) as caught:
        outcome({"provider": provider}, nodeGroups=[group("pool")])
    assert str(caught.value).startswith(f"steps[0].provider.{wanted}")
    assert caught.value.exit_code == 2


def test_a_group_that_a_step_applied_can_be_made_to_fail():
    late = {"apiVersion": "cloud.plimsoll.io/v1alpha1", "kind": "NodeGroup", "metadata": {"name": "late"}}
    apply = {"apply": {**late, "spec": {"max": 3, "machineType": "small"}}}
    fail = {"provider": {"failIncrease": {"late": "no"}}}
    grow = {"provider": {"calls": [{"call": "IncreaseSize", "group": "late", "arg": 1}]}}
    assert [call["message"] for call in outcome(apply, fail, grow)["providerCalls"]] == ["no"]
    with pytest.raises(InvalidInput, match=r"^steps\[0\]\.provider\.failIncrease\.late: "):
        outcome(fail, apply)


def test_growth_of_a_group_that_does_not_exist_yet_can_be_made_to_fail():
    fail = {"provider": {"failIncrease": {"g": "no"}}}
    assert outcome(fail, nodeGroups=[group(exist=False)])["nodeGroups"] == {}


# ---- machines without a price


def test_prices_may_be_unknown_and_then_machines_cost_nothing():
    unpriced = {"name": "small", "cpu": 4, "memory": "16Gi"}
    grow = {"provider": {"calls": [{"call": "IncreaseSize", "group": "g", "arg": 1}]}}
    ended = outcome(grow, {"advance": "1h"}, machineTypes=[unpriced], nodeGroups=[group()])
    assert list(ended["nodes"]) == ["g-0"]
    assert ended["metrics"]['cloud_cost_total{currency="USD"}'] == 0


def test_what_the_server_refuses_of_machine_types_and_groups_names_their_field():
    with pytest.raises(InvalidInput) as of_type:
        outcome(machineTypes=[SMALL, {**SMALL, "name": "b", "currency": "dollars"}])
    with pytest.raises(InvalidInput) as of_group:
        outcome(nodeGroups=[group("a"), group("b", currency="dollars")])
    assert (of_type.value.path, of_group.value.path) == ("machineTypes[1].currency", "nodeGroups[1].currency")


# ---- owners


def owned(kind: str, name: str, **metadata: Any) -> dict[str, Any]:
    return pod(ownerReferences=[{"kind": kind, "name": name, "controller": False}], **metadata)


def uids(*steps: dict[str, Any], **scenario: Any) -> tuple[str, str]:
    """Of the owner that pod p refers to, and of the only object of that kind that is there."""
    whole = read_scenario(msgspec.json.encode({**scenario, "steps": list(steps)}), source="test")
    with World(whole) as world:
        scenario_run = ScenarioRun(world, Plugins())
        for number, step in enumerate(whole.steps):
            scenario_run.take_step(step, path=f"steps[{number}]")
        pods = world.run_now(world.client.get_json("/api/v1/pods"))["items"]
        (owner,) = next(pod for pod in pods if pod["metadata"]["name"] == "p")["metadata"]["ownerReferences"]
        path = "/api/v1/nodes" if owner["kind"] == "Node" else "/apis/apps/v1/replicasets"
        (present,) = world.run_now(world.client.get_json(path))["items"]
        return owner["uid"], present["metadata"]["uid"]


def test_a_node_owns_pods_of_any_namespace():
    referred, present = uids(objects=[owned("Node", "n1", namespace="team"), node("n1")])
    assert referred == present


def test_an_owner_that_is_applied_again_is_another_one():
    before = replica_set(replicas=0)
    again = [{"delete": {"kind": "ReplicaSet", "name": "web"}}, {"apply": before}]
    _, first = uids({"apply": owned("ReplicaSet", "web")}, objects=[before])
    referred, second = uids(*again, {"apply": owned("ReplicaSet", "web")}, objects=[before])
    assert first != second
    assert referred == second


# ---- what the file says and what comes of it


def test_two_planned_crashes_both_come():
    both = [crash("kube-controller-manager", after=1), crash("kube-scheduler", after=1)]
    story = reported(*both, {"apply": replica_set(replicas=2)}, {"schedule": True}, nodeGroups=[group(target=1)])
    assert story.warnings == ()
    assert len(story.outcome["pods"]) == 2


def test_a_crash_at_once_leaves_the_planned_ones_to_come():
    steps = [crash("kube-controller-manager", after=1), crash("kube-scheduler")]
    assert reported(*steps, {"apply": replica_set(replicas=2)}).warnings == ()


def test_a_crash_that_never_comes_is_reported():
    (warning,) = reported(crash("kubelet", after=3)).warnings
    assert warning == "steps[0].crash did not happen: kubelet had 3 writes left"


def test_a_call_under_way_is_reported():
    fault = {"name": "f", "kind": "Late", "call": "IncreaseSize", "seconds": 600}
    cloud = {"apiVersion": "cloud.plimsoll.io/v1alpha1", "kind": "Cloud", "metadata": {"name": "cloud"}}
    steps = [
        {"apply": {**cloud, "spec": {"faults": [fault]}}},
        {"provider": {"calls": [{"call": "IncreaseSize", "group": "g", "arg": 1}]}},
        {"advance": "60s"},
    ]
    ended = outcome(*steps, nodeGroups=[group(target=1)])  # type: ignore[arg-type]
    assert ended["nodeGroups"]["g"]["target"] == 2
    (call,) = ended["providerCalls"]
    assert (call["ok"], call["message"]) == (False, "no answer yet")


def test_the_cloud_refuses_a_name_no_group_can_have():
    ended = outcome({"provider": {"calls": [{"call": "IncreaseSize", "group": "a/b", "arg": 1}]}})
    assert [(call["ok"], call["message"]) for call in ended["providerCalls"]] == [(False, "there is no node group a/b")]


def test_what_the_server_refuses_of_objects_is_reported_at_once():
    bodies = [pod("p"), {**pod("q"), "spec": {}}, {**pod("r"), "spec": {}}, {**pod("x/y")}]
    with pytest.raises(InvalidInput) as caught:
        outcome(objects=bodies)
    assert [line.split(": ")[0] for line in str(caught.value).splitlines()] == [
        "objects[1]",
        "objects[2]",
        "objects[3].metadata.name",
    ]


def test_what_the_server_refuses_of_what_is_applied_is_reported_at_once():
    with pytest.raises(InvalidInput) as caught:
        outcome({"apply": [{**pod("q"), "spec": {}}, pod("p"), {**pod("r"), "spec": {}}]})
    lines = str(caught.value).splitlines()
    assert [line.split(": ")[0] for line in lines] == ["steps[0].apply[0]", "steps[0].apply[2]"]


def test_the_status_of_a_defined_kind_is_judged_by_its_definition(reviewed: ReviewedSentences):
    body = {"apiVersion": "cloud.plimsoll.io/v1alpha1", "kind": "NodeGroup", "metadata": {"name": "g"}}
    body |= {"spec": {"max": 1, "machineType": "small"}, "status": {"nextNumber": "three"}}
    with pytest.raises(InvalidInput) as raised:
        outcome(objects=[body])
    reviewed(str(raised.value))
