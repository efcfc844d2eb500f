"""The operator crashes after every single write of every operation: the end is the same as without a crash."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from plimsoll.kafka.model.auto_rebalance import AutoRebalance
from plimsoll.kafka.model.rebalances import RebalanceState
from tests.kafka.planning.scaling.observations import ADD, BOTH, REMOVE
from tests.kafka.planning.scaling.simulated_scaling import REPLICAS, SimulatedScaling

if TYPE_CHECKING:
    from collections.abc import Callable

    from plimsoll.kafka.model.requests import Mode

REBALANCING, STOPPED = RebalanceState.REBALANCING, RebalanceState.STOPPED
TICKS: Final = 60


def sees(mode: Mode, state: RebalanceState) -> Callable[[SimulatedScaling], bool]:
    return lambda world: mode in world.rebalances and world.rebalances[mode].state is state


def always(world: SimulatedScaling) -> bool:
    return bool(world.pods)


def four_brokers() -> SimulatedScaling:
    world = SimulatedScaling()
    for brokers in (world.spec, world.node_ids, world.pods, world.ready):
        brokers |= {3, 4}
    world.replicas |= {3: REPLICAS, 4: REPLICAS}
    return world


def fail(mode: Mode) -> Callable[[SimulatedScaling], None]:
    def set_failure(world: SimulatedScaling) -> None:
        world.rebalances[mode].fails = True

    return set_failure


def turn_off(world: SimulatedScaling) -> None:
    world.configuration = ()


def turn_on(world: SimulatedScaling) -> None:
    world.configuration = BOTH


# Each event happens once, in order, when its condition holds.
SCENARIOS: Final[dict[str, tuple[Callable[[], SimulatedScaling], list[tuple[Any, Any]]]]] = {
    "add": (SimulatedScaling, [(always, lambda world: world.scale(0, 1, 2, 3))]),
    "remove": (four_brokers, [(always, lambda world: world.scale(0, 1, 2))]),
    "both": (four_brokers, [(always, lambda world: world.scale(0, 1, 2, 3, 7))]),
    "grow": (
        SimulatedScaling,
        [
            (always, lambda world: world.scale(0, 1, 2, 3)),
            (sees(ADD, REBALANCING), lambda world: world.scale(0, 1, 2, 3, 4)),
        ],
    ),
    "remove-more": (
        four_brokers,
        [
            (always, lambda world: world.scale(0, 1, 2, 3)),
            (sees(REMOVE, REBALANCING), lambda world: world.scale(0, 1, 2)),
        ],
    ),
    "removal-beats-addition": (
        four_brokers,
        [
            (always, lambda world: world.scale(0, 1, 2, 3, 4, 7)),
            (sees(ADD, REBALANCING), lambda world: world.scale(0, 1, 2, 3, 7)),
        ],
    ),
    "add-then-remove-the-same": (
        SimulatedScaling,
        [
            (always, lambda world: world.scale(0, 1, 2, 3)),
            (sees(ADD, REBALANCING), lambda world: world.scale(0, 1, 2)),
        ],
    ),
    "withdrawal": (
        four_brokers,
        [
            (always, lambda world: world.scale(0, 1, 2)),
            (sees(REMOVE, REBALANCING), lambda world: world.scale(0, 1, 2, 3, 4)),
        ],
    ),
    "stop-and-refresh": (
        four_brokers,
        [
            (always, lambda world: world.scale(0, 1, 2)),
            (sees(REMOVE, REBALANCING), lambda world: world.annotate(REMOVE, "stop")),
            (sees(REMOVE, STOPPED), lambda world: world.annotate(REMOVE, "refresh")),
        ],
    ),
    "user-deletes-addition": (
        SimulatedScaling,
        [
            (always, lambda world: world.scale(0, 1, 2, 3)),
            (sees(ADD, REBALANCING), lambda world: world.delete(ADD)),
        ],
    ),
    "user-deletes-removal": (
        four_brokers,
        [
            (always, lambda world: world.scale(0, 1, 2)),
            (sees(REMOVE, REBALANCING), lambda world: world.delete(REMOVE)),
        ],
    ),
    "removal-fails": (
        four_brokers,
        [(always, lambda world: world.scale(0, 1, 2)), (sees(REMOVE, REBALANCING), fail(REMOVE))],
    ),
    "configuration-removed": (
        SimulatedScaling,
        [
            (always, lambda world: world.scale(0, 1, 2, 3)),
            (sees(ADD, REBALANCING), turn_off),
        ],
    ),
    "configuration-removed-and-restored": (
        four_brokers,
        [
            (always, lambda world: world.scale(0, 1, 2)),
            (sees(REMOVE, REBALANCING), turn_off),
            (lambda world: not world.rebalances, turn_on),
        ],
    ),
}


def play(
    name: str, *, crash_after: int | None = None, prunes: bool = False, restarts_late: bool = False
) -> SimulatedScaling:
    build, events = SCENARIOS[name]
    world = build()
    world.writes_left, world.prunes_design_view = crash_after, prunes
    pending = list(events)
    for _ in range(TICKS):
        if pending and pending[0][0](world):
            pending.pop(0)[1](world)
        world.run(restarts_late=restarts_late)
    assert restarts_late or not pending, f"{name}: {len(pending)} events did not happen"
    return world


EXPECTED: Final = {
    "add": {"nodeIds": [0, 1, 2, 3], "hosting": {0, 1, 2, 3}, "state": "Ready"},
    "remove": {"nodeIds": [0, 1, 2], "hosting": {0, 1, 2}, "state": "Ready"},
    "both": {"nodeIds": [0, 1, 2, 3, 7], "hosting": {0, 1, 2, 3, 7}, "state": "Ready"},
    "grow": {"nodeIds": [0, 1, 2, 3, 4], "hosting": {0, 1, 2, 3, 4}, "state": "Ready"},
    "remove-more": {"nodeIds": [0, 1, 2], "hosting": {0, 1, 2}, "state": "Ready"},
    "removal-beats-addition": {"nodeIds": [0, 1, 2, 3, 7], "hosting": {0, 1, 2, 3, 7}, "state": "Ready"},
    "add-then-remove-the-same": {"nodeIds": [0, 1, 2], "hosting": {0, 1, 2}, "state": ""},
    "withdrawal": {"nodeIds": [0, 1, 2, 3, 4], "hosting": {0, 1, 2, 3, 4}, "state": "Ready"},
    "stop-and-refresh": {"nodeIds": [0, 1, 2], "hosting": {0, 1, 2}, "state": "Ready"},
    "user-deletes-addition": {"nodeIds": [0, 1, 2, 3], "hosting": {0, 1, 2}, "state": ""},
    "user-deletes-removal": {"nodeIds": [0, 1, 2], "hosting": {0, 1, 2}, "state": "Ready"},
    "removal-fails": {"nodeIds": [0, 1, 2], "hosting": {0, 1, 2}, "state": "Ready"},
    "configuration-removed": {"nodeIds": [0, 1, 2, 3], "hosting": {0, 1, 2}, "state": ""},
    "configuration-removed-and-restored": {"nodeIds": [0, 1, 2], "hosting": {0, 1, 2}, "state": "Ready"},
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_operations_end_where_the_spec_asks(name: str):
    world = play(name)
    ended = world.summarize()
    expected = EXPECTED[name]
    assert ended["nodeIds"] == ended["pods"] == expected["nodeIds"]
    assert set(ended["replicas"]) == expected["hosting"]
    assert ended["state"] == expected["state"]
    assert (ended["add"], ended["remove"], ended["rebalances"], ended["executing"]) == ((), (), [], "")
    check_quiet(world)


def check_quiet(world: SimulatedScaling) -> None:
    """A cluster at rest writes nothing."""
    writes = world.writes
    world.run(3)
    assert world.writes == writes


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_crash_after_any_write_changes_nothing_about_the_end(name: str):
    undisturbed = play(name)
    for crash_after in range(undisturbed.writes + 1):
        world = play(name, crash_after=crash_after)
        assert world.summarize() == undisturbed.summarize(), f"crash after write {crash_after}"
        check_quiet(world)


@pytest.mark.parametrize("name", SCENARIOS)
def test_an_operator_that_starts_again_late_gets_there_too(name: str):
    for crash_after in range(play(name).writes + 1):
        world = play(name, crash_after=crash_after, restarts_late=True)
        ended = world.summarize()
        assert ended["nodeIds"] == ended["pods"] == sorted(world.spec), f"crash after write {crash_after}"
        assert (ended["add"], ended["remove"], ended["rebalances"], ended["executing"]) == ((), (), [], "")
        check_quiet(world)


@pytest.mark.parametrize("name", ["add", "remove", "both", "grow", "remove-more", "removal-beats-addition"])
def test_with_strimzis_view_alone_the_end_is_the_same(name: str):
    ended, undisturbed = play(name, prunes=True).summarize(), play(name).summarize()
    assert {**ended, "state": ""} == {**undisturbed, "state": ""}


def test_states_come_in_the_order_of_the_design():
    assert play("add").states == ["ScalingUp", "PendingProposal", "ProposalReady", "Rebalancing", "Ready"]
    assert play("remove").states == ["PendingProposal", "ProposalReady", "Rebalancing", "Ready"]


def test_a_removed_configuration_leaves_no_status():
    world = play("configuration-removed")
    assert world.status == {}
    assert world.read_stored() == AutoRebalance()


def test_removal_waits_until_the_addition_has_stopped():
    acted = play("removal-beats-addition").acted
    order = ["create add-brokers", "stop add-brokers", "delete add-brokers", "create remove-brokers"]
    assert acted[:4] == order
    assert acted[-2:] == ["create add-brokers", "delete add-brokers"]
