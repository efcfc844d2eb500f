"""Every change through the simulated provider: done once however often it is asked for, and failures distinguished."""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll.kube.errors import AnswerLost, Closed, Forbidden, NotAllowed, ServerFailed, Status
from plimsoll.nodes.model.call_outcomes import CallFailed, Done, FailureKind, NotImplementedByProvider
from plimsoll.nodes.model.instances import ErrorClass
from plimsoll.nodes.providers.ports import Created
from plimsoll.nodes.providers.values import NodeRef
from plimsoll.objects.api.nodes import Node
from plimsoll.objects.api.simulated_cloud import NodeGroup
from tests.narrowing import instance_of
from tests.nodes.providers.simulated.simulated_clusters import ProviderCluster, blueprint, named


def kind_of(outcome: Any) -> FailureKind:
    assert isinstance(outcome, CallFailed)
    return outcome.kind


# ---- growing


def test_growth_is_seen_at_once_without_a_refresh():
    with ProviderCluster() as world:
        world.group("g", target=3)
        group = world.refreshed()
        assert world.do(group.increase_size(2, expected=3)) == Done()
        assert world.do(group.target_size()) == 5
        assert len(world.do(group.nodes())) == 5


def test_growth_that_was_done_already_is_done_and_not_repeated():
    with ProviderCluster() as world:
        world.group("g", target=3)
        group = world.refreshed()
        world.do(group.increase_size(2, expected=3))
        assert world.do(world.restarted().node_groups())[0].id == "g"
        assert world.do(group.increase_size(2, expected=3)) == Done()
        assert world.get_group().spec.target == 5


def test_growth_from_a_size_that_was_changed_is_refused():
    with ProviderCluster() as world:
        world.group("g", target=3)
        group = world.refreshed()
        world.do(world.client.merge_patch(NodeGroup, "g", {"spec": {"target": 4}}))
        outcome = world.do(group.increase_size(2, expected=3))
        assert outcome == CallFailed(kind=FailureKind.REFUSED, message="target of node group g is 4, not 3")
        assert world.get_group().spec.target == 4


def test_growth_over_the_maximum_is_refused():
    with ProviderCluster() as world:
        world.group("g", max=2)
        outcome = world.do(world.refreshed().increase_size(3, expected=0))
        assert kind_of(outcome) is FailureKind.REFUSED
        assert world.calls() == [("IncreaseSize", "g", 3, False)]


def test_growth_that_timed_out_after_the_cloud_acted_is_unknown_and_asking_again_finds_it_done():
    fault = {"name": "late", "kind": "TimeOut", "call": "IncreaseSize", "seconds": 30, "times": 1}
    with ProviderCluster(faults=[fault]) as world:
        world.group("g", target=1)
        group = world.refreshed()
        outcome = world.do(group.increase_size(2, expected=1))
        assert kind_of(outcome) is FailureKind.UNKNOWN
        assert world.do(group.increase_size(2, expected=1)) == Done()
        assert world.get_group().spec.target == 3


def test_growth_that_the_cloud_fails_changes_nothing():
    fault = {"name": "no", "call": "IncreaseSize", "message": "the cloud is tired", "times": 1}
    with ProviderCluster(faults=[fault]) as world:
        world.group("g", target=1)
        group = world.refreshed()
        outcome = world.do(group.increase_size(2, expected=1))
        assert outcome == CallFailed(kind=FailureKind.FAILED, message="the cloud is tired")
        assert outcome.error_class is ErrorClass.OTHER
        assert world.do(group.target_size()) == 1


def test_atomic_growth_without_stock_for_all_is_out_of_resources():
    with ProviderCluster(stock=[{"name": "s", "machineType": "small", "machines": 2}]) as world:
        world.group("g", atomic=True)
        group = world.refreshed()
        assert world.do(group.can_increase_atomically())
        outcome = world.do(group.atomic_increase_size(3, expected=0))
        assert kind_of(outcome) is FailureKind.OUT_OF_RESOURCES
        assert isinstance(outcome, CallFailed)
        assert outcome.error_class is ErrorClass.OUT_OF_RESOURCES
        assert world.do(group.atomic_increase_size(2, expected=0)) == Done()
        assert world.do(group.atomic_increase_size(2, expected=0)) == Done()
        assert world.get_group().spec.target == 2


def test_a_group_that_does_not_grow_atomically_says_so():
    with ProviderCluster() as world:
        world.group("g")
        group = world.refreshed()
        assert not world.do(group.can_increase_atomically())
        expected = NotImplementedByProvider(call="AtomicIncreaseSize")
        assert world.do(group.atomic_increase_size(1, expected=0)) == expected


def test_a_change_to_a_group_that_is_gone_names_it():
    with ProviderCluster() as world:
        world.group("g")
        group = world.refreshed()
        world.do(world.client.delete(NodeGroup, "g"))
        assert kind_of(world.do(group.increase_size(1, expected=0))) is FailureKind.NO_SUCH_GROUP
        assert world.do(world.provider.node_groups()) == ()


# ---- shrinking


def test_giving_up_on_machines_that_never_came_is_done_once():
    with ProviderCluster() as world:
        world.group("g", target=2)
        world.do(world.client.merge_patch(NodeGroup, "g", {"spec": {"target": 4, "bootSeconds": 99}}))
        group = world.refreshed()
        assert kind_of(world.do(group.decrease_target_size(-3, expected=4))) is FailureKind.REFUSED
        assert world.do(group.decrease_target_size(-2, expected=4)) == Done()
        assert world.do(group.decrease_target_size(-2, expected=4)) == Done()
        assert world.get_group().spec.target == 2


def test_removing_nodes_by_name_and_by_provider_id():
    with ProviderCluster() as world:
        world.group("g", target=3)
        group = world.refreshed()
        ids = {instance.name: instance.id for instance in world.do(group.nodes())}
        unregistered = NodeRef(provider_id=ids["g-2"], name=ids["g-2"])
        assert world.do(group.delete_nodes([*named("g-0"), unregistered])) == Done()
        assert (world.nodes(), world.do(group.target_size())) == (["g-1"], 1)


def test_removing_nodes_that_are_gone_is_done_without_asking():
    with ProviderCluster() as world:
        world.group("g", target=2)
        group = world.refreshed()
        world.do(group.delete_nodes(named("g-0")))
        assert world.do(group.delete_nodes(named("g-0"))) == Done()
        assert world.do(group.force_delete_nodes(named("g-0"))) == Done()
        assert (world.nodes(), world.get_group().spec.target) == (["g-1"], 1)
        assert world.calls() == [("DeleteNodes", "g", ("g-0",), True)]


def test_removing_a_node_of_another_group_is_refused():
    with ProviderCluster() as world:
        world.group("g", target=1)
        world.group("h", target=1)
        assert kind_of(world.do(world.refreshed().delete_nodes(named("g-0", "h-0")))) is FailureKind.REFUSED
        assert world.nodes() == ["g-0", "h-0"]


def test_only_force_goes_below_the_minimum():
    with ProviderCluster() as world:
        world.group("g", min=1, target=1)
        group = world.refreshed()
        assert kind_of(world.do(group.delete_nodes(named("g-0")))) is FailureKind.REFUSED
        assert world.do(group.force_delete_nodes(named("g-0"))) == Done()
        assert world.calls()[-1] == ("ForceDeleteNodes", "g", ("g-0",), True)


# ---- groups


def made(world: ProviderCluster, **changes: Any) -> Any:
    return world.do(world.provider.new_node_group(blueprint(**changes)))


def test_a_theoretical_group_is_nowhere_until_it_is_made():
    with ProviderCluster() as world:
        group = made(world)
        assert (group.exists, group.autoprovisioned, world.do(group.target_size())) == (False, True, 0)
        assert world.do(world.provider.node_groups()) == ()
        template = world.do(group.template_node_info())
        assert template.metadata.labels["team"] == "red"
        assert template.metadata.labels["node.kubernetes.io/instance-type"] == "small"
        assert kind_of(world.do(group.increase_size(1, expected=0))) is FailureKind.REFUSED
        assert world.calls() == []


def test_a_made_group_has_the_labels_taints_and_marks_of_auto_provisioning():
    with ProviderCluster() as world:
        group = made(world, zones=("b",))
        assert world.do(group.create()) == Created(id="nap-small-1")
        assert group.exists
        there = world.do(world.provider.node_groups())[0]
        assert (there.id, there.min_size, there.max_size) == ("nap-small-1", 0, 100)
        assert (there.autoprovisioned, there.autoscaled) == (True, False)
        world.do(there.increase_size(1, expected=0))
        world.after(30)
        node = world.node("nap-small-1-0")
        assert node.metadata.labels["team"] == "red"
        assert node.metadata.labels["topology.kubernetes.io/zone"] == "b"
        assert node.metadata.labels["autoscaling.x-k8s.io/autoprovisioned"] == "true"
        assert node.metadata.labels["autoscaling.x-k8s.io/profile"]
        assert [(taint.key, taint.value) for taint in node.spec.taints] == [("dedicated", "red")]


def test_a_real_node_of_a_made_group_looks_like_its_template():
    with ProviderCluster() as world:
        group = made(world)
        theory = instance_of(Node, world.do(group.template_node_info()))
        world.do(group.create())
        there = world.do(world.provider.node_groups())[0]
        template = instance_of(Node, world.do(there.template_node_info()))
        own = {"kubernetes.io/hostname", "cluster-autoscaler.kubernetes.io/template-node"}
        stated = {key: value for key, value in theory.metadata.labels.items() if key not in own}
        assert stated.items() <= template.metadata.labels.items()
        assert theory.spec.taints == template.spec.taints


def test_making_a_group_again_after_a_lost_answer_finds_it_made():
    fault = {"name": "late", "kind": "TimeOut", "call": "Create", "seconds": 30, "times": 1}
    with ProviderCluster(faults=[fault]) as world:
        group = made(world)
        assert kind_of(world.do(group.create())) is FailureKind.UNKNOWN
        assert world.do(group.create()) == Created(id="nap-small-1")
        assert len(world.do(world.provider.node_groups())) == 1


def test_another_group_of_the_same_id_is_in_the_way():
    with ProviderCluster() as world:
        world.group("nap-small-1")
        assert kind_of(world.do(made(world).create())) is FailureKind.REFUSED


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"machine_type": "huge"}, "machine type huge is not sold here"),
        ({"zones": ("z",)}, "machine type small is not sold in zone z"),
        ({"id": "nap_small_1"}, "nap_small_1 cannot be the id of a group"),
        ({"id": "n" * 60}, "cannot be the id of a group"),
    ],
)
def test_an_illegal_configuration_is_refused_before_anything_is_made(changes: dict[str, Any], why: str):
    with ProviderCluster() as world:
        refused = made(world, **changes)
        assert kind_of(refused) is FailureKind.REFUSED
        assert why in refused.message


def test_deleting_a_group_works_when_it_is_empty_and_again_when_it_is_gone():
    with ProviderCluster() as world:
        world.group("g", target=1)
        group = world.refreshed()
        assert kind_of(world.do(group.delete())) is FailureKind.REFUSED
        world.do(group.delete_nodes(named("g-0")))
        assert world.do(group.delete()) == Done()
        assert world.do(group.delete()) == Done()
        assert world.do(world.provider.node_groups()) == ()


# ---- the server between us and the cloud


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (AnswerLost("connection reset"), FailureKind.UNKNOWN),
        (ServerFailed(Status(code=503, message="try later")), FailureKind.UNKNOWN),
        (Closed("we are stopping"), FailureKind.FAILED),
        (Forbidden(Status(code=403, message="no")), FailureKind.FAILED),
    ],
)
def test_trouble_with_the_api_server_is_distinguished_by_whether_it_may_have_acted(
    error: Exception, kind: FailureKind, monkeypatch: pytest.MonkeyPatch
):
    with ProviderCluster() as world:
        world.group("g")
        group = world.refreshed()

        async def failing(*_args: Any, **_named: Any) -> None:
            raise error

        monkeypatch.setattr(world.cloud, "increase_size", failing)
        assert kind_of(world.do(group.increase_size(1, expected=0))) is kind


def test_our_own_brake_is_not_an_outcome(monkeypatch: pytest.MonkeyPatch):
    with ProviderCluster() as world:
        world.group("g")
        group = world.refreshed()

        async def braked(*_args: Any, **_named: Any) -> None:
            raise NotAllowed("the lease is not ours")

        monkeypatch.setattr(world.cloud, "increase_size", braked)
        with pytest.raises(NotAllowed):
            world.do(group.increase_size(1, expected=0))
