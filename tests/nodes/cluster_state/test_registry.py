"""Growth on its way, late or failed, and what is left alone because of it (docs/design/nodes.md 6.9 and 5.5)."""

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.nodes.cluster_state.backoffs import BackoffRule, Backoffs
from plimsoll.nodes.cluster_state.observed import ObservedCluster
from tests.nodes.cluster_state.builders import (
    NOON,
    REFUSED,
    STOCKOUT,
    at,
    group,
    instance,
    node,
    ready_nodes,
    state,
    stillborn,
    world,
)

RULE = BackoffRule()


def growing(target: int = 5, ready: int = 2, **options: object):
    """A group of `ready` nodes that was grown to `target` at noon."""
    registry = state(**options)
    registry.observe(world(ready, *ready_nodes(ready)), NOON)
    registry.register_scale_up("g", target - ready, NOON)
    return registry


# ---- requests


def test_growth_counts_at_once():
    found = growing().assess_health(NOON).groups["g"]
    assert (found.target_size, found.upcoming, found.is_scaling_up) == (5, 3, True)


def test_growth_ends_when_all_nodes_are_there():
    registry = growing()
    assert registry.observe(world(5, *ready_nodes(4)), at(60)).arrived == ()
    assert registry.observe(world(5, *ready_nodes(5)), at(70)).arrived == ("g",)
    assert not registry.assess_health(at(70)).groups["g"].is_scaling_up


def test_nodes_that_registered_but_did_not_start_have_not_arrived():
    registry = growing()
    late = world(5, *ready_nodes(4), node("young", ready=False, age_s=1, now_s=60))
    assert registry.observe(late, at(60)).arrived == ()


def test_growth_is_overdue_strictly_after_the_provision_time():
    registry, late = growing(), world(5, *ready_nodes(2))
    assert registry.observe(late, at(900)).failed == ()
    (failed,) = registry.observe(late, at(901)).failed
    assert failed.reason.code == "ScaleUpTimedOut"
    assert failed.reason.message == "Nodes added to group g failed to register within 15m1s"
    assert (failed.nodes, failed.error.code) == (3, "timeout")


def test_overdue_growth_is_reported_once():
    registry, late = growing(), world(5, *ready_nodes(2))
    registry.observe(late, at(901))
    assert registry.observe(late, at(911)).failed == ()


def test_overdue_growth_shrinks_the_target_by_the_missing_part():
    (shrink,) = growing().observe(world(5, *ready_nodes(2)), at(901)).shrink
    assert (shrink.group, shrink.before, shrink.after) == ("g", 5, 2)


def test_the_target_is_never_shrunk_below_machines_that_exist():
    registry = growing()
    half = world(5, *ready_nodes(2), waiting=(instance("new"),))
    (shrink,) = registry.observe(half, at(901)).shrink
    assert shrink.after == 3


def test_more_growth_moves_the_expected_time_of_the_whole():
    registry = growing()
    registry.observe(world(5, *ready_nodes(2)), at(600))
    registry.register_scale_up("g", 1, at(600))
    assert registry.observe(world(6, *ready_nodes(2)), at(1500)).failed == ()
    assert len(registry.observe(world(6, *ready_nodes(2)), at(1501)).failed) == 1


def test_a_group_may_expect_its_nodes_earlier():
    registry = state()
    registry.observe(world(0, provision_time_s=60.0), NOON)
    registry.register_scale_up("g", 1, NOON)
    assert len(registry.observe(world(1, provision_time_s=60.0), at(61)).failed) == 1


def test_a_new_registry_takes_what_is_missing_for_growth():
    registry, half = state(), world(5, *ready_nodes(1))
    assert registry.observe(half, NOON).failed == ()
    found = registry.assess_health(NOON).groups["g"]
    assert (found.is_scaling_up, found.is_healthy, found.upcoming) == (True, True, 4)
    assert [failed.reason.code for failed in registry.observe(half, at(901)).failed] == ["ScaleUpTimedOut"]


def test_growth_whose_answer_was_lost_is_taken_over_from_the_world():
    registry = state()
    registry.observe(world(2, *ready_nodes(2)), NOON)
    registry.register_failed_scale_up("g", REFUSED, at(5))
    registry.observe(world(8, *ready_nodes(2)), at(10))
    found = registry.assess_health(at(10)).groups["g"]
    assert (found.is_scaling_up, found.upcoming, found.is_healthy) == (True, 6, True)


def test_what_was_reported_is_not_adopted_again():
    registry = growing()
    registry.observe(world(5, *ready_nodes(2)), at(10))
    found = registry.assess_health(at(10)).groups["g"].scale_up_request
    assert found is not None
    assert (found.increase, found.since) == (3, NOON)


def test_growth_of_a_group_that_is_gone_is_forgotten():
    registry = growing()
    registry.observe(ObservedCluster(), at(10))
    assert registry.observe(ObservedCluster(), at(2000)).failed == ()


# ---- errors of instances


def test_new_errors_while_growing_are_reported_and_back_the_group_off():
    registry = growing()
    broken = world(5, *ready_nodes(2), waiting=(stillborn("a"), stillborn("b"), instance("c")))
    (failed,) = registry.observe(broken, at(10)).failed
    assert failed.reason.code == "ScaleUpFailed"
    assert failed.reason.message == (
        "Failed adding 2 nodes (2 unseen previously) to group g due to OutOfResource.STOCKOUT; "
        "source errors: no more of these"
    )
    found = registry.assess_health(at(10)).groups["g"]
    assert found.not_usable == "in backoff until 12:05:10 UTC"
    assert found.scale_up_request is not None
    assert found.scale_up_request.increase == 1


def test_errors_seen_before_are_not_reported_again_but_deleted_again():
    registry = growing()
    broken = world(5, *ready_nodes(2), waiting=(stillborn("a"),))
    first, second = registry.observe(broken, at(10)), registry.observe(broken, at(20))
    assert (len(first.failed), len(second.failed)) == (1, 0)
    for changes in (first, second):
        (deletion,) = changes.delete_failed
        assert (deletion.instances, deletion.force) == (("cloud://a",), False)


def test_a_request_of_which_nothing_is_left_ends():
    registry = growing(target=3)
    registry.observe(world(3, *ready_nodes(2), waiting=(stillborn("a"),)), at(10))
    found = registry.assess_health(at(10)).groups["g"]
    assert (found.scale_up_request, found.is_scaling_up) == (None, False)


def test_errors_of_a_group_that_does_not_grow_only_lead_to_deletion():
    registry = state()
    registry.observe(world(2, *ready_nodes(2)), NOON)
    changes = registry.observe(world(2, *ready_nodes(2), waiting=(stillborn("a"),)), at(10))
    assert changes.failed == ()
    assert len(changes.delete_failed) == 1
    assert registry.assess_health(at(10)).groups["g"].backoff is None


def test_each_error_is_reported_and_the_stock_out_is_what_the_backoff_shows():
    registry = growing()
    broken = world(5, *ready_nodes(2), waiting=(stillborn("a"), stillborn("b", REFUSED)))
    failed = registry.observe(broken, at(10)).failed
    assert [str(failed_group.error) for failed_group in failed] == ["Other.PERMISSIONS", "OutOfResource.STOCKOUT"]
    backoff = registry.assess_health(at(10)).groups["g"].backoff
    assert backoff is not None
    assert (backoff.error.code, backoff.length_s) == ("STOCKOUT", 300)


def test_failed_instances_are_deleted_by_force_when_asked():
    registry = growing(force_delete_failed_nodes=True)
    (deletion,) = registry.observe(world(5, *ready_nodes(2), waiting=(stillborn("a"),)), at(10)).delete_failed
    assert deletion.force


# ---- instances that never register


@pytest.mark.parametrize(
    ("minimum", "force", "deleted"), [(0, False, 3), (3, False, 2), (5, False, 0), (9, False, 0), (5, True, 3)]
)
def test_long_unregistered_instances_go_without_going_under_the_min_size(minimum: int, force: bool, deleted: int):
    registry = state(force_delete_unregistered_nodes=force)
    waiting = tuple(instance(f"x{number}") for number in range(3))
    observed = world(5, *ready_nodes(2), waiting=waiting, min_size=minimum)
    registry.observe(observed, NOON)
    assert registry.observe(observed, at(900)).delete_unregistered == ()
    deletions = registry.observe(observed, at(901)).delete_unregistered
    assert sum(len(deletion.instances) for deletion in deletions) == deleted
    assert all(deletion.reason.code == "DeleteUnregistered" and deletion.force is force for deletion in deletions)


# ---- sizes that differ


def test_a_size_that_differs_for_longer_than_the_provision_time_is_repaired():
    registry, smaller = state(), world(5, *ready_nodes(4))
    registry.observe(world(5, *ready_nodes(5)), NOON)
    for seconds in (10, 910):
        assert registry.observe(smaller, at(seconds)).shrink == ()
    (repair,) = registry.observe(smaller, at(911)).shrink
    assert (repair.before, repair.after, repair.reason.code) == (5, 4, "NodeGroupSizeDiffers")


def test_a_size_that_moves_is_given_time_again():
    registry = state()
    registry.observe(world(5, *ready_nodes(5)), NOON)
    registry.observe(world(5, *ready_nodes(3)), at(10))
    registry.observe(world(5, *ready_nodes(4)), at(600))
    assert registry.observe(world(5, *ready_nodes(4)), at(1500)).shrink == ()
    assert len(registry.observe(world(5, *ready_nodes(4)), at(1501)).shrink) == 1


def test_more_nodes_than_the_target_are_never_answered_by_growth():
    registry, larger = state(), world(3, *ready_nodes(5))
    registry.observe(larger, NOON)
    assert registry.observe(larger, at(5000)).shrink == ()


def test_machines_that_have_yet_to_register_explain_a_difference():
    registry = state()
    waiting = (instance("new"),)
    registry.observe(world(3, *ready_nodes(3)), NOON)
    registry.observe(world(3, *ready_nodes(2), waiting=waiting), at(10))
    assert registry.observe(world(3, *ready_nodes(2), waiting=waiting), at(3000)).shrink == ()


# ---- groups that are not ours, and times without observation


def test_a_group_that_is_not_autoscaled_is_counted_and_left_alone():
    registry = state()
    observed = world(9, *ready_nodes(2), waiting=(instance("x"), stillborn("y")), autoscaled=False)
    for seconds in (0, 2000):
        changes = registry.observe(observed, at(seconds))
        assert (changes.failed, changes.shrink, changes.delete_failed, changes.delete_unregistered) == ((), (), (), ())
    assert registry.assess_health(at(2000)).upcoming == {"g": 6}


def test_time_without_observation_does_not_count():
    registry = growing()
    observed = world(5, *ready_nodes(2), waiting=(instance("x"),))
    registry.observe(observed, NOON)
    registry.exclude_time(timedelta(seconds=600))
    changes = registry.observe(observed, at(1500))
    assert (changes.failed, changes.shrink, changes.delete_unregistered) == ((), (), ())
    changes = registry.observe(observed, at(1501))
    assert [failed.reason.code for failed in changes.failed] == ["ScaleUpTimedOut"]
    assert (len(changes.shrink), len(changes.delete_unregistered)) == (1, 1)


# ---- back-off


def failures(*seconds: float) -> Backoffs[str]:
    backoffs: Backoffs[str] = Backoffs()
    for second in seconds:
        backoffs.record_failure("g", STOCKOUT, rule=RULE, now=at(second))
    return backoffs


@pytest.mark.parametrize(
    ("failed_at", "length_s"),
    [
        ((0,), 300),
        ((0, 100), 300),  # while it runs: the same length, from now
        ((0, 300), 300),  # its last moment
        ((0, 301), 600),
        ((0, 301, 902), 1200),
        ((0, 301, 902, 2103), 1800),
        ((0, 301, 902, 2103, 3904), 1800),
        ((0, 301, 10_000), 1200),  # an hour later it is not forgotten
        ((0, 10_800), 600),
        ((0, 10_801), 300),  # 3 hours after the last failure it is
        ((0, 301, 301 + 10_801), 300),
    ],
)
def test_a_wait_doubles_after_it_ended_up_to_a_cap_and_is_forgotten(failed_at: tuple[float, ...], length_s: float):
    running = failures(*failed_at).find_running("g", at(failed_at[-1]))
    assert running is not None
    assert running.length_s == length_s
    assert running.until == at(failed_at[-1] + length_s)


def test_a_wait_holds_up_to_its_last_moment():
    backoffs = failures(0)
    assert backoffs.find_running("g", at(300)) is not None
    assert backoffs.find_running("g", at(300.001)) is None


def test_a_refused_call_backs_the_group_off():
    registry = state()
    registry.observe(world(2, *ready_nodes(2)), NOON)
    registry.register_failed_scale_up("g", REFUSED, NOON)
    found = registry.assess_health(at(300)).groups["g"]
    assert found.not_usable == "in backoff until 12:05 UTC"
    assert found.reason is not None
    assert found.reason.message == "group g is in backoff until 12:05 UTC after Other.PERMISSIONS: not allowed"
    assert registry.assess_health(at(301)).groups["g"].not_usable == ""


def test_the_three_numbers_of_a_backoff_are_options():
    registry = state(initial_node_group_backoff_duration="10s", max_node_group_backoff_duration="15s")
    registry.observe(world(0), NOON)
    registry.register_failed_scale_up("g", REFUSED, NOON)
    registry.register_failed_scale_up("g", REFUSED, at(11))
    assert registry.assess_health(at(26)).groups["g"].not_usable
    assert not registry.assess_health(at(26.5)).groups["g"].not_usable


def test_a_stock_out_is_kept_for_the_machine_type_and_not_forgotten_with_the_group():
    registry = state()
    made: dict[str, Any] = {"machine_type": "n1-standard-4", "zone": "z1", "profile": "abc"}
    registry.observe(world(0, **made), NOON)
    registry.register_failed_scale_up("g", STOCKOUT, NOON)
    registry.observe(ObservedCluster(), at(10))
    assert registry.assess_health(at(10)).explain_not_created() == {
        ("n1-standard-4", "z1", ""): "in backoff until 12:05 UTC"
    }
    assert registry.assess_health(at(301)).explain_not_created() == {}


def test_other_failures_of_a_group_made_at_will_are_kept_for_its_profile():
    registry = state()
    registry.observe(world(0, machine_type="n1-standard-4", zone="z1", profile="abc"), NOON)
    registry.register_failed_scale_up("g", REFUSED, NOON)
    assert list(registry.assess_health(NOON).creation_backoffs) == [("n1-standard-4", "z1", "abc")]


def test_other_failures_of_an_ordinary_group_say_nothing_about_new_groups():
    registry = state()
    registry.observe(world(0, machine_type="n1-standard-4"), NOON)
    registry.register_failed_scale_up("g", REFUSED, NOON)
    assert registry.assess_health(NOON).creation_backoffs == {}


def test_a_creation_that_failed_doubles_like_any_other():
    registry, key = state(), ("n1-standard-4", "z1", "abc")
    registry.register_failed_creation(key, REFUSED, NOON)
    registry.register_failed_creation(key, REFUSED, at(301))
    assert registry.assess_health(at(301)).creation_backoffs[key].length_s == 600


gaps = st.lists(st.floats(0, 20_000, allow_nan=False), min_size=1, max_size=30)


@settings(max_examples=200, deadline=None)
@given(gaps=gaps, first=st.floats(0, 4000), longest=st.floats(0, 4000))
def test_no_wait_is_longer_than_the_cap_nor_shorter_than_the_first(gaps: list[float], first: float, longest: float):
    rule, backoffs, now = BackoffRule(first_s=first, longest_s=longest), Backoffs[str](), NOON
    for gap in gaps:
        now += timedelta(seconds=gap)
        wait = backoffs.record_failure("g", STOCKOUT, rule=rule, now=now)
        assert min(first, longest) <= wait.length_s <= longest
        assert wait.holds(now)


@settings(max_examples=100, deadline=None)
@given(steps=st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12), st.integers(0, 4)), min_size=1, max_size=12))
def test_whatever_the_world_does_targets_only_shrink_to_what_exists(steps: list[tuple[int, int, int]]):
    registry = state()
    for number, (target, ready, broken) in enumerate(steps):
        now = at(number * 400)
        waiting = tuple(stillborn(f"x{index}") for index in range(broken))
        observed = world(target, *ready_nodes(ready), waiting=waiting)
        changes = registry.observe(observed, now)
        for shrink_target in changes.shrink:
            assert ready + broken <= shrink_target.after < shrink_target.before == target
        found = registry.assess_health(now).groups["g"]
        assert 0 <= found.upcoming <= target
        assert found.scale_up_request is None or found.scale_up_request.increase > 0


def test_groups_do_not_mix():
    registry = state()
    observed = ObservedCluster(
        nodes=(node("a"), node("b")),
        group_of={"a": "one", "b": "two"},
        groups=(group(1, (instance("a"),), id="one"), group(4, (instance("b"),), id="two")),
    )
    registry.observe(observed, NOON)
    assert registry.assess_health(NOON).upcoming == {"two": 3}
