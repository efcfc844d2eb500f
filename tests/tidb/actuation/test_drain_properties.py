"""Any order of passes, changes of mind, silence, lost answers, crashes and edits: no store is lost, nothing stays."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.faults import CrashAfter, Crashed
from tests.tidb.actuation.drain_builders import DrainHarness


class DrainMachine(RuleBasedStateMachine):
    """The group, its PD, and everything that may happen to them. Time is the only thing that always goes on."""

    @initialize(
        replicas=st.integers(1, 3),
        is_old=st.booleans(),
        leaders_per_s=st.sampled_from([0.0, 0.5, float("inf")]),
        regions_per_s=st.sampled_from([0.3, 1.0, float("inf")]),
    )
    def begin(self, replicas: int, *, is_old: bool, leaders_per_s: float, regions_per_s: float) -> None:
        self.world = DrainHarness(replicas=replicas, base=4, leaders_per_s=leaders_per_s, regions_per_s=regions_per_s)
        self.world.pd.is_old = is_old

    @rule()
    def take_out(self) -> None:
        if self.world.replicas:
            self.world.take_out()

    @rule(writes=st.integers(1, 4), is_back=st.booleans())
    def crash(self, writes: int, *, is_back: bool) -> None:
        """After so many writes of a pass; what it was about to do is forgotten, but for what stands in the world."""
        self.world.fault = CrashAfter(writes)
        try:
            self.world.bring_back() if is_back or not self.world.replicas else self.world.take_out()
        except Crashed:
            pass
        finally:
            self.world.fault = None

    @rule()
    def bring_back(self) -> None:
        self.world.bring_back()

    @rule(seconds=st.sampled_from([1, 10, 60, 700]))
    def wait(self, seconds: int) -> None:
        self.world.run.advance_by(seconds)

    @rule(answers=st.integers(0, 2))
    def lose_answers(self, answers: int) -> None:
        self.world.pd.loses = answers

    @rule(is_silent=st.booleans())
    def silence(self, *, is_silent: bool) -> None:
        self.world.pd.is_silent = is_silent

    @rule(number=st.integers(1, 4), heard=st.sampled_from(["Up", "Up", "Disconnected", "Down"]))
    def trouble(self, number: int, heard: str) -> None:
        self.world.pd.stores[number].heard = heard

    @precondition(lambda self: self.world.replicas < 3)
    @rule(registers=st.booleans())
    def raise_by_hand(self, *, registers: bool) -> None:
        self.world.scale(self.world.replicas + 1, registers=registers)

    @rule()
    def start_late(self) -> None:
        """Pods that had no store register one."""
        self.world.scale(self.world.replicas)

    @invariant()
    def no_pod_goes_before_its_store_is_buried(self) -> None:
        if hasattr(self, "world"):
            assert self.world.lost == []

    @invariant()
    def no_two_stores_leave_at_once(self) -> None:
        if hasattr(self, "world"):
            assert self.world.pd.together <= 1

    @invariant()
    def whatever_is_evicted_is_marked(self) -> None:
        if hasattr(self, "world"):
            marked = set() if self.world.mark is None else {self.world.mark.store_id}
            assert self.world.pd.evicting <= marked

    def teardown(self) -> None:
        if not hasattr(self, "world"):
            return
        with self.world as world:
            world.pd.is_silent, world.pd.loses = False, 0
            for number in range(1, 5):
                world.pd.stores[number].heard = "Up"
            world.scale(world.replicas)
            world.take_out_all(at_most_s=8000)
            assert (world.lost, world.pd.evicting, world.mark) == ([], set(), None)
            assert all(world.pd.stores[number].state == 0 for number in range(1, 5))
            assert all(breathing_store.state == 2 for number, breathing_store in world.pd.stores.items() if number > 4)


TestDraining = DrainMachine.TestCase
TestDraining.settings = settings(max_examples=30, stateful_step_count=25, deadline=None)
