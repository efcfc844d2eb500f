"""Reads through the provider protocol, and what a client remembers of them."""

from __future__ import annotations

import pytest

from plimsoll.nodes.model.call_outcomes import NotImplementedByProvider
from plimsoll.nodes.model.instances import ErrorClass, InstanceState
from plimsoll.nodes.providers.externalgrpc.codes import Code
from plimsoll.nodes.providers.values import NodeRef, ProviderFailed
from plimsoll.objects.api.pods import Container, Pod, PodSpec, ResourceRequirements
from tests.local.cloud.builders import SMALL
from tests.nodes.providers.externalgrpc.loopback_calls import WITHOUT_EXTENSION, RemoteProviderCluster
from tests.nodes.providers.simulated.simulated_clusters import AN_HOUR, DEFAULTS

POD = Pod(spec=PodSpec(containers=(Container(name="c", resources=ResourceRequirements(requests={"cpu": "2"})),)))


def test_groups_come_over_the_wire_without_their_origin():
    with RemoteProviderCluster() as world:
        world.group("b", min=1, max=4, target=1)
        world.group("a")
        world.do(world.provider.refresh())
        found = [(group.id, group.min_size, group.max_size, group.autoprovisioned) for group in _groups(world)]
        assert found == [("a", 0, 10, None), ("b", 1, 4, None)]


def test_groups_that_are_not_to_be_autoscaled_are_not_shown():
    with RemoteProviderCluster() as world:
        world.group("hand", target=1, autoscaled=False)
        world.group("nap", autoscaled=False, autoprovisioned=True)
        world.do(world.provider.refresh())
        assert [group.id for group in _groups(world)] == ["nap"]
        assert world.do(world.provider.node_group_for_node(NodeRef.from_node(world.node("hand-0")))) is None


def test_groups_are_asked_for_once_between_refreshes():
    with RemoteProviderCluster() as world:
        world.group("a")
        for _ in range(2):
            world.do(world.provider.refresh())
            _groups(world)
            _groups(world)
        assert world.wire.called == ["Refresh", "NodeGroups"] * 2


def test_the_group_of_a_node_is_remembered_until_the_next_refresh_but_not_that_it_has_none():
    with RemoteProviderCluster() as world:
        world.group("g", target=1)
        ours, stranger = NodeRef.from_node(world.node("g-0")), NodeRef(provider_id="x://1", name="x")
        for _ in range(2):
            group = world.do(world.provider.node_group_for_node(ours))
            assert group is not None
            assert group.id == "g"
            assert world.do(world.provider.node_group_for_node(stranger)) is None
        assert world.wire.called == ["NodeGroupForNode"] * 3
        world.do(world.provider.refresh())
        world.do(world.provider.node_group_for_node(ours))
        assert world.wire.called[-1] == "NodeGroupForNode"


def test_accelerators_are_asked_for_once_for_ever():
    with RemoteProviderCluster(machineTypes=[{**SMALL, "labels": {"cloud.plimsoll.io/accelerator": "t4"}}]) as world:
        for _ in range(2):
            world.do(world.provider.refresh())
            assert world.do(world.provider.gpu_label()) == "cloud.plimsoll.io/accelerator"
            assert world.do(world.provider.get_available_gpu_types()) == ("t4",)
        assert world.wire.called == ["Refresh", "GPULabel", "GetAvailableGPUTypes", "Refresh"]


def test_sizes_and_instances_are_never_remembered():
    with RemoteProviderCluster(stock=[{"name": "s", "machineType": "small", "machines": 1}]) as world:
        world.group("g", target=2, bootSeconds=60)
        group = world.refreshed()
        first, second = world.do(group.nodes())
        assert (first.state, first.error) == (InstanceState.CREATING, None)
        assert second.error is not None
        assert second.error.error_class is ErrorClass.OUT_OF_RESOURCES
        world.do(group.nodes())
        assert world.do(group.target_size()) == 2
        assert world.wire.called.count("NodeGroupNodes") == 2


def test_a_template_is_the_node_of_the_provider():
    with RemoteProviderCluster() as world:
        world.group("g", template={"labels": {"team": "red"}, "taints": [{"key": "k", "effect": "NoSchedule"}]})
        far = world.do(world.refreshed().template_node_info())
        near = world.do(world.do(world.near.node_groups())[0].template_node_info())
        assert not isinstance(far, NotImplementedByProvider)
        assert not isinstance(near, NotImplementedByProvider)
        assert (far.metadata, far.spec, far.status) == (near.metadata, near.spec, near.status)


def test_options_travel_both_ways():
    with RemoteProviderCluster() as world:
        world.group("g", zeroOrMax=True)
        options = world.do(world.refreshed().get_options(DEFAULTS))
        assert not isinstance(options, NotImplementedByProvider)
        assert (options.zero_or_max, options.unneeded_s, options.startup_s) == (True, 600.0, 900.0)


def test_prices_of_nodes_and_pods():
    with RemoteProviderCluster() as world:
        world.group("g", target=1, price=0.5)
        node = NodeRef.from_node(world.node("g-0"))
        assert world.do(world.provider.node_price(node, AN_HOUR)) == 0.5
        assert world.do(world.provider.pod_price(POD, AN_HOUR)) == pytest.approx(2 * 0.033174)


OPTIONAL = ("PricingNodePrice", "PricingPodPrice", "NodeGroupTemplateNodeInfo", "NodeGroupGetOptions")


def test_what_a_server_does_not_have_is_an_answer():
    with RemoteProviderCluster(missing=OPTIONAL) as world:
        world.group("g", target=1)
        group = world.refreshed()
        node = NodeRef.from_node(world.node("g-0"))
        assert world.do(world.provider.node_price(node, AN_HOUR)) == NotImplementedByProvider(call="NodePrice")
        assert world.do(world.provider.pod_price(POD, AN_HOUR)) == NotImplementedByProvider(call="PodPrice")
        assert world.do(group.template_node_info()) == NotImplementedByProvider(call="TemplateNodeInfo")
        assert world.do(group.get_options(DEFAULTS)) == NotImplementedByProvider(call="GetOptions")
        assert world.do(world.provider.has_instance(node)) == NotImplementedByProvider(call="HasInstance")


def test_a_missing_call_is_tried_again_only_after_a_refresh():
    with RemoteProviderCluster(missing=WITHOUT_EXTENSION) as world:
        for _ in range(2):
            assert isinstance(world.do(world.provider.get_machine_types()), NotImplementedByProvider)
        assert world.wire.called == ["MachineTypes"]
        world.wire.missing = ()
        world.do(world.provider.refresh())
        types = world.do(world.provider.get_machine_types())
        assert not isinstance(types, NotImplementedByProvider)
        assert [type_.name for type_ in types] == ["large", "small"]


def test_machine_types_come_whole_and_say_what_ids_may_be():
    with RemoteProviderCluster() as world:
        assert world.provider.naming.underscores
        assert world.do(world.provider.get_machine_types()) == world.do(world.near.get_machine_types())
        assert world.provider.naming == world.near.naming


def test_whether_a_group_grows_atomically_is_found_out_without_growing_it():
    with RemoteProviderCluster() as world:
        world.group("yes", atomic=True)
        world.group("no")
        assert world.do(world.refreshed("yes").can_increase_atomically())
        assert not world.do(world.refreshed("no").can_increase_atomically())
        assert world.calls() == []


def test_a_server_without_the_extension_has_no_atomic_growth():
    with RemoteProviderCluster(missing=WITHOUT_EXTENSION) as world:
        world.group("g", atomic=True)
        assert not world.do(world.refreshed().can_increase_atomically())


@pytest.mark.parametrize("code", [Code.UNAVAILABLE, Code.DEADLINE_EXCEEDED, Code.INTERNAL])
def test_a_read_that_fails_ends_the_turn(code: Code):
    with RemoteProviderCluster() as world:
        world.group("g")
        group = world.refreshed()
        world.wire.failing = {"NodeGroupTargetSize": code, "Refresh": code, "PricingNodePrice": code}
        with pytest.raises(ProviderFailed, match=code.name):
            world.do(group.target_size())
        with pytest.raises(ProviderFailed):
            world.do(world.provider.refresh())
        with pytest.raises(ProviderFailed):
            world.do(world.provider.node_price(NodeRef(provider_id="", name="n"), AN_HOUR))


def test_cleaning_up_closes_the_connection_whatever_the_server_says():
    with RemoteProviderCluster() as world:
        world.wire.failing = {"Cleanup": Code.UNAVAILABLE}
        with pytest.raises(ProviderFailed):
            world.do(world.provider.cleanup())
        assert world.wire.is_closed


def _groups(world: RemoteProviderCluster):
    return world.do(world.provider.node_groups())
