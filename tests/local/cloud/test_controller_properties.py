"""Whatever is asked of the cloud: no limit is broken, nothing is lost or doubled, and the meter is right."""

from __future__ import annotations

import contextlib
from decimal import Decimal
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.local.cloud.catalogue import list_sold_machine_types
from plimsoll.local.cloud.planner import CloudView, plan
from plimsoll.objects.api.meta import ObjectMeta
from plimsoll.objects.api.simulated_cloud import CloudSpec, MachineType, NodeGroup, NodeGroupSpec, Quota, Stock
from plimsoll.objects.api.simulated_cloud_errors import CloudRefused
from tests.local.cloud.builders import CloudCluster, at

STOCK, QUOTA_CPU, IN_ZONE_A = 4, 24, 2
CPU = {"small": 2, "large": 8}

CALLS = st.one_of(
    st.tuples(st.just("increase"), st.sampled_from("gh"), st.integers(1, 4)),
    st.tuples(st.just("decrease"), st.sampled_from("gh"), st.integers(-3, -1)),
    st.tuples(st.just("delete"), st.sampled_from("gh"), st.integers(0, 3)),
    st.tuples(st.just("advance"), st.just(""), st.integers(1, 50)),
    st.tuples(st.just("restart"), st.just(""), st.just(0)),
)


def make(world: CloudCluster, call: tuple[str, str, int]) -> None:
    match call:
        case ("increase", group, delta):
            world.do(world.cloud.increase_size(group, delta))
        case ("decrease", group, delta):
            world.do(world.cloud.decrease_target_size(group, delta))
        case ("delete", group, position):
            names = [name for name in world.machines() if name.startswith(group)]
            world.do(world.cloud.delete_nodes(group, names[position : position + 1]))
        case ("restart", _, _):
            world.stop()
            world.start()


def check(world: CloudCluster) -> None:
    machines = list(world.machines().values())
    started = [machine for machine in machines if machine.status.started_time]
    small = [machine for machine in started if machine.spec.machine_type == "small"]
    assert len(small) <= STOCK
    assert sum(machine.spec.zone == "a" for machine in small) <= IN_ZONE_A
    assert sum(CPU[machine.spec.machine_type] for machine in started) <= QUOTA_CPU
    assert world.nodes() == [machine.metadata.name for machine in machines if machine.status.state == "running"]
    for group in world.do(world.cloud.node_groups()):
        spec = group.spec
        assert spec.min <= spec.target <= spec.max
        assert sum(machine.spec.group == group.metadata.name for machine in machines) == spec.target


@settings(max_examples=12, deadline=None)
@given(calls=st.lists(CALLS, max_size=8))
def test_no_limit_is_broken_and_the_meter_is_the_integral(calls: list[tuple[str, str, int]]):
    limits: dict[str, Any] = {
        "stock": [
            {"name": "s", "machineType": "small", "machines": STOCK},
            {"name": "sa", "machineType": "small", "zone": "a", "machines": IN_ZONE_A},
        ],
        "quotas": [{"name": "q", "resource": "cpu", "limit": QUOTA_CPU}],
    }
    with CloudCluster(**limits) as world:
        world.group("g", max=6, bootSeconds=20)
        world.group("h", max=4, machineType="large")
        spent, last = Decimal(0), world.clock.now()
        for call in [*calls, ("advance", "", 7)]:
            before = world.machines().values()
            with contextlib.suppress(CloudRefused):
                make(world, call)
            if call[0] == "advance":
                world.after(call[2])
            passed = Decimal((world.clock.now() - last).total_seconds()).quantize(Decimal("1e-6"))
            prices = [Decimal(str(machine.spec.price)) for machine in before if machine.status.started_time]
            if passed:
                spent, last = spent + sum(prices) * passed / 3600, world.clock.now()
            check(world)
        metered = sum((cost.amount for cost in world.do(world.cloud.compute_costs())), Decimal(0))
        assert abs(metered - spent) < Decimal("1e-6")


@settings(max_examples=60, deadline=None)
@given(
    targets=st.lists(st.integers(0, 6), min_size=1, max_size=4),
    stock=st.integers(0, 8),
    quota=st.integers(0, 40),
    zones=st.integers(1, 3),
)
def test_a_plan_grants_all_it_may_and_nothing_more(targets: list[int], stock: int, quota: int, zones: int):
    cloud = CloudSpec(
        zones=tuple("abc"[:zones]),
        machine_types=(MachineType(name="small", cpu=2, memory="8Gi", price=1.0),),
        stock=(Stock(name="s", machine_type="small", machines=stock),),
        quotas=(Quota(name="q", resource="cpu", limit=quota),),
    )
    groups = tuple(
        NodeGroup(metadata=ObjectMeta(name=f"g{n}"), spec=NodeGroupSpec(max=9, target=target, machine_type="small"))
        for n, target in enumerate(targets)
    )
    view = CloudView(cloud=cloud, offer=list_sold_machine_types(cloud), groups=groups, machines=(), nodes=(), now=at(0))
    planned = plan(view)
    assert len(planned.new) == sum(targets)
    granted = sum(new_machine.error is None for new_machine in planned.new)
    assert granted == min(sum(targets), stock, quota // 2)
    assert plan(view) == planned
