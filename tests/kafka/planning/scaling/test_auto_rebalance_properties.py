"""Random edits of users, failures and crashes, then quiet: the cluster ends where the last spec asked.

The simulated world checks on the way that no pod goes while its broker holds a replica, that no rebalance is created
while the other one is live, that objects of users are not touched, and that lists are sorted and disjoint.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.core.plans import Reason
from plimsoll.kafka.model.auto_rebalance import (
    ActionKind,
    AutoRebalance,
    AutoRebalanceObject,
    AutoRebalanceObservation,
    AutoRebalanceState,
    ModeConfiguration,
    OnFailure,
    SettingsLookup,
)
from plimsoll.kafka.model.rebalances import RebalanceState
from plimsoll.kafka.planning.scaling.auto_rebalance_step import decide_step
from tests.effort import share_of
from tests.kafka.planning.scaling.observations import ADD, BOTH, NOW, OLD, REMOVE
from tests.kafka.planning.scaling.simulated_scaling import SimulatedRebalance, SimulatedScaling

if TYPE_CHECKING:
    from collections.abc import Callable

    from plimsoll.kafka.model.requests import Mode

MISSING = SettingsLookup(problem=Reason(code="AutoRebalanceSettingsNotFound", message="no settings s"))
CONFIGURATIONS = (
    BOTH,
    (ModeConfiguration(mode=ADD, on_failure=OnFailure.RETRY), ModeConfiguration(mode=REMOVE)),
    (ModeConfiguration(mode=ADD),),
    (ModeConfiguration(mode=REMOVE),),
    (),
)
BROKERS = st.frozensets(st.integers(0, 5), min_size=1, max_size=6)
MODES = st.sampled_from([ADD, REMOVE])

# What the operator has to cope with by itself, and what users do that may cancel a rebalance or lead it astray.
COPED_WITH = st.one_of(
    st.tuples(st.just("reconcile"), st.none()),
    st.tuples(st.just("crash"), st.integers(0, 6)),
    st.tuples(st.just("advance"), MODES),
    st.tuples(st.just("fail"), MODES),
    st.tuples(st.just("time"), st.integers(1, 2000)),
    st.tuples(st.just("spec"), BROKERS),
    st.tuples(st.just("spec"), BROKERS),
    st.tuples(st.just("annotate"), st.tuples(MODES, st.sampled_from(["stop", "refresh", "approve", ""]))),
    st.tuples(st.just("settings"), st.sampled_from([SettingsLookup(), MISSING])),
    st.tuples(st.just("topic"), st.integers(0, 5)),
)
CANCELLING = st.one_of(
    st.tuples(st.just("delete"), MODES),
    st.tuples(st.just("strip"), MODES),
    st.tuples(st.just("configuration"), st.sampled_from(CONFIGURATIONS)),
    st.tuples(st.just("is_configuration_complete"), st.booleans()),
    st.tuples(st.just("edit"), st.tuples(MODES, BROKERS)),
    st.tuples(st.just("user-creates"), MODES),
)


def draw_histories(edits: st.SearchStrategy[tuple[str, Any]], size: int) -> st.SearchStrategy[list[Any]]:
    """Edits, each followed by some ticks in which everything goes on, so that operations get somewhere."""
    return st.lists(st.tuples(edits, st.integers(0, 4)), min_size=1, max_size=size)


HARMLESS: Final = draw_histories(COPED_WITH, 12)
ANY: Final = draw_histories(COPED_WITH | CANCELLING, 16)


def live_through(history: list[Any]) -> SimulatedScaling:
    world = SimulatedScaling(spec={0, 1, 2, 3})
    for (kind, value), ticks in history:
        apply_edit(world, kind, value)
        world.run(ticks)
    return world


def crash(world: SimulatedScaling, writes: int) -> None:
    world.writes_left = writes
    world.reconcile()
    world.writes_left = None


def advance(world: SimulatedScaling, mode: Mode) -> None:
    if mode in world.rebalances and world.rebalances[mode].is_ours:
        world.advance_rebalance(mode)


def fail(world: SimulatedScaling, mode: Mode) -> None:
    if mode in world.rebalances:
        world.rebalances[mode].fails = True


def create_as_user(world: SimulatedScaling, mode: Mode) -> None:
    world.rebalances.setdefault(mode, SimulatedRebalance("uid-user", mode, (0,), is_ours=False))


def create_topic(world: SimulatedScaling, broker: int) -> None:
    if broker in world.pods:
        world.replicas[broker] = world.replicas.get(broker, 0) + 1


def edit_spec(world: SimulatedScaling, mode: Mode, brokers: frozenset[int]) -> None:
    found = world.rebalances.get(mode)
    if found is not None:
        found.brokers, found.is_changed = tuple(sorted(brokers)), True


def apply_edit(world: SimulatedScaling, kind: str, value: Any) -> None:
    """An edit without a function of its own sets the field of its name."""
    if kind in FUNCTIONS:
        FUNCTIONS[kind](world, value)
    else:
        setattr(world, kind, value)


FUNCTIONS: Final[dict[str, Callable[[SimulatedScaling, Any], Any]]] = {
    "reconcile": lambda world, _: world.reconcile(),
    "crash": crash,
    "advance": advance,
    "fail": fail,
    "pods": lambda world, _: world.start_pods(),
    "time": lambda world, seconds: setattr(world, "now_s", world.now_s + seconds),
    "spec": lambda world, brokers: world.scale(*brokers),
    "annotate": lambda world, value: world.annotate(*value),
    "delete": lambda world, mode: world.delete(mode),
    "strip": lambda world, mode: world.strip_finalizer(mode),
    "edit": lambda world, value: edit_spec(world, *value),
    "user-creates": create_as_user,
    "topic": create_topic,
}


def become_quiet(world: SimulatedScaling) -> None:
    """The users mend what they broke, and now and then they refresh what waits for them."""
    world.configuration, world.is_configuration_complete, world.settings = BOTH, True, SettingsLookup()
    for tick in range(80):
        for mode in (ADD, REMOVE):
            found = world.rebalances.get(mode)
            if found is None:
                continue
            if not found.is_ours:
                if world.executing == found.uid:
                    world.executing = ""
                world.delete(mode)
            elif found.state in {RebalanceState.STOPPED, RebalanceState.NOT_READY} and tick % 5 == 0:
                found.annotation = "refresh"
        world.run()
        world.now_s += 900


def check_ended(world: SimulatedScaling) -> None:
    ended = world.summarize()
    assert ended["nodeIds"] == ended["pods"] == sorted(world.spec)
    assert (ended["add"], ended["remove"], ended["rebalances"], ended["executing"]) == ((), (), [], "")
    assert ended["state"] in {"", "Ready"}
    writes = world.writes
    world.run(3)
    assert world.writes == writes


@settings(max_examples=share_of(500))
@given(HARMLESS)
def test_after_crashes_and_failures_every_wanted_broker_holds_replicas(history: list[Any]):
    world = live_through(history)
    become_quiet(world)
    check_ended(world)
    assert {broker for broker in world.spec if not world.replicas.get(broker)} == set()


@settings(max_examples=share_of(1000))
@given(ANY)
def test_after_any_history_the_cluster_ends_where_the_last_spec_asked(history: list[Any]):
    world = live_through(history)
    assert "uid-user" not in world.touched
    become_quiet(world)
    check_ended(world)


@settings(max_examples=share_of(500))
@given(ANY)
def test_when_the_feature_is_off_nothing_of_it_remains(history: list[Any]):
    world = live_through(history)
    world.configuration, world.is_configuration_complete = (), True
    world.run(10)
    assert not [found for found in world.rebalances.values() if found.is_ours]
    assert world.status == {}
    assert "uid-user" not in world.touched


@settings(max_examples=share_of(500))
@given(ANY)
def test_repeating_a_step_at_once_repeats_no_action(history: list[Any]):
    world = live_through(history)
    acted: list[tuple[ActionKind, Mode, str]] = []
    for _ in range(6):
        step = world.reconcile()
        assert step is not None
        targets = {mode: found.uid for mode, found in world.rebalances.items()}
        acted += [
            (action.kind, action.mode, targets.get(action.mode, ""))
            for action in step.actions
            if action.kind not in {ActionKind.STOP_EXECUTION, ActionKind.DELETE}
        ]
    assert len(acted) == len(set(acted))
    last = world.reconcile()
    assert last is not None
    assert (last.actions, last.write_ahead) == ((), None)


# ---- any observation at all, also contradictory ones

IDS = st.frozensets(st.integers(0, 6), max_size=4).map(lambda ids: tuple(sorted(ids)))


def build_objects(mode: Mode) -> st.SearchStrategy[AutoRebalanceObject | None]:
    return st.none() | st.builds(
        AutoRebalanceObject,
        uid=st.sampled_from(["u1", "u2"]),
        is_ours=st.booleans(),
        state=st.sampled_from(RebalanceState),
        mode=st.sampled_from([mode.value, "full"]),
        brokers=IDS,
        annotation=st.sampled_from(["", "stop", "refresh", "nonsense"]),
        is_deleting=st.booleans(),
        is_transient=st.booleans(),
        has_session=st.booleans(),
    )


STORED = st.builds(
    AutoRebalance,
    state=st.sampled_from(AutoRebalanceState),
    add_brokers=IDS,
    remove_brokers=IDS,
    running=st.sampled_from([None, ADD, REMOVE]),
    rebalance_uid=st.sampled_from(["", "u1"]),
    requested=IDS,
    is_stopping=st.booleans(),
    has_moved=st.booleans(),
    attempts=st.integers(0, 5),
    remaining_replicas=st.none() | st.integers(0, 5),
    next_retry_time=st.none() | st.just(NOW),
    state_since=st.none() | st.just(NOW),
    last_transition_time=st.none() | st.just(NOW),
)
SEEN = st.builds(
    AutoRebalanceObservation,
    now=st.just(NOW),
    configuration=st.sampled_from(CONFIGURATIONS),
    is_configuration_complete=st.booleans(),
    stored=STORED,
    added=IDS,
    removed=IDS,
    blocked=IDS,
    brokers=IDS.map(lambda ids: tuple(sorted({*OLD, *ids}))),
    ready_brokers=IDS,
    add_rebalance=build_objects(ADD),
    remove_rebalance=build_objects(REMOVE),
    add_settings=st.sampled_from([SettingsLookup(), MISSING]),
    remove_settings=st.sampled_from([SettingsLookup(), MISSING]),
    is_executing=st.sampled_from([None, True, False]),
    blocked_replicas=st.none() | st.integers(0, 5),
    is_paused=st.booleans(),
    is_deleting=st.booleans(),
)


@settings(max_examples=share_of(2000))
@given(SEEN)
def test_whatever_is_seen_a_step_keeps_its_rules(seen: AutoRebalanceObservation):
    seen = msgspec.structs.replace(seen, removed=tuple(sorted({*seen.removed, *seen.blocked})))
    step = decide_step(seen)
    objects = {ADD: seen.add_rebalance, REMOVE: seen.remove_rebalance}
    deleted: set[Mode] = set()
    for action in step.actions:
        found, other = objects[action.mode], objects[REMOVE if action.mode is ADD else ADD]
        if action.kind is ActionKind.CREATE:
            assert found is None or action.mode in deleted
            assert other is None or not other.is_ours or not other.state.is_live or seen.is_deleting
            assert action.brokers
            assert action.spec is not None
            assert (action.spec.mode, action.spec.brokers) == (action.mode, action.brokers)
        elif action.kind is not ActionKind.STOP_EXECUTION:
            assert found is not None
            assert found.is_ours
        if action.kind is ActionKind.DELETE:
            deleted.add(action.mode)
    after = step.stored
    if not seen.is_paused:
        assert list(after.add_brokers) == sorted(set(after.add_brokers) - set(seen.removed))
        assert list(after.remove_brokers) == sorted(set(after.remove_brokers))
    if seen.is_paused and not seen.is_deleting:
        assert (after, step.actions) == (seen.stored, ())
    assert all(reason.message and not reason.message.endswith(".") for reason in step.reasons)
    if step.actions or step.warnings:
        assert step.reasons
    assert decide_step(seen) == step
