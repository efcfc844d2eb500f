"""What holds for any world, any answer and any history: limits, cooldowns, one store at a time, all accounted for."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from plimsoll.objects.api.tidb import AutoResource
from plimsoll.tidb.model.reconcile_types import (
    BringBack,
    CreateGroup,
    Decision,
    ObservedComponent,
    ObservedGroup,
    RaiseBase,
    ReconcilePolicy,
    Remove,
    Resize,
    TakeOut,
)
from plimsoll.tidb.planning.reconcile.decide import decide, decide_removal
from plimsoll.tidb.planning.reconcile.progress import is_shrinking
from tests.tidb.planning.reconcile.builders import (
    MARK,
    POLICY,
    SMALL_SIZE,
    TIDB,
    TIKV,
    at,
    base,
    decided,
    entry,
    group,
    key_of,
    next_pass,
    own,
    plan,
    scaled,
    seen,
)

if TYPE_CHECKING:
    from plimsoll.tidb.model.scaling_plan import ScalingPlan

TYPES = ["a", "b", "gone"]
ANY_NUMBER = AutoResource(cpu="1000m", memory="2Gi", storage="10Gi")
NUMBERS = st.integers(0, 4)
OFTEN = settings(max_examples=100, deadline=None)
MOMENTS = st.one_of(st.none(), st.integers(-900, 200), st.sampled_from([-300, -500, 86_400, 86_401]))


@st.composite
def groups(draw: st.DrawFn, component: Any) -> list[ObservedGroup]:
    found = []
    for kind in sorted(draw(st.sets(st.sampled_from(TYPES)))):
        number = draw(NUMBERS)
        near = st.one_of(st.just(number), st.none(), NUMBERS)
        moment = draw(MOMENTS)
        changes = {
            "running": draw(near),
            "registered": draw(near),
            "created": at(draw(st.integers(-1200, 100))),
            "last_change": None if moment is None else at(moment),
            "unschedulable_since": draw(st.sampled_from([None, at(-700), at(-10)])),
            "size": draw(st.sampled_from([SMALL_SIZE, replace(SMALL_SIZE, cpu_milli=1)])),
            "is_being_deleted": draw(st.sampled_from([False, False, False, True])),
        }
        if component is TIKV:
            changes |= {
                "drain_record": draw(st.sampled_from([None, None, MARK])),  # type: ignore[dict-item]
                "offline": draw(st.sampled_from([0, 0, 1])),
            }
        found.append(group(kind, number, component=component, **changes))
    return found


@st.composite
def worlds(draw: st.DrawFn) -> ObservedComponent:
    component = draw(st.sampled_from([TIKV, TIDB]))
    size = {"cpu": "1000m", "memory": "2Gi", "storage": "10Gi"}
    types: dict[str, Any] = {name: AutoResource(**size, count=draw(st.none() | NUMBERS)) for name in ("a", "b")}
    limits = draw(st.none() | NUMBERS)
    if limits is not None:
        types[component.homogeneous_type] = AutoResource(count=limits)
    number = draw(NUMBERS)
    keys = [key_of(kind, component) for kind in TYPES] + [component.homogeneous_type]
    status = {
        key: entry(draw(MOMENTS), omitted_count=draw(st.integers(0, 2))) for key in draw(st.sets(st.sampled_from(keys)))
    }
    return seen(
        *draw(groups(component)),
        component=component,
        scaled=scaled(**types),
        base=base(
            number,
            running=draw(st.sampled_from([number, None, number + 1])),
            registered=draw(st.sampled_from([number, None, 0])),
            phase=draw(st.sampled_from(["", "Normal", "Scale", "Upgrade"])),
            is_paused=draw(st.sampled_from([False, False, False, True])),
        ),
        status=status,
    )


@st.composite
def answers(draw: st.DrawFn, component: Any) -> list[ScalingPlan]:
    kinds = draw(st.sets(st.sampled_from([*TYPES, "unknown"])))
    found = [plan(kind, draw(st.integers(0, 6)), component=component) for kind in sorted(kinds)]
    more = draw(st.none() | st.integers(0, 6))
    return found if more is None else [*found, own(more, component)]


@st.composite
def worlds_and_answers(draw: st.DrawFn) -> tuple[ObservedComponent, list[ScalingPlan]]:
    world = draw(worlds())
    return world, draw(answers(world.component))


def times_of(world: ObservedComponent, key: str) -> list[Any]:
    found = [group_seen.last_change for group_seen in world.groups if group_seen.key == key]
    if key in world.status:
        found.append(world.status[key].last_auto_scaling_timestamp)
    return [time for time in found if time is not None and time - at(0) <= timedelta(hours=24)]


def sizes_after(world: ObservedComponent, found: Decision) -> dict[str, int]:
    sizes = {group_seen.key: group_seen.replicas for group_seen in world.groups}
    for act in found.acts:
        match act:
            case CreateGroup():
                sizes[act.key] = act.plan.count
            case Remove():
                sizes[act.key] = 0
            case RaiseBase():
                pass
            case _:
                sizes[act.key] = act.replicas
    return sizes


@given(worlds_and_answers())
@OFTEN
def test_limits_hold_and_the_cluster_itself_never_shrinks(given_: tuple[ObservedComponent, list[ScalingPlan]]):
    world, answer = given_
    assert world.scaled is not None
    found = decided(world, *answer)
    resources = world.scaled.resources
    for act in found.acts:
        if isinstance(act, RaiseBase):
            limit = resources.get(act.key)
            assert act.replicas > act.was == world.base.replicas
            assert limit is None or limit.count is None or act.replicas <= limit.count
    after, before = sizes_after(world, found), {group_seen.key: group_seen.replicas for group_seen in world.groups}
    for kind in ("a", "b"):
        keys = [key for key in after if key.startswith(key_of(kind, world.component))]
        ceiling = resources[kind].count
        grew = any(after[key] > before.get(key, 0) for key in keys)
        # A store that stays, and replicas that go back to what is there, are no growth of ours.
        is_back = any(isinstance(act, BringBack) for act in found.acts)
        if ceiling is not None and grew and not is_back:
            assert sum(after[key] for key in keys) <= ceiling


@given(worlds_and_answers())
@OFTEN
def test_stores_leave_one_at_a_time_and_only_by_being_taken_out(given_: tuple[ObservedComponent, list[ScalingPlan]]):
    world, answer = given_
    for found in (
        decided(world, *answer),
        decide_removal(world, ignores_cooldown=True, policy=POLICY, now=at(0)),
    ):
        takers = [act for act in found.acts if isinstance(act, TakeOut)]
        assert len(takers) <= 1
        assert all(act.replicas == act.was - 1 for act in takers)
        for act in takers:
            assert world.component is TIKV
            others = {
                group_seen.key
                for group_seen in world.groups
                if group_seen.name != act.group and is_shrinking(group_seen)
            }
            waiting = {held.key for held in found.held if held.reason.code == "OneStoreAtATime"}
            assert others <= waiting
        if world.component is TIKV:
            assert not [act for act in found.acts if isinstance(act, Resize) and act.replicas < act.was]
            for removal in found.acts:
                if isinstance(removal, Remove):
                    (one,) = [group_seen for group_seen in world.groups if group_seen.key == removal.key]
                    assert (one.replicas, one.running) == (0, 0)


@given(worlds_and_answers())
@OFTEN
def test_nothing_is_done_while_held_or_cooling_down(given_: tuple[ObservedComponent, list[ScalingPlan]]):
    world, answer = given_
    found = decided(world, *answer)
    if world.base.is_paused or world.base.phase == "Upgrade":
        assert not found.acts
    for act in found.acts:
        if isinstance(act, BringBack) and act.replicas == act.was:
            continue
        if isinstance(act, Remove) and world.component is TIKV:
            continue
        fewer = isinstance(act, Remove) or (not isinstance(act, CreateGroup) and act.replicas < act.was)
        is_empty = any(group_seen.key == act.key and group_seen.replicas == 0 for group_seen in world.groups)
        if isinstance(act, Remove) and is_empty:
            continue
        for moment in times_of(world, act.key):
            assert (at(0) - moment).total_seconds() >= (500 if fewer else 300)


DRAINING_ONE_OF_TWO = seen(
    group("a", 2, component=TIKV, drain_record=MARK), component=TIKV, scaled=scaled(a=ANY_NUMBER)
)


@given(worlds_and_answers())
@example((DRAINING_ONE_OF_TWO, []))
@example((replace(DRAINING_ONE_OF_TWO, status={key_of("a", TIKV): entry(None, omitted_count=0)}), []))
@OFTEN
def test_a_group_goes_by_omission_only_if_sure(given_: tuple[ObservedComponent, list[ScalingPlan]]):
    """The drain of one store among several, which an earlier answer started, is no removal of the group: it goes on."""
    world, answer = given_
    found = decided(world, *answer)
    named = {scaling_plan.group for scaling_plan in answer if scaling_plan.count}
    counts = {
        kind: auto_resource.count for kind, auto_resource in (world.scaled.resources if world.scaled else {}).items()
    }
    for group_seen in world.groups:
        acts = [act for act in found.acts if act.key == group_seen.key]
        if group_seen.key in named or counts.get(group_seen.resource_type) == 0 or not acts:
            continue
        assert not any(scaling_plan.resource_type == "unknown" for scaling_plan in answer)
        is_drained = group_seen.drain_record is not None
        if is_drained and group_seen.replicas > 1:
            (act,) = acts
            assert isinstance(act, TakeOut)
            assert act.replicas == group_seen.replicas - 1
        else:
            assert world.status[group_seen.key].omitted_count >= POLICY.removal_confirmations - 1
        is_stuck = group_seen.unschedulable_since == at(-700)
        if group_seen.replicas and not is_stuck:
            assert is_drained or group_seen.created <= at(-600)
            leaving = max(group_seen.offline, int(is_drained))
            assert group_seen.registered is None or group_seen.registered + leaving >= group_seen.replicas


@given(worlds_and_answers())
@OFTEN
def test_every_key_of_an_answer_is_accounted_for(given_: tuple[ObservedComponent, list[ScalingPlan]]):
    world, answer = given_
    found = decided(world, *answer)
    reported = {act.key for act in found.acts} | {held.key for held in found.held}
    standing = {group_seen.key: group_seen.replicas for group_seen in world.groups}
    for scaling_plan in answer:
        if scaling_plan.is_homogeneous:
            assert scaling_plan.group in reported or scaling_plan.count <= world.base.replicas
        else:
            assert scaling_plan.group in reported or standing.get(scaling_plan.group, 0) == scaling_plan.count
    for key, number in standing.items():
        assert key in reported or number == found.status[key].desired_replicas


@given(worlds_and_answers())
@OFTEN
def test_a_pass_that_changes_nothing_settles(given_: tuple[ObservedComponent, list[ScalingPlan]]):
    world, answer = given_
    for _ in range(3):
        world = replace(world, status=decided(world, *answer).status)
    assert decided(world, *answer).status == world.status


# ---- histories


STEPS = st.lists(
    st.tuples(
        st.lists(st.sampled_from(["a", "b"]), max_size=2, unique=True),
        NUMBERS,
        st.sampled_from([30, 30, 30, 300, 500, 700, -200, -86_500, 90_000]),
        st.sampled_from([False, False, False, True]),
    ),
    max_size=25,
)


@given(STEPS, st.sampled_from([TIKV, TIDB]), st.integers(1, 3))
@settings(max_examples=150, deadline=None)
def test_in_any_history_changes_keep_their_distance_and_groups_go_after_confirmation(
    steps: list[Any], component: Any, confirmations: int
):
    """Answers as they come, crashes that lose the status, clocks that jump forwards and back."""
    policy = ReconcilePolicy(removal_confirmations=confirmations)
    types: dict[str, Any] = {name: AutoResource(cpu="1", memory="2Gi", storage="10Gi", count=3) for name in "ab"}
    world, now, changed = seen(component=component, scaled=scaled(**types)), 0.0, dict[str, float]()
    left_out: dict[str, int] = {}
    for named, number, passed, crashes in steps:
        now += passed
        answer = [plan(kind, number + 1, component=component) for kind in named]
        for group_seen in world.groups:
            # An answer of which a crash left no trace is one that never came.
            if group_seen.key not in {scaling_plan.group for scaling_plan in answer}:
                left_out[group_seen.key] = left_out.get(group_seen.key, 0) + 1
            elif not crashes:
                left_out[group_seen.key] = 0
        found = decide(world, tuple(answer), policy=policy, now=at(now))
        for act in found.acts:
            fewer = isinstance(act, Remove | TakeOut) or (isinstance(act, Resize) and act.replicas < act.was)
            is_gone = isinstance(act, Remove) and component is TIKV
            if act.key in changed and not is_gone and changed[act.key] - now <= 86_400:
                assert now - changed[act.key] >= (500 if fewer else 300)
            if isinstance(act, Remove) or (isinstance(act, TakeOut) and not act.replicas):
                assert left_out[act.key] >= confirmations
            changed[act.key] = now
            if isinstance(act, Remove):
                del changed[act.key]
                left_out.pop(act.key)
        world = next_pass(world, found, now=now, crashes=crashes)
