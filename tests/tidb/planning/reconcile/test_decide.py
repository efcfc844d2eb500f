"""What a pass decides about an accepted answer (docs/design/tidb.md 3.1, 3.3, 3.5)."""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll.objects.api.tidb import AutoResource
from plimsoll.tidb.model.names import make_size_suffix
from plimsoll.tidb.model.reconcile_types import CreateGroup, ReconcilePolicy, Size
from plimsoll.tidb.planning.reconcile.decide import conclude
from tests.tidb.planning.reconcile.builders import (
    GI,
    KEY,
    MARK,
    OWN,
    SMALL,
    SMALL_SIZE,
    TIDB,
    at,
    base,
    codes,
    decided,
    entry,
    group,
    key_of,
    kinds,
    next_pass,
    own,
    plan,
    scaled,
    seen,
)

# ---- groups and the cluster itself


def test_t19_a_group_is_created_once_and_the_second_pass_has_nothing_to_write():
    found = decided(seen(), plan(count=1))
    (act,) = found.acts
    assert isinstance(act, CreateGroup)
    assert (act.key, act.plan.count, act.size) == (KEY, 1, SMALL_SIZE)
    world = next_pass(seen(), found, now=0)
    assert world.status[KEY].last_auto_scaling_timestamp == at(0)
    assert (world.status[KEY].last_direction, world.status[KEY].replicas) == ("out", 1)
    again = decided(world, plan(count=1), now=30)
    assert not again.acts
    assert not again.held
    assert conclude(again, (), now=at(30)) == world.status


def test_t20_one_clock_gates_both_directions():
    world = next_pass(seen(), decided(seen(), plan()), now=0)
    assert codes(decided(world, plan(count=2), now=299)) == {KEY: "CoolingDown"}
    raised = decided(world, plan(count=2), now=300)
    assert kinds(raised) == [f"Resize {KEY} 2"]
    world = next_pass(world, raised, now=300)
    assert world.status[KEY].last_auto_scaling_timestamp == at(300)
    assert codes(decided(world, plan(count=1), now=799)) == {KEY: "CoolingDown"}
    assert kinds(decided(world, plan(count=1), now=800)) == [f"TakeOut {KEY} 1"]


def test_t21_the_cluster_itself_is_raised_and_never_lowered():
    found = decided(seen(), own(6))
    assert kinds(found) == [f"RaiseBase {OWN} 6"]
    world = next_pass(seen(), found, now=0)
    assert world.status[OWN].last_auto_scaling_timestamp == at(0)
    later = decided(world, own(2), now=900)
    assert not later.acts
    assert later.status == world.status


def test_the_count_of_the_reserved_type_limits_the_cluster_itself():
    found = decided(seen(scaled=scaled(limit=4, small=SMALL)), own(9))
    assert kinds(found) == [f"RaiseBase {OWN} 4"]
    assert [reason.code for reason in found.acts[0].reason.because] == ["CountReached"]
    assert codes(decided(seen(scaled=scaled(limit=2, small=SMALL)), own(9))) == {OWN: "CountReached"}


def test_a_count_above_that_of_the_type_is_cut_with_a_reason():
    found = decided(seen(), plan(count=7))
    assert kinds(found) == [f"CreateGroup {KEY} 3"]
    assert [reason.code for reason in found.acts[0].reason.because] == ["CountReached"]
    assert codes(decided(seen(group(replicas=3)), plan(count=7))) == {KEY: "CountReached"}
    assert kinds(decided(seen(group(replicas=5)), plan(count=5))) == [f"TakeOut {KEY} 4"]


def test_another_name_for_the_type_of_a_group_does_not_lift_its_count():
    renamed = plan("other", 9, key=KEY)
    assert codes(decided(seen(group(replicas=3)), renamed)) == {KEY: "CountReached"}


def test_order_is_cluster_then_shrinking_then_growing_then_new_ones():
    types: dict[str, Any] = {name: AutoResource(cpu=1, memory="1Gi") for name in "abcde"}
    groups = [group(name, 2, component=TIDB) for name in "abc"]
    world = seen(*groups, component=TIDB, scaled=scaled(**types))
    answer = [plan(name, count, component=TIDB) for name, count in {"e": 1, "d": 1, "b": 3, "a": 1, "c": 1}.items()]
    keys = {name: key_of(name, TIDB) for name in "abcde"}
    assert kinds(decided(world, *answer, own(9, TIDB))) == [
        "RaiseBase default_homogeneous_tidb 9",
        f"Resize {keys['a']} 1",
        f"Resize {keys['c']} 1",
        f"Resize {keys['b']} 3",
        f"CreateGroup {keys['d']} 1",
        f"CreateGroup {keys['e']} 1",
    ]


def test_tikv_gives_up_instances_before_the_cluster_itself_grows_and_tidb_at_once():
    found = decided(seen(group(replicas=2)), plan(count=1), own(5))
    assert kinds(found) == [f"TakeOut {KEY} 1"]
    assert codes(found) == {OWN: "RemovalsFirst"}
    leaving = seen(group(replicas=1, running=2, offline=1))
    assert codes(decided(leaving, plan(count=1), own(5))) == {OWN: "RemovalsFirst"}
    assert kinds(decided(seen(group(replicas=1)), plan(count=1), own(5))) == [f"RaiseBase {OWN} 5"]
    tidb = seen(group(replicas=2, component=TIDB), component=TIDB)
    assert len(decided(tidb, plan(count=1, component=TIDB), own(5, TIDB)).acts) == 2


@pytest.mark.parametrize("count", [0, 1])
def test_a_group_deleted_by_hand_comes_back_after_its_cool_down_and_only_if_planned(count: int):
    world = seen(status={KEY: entry(0, replicas=1)})
    early, late = decided(world, plan(count=count), now=100), decided(world, plan(count=count), now=300)
    assert kinds(late) == [f"CreateGroup {KEY} 1"] * count
    assert codes(early) == ({KEY: "CoolingDown"} if count else {})
    assert (KEY in early.status) is bool(count)


# ---- holds


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"is_being_deleted": True}, "BaseBeingDeleted"),
        ({"is_paused": True}, "BasePaused"),
        ({"phase": "Upgrade"}, "BasePhase"),
        ({"phase": "Suspend"}, "BasePhase"),
    ],
)
def test_nothing_is_done_while_the_cluster_must_be_left_alone(change: dict[str, Any], code: str):
    world = seen(group(replicas=2, drain_record=MARK), base=base(**change), status={KEY: entry(omitted_count=1)})
    for answer in ([], [plan(count=3)], [plan(count=1), own(9)]):
        found = decided(world, *answer)
        assert not found.acts
        assert set(codes(found).values()) == {code}
        assert "" in codes(found)
        assert found.status[KEY].omitted_count == (0 if answer else 1)


def test_phase_scale_holds_nothing():
    assert decided(seen(base=base(phase="Scale")), own(4)).acts


@pytest.mark.parametrize("change", [{"running": 2}, {"running": 4}, {"registered": 2}])
def test_the_cluster_itself_does_not_grow_before_its_last_change_is_finished(change: dict[str, Any]):
    assert codes(decided(seen(base=base(**change)), own(5))) == {OWN: "Unfinished"}


def test_a_cluster_without_status_may_grow():
    assert decided(seen(base=base(running=None, registered=None)), own(5)).acts


@pytest.mark.parametrize("change", [{"running": 1}, {"registered": 1}, {"running": None, "registered": None}])
def test_a_group_does_not_grow_before_its_last_change_is_finished(change: dict[str, Any]):
    world = seen(group(replicas=2, **change))
    assert codes(decided(world, plan(count=3))) == {KEY: "Unfinished"}


def test_a_group_without_status_is_finished_if_all_have_registered():
    assert decided(seen(group(replicas=2, running=None)), plan(count=3)).acts


def test_an_unfinished_growth_may_be_taken_back_as_far_as_it_is_not_there():
    world = seen(group(replicas=5, running=2, component=TIDB), component=TIDB)
    found = decided(world, plan(count=1, component=TIDB))
    assert kinds(found) == [f"Resize {key_of(component=TIDB)} 2"]


def test_an_unfinished_removal_of_servers_may_be_taken_back():
    types = scaled(small=AutoResource(cpu="1", memory="2Gi"))
    world = seen(group(replicas=1, running=3, component=TIDB), component=TIDB, scaled=types)
    assert kinds(decided(world, plan(count=5, component=TIDB))) == [f"Resize {key_of(component=TIDB)} 3"]
    three = seen(group(replicas=2, running=3, component=TIDB), component=TIDB, scaled=types)
    assert codes(decided(three, plan(count=1, component=TIDB))) == {key_of(component=TIDB): "Unfinished"}


def test_a_group_that_finds_no_node_is_not_raised_and_may_shrink_to_what_runs():
    waiting = group(replicas=2, registered=1, unschedulable_since=at(-600))
    assert codes(decided(seen(waiting), plan(count=3))) == {KEY: "Unschedulable"}
    assert codes(decided(seen(waiting), plan(count=2))) == {KEY: "Unschedulable"}
    assert kinds(decided(seen(waiting), plan(count=1))) == [f"TakeOut {KEY} 1"]
    twice = {KEY: entry(omitted_count=1)}
    assert kinds(decided(seen(waiting, status=twice))) == [f"TakeOut {KEY} 1"]


def test_no_store_leaves_while_another_of_its_group_is_silent():
    silent = seen(group(replicas=3, registered=2, present=3))
    assert codes(decided(silent, plan(count=1))) == {KEY: "Unfinished"}
    never_came = seen(group(replicas=3, registered=2, present=2))
    assert kinds(decided(never_came, plan(count=1))) == [f"TakeOut {KEY} 2"]


def test_what_is_being_deleted_is_waited_for():
    assert codes(decided(seen(group(is_being_deleted=True)), plan(count=3))) == {KEY: "BeingDeleted"}


# ---- stores leave one at a time


def test_of_tikv_one_store_of_one_group_leaves_at_a_time():
    world = seen(group(replicas=3), group("big", 2))
    found = decided(world, plan(count=1), plan("big", 1))
    assert kinds(found) == [f"TakeOut {key_of('big')} 1"]
    assert codes(found) == {KEY: "OneStoreAtATime"}


@pytest.mark.parametrize(
    "change",
    [{"drain_record": MARK}, {"offline": 1, "registered": 1}, {"replicas": 1, "offline": 1, "registered": 1}],
    ids=["marked", "offline", "lowered"],
)
def test_what_is_leaving_goes_on_before_another_begins(change: dict[str, Any]):
    world = seen(group("big", 2), group(**{"replicas": 2, "running": 2, **change}))
    found = decided(world, plan("big", 1), plan(count=1))
    assert codes(found)[key_of("big")] == "OneStoreAtATime"
    assert kinds(found) == ([] if "replicas" in change else [f"TakeOut {KEY} 1"])


def test_the_next_store_waits_until_the_pod_of_the_last_is_gone():
    world = seen(group(replicas=1, running=2, registered=1), status={KEY: entry(omitted_count=2)})
    assert codes(decided(world)) == {KEY: "Unfinished"}


def test_a_store_that_leaves_stays_if_it_is_wanted_again():
    """Even before its cooldown: its replicas were not lowered yet."""
    world = seen(group(replicas=2, drain_record=MARK), status={KEY: entry(-1, omitted_count=2)})
    found = decided(world, plan(count=2))
    assert kinds(found) == [f"BringBack {KEY} 2"]
    after = next_pass(world, found, now=0)
    assert after.status[KEY].last_auto_scaling_timestamp == at(-1)
    assert after.status[KEY].omitted_count == 0


def test_a_store_that_was_asked_to_stay_is_not_sent_away_at_once():
    world = seen(group(replicas=2, drain_record=MARK))
    world = next_pass(world, decided(world, plan(count=2)), now=0)
    assert codes(decided(world, plan(count=1), now=499)) == {KEY: "CoolingDown"}
    assert decided(world, plan(count=1), now=500).acts
    assert decided(world, plan(count=3), now=10).acts


def test_a_lost_mark_does_not_keep_a_store_from_staying_or_leaving():
    offline = seen(group(replicas=2, registered=1, offline=1), status={KEY: entry(omitted_count=1)})
    assert kinds(decided(offline, plan(count=2))) == [f"BringBack {KEY} 2"]
    assert kinds(decided(offline)) == [f"TakeOut {KEY} 1"]


def test_lowered_replicas_are_restored_in_their_time_and_not_if_they_are_not_wanted():
    world = seen(group(replicas=1, running=2, registered=1, offline=1), status={KEY: entry(0)})
    assert codes(decided(world, plan(count=2), now=299)) == {KEY: "CoolingDown"}
    assert kinds(decided(world, plan(count=3), now=300)) == [f"BringBack {KEY} 2"]
    assert not decided(world, plan(count=1), now=300).acts


def test_a_store_that_is_up_is_brought_back_whatever_is_reported_its_pod():
    world = seen(group(replicas=1, running=1, registered=2), status={KEY: entry(0)})
    assert codes(decided(world, plan(count=2), now=299)) == {KEY: "CoolingDown"}
    assert kinds(decided(world, plan(count=2), now=300)) == [f"BringBack {KEY} 2"]


def test_nothing_is_brought_back_where_a_store_leaves_without_a_pod():
    world = seen(group(replicas=1, running=1, registered=1, offline=1), status={KEY: entry(0)})
    found = decided(world, plan(count=2), now=300)
    assert (found.acts, codes(found)) == ((), {KEY: "Unfinished"})
    later = decided(next_pass(world, found, now=300), plan(count=2), now=900)
    assert later.status == found.status


def test_no_group_is_made_of_a_configuration_that_cannot_be_read():
    problem = "spec.tikv.config: is no TOML"
    found = decided(seen(base=base(config_problem=problem)), plan(count=1))
    assert (found.acts, codes(found)) == ((), {"": "BaseConfig", KEY: "BaseConfig"})
    assert all(problem in str(request.reason) for request in found.held)


def test_the_rest_goes_on_beside_a_configuration_that_cannot_be_read():
    world = seen(group(replicas=2), base=base(config_problem="spec.tikv.config: is no TOML"))
    assert kinds(decided(world, plan(count=1), own(4))) == [f"TakeOut {KEY} 1"]
    assert kinds(decided(world, plan(count=3))) == [f"Resize {KEY} 3"]


def test_a_buried_store_cannot_stay():
    world = seen(group(replicas=1, running=2, registered=1))
    assert codes(decided(world, plan(count=2))) == {KEY: "Unfinished"}


# ---- a type that was given another size

BIGGER = AutoResource(cpu="2", memory="4Gi", storage="10Gi", count=5)
SECOND = f"{KEY}-{make_size_suffix(2000, 4 * GI, 10 * GI)}"


def test_a_group_of_an_older_size_keeps_its_size_and_what_it_lacks_goes_to_a_second():
    world = seen(group(replicas=1), scaled=scaled(small=BIGGER))
    found = decided(world, plan(count=3))
    assert kinds(found) == [f"CreateGroup {SECOND} 2"]
    assert codes(found) == {KEY: "SizeChanged"}
    (act,) = found.acts
    assert isinstance(act, CreateGroup)
    assert act.size == Size(cpu_milli=2000, memory_bytes=4 * GI, storage_bytes=10 * GI)
    assert act.plan.labels["group"] == SECOND
    after = next_pass(world, found, now=0)
    for answer in ([plan(count=3)], [plan(count=1), plan(count=2, key=SECOND)]):
        again = decided(after, *answer, now=900)
        assert not again.acts
        assert again.status[SECOND].omitted_count == 0


def test_a_group_of_an_older_size_may_shrink():
    world = seen(group(replicas=2), scaled=scaled(small=BIGGER))
    assert kinds(decided(world, plan(count=1))) == [f"TakeOut {KEY} 1"]


def test_a_size_that_changed_twice_gives_a_third_group_not_a_longer_name():
    size = Size(cpu_milli=2000, memory_bytes=4 * GI, storage_bytes=10 * GI)
    world = seen(group(replicas=1, key=SECOND, size=size), scaled=scaled(small=SMALL))
    found = decided(world, plan(count=2, key=SECOND))
    assert kinds(found) == [f"CreateGroup {KEY}-{make_size_suffix(1000, 2 * GI, 10 * GI)} 1"]


def test_groups_of_two_sizes_share_the_count_of_their_type():
    world = seen(group(replicas=4), scaled=scaled(small=BIGGER))
    found = decided(world, plan(count=4), plan(count=4, key=SECOND))
    assert kinds(found) == [f"CreateGroup {SECOND} 1"]


def test_storage_of_a_tidb_type_makes_no_other_size():
    world = seen(group(component=TIDB), component=TIDB)
    assert kinds(decided(world, plan(count=2, component=TIDB))) == [f"Resize {key_of(component=TIDB)} 2"]


# ---- wanted for a while


def test_a_change_may_have_to_be_wanted_several_times_in_a_row():
    policy = ReconcilePolicy(out_consecutive=3)
    world = seen(group(replicas=1))
    for _ in range(2):
        found = decided(world, plan(count=2), policy=policy)
        assert codes(found) == {KEY: "NotLongEnough"}
        world = next_pass(world, found, now=0)
    assert decided(world, plan(count=2), policy=policy).acts
    rest = next_pass(world, decided(world, plan(count=1), policy=policy), now=0)
    assert codes(decided(rest, plan(count=2), policy=policy)) == {KEY: "NotLongEnough"}


def test_a_new_group_may_have_to_be_wanted_several_times_in_a_row():
    policy, world = ReconcilePolicy(out_consecutive=2), seen()
    world = next_pass(world, decided(world, plan(), policy=policy), now=0)
    assert kinds(decided(world, plan(), policy=policy)) == [f"CreateGroup {KEY} 1"]
