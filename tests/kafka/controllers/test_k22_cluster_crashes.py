"""K22: any call of the operator, to Kubernetes, to the engine or to the brokers, is its last, or fails.

Each call of each story is struck in three ways: the process ends after it, its answer is lost, it is refused. The end
is the same as without a fault. On the way no two automatic rebalances are live, no pod goes while its broker holds a
replica, and at most one execution is accepted per set of brokers; afterwards no throttle and no cordon is left. CI
strikes a part of the calls, `make test-long` each.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from tests.effort import IS_LONG
from tests.faults import Branches, Strike
from tests.kafka.controllers.operator_bench import API, BOTH_MODES, MB
from tests.kafka.controllers.swept_bench import SweptBench
from tests.kafka.controllers.test_k11_k31_automatic_rebalancing import ADD, REMOVE
from tests.objects.crds.kafka_definitions import list_strimzi_definitions

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.faults import Call
    from tests.kafka.controllers.swept_bench import End

# Tasks of a process that crashed never end: their exceptions are not retrieved.
pytestmark = [
    pytest.mark.usefixtures("engine"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]


# ---- stories: each step says what is wanted, because the process may have ended before or after it


def add(bench: SweptBench) -> None:
    bench.scale(4)
    bench.settle()


def remove(bench: SweptBench) -> None:
    bench.scale(3)
    bench.settle()


def remove_and_return(bench: SweptBench) -> None:
    remove(bench)
    add(bench)


def add_and_remove(bench: SweptBench) -> None:
    bench.scale(4)
    bench.scale(2, "b")
    bench.settle()


def grow(bench: SweptBench) -> None:
    bench.scale(4)
    bench.start_rebalance(ADD)
    bench.scale(5)
    bench.settle()


def withdraw(bench: SweptBench) -> None:
    bench.scale(3)
    bench.start_rebalance(REMOVE)
    bench.scale(4)
    bench.settle()


def stop(bench: SweptBench) -> None:
    bench.scale(4)
    bench.start_rebalance(ADD)
    if ADD in bench.rebalances:
        bench.annotate("kafkarebalances", ADD, rebalance="stop")
    bench.settle()


def delete(bench: SweptBench) -> None:
    bench.scale(4)
    bench.start_rebalance(ADD)
    bench.ask("DELETE", f"{API}/kafkarebalances/{ADD}")
    bench.settle()


def turn_off(bench: SweptBench) -> None:
    bench.scale(4)
    bench.start_rebalance(ADD)
    bench.patch(f"{API}/kafkas/c", {"spec": {"cruiseControl": {"autoRebalance": None}}})
    bench.settle()


def delete_pool(bench: SweptBench) -> None:
    bench.ask("DELETE", f"{API}/kafkanodepools/b")
    bench.settle()
    assert bench.read_pool("b") == {}


@dataclass(frozen=True)
class Story:
    """What users do. `brokers`: of the first pool before it. `is_whole`: replicas end where they belong."""

    play: Callable[[SweptBench], None]
    brokers: int = 3
    pools: tuple[str, ...] = ("p",)
    is_whole: bool = True
    is_slow: bool = False
    """What the user does comes before the end of the execution."""
    is_pruned: bool = False
    """Strimzi's definitions are installed, which prune a part of the status and the settings of a mode."""

    @property
    def name(self) -> str:
        return f"{self.play.__name__}_pruned" if self.is_pruned else self.play.__name__


STORIES = [
    Story(add),
    Story(remove, brokers=4),
    Story(remove_and_return, brokers=4),
    Story(add_and_remove, pools=("p", "b")),
    Story(delete_pool, pools=("p", "b")),
    Story(grow),
    Story(withdraw, brokers=4, is_slow=True),
    Story(stop, is_whole=False, is_slow=True),
    Story(delete, is_whole=False, is_slow=True),
    Story(turn_off, is_whole=False, is_slow=True),
    Story(remove, brokers=4, is_pruned=True),
    Story(delete, is_whole=False, is_slow=True, is_pruned=True),
]


THROTTLED = {
    "apiVersion": "kafka.strimzi.io/v1",
    "kind": "KafkaRebalanceSettings",
    "metadata": {"name": "throttled"},
    "spec": {"replicationThrottle": 20_000_000},
}
MODES = [{**mode, "settings": "throttled"} for mode in BOTH_MODES]


def play(story: Story, fault: Branches) -> tuple[End, list[str]]:
    """The end of a story, and the accepted executions."""
    with SweptBench(definitions=list_strimzi_definitions() if story.is_pruned else None) as bench:
        bench.pools = story.pools
        if not story.is_pruned:
            bench.made(f"{API}/kafkarebalancesettings", THROTTLED)
        modes = BOTH_MODES if story.is_pruned else MODES
        bench.make_cluster(partitions=20, pools=story.pools, brokers=story.brokers, modes=modes)
        if "b" in story.pools:
            bench.brokers.create_topic("other", [[10, 11, 12]] * 6, size_bytes=1_000_000)
        for broker in range(story.brokers) if story.is_slow else ():
            bench.brokers.slow_broker(broker, MB)
        bench.fault = fault
        bench.start_operator()

        def run() -> tuple[End, list[str]]:
            story.play(bench)
            return bench.read_end(is_whole=story.is_whole), bench.accepted

        return fault.run(run)


def find_problems(story: Story, fault: Branches) -> list[str]:
    """What goes wrong in the copies of a story that a fault strikes."""
    expected, _ = play(story, fault)
    problems = []
    for branch in fault.ended:
        if branch.end.problem:
            problems.append(f"{branch}: {branch.end.problem}")
            continue
        end, accepted = branch.end.result
        if end != expected:
            problems.append(f"{branch}: {end}, not {expected}")
        twice = [request for request, times in Counter(accepted).items() if times > 1]
        if twice:
            problems.append(f"{branch}: {twice} accepted more than once")
    return problems


BROKER_READS = ("describe_", "list_", "read_")
"""Calls whose caller cannot distinguish a lost answer from a refusal."""
STRIDE = 13
"""Every how many calls one is struck in a short run, in one of the three ways."""


def pick(call: Call, strike: Strike) -> bool:
    if strike is Strike.LOST and call.method.startswith(BROKER_READS):
        return False
    if IS_LONG:
        return True
    number, rest = divmod(call.number, STRIDE)
    return rest == 0 and strike is list(Strike)[number % len(Strike)]


SWEPT = [
    pytest.param(story, id=story.name, marks=[] if story.name == "add" else [pytest.mark.slow]) for story in STORIES
]


@pytest.mark.parametrize("story", SWEPT)
def test_k22_whichever_call_fails_or_is_the_last_the_end_is_the_same(
    story: Story, engine: str, capsys: pytest.CaptureFixture[str]
):
    fault = Branches(pick)
    problems = find_problems(story, fault)
    assert fault.ended
    assert not problems, "\n".join(problems[:10])
    counts = Counter(branch.strike.value for branch in fault.ended)
    kinds = ", ".join(f"{number} {strike}" for strike, number in counts.items())
    with capsys.disabled():
        sys.stdout.write(f"\n{story.name} with {engine}: {kinds} in {fault.completed} calls\n")
