"""The rules of the provider interface, and its log."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from plimsoll.local.cloud.faults.call_log import CallRecord
from plimsoll.objects.api.simulated_cloud import NodeGroup, NodeGroupSpec
from plimsoll.objects.api.simulated_cloud_errors import CloudRefused, NoSuchGroup, NotSupported
from tests.local.cloud.builders import CloudCluster, at

if TYPE_CHECKING:
    from plimsoll.local.cloud.api import SimulatedCloud


def test_growing_raises_the_target_once():
    with CloudCluster() as world:
        world.group("g", target=1)
        world.do(world.cloud.increase_size("g", 2))
        assert world.do(world.cloud.target_size("g")) == 3
        assert len(world.nodes()) == 3


@pytest.mark.parametrize("delta", [0, -1])
def test_growth_is_positive(delta: int):
    with CloudCluster() as world:
        world.group("g", target=1)
        with pytest.raises(CloudRefused, match=f"must be positive, is {delta}"):
            world.do(world.cloud.increase_size("g", delta))


def test_growth_over_the_maximum_is_an_error_and_does_nothing():
    with CloudCluster() as world:
        world.group("g", target=1, max=3)
        with pytest.raises(CloudRefused, match="size increase too large - desired:4 max:3"):
            world.do(world.cloud.increase_size("g", 3))
        assert world.do(world.cloud.target_size("g")) == 1


def test_deleting_nodes_takes_them_and_lowers_the_target():
    with CloudCluster() as world:
        world.group("g", target=3)
        provider_id = world.machines()["g-2"].spec.provider_id
        world.do(world.cloud.delete_nodes("g", ["g-0", provider_id]))
        assert (world.nodes(), world.do(world.cloud.target_size("g"))) == (["g-1"], 1)
        assert world.get_group().spec.deletions == ()


def test_deleting_below_the_minimum_is_refused_whole_unless_forced():
    with CloudCluster() as world:
        world.group("g", target=3, min=2)
        with pytest.raises(CloudRefused, match="min size reached"):
            world.do(world.cloud.delete_nodes("g", ["g-0", "g-1"]))
        assert len(world.nodes()) == 3
        world.do(world.cloud.force_delete_nodes("g", ["g-0", "g-1"]))
        assert (world.nodes(), world.do(world.cloud.target_size("g"))) == (["g-2"], 1)


def test_deleting_a_node_of_another_group_is_refused():
    with CloudCluster() as world:
        world.group("g", target=1)
        world.group("h", target=1)
        with pytest.raises(CloudRefused, match="node h-0 does not belong to node group g"):
            world.do(world.cloud.delete_nodes("g", ["g-0", "h-0"]))
        assert world.nodes() == ["g-0", "h-0"]


def test_deleting_twice_lowers_the_target_once():
    with CloudCluster(started=False) as world:
        world.group("g", target=2)
        world.start()
        world.stop()
        world.do(world.cloud.delete_nodes("g", ["g-0"]))
        world.do(world.cloud.delete_nodes("g", ["g-0"]))
        assert world.do(world.cloud.target_size("g")) == 1


def test_decreasing_gives_up_only_what_is_not_there_yet():
    with CloudCluster() as world:
        world.group("g", target=2)
        world.do(world.client.merge_patch(type(world.get_group()), "g", {"spec": {"target": 4, "bootSeconds": 99}}))
        with pytest.raises(CloudRefused, match="attempt to delete existing nodes: target 4 delta -3 existing 2"):
            world.do(world.cloud.decrease_target_size("g", -3))
        world.do(world.cloud.decrease_target_size("g", -2))
        assert world.states() == {"g-0": "running", "g-1": "running"}
        with pytest.raises(CloudRefused, match="must be negative, is 1"):
            world.do(world.cloud.decrease_target_size("g", 1))


def test_atomic_growth_is_all_or_nothing():
    with CloudCluster(stock=[{"name": "s", "machineType": "small", "machines": 3}]) as world:
        world.group("g", target=1, atomic=True)
        with pytest.raises(CloudRefused, match=r"RESOURCE_POOL_EXHAUSTED.*room for 2 of 3"):
            world.do(world.cloud.atomic_increase_size("g", 3))
        assert world.states() == {"g-0": "running"}
        world.do(world.cloud.atomic_increase_size("g", 2))
        assert world.states() == {"g-0": "running", "g-1": "running", "g-2": "running"}


def test_atomic_growth_counts_what_others_were_promised():
    with CloudCluster(stock=[{"name": "s", "machineType": "small", "machines": 3}], started=False) as world:
        world.group("a", target=0)
        world.group("z", target=0, atomic=True)
        world.do(world.cloud.increase_size("a", 2))
        with pytest.raises(CloudRefused, match="room for 1 of 2"):
            world.do(world.cloud.atomic_increase_size("z", 2))
        world.do(world.cloud.atomic_increase_size("z", 1))
        world.do(world.cloud.increase_size("a", 5))
        world.start()
        assert world.states()["z-0"] == "running"


def test_groups_that_do_not_grow_atomically_say_so():
    with CloudCluster() as world:
        world.group("g")
        with pytest.raises(NotSupported):
            world.do(world.cloud.atomic_increase_size("g", 1))


def test_instances_are_reported_as_an_autoscaler_knows_them():
    with CloudCluster(stock=[{"name": "s", "machineType": "small", "machines": 1}]) as world:
        world.group("g", target=2, bootSeconds=60)
        first, second = world.do(world.cloud.list_instances("g"))
        assert (first.name, first.state, first.error) == ("g-0", "creating", None)
        assert second.state == "creating"
        assert second.error is not None
        assert (second.error.class_, second.error.code) == ("OutOfResourcesErrorClass", "RESOURCE_POOL_EXHAUSTED")
        world.after(60)
        assert world.do(world.cloud.list_instances("g"))[0].state == "running"


def test_a_template_is_the_node_the_group_would_give():
    with CloudCluster() as world:
        world.group("g", machineType="large", template={"labels": {"team": "red"}})
        template = world.do(world.cloud.build_template_node("g"))
        assert template.metadata.labels["team"] == "red"
        assert template.status.allocatable == {"cpu": "8", "memory": "32Gi", "pods": "110"}
        world.do(world.cloud.increase_size("g", 1))
        node = world.node("g-0")
        assert node.status.capacity == template.status.capacity
        assert node.spec.taints == template.spec.taints


def test_prices_are_those_of_the_group_or_else_of_the_type():
    with CloudCluster() as world:
        world.group("g", target=1, price=0.5)
        world.group("h", target=1)
        assert world.do(world.cloud.node_price(world.node("g-0"))) == 0.5
        assert world.do(world.cloud.node_price(world.node("h-0"), seconds=36)) == pytest.approx(0.001)


def test_groups_are_created_and_deleted_when_empty():
    with CloudCluster() as world:
        spec = NodeGroupSpec(max=4, machine_type="small", autoprovisioned=True, boot_seconds=0)
        world.do(world.cloud.create_group("nap", spec))
        with pytest.raises(CloudRefused, match="there is a node group nap already"):
            world.do(world.cloud.create_group("nap", spec))
        world.do(world.cloud.increase_size("nap", 1))
        with pytest.raises(CloudRefused, match="not empty"):
            world.do(world.cloud.delete_group("nap"))
        world.do(world.cloud.delete_nodes("nap", ["nap-0"]))
        world.do(world.cloud.delete_group("nap"))
        assert world.do(world.cloud.node_groups()) == ()
        with pytest.raises(NoSuchGroup):
            world.do(world.cloud.increase_size("nap", 1))


def test_machine_types_are_those_of_catalogues_and_inline():
    with CloudCluster(catalogues=["gce-n1"]) as world:
        names = [type_.name for type_ in world.do(world.cloud.list_machine_types())]
        assert names == sorted(names)
        assert {"small", "large", "n1-highmem-64"} <= set(names)


def test_every_changing_call_is_logged_also_when_refused():
    with CloudCluster() as world:
        world.group("g", target=1, max=2)
        world.do(world.cloud.increase_size("g", 1))
        world.after(5)
        with pytest.raises(CloudRefused):
            world.do(world.cloud.increase_size("g", 1))
        world.do(world.cloud.delete_nodes("g", ["g-0"]))
        assert list(world.log) == [
            CallRecord(time=at(0), group="g", call="IncreaseSize", arg=1, ok=True),
            CallRecord(
                time=at(5),
                group="g",
                call="IncreaseSize",
                arg=1,
                ok=False,
                message="size increase too large - desired:3 max:2",
            ),
            CallRecord(time=at(5), group="g", call="DeleteNodes", arg=("g-0",), ok=True),
        ]


@pytest.mark.parametrize("name", ["a/b", "A", "", "x" * 300])
def test_a_name_that_no_group_can_have_is_that_of_no_group(name: str):
    with CloudCluster() as world:
        for call in (
            world.cloud.increase_size(name, 1),
            world.cloud.atomic_increase_size(name, 1),
            world.cloud.decrease_target_size(name, -1),
            world.cloud.delete_nodes(name, ["n"]),
            world.cloud.delete_group(name),
            world.cloud.list_instances(name),
        ):
            with pytest.raises(NoSuchGroup):
                world.do(call)
        assert [call_record.ok for call_record in world.log] == [False] * 5


def test_a_group_is_not_made_under_a_name_it_cannot_have():
    with CloudCluster() as world, pytest.raises(CloudRefused, match="a/b"):
        world.do(world.cloud.create_group("a/b", NodeGroupSpec(machine_type="small", max=1)))


def test_room_for_all_is_looked_for_again_when_others_were_faster(monkeypatch: pytest.MonkeyPatch):
    """Between the look and the write another group takes the last machines and this one is changed."""
    with CloudCluster() as world:
        world.group("g", atomic=True)
        world.group("h")
        world.do(world.hand.limit_stock("small", left=2))
        real = world.cloud._check_room
        looks: list[int] = []

        async def look(group: NodeGroup, delta: int) -> None:
            await real(group, delta)
            looks.append(delta)
            if len(looks) == 1:
                await world.cloud.increase_size("h", 1)
                await world.hand.set_group("g", max_size=9)

        monkeypatch.setattr(world.cloud, "_check_room", look)
        with pytest.raises(CloudRefused, match="room for 1 of 2"):
            world.do(world.cloud.atomic_increase_size("g", 2))
        assert world.do(world.cloud.target_size("g")) == 0


async def forecast(cloud: SimulatedCloud) -> tuple[str, ...]:
    answer = cloud.forecast_zones(await cloud.get_cloud(), await cloud.node_groups(), await cloud.list_machines())
    return answer["g"]


@pytest.mark.parametrize("stock", [[], [{"name": "b", "machineType": "small", "zone": "b", "machines": 1}]])
@pytest.mark.parametrize("target", [0, 1, 2, 5])
def test_machines_come_from_the_zones_that_were_forecast(target: int, stock: list[dict[str, object]]):
    with CloudCluster(zones=["a", "b", "c"], stock=stock) as world:
        world.group("g", target=target, bootSeconds=60)
        *coming, following = world.do(forecast(world.cloud))
        machines = {name: machine.spec.zone for name, machine in world.machines().items()}
        assert coming == [*machines.values()]
        world.do(world.cloud.increase_size("g", 1))
        assert world.machines()[f"g-{target}"].spec.zone == following
        world.after(60)
        assert len(world.do(forecast(world.cloud))) == 1, "every machine has its node"
