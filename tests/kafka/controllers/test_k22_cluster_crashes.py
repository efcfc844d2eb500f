"""K22: the operator dies after any call, to Kubernetes, the engine, the brokers or the record, and starts again.

The end is the same as without a crash. On the way no two automatic rebalances are live, no pod goes while its broker
holds a replica, and no execution is accepted twice; afterwards no throttle and no cordon is left. CI crashes after a
part of the calls, `make test-long` after each.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NamedTuple

import pytest

from plimsoll.kube.errors import AnswerLost, Status, build_error
from tests.effort import IS_LONG
from tests.faults import Answer5xx, CrashAfter, LoseAnswers
from tests.kafka.controllers.operator_bench import API, OperatorBench
from tests.kafka.controllers.test_k11_k31_automatic_rebalancing import ADD, LIVE, REMOVE

if TYPE_CHECKING:
    from collections.abc import Callable

    from plimsoll.kafka.reporting.cluster_reporter import ClusterResult
    from tests.faults.ports import Fault

    Story = Callable[["SweptBench"], None]

# Tasks of a process that crashed never end: their exceptions are not retrieved.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

PASSES = 80
RUNS = 12
"""Crash points of a story in CI, spread over its calls."""


class SweptBench(OperatorBench):
    """Watches what must never happen."""

    def step(self, times: int = 1) -> ClusterResult | None:
        result = None
        for _ in range(times):
            result = super().step()
            self.check()
        return result

    def run_rebalances(self) -> None:
        super().run_rebalances()
        self.check()

    def check(self) -> None:
        live = [name for name in (ADD, REMOVE) if name in self.rebalances and self.rebalance_state(name) in LIVE]
        assert len(live) <= 1, live

    def _end_deleted_pods(self) -> None:
        for name, pod in self.pods.items():
            if "deletionTimestamp" in pod["metadata"]:
                broker = int(name.rpartition("-")[2])
                assert self.count_replicas(broker) == 0, f"{name} goes while its broker holds replicas"
        super()._end_deleted_pods()

    def settle(self) -> None:
        """Reconcile until nothing is to be done, and the brokers move nothing."""
        before = ""
        for _ in range(PASSES):
            self.step()
            self.make_all_ready()
            self.run_rebalances()
            self.run.advance_by(5)
            now = f"{self.status_of_kafka}{self.rebalances}{self.live}{self._starts_of_operator}"
            live = [name for name in (ADD, REMOVE) if name in self.rebalances and self.rebalance_state(name) in LIVE]
            if now == before and not live and not self.brokers.list_reassignments():
                return
            before = now


# ---- stories: each step says what is wanted, because the process may have died before or after it


def add(bench: SweptBench) -> None:
    bench.scale(4)
    bench.settle()


def remove(bench: SweptBench) -> None:
    bench.scale(4)
    bench.settle()
    bench.scale(3)
    bench.settle()


def start(bench: SweptBench, mode: str) -> None:
    """The rebalance of a mode executes."""
    for _ in range(20):
        bench.step()
        bench.make_all_ready()
        bench.run_rebalances()
        if mode in bench.rebalances and bench.rebalance_state(mode) == "Rebalancing":
            return


def grow(bench: SweptBench) -> None:
    bench.scale(4)
    start(bench, ADD)
    bench.scale(5)
    bench.settle()


def withdraw(bench: SweptBench) -> None:
    bench.scale(4)
    bench.settle()
    bench.scale(3)
    start(bench, REMOVE)
    bench.scale(4)
    bench.settle()


def stop(bench: SweptBench) -> None:
    bench.scale(4)
    start(bench, ADD)
    if ADD in bench.rebalances:
        bench.annotate("kafkarebalances", ADD, rebalance="stop")
    bench.settle()


def delete(bench: SweptBench) -> None:
    bench.scale(4)
    start(bench, ADD)
    bench.ask("DELETE", f"{API}/kafkarebalances/{ADD}")
    bench.settle()


def turn_off(bench: SweptBench) -> None:
    bench.scale(4)
    start(bench, ADD)
    bench.patch(f"{API}/kafkas/c", {"spec": {"cruiseControl": {"autoRebalance": None}}})
    bench.settle()


def remove_and_return(bench: SweptBench) -> None:
    remove(bench)
    bench.scale(4)
    bench.settle()


STORIES = [add, remove, remove_and_return, grow, withdraw, stop, delete, turn_off]


WHOLE = {add, remove, remove_and_return, grow, withdraw}
"""Stories that end with all replicas where they belong."""


class End(NamedTuple):
    """What is left of a story. Plans may differ: a new process asks again."""

    pods: list[str]
    ids: list[int]
    state: str
    lists: tuple[list[int], list[int]]
    rebalances: dict[str, str]
    conditions: dict[str, list[str]]
    filled: list[bool]


def read_end(bench: SweptBench, *, is_whole: bool) -> End:
    state = bench.brokers.catch_up()
    assert not bench.brokers.list_reassignments()
    left = [
        (kind, name, key)
        for kind, name, values in state.settings.list_all()
        for key in values
        # Kafka takes settings of a broker only from that broker: what has left keeps its cordon until it returns.
        if "throttled" in key or ("cordoned" in key and int(name) in bench.pool_ids())
    ]
    assert left == []
    return End(
        pods=bench.live,
        ids=bench.pool_ids(),
        state=bench.state,
        lists=bench.lists,
        rebalances={name: bench.rebalance_state(name) for name in bench.rebalances},
        conditions=bench.conditions,
        filled=[bench.count_replicas(broker) >= 10 for broker in bench.pool_ids()] if is_whole else [],
    )


def play(story: Story, fault: Fault | None = None, *, faulty: tuple[str, ...] = ()) -> tuple[End, int]:
    with SweptBench() as bench:
        bench.make_cluster(partitions=20)
        if fault is not None:
            bench.fault = fault
            bench.faulty = set(faulty) or bench.faulty
            bench.start_operator()
        story(bench)
        return read_end(bench, is_whole=story in WHOLE), len(bench.executions)


def list_numbers(story: Story, *, faulty: tuple[str, ...] = ()) -> tuple[int, list[int]]:
    """How many calls a story makes, and after which of them it is struck."""
    counting = CrashAfter(1_000_000)
    play(story, counting, faulty=faulty)
    calls = counting.completed
    return calls, list(range(1, calls + 1)) if IS_LONG else sorted({1 + index * calls // RUNS for index in range(RUNS)})


SWEPT = [pytest.param(story, id=story.__name__, marks=[] if story is add else [pytest.mark.slow]) for story in STORIES]


@pytest.mark.parametrize("story", SWEPT)
def test_k22_after_a_crash_at_any_call_the_end_is_the_same(story: Story, capsys: pytest.CaptureFixture[str]):
    expected, most = play(story)
    if story is withdraw:
        most += 1  # If the removal came further before it was withdrawn, there is more to bring back.
    calls, numbers = list_numbers(story)
    for number in numbers:
        crash = CrashAfter(number)
        end, executions = play(story, crash)
        assert end == expected, f"after call {number}, {crash.struck}"
        assert executions <= most, f"after call {number}, {crash.struck}"
    with capsys.disabled():
        sys.stdout.write(f"\n{story.__name__}: {len(numbers)} of {calls} crash points\n")


ERRORS: dict[str, Callable[[int], Fault]] = {
    "lost answer": lambda number: LoseAnswers(number, error=lambda: AnswerLost("the answer was lost")),
    "5xx": lambda number: Answer5xx(
        number, error=lambda status: build_error(Status(code=status, reason="InternalError"))
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_k22_after_a_failed_call_to_kubernetes_the_end_is_the_same(story: Story, error: str):
    expected, _ = play(story)
    _, numbers = list_numbers(story, faulty=("kubernetes",))
    for number in numbers if IS_LONG else numbers[::2]:
        fault = ERRORS[error](number)
        end, _ = play(story, fault, faulty=("kubernetes",))
        assert end == expected, f"{error} of call {number}, {fault.struck}"
