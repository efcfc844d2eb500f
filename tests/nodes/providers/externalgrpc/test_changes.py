"""Changes through the provider protocol and our extension of it."""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll.nodes.model.call_outcomes import CallFailed, Done, FailureKind, NotImplementedByProvider
from plimsoll.nodes.providers.externalgrpc.codes import Code
from plimsoll.nodes.providers.ports import Created
from plimsoll.nodes.providers.values import NodeRef
from plimsoll.objects.api.simulated_cloud import NodeGroup
from tests.nodes.providers.externalgrpc.loopback_calls import WITHOUT_EXTENSION, RemoteProviderCluster
from tests.nodes.providers.simulated.simulated_clusters import blueprint, named


def kind_of(outcome: Any) -> FailureKind:
    assert isinstance(outcome, CallFailed)
    return outcome.kind


def test_growth_is_done_once_even_if_its_answer_was_lost():
    with RemoteProviderCluster() as world:
        world.group("g", target=3)
        group = world.refreshed()
        world.wire.losing = {"NodeGroupIncreaseSize": Code.DEADLINE_EXCEEDED}
        assert kind_of(world.do(group.increase_size(2, expected=3))) is FailureKind.UNKNOWN
        world.wire.losing = {}
        assert world.do(group.increase_size(2, expected=3)) == Done()
        assert world.get_group().spec.target == 5


def test_growth_from_a_size_that_was_changed_is_refused():
    with RemoteProviderCluster() as world:
        world.group("g", target=3)
        world.do(world.client.merge_patch(NodeGroup, "g", {"spec": {"target": 4}}))
        outcome = world.do(world.refreshed().increase_size(2, expected=3))
        assert outcome == CallFailed(kind=FailureKind.REFUSED, message="target of node group g is 4, not 3")


def test_growth_whose_question_was_lost_has_not_been_asked_for():
    with RemoteProviderCluster() as world:
        world.group("g")
        group = world.refreshed()
        world.wire.failing = {"NodeGroupTargetSize": Code.UNAVAILABLE}
        assert kind_of(world.do(group.increase_size(1, expected=0))) is FailureKind.FAILED
        assert world.calls() == []


def test_what_the_cloud_refuses_keeps_its_words():
    with RemoteProviderCluster() as world:
        world.group("g", max=2)
        outcome = world.do(world.refreshed().increase_size(3, expected=0))
        assert outcome == CallFailed(kind=FailureKind.REFUSED, message="size increase too large - desired:3 max:2")


def test_a_group_that_is_gone_is_named():
    with RemoteProviderCluster() as world:
        world.group("g")
        group = world.refreshed()
        world.do(world.client.delete(NodeGroup, "g"))
        world.do(world.near.refresh())
        outcome = world.do(group.increase_size(1, expected=0))
        assert outcome == CallFailed(kind=FailureKind.NO_SUCH_GROUP, message="there is no node group g")


def test_shrinking_and_removing():
    with RemoteProviderCluster() as world:
        world.group("g", target=2)
        group = world.refreshed()
        registered = NodeRef.from_node(world.node("g-0"))
        assert world.do(group.delete_nodes([registered])) == Done()
        assert world.nodes() == ["g-1"]
        world.do(world.client.merge_patch(NodeGroup, "g", {"spec": {"target": 3, "bootSeconds": 99}}))
        group = world.refreshed()
        assert world.do(group.decrease_target_size(-2, expected=3)) == Done()
        assert world.do(group.decrease_target_size(-2, expected=3)) == Done()
        assert world.get_group().spec.target == 1


def test_removing_below_the_minimum_takes_the_extension():
    with RemoteProviderCluster() as world:
        world.group("g", min=1, target=1)
        group = world.refreshed()
        assert kind_of(world.do(group.delete_nodes(named("g-0")))) is FailureKind.REFUSED
        assert world.do(group.force_delete_nodes(named("g-0"))) == Done()
        assert world.nodes() == []


def test_atomic_growth_out_of_stock_is_out_of_resources_also_over_the_wire():
    with RemoteProviderCluster(stock=[{"name": "s", "machineType": "small", "machines": 2}]) as world:
        world.group("g", atomic=True)
        group = world.refreshed()
        assert kind_of(world.do(group.atomic_increase_size(3, expected=0))) is FailureKind.OUT_OF_RESOURCES
        for _ in range(2):
            assert world.do(group.atomic_increase_size(2, expected=0)) == Done()
        assert world.get_group().spec.target == 2


def test_groups_are_made_and_deleted_through_the_extension():
    with RemoteProviderCluster() as world:
        group = world.do(world.provider.new_node_group(blueprint()))
        assert not isinstance(group, CallFailed | NotImplementedByProvider)
        assert (group.id, group.exists, group.max_size) == ("nap-small-1", False, 100)
        template = world.do(group.template_node_info())
        assert not isinstance(template, NotImplementedByProvider)
        assert template.metadata.labels["team"] == "red"
        for _ in range(2):
            assert world.do(group.create()) == Created(id="nap-small-1")
        there = world.do(world.provider.node_groups())[0]
        assert there.id == "nap-small-1"
        assert world.get_group("nap-small-1").spec.template.labels["team"] == "red"
        for _ in range(2):
            assert world.do(there.delete()) == Done()
        assert world.do(world.provider.node_groups()) == ()


def test_a_group_that_cannot_be_made_is_refused():
    with RemoteProviderCluster() as world:
        refused = world.do(world.provider.new_node_group(blueprint(machine_type="huge")))
        assert kind_of(refused) is FailureKind.REFUSED


def test_without_the_extension_nothing_of_it_is_there():
    with RemoteProviderCluster(missing=WITHOUT_EXTENSION) as world:
        world.group("g", target=1)
        group = world.refreshed()
        outcomes = [
            world.do(group.atomic_increase_size(1, expected=1)),
            world.do(group.force_delete_nodes(named("g-0"))),
            world.do(group.delete()),
            world.do(world.provider.new_node_group(blueprint())),
        ]
        calls = ("AtomicIncreaseSize", "ForceDeleteNodes", "Delete", "NewNodeGroup")
        assert outcomes == [NotImplementedByProvider(call=call) for call in calls]


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (Code.RESOURCE_EXHAUSTED, FailureKind.OUT_OF_RESOURCES),
        (Code.DEADLINE_EXCEEDED, FailureKind.UNKNOWN),
        (Code.UNAVAILABLE, FailureKind.UNKNOWN),
        (Code.UNKNOWN, FailureKind.FAILED),
        (Code.PERMISSION_DENIED, FailureKind.REFUSED),
    ],
)
def test_codes_of_foreign_servers_are_distinguished(code: Code, kind: FailureKind):
    with RemoteProviderCluster() as world:
        world.group("g")
        group = world.refreshed()
        world.wire.failing = {"NodeGroupIncreaseSize": code}
        assert kind_of(world.do(group.increase_size(1, expected=0))) is kind
