"""When a group is removed: by being left out (docs/design/tidb.md 3.3, 7), by an external service (docs/design/tidb.md
3.6), with its autoscaler (docs/design/tidb.md 3.7)."""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll.tidb.model.reconcile_types import (
    EXTERNAL,
    CreateGroup,
    Decision,
    ObservedComponent,
    ReconcilePolicy,
    Resize,
)
from plimsoll.tidb.planning.reconcile.decide import conclude, decide_external, decide_removal
from tests.narrowing import instance_of
from tests.tidb.planning.reconcile.builders import (
    KEY,
    MARK,
    OWN,
    POLICY,
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

TIDB_KEY = key_of(component=TIDB)
LEFT_OUT_ONCE = {KEY: entry(omitted_count=1)}


def test_t22_a_group_goes_when_two_accepted_answers_in_a_row_leave_it_out():
    world = seen(group(replicas=2))
    for answer in ([], [plan(count=2)], []):
        found = decided(world, *answer)
        assert not found.acts
        world = next_pass(world, found, now=0)
    assert world.status[KEY].omitted_count == 1
    assert kinds(decided(world)) == [f"TakeOut {KEY} 1"]


def test_a_count_of_nothing_is_as_good_as_being_left_out():
    assert codes(decided(seen(group()), plan(count=0))) == {KEY: "Unconfirmed"}
    assert decided(seen(group(), status=LEFT_OUT_ONCE), plan(count=0)).acts


def test_with_trusted_omissions_one_answer_is_enough():
    assert decided(seen(group()), policy=ReconcilePolicy(removal_confirmations=1)).acts


def test_counting_ends_when_enough_have_been_counted():
    """Or the status would be written at every pass while a cooldown lasts."""
    world = seen(group(), status={KEY: entry(0, omitted_count=2)})
    assert decided(world, now=10).status[KEY].omitted_count == 2


def test_t22_a_group_of_tikv_goes_store_by_store_then_as_a_whole():
    world = seen(group(replicas=2), status={KEY: entry(-500, omitted_count=1)})
    for now, act in ((0, f"TakeOut {KEY} 1"), (499, ""), (500, f"TakeOut {KEY} 0"), (530, f"Remove {KEY}")):
        found = decided(world, now=now)
        assert kinds(found) == ([act] if act else [])
        world = next_pass(world, found, now=now)
    assert world.groups == ()
    assert world.status == {}


@pytest.mark.parametrize("change", [{"running": None}, {"running": 1}])
def test_an_empty_group_of_tikv_is_deleted_only_when_its_pods_are_known_to_be_gone(change: dict[str, Any]):
    fields = {"replicas": 0, "running": 0, "registered": 0, **change}
    assert codes(decided(seen(group(**fields), status=LEFT_OUT_ONCE))) == {KEY: "Unfinished"}


@pytest.mark.parametrize("change", [{"registered": 1}, {"offline": 1}])
def test_stores_that_outlive_their_pods_are_left_to_the_drainer(change: dict[str, Any]):
    """It empties what is left before the cluster is deleted; held here, that would never happen."""
    fields = {"replicas": 0, "running": 0, "registered": 0, **change}
    assert kinds(decided(seen(group(**fields), status=LEFT_OUT_ONCE))) == [f"Remove {KEY}"]


def test_a_group_of_tidb_goes_at_once_after_its_cool_down():
    world = seen(group(replicas=2, component=TIDB), component=TIDB, status={TIDB_KEY: entry(0, omitted_count=1)})
    assert codes(decided(world, now=499)) == {TIDB_KEY: "CoolingDown"}
    assert kinds(decided(world, now=500)) == [f"Remove {TIDB_KEY}"]


DRAINS = ReconcilePolicy(tidb_drain_s=60)


def test_servers_that_are_given_time_go_before_their_cluster():
    """3.5.6, `--tidb-drain-seconds`."""
    status = {TIDB_KEY: entry(0, omitted_count=1)}
    world = seen(group(replicas=2, component=TIDB), component=TIDB, status=status)
    found = decided(world, now=500, policy=DRAINS)
    assert kinds(found) == [f"Resize {TIDB_KEY} 0"]
    world = next_pass(world, found, now=500)
    assert kinds(decided(world, now=510, policy=DRAINS)) == [f"Remove {TIDB_KEY}"]


@pytest.mark.parametrize("running", [2, None], ids=["still there", "nobody knows"])
def test_they_have_so_long_and_no_longer(running: int | None):
    ending = group(replicas=0, component=TIDB, running=running, last_change=at(0))
    world = seen(ending, component=TIDB, status={TIDB_KEY: entry(0, omitted_count=2)})
    assert codes(decided(world, now=59, policy=DRAINS)) == {TIDB_KEY: "Unfinished"}
    assert decided(world, now=30, policy=DRAINS).status == decided(world, now=59, policy=DRAINS).status
    assert kinds(decided(world, now=60, policy=DRAINS)) == [f"Remove {TIDB_KEY}"]


def test_servers_that_end_and_are_wanted_again_stay():
    ending = group(replicas=0, component=TIDB, running=2, last_change=at(0))
    world = seen(ending, component=TIDB, status={TIDB_KEY: entry(0)})
    found = decided(world, plan(count=2, component=TIDB), now=300, policy=DRAINS)
    assert kinds(found) == [f"Resize {TIDB_KEY} 2"]


def test_stores_are_not_servers():
    world = seen(group(replicas=1), status={KEY: entry(-500, omitted_count=1)})
    assert kinds(decided(world, policy=DRAINS)) == [f"TakeOut {KEY} 0"]


@pytest.mark.parametrize(
    ("change", "code"), [({"created": at(-599)}, "TooYoung"), ({"registered": 1}, "NotRegistered")]
)
@pytest.mark.parametrize("component", list(type(TIDB)))
def test_what_has_not_registered_is_not_removed_by_being_left_out(component: Any, change: dict[str, Any], code: str):
    key = key_of(component=component)
    world = seen(
        group(replicas=2, component=component, **change), component=component, status={key: entry(omitted_count=2)}
    )
    assert codes(decided(world)) == {key: code}


def test_a_store_on_its_way_out_counts_as_registered():
    for change in ({"drain_record": MARK}, {"offline": 1}):
        world = seen(group(replicas=2, registered=1, **change), status=LEFT_OUT_ONCE)
        assert kinds(decided(world)) == [f"TakeOut {KEY} 1"]


def test_a_store_that_was_begun_with_is_finished_without_another_answer_unless_it_is_the_last():
    """The planner no longer counts the store that leaves, and so may leave out a group of which one is to stay."""
    assert kinds(decided(seen(group(replicas=2, registered=1, drain_record=MARK)))) == [f"TakeOut {KEY} 1"]
    assert codes(decided(seen(group(replicas=1, registered=0, drain_record=MARK)))) == {KEY: "Unconfirmed"}


def test_a_store_that_was_begun_with_is_finished_in_a_young_group_too():
    """By then the planner may leave the whole group out, and the store be buried."""
    young = group(replicas=2, registered=1, drain_record=MARK, created=at(-200))
    assert kinds(decided(seen(young, status=LEFT_OUT_ONCE))) == [f"TakeOut {KEY} 1"]


def test_a_group_that_stays_for_lack_of_registration_does_not_hold_the_cluster_itself():
    world = seen(group(replicas=2, registered=1))
    assert kinds(decided(world, own(5))) == []
    twice = seen(group(replicas=2, registered=1), status=LEFT_OUT_ONCE)
    assert kinds(decided(twice, own(5))) == [f"RaiseBase {OWN} 5"]


# ---- unknown types


def test_an_unknown_type_makes_no_group_and_removes_none():
    world = seen(group(), status=LEFT_OUT_ONCE)
    found = decided(world, plan("nope", 2))
    assert not found.acts
    assert codes(found) == {key_of("nope"): "UnknownResourceType", KEY: "RemovalsSuppressed"}
    assert found.status[KEY].omitted_count == 1
    assert key_of("nope") not in found.status


@pytest.mark.parametrize("key", [EXTERNAL, OWN])
def test_a_group_with_a_name_that_means_something_else_is_not_made(key: str):
    found = decided(seen(), plan(key=key))
    assert not found.acts
    assert codes(found) == {key: "UnknownResourceType"}


def test_the_reserved_type_of_the_other_component_makes_no_group():
    assert not decided(seen(), plan("default_homogeneous_tidb")).acts


def test_an_existing_group_of_a_type_that_is_gone_may_change_its_size():
    world = seen(group("gone", 2))
    assert kinds(decided(world, plan("gone", 3))) == [f"Resize {key_of('gone')} 3"]
    assert kinds(decided(world, plan("gone", 1))) == [f"TakeOut {key_of('gone')} 1"]


def test_of_two_clusters_with_one_group_the_older_is_decided_about():
    world = seen(group(replicas=1), group(replicas=1, name="auto-twin", created=at(-10)))
    found = decided(world, plan(count=2))
    (act,) = found.acts
    resize = instance_of(Resize, act)
    assert (resize.group, resize.replicas) == ("auto-small", 2)
    assert codes(found) == {KEY: "DuplicateGroup"}


# ---- an external service


def external(world: ObservedComponent, recommended: int, now: float = 0) -> Decision:
    return decide_external(world, recommended, policy=POLICY, now=at(now))


def outside(replicas: int = 1, **changes: Any) -> Any:
    fields = {"name": "db-tikv-external", "key": EXTERNAL, "size": None, "resource_type": ""}
    return group(replicas=replicas, **{**fields, **changes})


def test_t24_an_external_service_sizes_one_cluster_up_to_its_maximum():
    found = external(seen(scaled=scaled(external=3)), 5)
    (act,) = found.acts
    assert isinstance(act, CreateGroup)
    assert (act.key, act.plan.count, act.plan.labels) == (EXTERNAL, 3, {"specialUse": "hotRegion"})
    assert conclude(found, {EXTERNAL}, now=at(0))[EXTERNAL].last_auto_scaling_timestamp == at(0)
    assert not external(seen(scaled=scaled(external=3)), 0).acts
    assert not external(seen(scaled=scaled(external=3)), -1).acts
    assert kinds(external(seen(outside(), scaled=scaled(external=3)), 2)) == ["Resize external 2"]


def test_t24_nothing_is_recommended_twice_then_it_goes():
    world = seen(outside(created=at(-1)), scaled=scaled(external=3))
    first = external(world, 0)
    assert codes(first) == {EXTERNAL: "Unconfirmed"}
    world = next_pass(world, first, now=0)
    assert kinds(external(world, -7)) == ["TakeOut external 0"]


def test_clusters_of_the_other_way_of_scaling_are_left_as_they_are():
    status = {KEY: entry(0, replicas=1), EXTERNAL: entry(5, replicas=1)}
    for found in (
        external(seen(group(), outside(), scaled=scaled(external=3), status=status), 1),
        decided(seen(group(), outside(), status=status), plan()),
    ):
        assert not found.acts
        assert list(codes(found).values()) == ["NotManaged"]
        assert {key: status.last_auto_scaling_timestamp for key, status in found.status.items()} == {
            KEY: at(0),
            EXTERNAL: at(5),
        }


# ---- an autoscaler or a component that goes


def removal(world: ObservedComponent, *, ignores_cooldown: bool = True, now: float = 0) -> Decision:
    return decide_removal(world, ignores_cooldown=ignores_cooldown, policy=POLICY, now=at(now))


def test_t26_every_group_goes_one_store_after_the_other_whatever_the_cool_down():
    world = seen(group(replicas=2), outside(), scaled=None, status={KEY: entry(0), OWN: entry(0)})
    acts = []
    for _ in range(6):
        found = removal(world, now=1)
        acts += kinds(found)
        world = next_pass(world, found, now=1)
    assert acts == [
        "TakeOut external 0",
        "Remove external",
        f"TakeOut {KEY} 1",
        f"TakeOut {KEY} 0",
        f"Remove {KEY}",
    ]
    assert world.groups == ()
    assert set(world.status) == {OWN}


def test_t26_the_next_store_waits_for_the_pod_of_the_last():
    assert codes(removal(seen(group(replicas=1, running=2)))) == {KEY: "Unfinished"}
    assert codes(removal(seen(group(replicas=0, running=None, registered=None)))) == {KEY: "Unfinished"}


def test_what_never_came_does_not_keep_an_autoscaler_from_going():
    world = seen(group(replicas=2, running=None, registered=None, created=at(0)))
    assert kinds(removal(world)) == [f"TakeOut {KEY} 1"]


def test_a_component_that_is_no_longer_scaled_may_keep_its_cool_down():
    world = seen(group(), scaled=None, status={KEY: entry(0)})
    assert codes(removal(world, ignores_cooldown=False, now=499)) == {KEY: "CoolingDown"}
    assert removal(world, ignores_cooldown=False, now=500).acts


def test_a_removal_too_leaves_a_paused_cluster_alone():
    assert codes(removal(seen(group(), base=base(is_paused=True)))) == {"": "BasePaused", KEY: "BasePaused"}


def test_groups_of_tidb_go_together():
    world = seen(group(replicas=2, component=TIDB), group("big", component=TIDB), component=TIDB)
    assert len(removal(world).acts) == 2
