"""What the simulated provider reports of groups, nodes, machine types and prices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from msgspec import structs

from plimsoll.kube.errors import NotSent
from plimsoll.nodes.model.call_outcomes import NotImplementedByProvider
from plimsoll.nodes.model.group_names import Making, generate_group_id
from plimsoll.nodes.model.instances import ErrorClass, InstanceState
from plimsoll.nodes.model.snapshot import CapacityType
from plimsoll.nodes.providers.ports import NodeOwner
from plimsoll.nodes.providers.simulated.provider import SimulatedProvider
from plimsoll.nodes.providers.values import NodeRef, ProviderFailed
from plimsoll.objects.api.pods import Pod
from plimsoll.objects.api.simulated_cloud import Cloud, NodeGroup
from plimsoll.objects.codec.decoding import convert_object
from tests.local.cloud.builders import LARGE, SMALL
from tests.nodes.providers.simulated.simulated_clusters import AN_HOUR, DEFAULTS, ProviderCluster

if TYPE_CHECKING:
    from tests.golden.reviewed_sentences import ReviewedSentences

GPU = {
    "name": "gpu",
    "cpu": 8,
    "memory": "30Gi",
    "gpu": {"nvidia.com/gpu": 2},
    "labels": {"cloud.plimsoll.io/accelerator": "t4"},
    "price": 1.0,
    "zones": ["b"],
}


def test_groups_come_by_id_with_their_bounds_and_marks():
    with ProviderCluster() as world:
        world.group("b", min=1, max=4, target=1, autoscaled=False)
        world.group("a", max=7, autoprovisioned=True)
        world.do(world.provider.refresh())
        found = [
            (group.id, group.min_size, group.max_size, group.exists, group.autoprovisioned, group.autoscaled)
            for group in world.do(world.provider.node_groups())
        ]
        assert found == [("a", 0, 7, True, True, True), ("b", 1, 4, True, False, False)]


def test_a_node_belongs_to_the_group_of_its_machine():
    with ProviderCluster() as world:
        world.group("g", target=1)
        node = NodeRef.from_node(world.node("g-0"))
        assert world.do(world.provider.has_instance(node)) is True
        group = world.do(world.provider.node_group_for_node(node))
        assert group is not None
        assert group.id == "g"


def test_a_node_without_a_machine_belongs_to_the_group_its_label_names():
    with ProviderCluster() as world:
        world.group("g")
        node = NodeRef(provider_id="other://1", name="n", labels={"cloud.plimsoll.io/node-group": "g"})
        group = world.do(world.provider.node_group_for_node(node))
        assert group is not None
        assert group.id == "g"
        assert world.do(world.provider.has_instance(node)) is False


def test_a_node_without_a_group_is_not_ours():
    with ProviderCluster() as world:
        world.group("g", target=1)
        stranger = NodeRef(provider_id="", name="master", labels={"cloud.plimsoll.io/node-group": "gone"})
        assert world.do(world.provider.node_group_for_node(stranger)) is None


def test_of_all_nodes_at_once_it_says_what_it_says_of_each():
    with ProviderCluster() as world:
        world.group("g", target=1)
        nodes = [
            NodeRef.from_node(world.node("g-0")),
            NodeRef(provider_id="other://1", name="n", labels={"cloud.plimsoll.io/node-group": "g"}),
            NodeRef(provider_id="", name="master", labels={"cloud.plimsoll.io/node-group": "gone"}),
            NodeRef(provider_id="", name="alone"),
        ]
        found = world.do(world.provider.find_owners(nodes))
        pod_by_pod = {
            node.name: NodeOwner(group=group.id, has_instance=world.do(world.provider.has_instance(node)))  # type: ignore[arg-type]
            for node in nodes
            if (group := world.do(world.provider.node_group_for_node(node))) is not None
        }
        assert found == pod_by_pod
        assert [*found] == ["g-0", "n"]


def test_instances_report_their_state_and_why_they_do_not_come():
    with ProviderCluster(stock=[{"name": "s", "machineType": "small", "machines": 1}]) as world:
        world.group("g", target=2, bootSeconds=60)
        first, second = world.do(world.refreshed().nodes())
        assert (first.name, first.state, first.error) == ("g-0", InstanceState.CREATING, None)
        assert second.state is InstanceState.CREATING
        assert second.error is not None
        assert (second.error.error_class, second.error.code) == (
            ErrorClass.OUT_OF_RESOURCES,
            "RESOURCE_POOL_EXHAUSTED",
        )
        world.after(60)
        assert world.do(world.refreshed().nodes())[0].state is InstanceState.RUNNING


def test_reads_between_refreshes_ask_the_server_nothing():
    with ProviderCluster() as world:
        world.group("g", target=1)
        group = world.refreshed()
        world.do(group.template_node_info())
        world.do(world.client.merge_patch(NodeGroup, "g", {"spec": {"target": 3}}))
        assert world.do(group.target_size()) == 1
        assert len(world.do(group.nodes())) == 1
        group = world.refreshed()
        assert (world.do(group.target_size()), len(world.do(group.nodes()))) == (3, 3)


def test_a_template_is_asked_for_again_only_when_what_it_is_made_of_changes(monkeypatch: pytest.MonkeyPatch):
    with ProviderCluster() as world:
        world.group("g", template={"labels": {"team": "red"}})
        asked: list[str] = []
        real = world.cloud.build_template_node

        async def counting(group: str) -> Any:
            asked.append(group)
            return await real(group)

        monkeypatch.setattr(world.cloud, "build_template_node", counting)
        world.do(world.refreshed().template_node_info())
        world.do(world.client.merge_patch(NodeGroup, "g", {"spec": {"target": 1, "max": 20}}))
        world.do(world.refreshed().template_node_info())
        assert asked == ["g"]
        world.do(world.client.merge_patch(NodeGroup, "g", {"spec": {"template": {"labels": {"team": "blue"}}}}))
        template = world.do(world.refreshed().template_node_info())
        assert not isinstance(template, NotImplementedByProvider)
        assert template.metadata.labels["team"] == "blue"
        world.patch_cloud(machineTypes=[{**SMALL, "cpu": 3}])
        template = world.do(world.refreshed().template_node_info())
        assert not isinstance(template, NotImplementedByProvider)
        assert template.status.capacity["cpu"] == "3"


def test_a_group_of_an_unknown_machine_type_has_no_template_and_affects_no_other():
    with ProviderCluster() as world:
        world.group("g", machineType="nobody-has-it")
        world.group("h")
        assert world.do(world.refreshed("g").template_node_info()) == NotImplementedByProvider(call="TemplateNodeInfo")
        assert not isinstance(world.do(world.refreshed("h").template_node_info()), NotImplementedByProvider)


def test_options_of_a_group_say_when_it_is_all_or_nothing():
    with ProviderCluster() as world:
        world.group("g", zeroOrMax=True)
        world.group("h")
        assert world.do(world.refreshed("g").get_options(DEFAULTS)) == structs.replace(DEFAULTS, zero_or_max=True)
        assert world.do(world.refreshed("h").get_options(DEFAULTS)) == DEFAULTS


def test_machine_types_are_described_whole_in_one_answer():
    with ProviderCluster(machineTypes=[SMALL, {**GPU, "capacityType": "spot"}]) as world:
        types = world.do(world.provider.get_machine_types())
        assert not isinstance(types, NotImplementedByProvider)
        gpu, small = sorted(types, key=lambda type_: type_.name)
        assert (small.price_per_hour, small.zones, dict(small.capacity)) == (
            0.1,
            ("a", "b"),
            {"cpu": 2000, "memory": 8 << 30, "pods": 110},
        )
        assert (gpu.zones, gpu.capacity["nvidia.com/gpu"], gpu.capacity_type) == (("b",), 2, CapacityType.SPOT)


def test_prices_are_those_of_the_group_or_else_of_the_type():
    with ProviderCluster() as world:
        world.group("g", target=1, price=0.5)
        world.group("h", target=1)
        world.do(world.provider.refresh())
        prices = [
            world.do(world.provider.node_price(NodeRef.from_node(world.node(n)), AN_HOUR)) for n in ("g-0", "h-0")
        ]
        assert prices == [0.5, 0.1]
        by_type = NodeRef(provider_id="", name="x", labels={"node.kubernetes.io/instance-type": "large"})
        assert world.do(world.provider.node_price(by_type, AN_HOUR)) == LARGE["price"]
        assert world.do(world.provider.node_price(NodeRef(provider_id="", name="x"), AN_HOUR)) is None


def test_a_pod_costs_what_its_requests_cost():
    with ProviderCluster() as world:
        requests = {"cpu": "2", "memory": "1Gi"}
        pod = _pod(requests)
        price = world.do(world.provider.pod_price(pod, AN_HOUR))
        assert price == pytest.approx(2 * 0.033174 + 0.004446)


def test_accelerators_are_known_by_their_label():
    with ProviderCluster(machineTypes=[GPU]) as world:
        world.group("g", target=1, machineType="gpu")
        assert world.do(world.provider.gpu_label()) == "cloud.plimsoll.io/accelerator"
        assert world.do(world.provider.get_available_gpu_types()) == ("t4",)


def test_new_ids_fit_into_the_names_of_nodes():
    with ProviderCluster() as world:
        making = Making(labels={}, taints=(), zone="", second=1)
        name = generate_group_id("nodeautoprovisioning", "n1_" + "x" * 80, making, naming=world.provider.naming)
        assert len(f"{name}-12345678") <= 63
        assert "_" not in name


class _UnavailableCloud:
    """A cloud whose server is not there."""

    async def node_groups(self) -> tuple[NodeGroup, ...]:
        raise NotSent("connection refused")


def test_a_cloud_that_cannot_be_asked_ends_the_turn_and_what_was_known_is_not_used(
    monkeypatch: pytest.MonkeyPatch, reviewed: ReviewedSentences
):
    with ProviderCluster() as world:
        world.group("g", target=1)
        group = world.refreshed()
        real = world.cloud.node_groups
        monkeypatch.setattr(world.cloud, "node_groups", _UnavailableCloud().node_groups)
        with pytest.raises(ProviderFailed) as raised:
            world.do(world.provider.refresh())
        reviewed(str(raised.value))
        with pytest.raises(ProviderFailed):
            world.do(group.target_size())
        monkeypatch.setattr(world.cloud, "node_groups", real)
        assert world.do(group.target_size()) == 1


def test_a_cloud_object_that_is_missing_sells_nothing_and_breaks_nothing():
    with ProviderCluster() as world:
        world.do(world.client.delete(Cloud, "cloud"))
        provider = SimulatedProvider(world.cloud)
        world.do(provider.refresh())
        assert world.do(provider.get_machine_types()) == ()


def _pod(requests: dict[str, str]) -> Pod:
    body = {
        "metadata": {"name": "p", "namespace": "default"},
        "spec": {"containers": [{"name": "c", "resources": {"requests": requests}}]},
    }
    found = convert_object(Pod, body)
    assert isinstance(found, Pod)
    return found
