"""A rebalance after a crash at every call, a lost answer of every call, and an error of every call: the same end.

Never are two executions accepted for one request, and no annotation of ours or of a user is left.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from plimsoll.kafka.model.rebalances import RebalanceRefused, TransientReason
from plimsoll.kube.errors import AnswerLost
from plimsoll.operator.reconcile_all import FailedReconcile
from tests.effort import CALLS_APART, choose_calls
from tests.faults import CrashAfter, LoseAnswers
from tests.faults.crashes import Crashed
from tests.kafka.controllers.rebalance_reconciler.rebalance_cluster import RebalanceCluster, ScriptedCruiseControl
from tests.objects.crds.kafka_definitions import list_our_definitions

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.faults.ports import Fault

PASSES = 8


def build_open_definitions() -> list[dict[str, Any]]:
    """Kafka and KafkaRebalance without schemas: a sweep makes hundreds of clusters."""
    found = []
    for definition in list_our_definitions():
        if definition["spec"]["names"]["kind"] in {"Kafka", "KafkaRebalance"}:
            names = {key: value for key, value in definition["spec"].items() if key != "versions"}
            schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
            version = {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}}
            versions = [{**version, "schema": {"openAPIV3Schema": schema}}]
            found.append({**definition, "spec": {**names, "versions": versions}})
    return found


OPEN_DEFINITIONS = build_open_definitions()


class FaultyRebalanceCluster(RebalanceCluster):
    """Its first processes meet the fault. After a crash another process goes on, without it."""

    def __init__(self, fault: Fault | None) -> None:
        super().__init__(definitions=OPEN_DEFINITIONS, through=(lambda port: port) if fault is None else fault.wrap)
        self.has_crashed = False

    async def run_pass(self) -> None:
        self.has_crashed = False
        try:
            await super().run_pass()
        except Crashed:
            self.has_crashed = True
            self.through = lambda port: port

    def settle(self) -> None:
        """Passes until nothing is written any more."""
        for _ in range(PASSES):
            self.reconcile()
            self.run.advance_by(10)
            has_failed = any(isinstance(result, FailedReconcile) for result in self.results)
            if not self.writes and not has_failed and not self.has_crashed:
                return


# ---- stories: each step says what is wanted, because the process may have died before or after it


def approve(world: FaultyRebalanceCluster) -> None:
    world.create()
    world.settle()
    world.annotate("approve")
    world.settle()
    world.cruise_control.finish()
    world.settle()


def run_automatically(world: FaultyRebalanceCluster) -> None:
    world.create_automatic()
    world.settle()
    world.cruise_control.finish()
    world.settle()


def run_slowly(world: FaultyRebalanceCluster) -> None:
    world.cruise_control.is_slow = True
    world.create_automatic()
    for _ in range(2):
        world.settle()
        world.cruise_control.compute()
    world.settle()
    world.cruise_control.finish()
    world.settle()


def stop(world: FaultyRebalanceCluster) -> None:
    world.create_automatic()
    world.settle()
    world.annotate("stop")
    world.settle()


def refresh(world: FaultyRebalanceCluster) -> None:
    world.create_automatic()
    world.settle()
    world.annotate("refresh")
    world.settle()
    world.cruise_control.finish()
    world.settle()


def grow(world: FaultyRebalanceCluster) -> None:
    world.create_automatic()
    world.settle()
    world.edit({"spec": {"brokers": [3, 4]}})
    world.settle()
    world.cruise_control.finish()
    world.settle()


def delete(world: FaultyRebalanceCluster) -> None:
    world.cruise_control.stops_slowly = True
    world.create_automatic()
    world.settle()
    world.delete()
    world.settle()
    assert world.get() is not None, "it stays until the executor is idle"
    world.cruise_control.finish_stop()
    world.settle()


class End(NamedTuple):
    """What is left of a story."""

    state: str
    annotations: dict[str, str]
    warnings: list[str]
    session: str
    executed: list[tuple[int, ...]]
    progress: dict[str, str]


def read_end(world: FaultyRebalanceCluster) -> End:
    executed = world.cruise_control.executed
    config_map = world.config_map()
    progress = {} if config_map is None else dict(config_map["data"])
    if world.get() is None:
        return End("gone", {}, [], "", executed, progress)
    session = "a session" if "sessionId" in world.status() else ""
    return End(world.state(), world.annotations(), world.warnings(), session, executed, progress)


def play(story: Callable[[FaultyRebalanceCluster], None], fault: Fault | None = None) -> End:
    with FaultyRebalanceCluster(fault) as world:
        story(world)
        return read_end(world)


STORIES: dict[Callable[[FaultyRebalanceCluster], None], tuple[str, list[tuple[int, ...]]]] = {
    approve: ("Ready", [(3,)]),
    run_automatically: ("Ready", [(3,)]),
    run_slowly: ("Ready", [(3,)]),
    stop: ("Stopped", [(3,)]),
    refresh: ("Ready", [(3,), (3,)]),
    grow: ("Ready", [(3,), (3, 4)]),
    delete: ("gone", [(3,)]),
}


SWEPT = [
    pytest.param(story, id=story.__name__, marks=[pytest.mark.slow] if story in {run_slowly, refresh, grow} else [])
    for story in STORIES
]


@pytest.mark.parametrize("story", SWEPT)
def test_after_a_crash_at_any_call_the_end_is_the_same(
    story: Callable[[FaultyRebalanceCluster], None], capsys: pytest.CaptureFixture[str]
):
    expected = play(story)
    assert (expected.state, expected.executed) == STORIES[story]
    for number in choose_calls(500, list(STORIES).index(story) % CALLS_APART + 1):
        crash = CrashAfter(number)
        assert play(story, crash) == expected, f"after call {number}, {crash.struck}"
        if crash.struck is None:
            with capsys.disabled():
                sys.stdout.write(f"\n{story.__name__}: {number - 1} crash points\n")
            assert number > 10
            return
    raise AssertionError("is there an end to this?")


# ---- the Kubernetes API


@pytest.mark.parametrize("story", [approve, stop, delete], ids=lambda story: story.__name__)
def test_after_a_lost_answer_of_any_call_the_end_is_the_same(story: Callable[[FaultyRebalanceCluster], None]):
    expected = play(story)
    for number in choose_calls(500, first=2):
        fault = LoseAnswers(number, error=lambda: AnswerLost("the answer was lost"))
        with FaultyRebalanceCluster(fault) as world:
            # Answers of Cruise Control are values; these are calls to the API server.
            world.wraps_cruise_control = False
            story(world)
            assert read_end(world) == expected, f"after call {number}, {fault.struck}"
        if fault.struck is None:
            assert number > 10
            return
    raise AssertionError("is there an end to this?")


# ---- Cruise Control


class _Nth:
    """Strikes at one call of Cruise Control."""

    def __init__(self, number: int) -> None:
        self._left = number
        self.struck = ""

    def __call__(self, call: str) -> bool:
        self._left -= 1
        if self._left == 0:
            self.struck = call
        return self._left == 0


@pytest.mark.parametrize("story", [run_automatically, run_slowly, stop, delete], ids=lambda story: story.__name__)
def test_after_a_lost_answer_of_cruise_control_the_end_is_the_same(story: Callable[[FaultyRebalanceCluster], None]):
    expected = play(story)
    for number in choose_calls(100):
        nth = _Nth(number)
        with FaultyRebalanceCluster(None) as world:
            world.cruise_control.loses_answer = nth
            story(world)
            assert read_end(world) == expected, f"call {number}, {nth.struck}"
        if not nth.struck:
            assert number > 3
            return
    raise AssertionError("is there an end to this?")


@pytest.mark.parametrize("story", [run_automatically, run_slowly, stop, delete], ids=lambda story: story.__name__)
def test_after_an_error_of_cruise_control_the_end_is_the_same(
    story: Callable[[FaultyRebalanceCluster], None], monkeypatch: pytest.MonkeyPatch
):
    expected = play(story)
    busy = RebalanceRefused(reason=TransientReason.SERVER_BUSY, message="503", is_transient=True)
    names = ("request_rebalance", "read_user_task", "find_execution", "stop_execution", "read_executor_state")
    for number in choose_calls(100, first=2):
        nth = _Nth(number)
        with monkeypatch.context() as patched:
            for name in names:
                patched.setattr(ScriptedCruiseControl, name, _refuse_nth(name, nth, busy))
            with FaultyRebalanceCluster(None) as world:
                story(world)
                assert read_end(world) == expected, f"call {number}, {nth.struck}"
        if not nth.struck:
            assert number > 3
            return
    raise AssertionError("is there an end to this?")


def _refuse_nth(name: str, nth: _Nth, refused: RebalanceRefused) -> Any:
    inner = getattr(ScriptedCruiseControl, name)

    async def call(self: ScriptedCruiseControl, *args: Any, **kwargs: Any) -> Any:
        return refused if nth(name) else await inner(self, *args, **kwargs)

    return call
