"""Whatever network and processes do: no two of them act at the same time, and afterwards one leads."""

from __future__ import annotations

import asyncio
import functools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.kube.leases import LeaseSettings
from plimsoll.runtime.entropy import SeededEntropy
from plimsoll.testing import run_virtual
from tests.faults import sweep_crashes
from tests.kube.leases.simulated_leases import NAME, NAMESPACE, CallOutcome, LeaseCluster, lease_world, overlapping

if TYPE_CHECKING:
    from collections.abc import Callable

    from plimsoll.kube.transport import Request
    from plimsoll.runtime.clocks import VirtualClock
    from tests.kube.leases.simulated_leases import Contender

TIMES = LeaseSettings(name=NAME, namespace=NAMESPACE, duration_s=5, renew_deadline_s=3.0, retry_period_s=0.5)
LONGEST_DELAY_S = 4.0
OUTCOMES = ("lost", "unsent", "failed", "failed-late")


@dataclass
class NetworkConditions:
    """What becomes of calls: by a seed, until it clears up."""

    seed: int
    bad_share: float
    slow_share: float
    is_clear: bool = False
    _entropy: SeededEntropy = field(init=False)

    def __post_init__(self) -> None:
        self._entropy = SeededEntropy(self.seed)

    def fate(self, _call: Request) -> CallOutcome:
        if self.is_clear:
            return CallOutcome(to_server_s=0.01, to_us_s=0.01)
        draw = functools.partial(self._entropy.draw_uniform, 0, 1)
        longest_s = LONGEST_DELAY_S if draw() < self.slow_share else 0.05
        outcome = OUTCOMES[int(draw() * len(OUTCOMES)) % len(OUTCOMES)] if draw() < self.bad_share else "ok"
        return CallOutcome(to_server_s=draw() * longest_s, to_us_s=draw() * longest_s, outcome=outcome)


class ElectorProcess:
    """Dies, is frozen, and is started again with a new identity whenever its candidacy ends."""

    def __init__(self, world: LeaseCluster, number: int, weather: NetworkConditions) -> None:
        self.world, self.number, self.weather = world, number, weather
        self.lives: list[Contender] = []
        self._life: asyncio.Task[None] | None = None

    @property
    def current(self) -> Contender:
        return self.lives[-1]

    async def run(self) -> None:
        while True:
            one = self.world.contender(f"{self.number}_{len(self.lives)}", settings=TIMES, off_by_s=self.number * 1e5)
            one.network.fate = self.weather.fate
            self.lives.append(one)
            # What acts does not stop when the lease is lost: nothing but the guard may keep it from acting.
            self.world.spawn(one.act(call_s=0.3, pause_s=0.05))
            self._life = self.world.spawn(one.elector.run())
            await asyncio.wait((self._life,))
            await self.world.clock.sleep(0.3)

    def crash(self) -> None:
        if self._life is not None:
            self._life.cancel()


EVENTS = st.lists(
    st.tuples(
        st.floats(0.1, 4.0),
        st.integers(0, 3),
        st.sampled_from(["crash", "crash-leader", "freeze", "freeze-leader", "partition-leader", "thaw", "clock"]),
    ),
    max_size=12,
)


def happen(kind: str, process: ElectorProcess, processes: list[ElectorProcess]) -> None:
    leaders = [process for process in processes if process.current.holder.is_leading]
    target = leaders[0] if kind.endswith("-leader") and leaders else process
    if kind.startswith("crash"):
        target.crash()
    elif kind.startswith("freeze"):
        target.current.freezer.freeze()
    elif kind == "partition-leader":
        target.current.network.fate = lambda _: CallOutcome(outcome="unsent")
    elif kind == "thaw":
        target.current.freezer.thaw()
    else:
        target.current.clock.off_by_s = -target.current.clock.off_by_s


@settings(max_examples=25, deadline=None)
@given(
    count=st.integers(2, 4),
    weather=st.builds(NetworkConditions, st.integers(0, 2**32), st.floats(0, 0.5), st.floats(0, 0.4)),
    events=EVENTS,
)
def test_no_two_processes_act_at_once_and_one_leads_when_the_faults_are_over(
    count: int, weather: NetworkConditions, events: list[tuple[float, int, str]]
):
    async def main(clock: VirtualClock):
        async with lease_world(clock) as world:
            processes = [ElectorProcess(world, number, weather) for number in range(count)]
            for process in processes:
                world.spawn(process.run())
            await clock.sleep(1)
            for wait_s, number, kind in events:
                await clock.sleep(wait_s)
                happen(kind, processes[number % count], processes)
            weather.is_clear = True
            for process in processes:
                process.current.freezer.thaw()
                process.current.network.fate = weather.fate
            # A write may be under way that long and start a lease anew; then the promise counts.
            await clock.sleep(2 * LONGEST_DELAY_S)
            await clock.sleep(TIMES.duration_s + 2 * TIMES.retry_period_s)
            leading = sum(process.current.holder.is_leading for process in processes)
            lives = [life for process in processes for life in process.lives]
            return leading, overlapping(lives), sum(len(life.acted) for life in lives)

    leading, overlaps, acts = run_virtual(main)
    assert overlaps == []
    assert leading == 1
    assert acts > 0


SLOW_S = 1.4
SLOW_ANSWERS = {
    "an acquisition": ("POST", CallOutcome(to_us_s=SLOW_S)),
    "a renewal": ("PATCH", CallOutcome(to_us_s=SLOW_S)),
    "a renewal whose answer is lost": ("PATCH", CallOutcome(to_us_s=SLOW_S, outcome="lost")),
}


@pytest.mark.parametrize(("method", "slow"), SLOW_ANSWERS.values(), ids=SLOW_ANSWERS.keys())
def test_a_leader_cut_off_after_a_slow_answer_acts_to_the_end_of_its_time_and_not_a_moment_longer(
    method: str, slow: CallOutcome
):
    async def main(clock: VirtualClock):
        async with lease_world(clock) as world:
            a, b = world.contender("a", settings=TIMES), world.contender("b", settings=TIMES)
            sent_at_s: list[float] = []

            def fate(call: Request) -> CallOutcome:
                if call.method in ("POST", "PATCH") and sent_at_s and clock.monotonic_s() > sent_at_s[0]:
                    return CallOutcome(outcome="unsent")
                if call.method == method:
                    sent_at_s.append(clock.monotonic_s())
                    return slow
                return CallOutcome()

            a.network.fate = fate
            for contender in (a, b):
                # What acts does not stop when the lease is lost: nothing but the guard may keep it from acting.
                world.spawn(contender.act(call_s=0.05, pause_s=0.01))
            world.start(a)
            await clock.sleep(0.1)
            world.start(b)
            await clock.sleep(12)
            return sent_at_s[0], [process.acted for process in (a, b)], overlapping([a, b])

    sent_at_s, (first, second), overlaps = run_virtual(main)
    ends_at_s = max(end for _, end in first)
    assert overlaps == []
    assert ends_at_s <= sent_at_s + TIMES.validity_s
    assert ends_at_s > sent_at_s + TIMES.validity_s - 2 * TIMES.shortest_call_s, "it may use its time"
    begins_at_s = min(begin for begin, _ in second)
    assert sent_at_s + TIMES.duration_s <= begins_at_s <= sent_at_s + TIMES.duration_s + 2 * TIMES.retry_period_s


class Candidate:
    def __init__(self, world: LeaseCluster, through: Callable[[Any], Any], name: str) -> None:
        self.contender = world.contender(name, settings=TIMES)
        self.contender.elector._port = through(self.contender.elector._port)

    async def run(self) -> None:
        """Lead, act for a while, stand down."""
        running = asyncio.create_task(self.contender.elector.run())
        try:
            await self.contender.holder.wait_until_acquired()
            acting = asyncio.create_task(self.contender.act())
            await self.contender.clock.sleep(2.2)
            acting.cancel()
            await asyncio.wait((acting,))
            begin_s, end_s = self.contender.acted[-1]
            self.contender.acted[-1] = (begin_s, min(end_s, self.contender.clock.monotonic_s()))
            self.contender.holder.stand_down()
            await running
        finally:
            running.cancel()
            await asyncio.wait((running,))


def test_after_a_crash_at_any_call_the_next_process_leads_and_leaves_a_free_lease():
    built: list[Candidate] = []

    async def build_world(clock: VirtualClock) -> LeaseCluster:
        built.clear()
        world = LeaseCluster(clock, asyncio.create_task)
        await world.open()
        return world

    def build_instance(world: LeaseCluster, through: Callable[[Any], Any]) -> Candidate:
        built.append(Candidate(world, through, f"life-{len(built)}"))
        return built[-1]

    async def check(world: LeaseCluster) -> None:
        assert (await world.spec())["holderIdentity"] == ""
        assert overlapping([candidate.contender for candidate in built]) == []
        assert built[-1].contender.acted

    points = sweep_crashes(
        build_world=build_world, build_instance=build_instance, run=lambda candidate: candidate.run(), check=check
    )
    assert points >= 5, "read, create, renewals, release"
