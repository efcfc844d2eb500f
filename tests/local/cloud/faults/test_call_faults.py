"""Every way in which the cloud can fail, one at a time."""

from __future__ import annotations

import pytest

from plimsoll.local.cloud.faults.call_log import CallLog, CallRecord
from plimsoll.objects.api.nodes import Node
from plimsoll.objects.api.simulated_cloud import CallFault
from plimsoll.objects.api.simulated_cloud_errors import CloudFailed, CloudTimedOut
from tests.local.cloud.builders import SMALL, CloudCluster, at, text_of

# ---- stock and quotas


def test_machines_beyond_the_stock_fail_and_the_others_come():
    with CloudCluster(stock=[{"name": "s", "machineType": "small", "machines": 2}]) as world:
        world.group("g", target=3)
        assert world.states() == {"g-0": "running", "g-1": "running", "g-2": "failed"}
        assert world.nodes() == ["g-0", "g-1"]


def test_a_stock_out_of_one_zone_sends_machines_to_the_others():
    with CloudCluster(stock=[{"name": "s", "machineType": "small", "zone": "a", "machines": 0}]) as world:
        world.group("g", target=3)
        assert {machine.spec.zone for machine in world.machines().values()} == {"b"}


def test_a_stock_out_ends_at_its_time():
    with CloudCluster(stock=[{"name": "s", "machineType": "small", "machines": 0, "until": text_of(at(100))}]) as world:
        world.group("g", target=1)
        world.after(99)
        assert world.states() == {"g-0": "failed"}
        world.after(1)
        assert world.states() == {"g-0": "running"}


def test_a_stock_out_of_n_lets_n_more_through():
    with CloudCluster() as world:
        world.group("g", target=1)
        world.do(world.hand.limit_stock("small", left=2))
        world.do(world.cloud.increase_size("g", 3))
        assert sorted(world.states().values()) == ["failed", "running", "running", "running"]


def test_a_stock_out_of_0_gives_not_even_what_was_given_back():
    with CloudCluster() as world:
        world.group("g", target=2)
        world.do(world.hand.limit_stock("small"))
        world.do(world.cloud.delete_nodes("g", ["g-0"]))
        world.do(world.cloud.increase_size("g", 1))
        assert world.states() == {"g-1": "running", "g-2": "failed"}
        world.patch_cloud(stock=[])
        assert world.states() == {"g-1": "running", "g-2": "running"}


def test_failed_machines_can_be_deleted_and_cost_nothing():
    with CloudCluster(stock=[{"name": "s", "machineType": "small", "machines": 0}]) as world:
        world.group("g", target=1)
        world.after(3600)
        world.do(world.cloud.delete_nodes("g", ["g-0"]))
        assert world.machines() == {}
        assert [cost.amount for cost in world.do(world.cloud.compute_costs())] == [0]


@pytest.mark.parametrize(
    ("quota", "running"),
    [
        ({"limit": 3}, {"l": 0, "s": 3}),
        ({"resource": "cpu", "limit": 12}, {"l": 0, "s": 4}),
        ({"resource": "cpu", "limit": 20}, {"l": 1, "s": 4}),
        ({"resource": "memory", "limit": "40Gi"}, {"l": 0, "s": 4}),
        ({"machineType": "large", "limit": 1}, {"l": 1, "s": 4}),
        ({"family": "s", "resource": "cpu", "limit": 5}, {"l": 3, "s": 2}),
    ],
    ids=["machines", "cpu", "more cpu", "memory", "of a type", "of a family"],
)
def test_quotas_bind(quota: dict[str, object], running: dict[str, int]):
    with CloudCluster(quotas=[{"name": "q", **quota}]) as world:
        world.group("s", target=4)
        world.group("z", target=3, machineType="large")
        states = world.states()
        came = {"s": sum(name.startswith("s-") for name in states if states[name] == "running")}
        came["l"] = sum(name.startswith("z-") for name in states if states[name] == "running")
        if came["l"] + came["s"] < 7:
            codes = {machine.status.error.code for machine in world.machines().values() if machine.status.error}
            assert codes == {"QUOTA_EXCEEDED"}
        assert came["s"] == running["s"]
        assert came["l"] == running["l"]


def test_a_quota_that_is_raised_lets_waiting_machines_start():
    with CloudCluster(quotas=[{"name": "q", "limit": 1}]) as world:
        world.group("g", target=2)
        world.after(100)
        world.patch_cloud(quotas=[{"name": "q", "limit": 2}])
        assert world.states() == {"g-0": "running", "g-1": "running"}
        assert world.machines()["g-1"].status.started_time == at(100)


def test_a_type_that_a_zone_does_not_sell_fails_there():
    with CloudCluster(machineTypes=[{**SMALL, "zones": ["b"]}]) as world:
        world.group("g", target=1, zones=["a"])
        world.group("h", target=1)
        assert world.states() == {"g-0": "failed", "h-0": "running"}
        assert world.machines()["h-0"].spec.zone == "b"


# ---- boots


def test_slow_boots_of_every_second_machine():
    with CloudCluster(boots=[{"name": "slow", "every": 2, "seconds": 300}]) as world:
        world.group("g", target=4, bootSeconds=10)
        world.after(10)
        assert world.nodes() == ["g-1", "g-3"]
        world.after(290)
        assert world.nodes() == ["g-0", "g-1", "g-2", "g-3"]


def test_boots_of_a_type_a_group_or_a_zone_until_a_time():
    boots = [
        {"name": "type", "machineType": "large", "seconds": 100},
        {"name": "group", "group": "h", "seconds": 200},
        {"name": "zone", "zone": "b", "seconds": 300, "until": text_of(at(50))},
    ]
    with CloudCluster(boots=boots) as world:
        world.group("g", target=2, bootSeconds=0)
        world.group("h", target=1)
        world.group("l", target=1, machineType="large")
        assert world.nodes() == ["g-0"]
        world.after(60)
        world.do(world.cloud.increase_size("g", 2))
        assert world.nodes() == ["g-0", "g-2", "g-3"]
        world.after(40)
        assert world.nodes() == ["g-0", "g-2", "g-3", "l-0"]
        world.after(200)
        assert world.nodes() == ["g-0", "g-1", "g-2", "g-3", "h-0", "l-0"]


def test_a_boot_that_never_finishes_costs_and_gives_no_node():
    with CloudCluster(boots=[{"name": "stuck", "group": "g", "never": True}]) as world:
        world.group("g", target=1)
        world.after(36_000)
        assert (world.nodes(), world.states()) == ([], {"g-0": "creating"})
        (cost,) = world.do(world.cloud.compute_costs())
        assert cost.amount == 1
        world.do(world.cloud.decrease_target_size("g", -1))
        assert world.machines() == {}


def test_a_node_the_server_refuses_fails_its_machine_and_no_other():
    with CloudCluster() as world:
        world.group("bad", target=1, template={"labels": {"team": "not a label!"}})
        world.group("good", target=1)
        assert world.states() == {"bad-0": "failed", "good-0": "running"}
        error = world.machines()["bad-0"].status.error
        assert error is not None
        assert (error.class_, error.code) == ("OtherErrorClass", "NODE_REFUSED")


# ---- calls


def test_a_call_fails_with_its_message_and_does_nothing():
    with CloudCluster() as world:
        world.group("g")
        world.group("h")
        world.do(world.hand.fail_increase("g", "no more for you"))
        with pytest.raises(CloudFailed, match=r"^no more for you$"):
            world.do(world.cloud.increase_size("g", 1))
        world.do(world.cloud.increase_size("h", 1))
        assert world.nodes() == ["h-0"]
        assert [(item.group, item.ok) for item in world.log] == [("g", False), ("h", True)]


def test_calls_fail_until_a_time():
    with CloudCluster() as world:
        world.group("g")
        world.do(world.hand.fail_increase("g", "later", until=at(60)))
        with pytest.raises(CloudFailed):
            world.do(world.cloud.increase_size("g", 1))
        world.after(60)
        world.do(world.cloud.increase_size("g", 1))
        assert world.nodes() == ["g-0"]


def test_calls_fail_a_number_of_times():
    with CloudCluster() as world:
        world.group("g", target=2)
        world.do(world.hand.add_fault(CallFault(name="twice", call="DeleteNodes", times=2)))
        for _ in range(2):
            with pytest.raises(CloudFailed, match="DeleteNodes failed"):
                world.do(world.cloud.delete_nodes("g", ["g-0"]))
        world.do(world.cloud.increase_size("g", 1))
        world.do(world.cloud.delete_nodes("g", ["g-0"]))
        assert world.nodes() == ["g-1", "g-2"]


def test_a_fault_can_be_taken_away():
    with CloudCluster() as world:
        world.group("g")
        world.do(world.hand.add_fault(CallFault(name="f")))
        world.patch_cloud(faults=[])
        world.do(world.cloud.increase_size("g", 1))
        assert world.nodes() == ["g-0"]


def test_a_call_times_out_after_it_acted():
    with CloudCluster() as world:
        world.group("g")
        world.do(world.hand.add_fault(CallFault(name="t", kind="TimeOut", call="IncreaseSize", seconds=30, times=1)))
        with pytest.raises(CloudTimedOut, match="IncreaseSize timed out"):
            world.do(world.cloud.increase_size("g", 1))
        assert world.clock.now() == at(30)
        assert world.nodes() == ["g-0"]
        assert [item.ok for item in world.log] == [False]


def test_a_call_is_answered_late():
    with CloudCluster() as world:
        world.group("g")
        world.do(world.hand.add_fault(CallFault(name="l", kind="Late", call="IncreaseSize", seconds=45)))
        world.do(world.cloud.increase_size("g", 1))
        assert world.clock.now() == at(45)
        node = world.kube.do(world.client.get(Node, "g-0"))
        assert node.metadata.creation_timestamp == at(0)


def test_limits_of_a_group_can_be_moved():
    with CloudCluster() as world:
        world.group("g", target=2, max=2)
        world.do(world.hand.set_group("g", max_size=3, min_size=1))
        world.do(world.cloud.increase_size("g", 1))
        assert len(world.nodes()) == 3


# ---- the log of calls


def late(seconds: float) -> CallFault:
    return CallFault(name="late", kind="Late", call="IncreaseSize", seconds=seconds, times=1)


def test_a_call_under_way_is_in_the_log_where_it_was_made():
    with CloudCluster() as world:
        world.group("g")
        world.group("h")
        world.do(world.hand.add_fault(late(600)))
        world.run.spawn(world.cloud.increase_size("g", 1), name="late")
        world.after(60)
        world.do(world.cloud.increase_size("h", 1))
        assert [(item.group, item.ok, item.message) for item in world.log] == [
            ("g", False, "no answer yet"),
            ("h", True, ""),
        ]
        world.after(600)
        assert [(item.group, item.ok, item.message) for item in world.log] == [("g", True, ""), ("h", True, "")]


def test_a_call_whose_caller_goes_away_is_in_the_log():
    with CloudCluster() as world:
        world.group("g")
        world.do(world.hand.add_fault(late(600)))
        calling = world.run.spawn(world.cloud.increase_size("g", 1), name="late")
        world.after(60)
        calling.cancel()
        world.run.settle()
        assert [(item.ok, item.message) for item in world.log] == [(False, "the caller did not wait for the answer")]


def test_a_log_keeps_the_latest_calls():
    kept = CallLog(most=2)
    calls = [CallRecord(time=at(0), group=name, call="Delete", arg=None, ok=False) for name in "abc"]
    numbers = [kept.add(call) for call in calls]
    kept.end(numbers[0], calls[0])
    assert [item.group for item in kept] == ["b", "c"]


# ---- room again


def test_a_refused_machine_starts_in_whichever_zone_has_room():
    with CloudCluster() as world:
        world.group("g")
        for zone in ("a", "b"):
            world.do(world.hand.limit_stock("small", zone=zone))
        world.do(world.cloud.increase_size("g", 2))
        world.after(60)
        assert world.nodes() == []
        world.patch_cloud(stock=[{"name": "small/a", "machineType": "small", "zone": "a", "machines": 0}])
        world.after(600)
        assert [(machine.metadata.name, machine.spec.zone) for machine in world.do(world.cloud.list_machines("g"))] == [
            ("g-0", "b"),
            ("g-1", "b"),
        ]
        assert world.nodes() == ["g-0", "g-1"]


def test_refused_machines_are_spread_over_the_zones_when_there_is_room():
    with CloudCluster() as world:
        world.group("g")
        world.do(world.hand.limit_stock("small"))
        world.do(world.cloud.increase_size("g", 4))
        world.after(60)
        world.patch_cloud(stock=[])
        world.after(60)
        zones = [machine.spec.zone for machine in world.do(world.cloud.list_machines("g"))]
        assert sorted(zones) == ["a", "a", "b", "b"]
