"""The whole autoscaler under any order of answers, silence, crashes, trouble and edits: no store is lost by it."""

from __future__ import annotations

import json

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.faults import CrashAfter
from tests.tidb.actuation.draining_clusters import DrainingCluster
from tests.tidb.autoscaled_clusters import AUTO, FakeServer, group

MARK = "autoscaler.tidb.pingcap.com/drain"


class AutoscalerMachine(RuleBasedStateMachine):
    """A planner that says anything, a PD that fails, a process that dies, and a hand that raises replicas."""

    @initialize(count=st.integers(1, 3))
    def begin(self, count: int) -> None:
        self.world = DrainingCluster(FakeServer)
        self.world.__enter__()
        self.world.autoscaler().cluster(replicas=4)
        self.world.planner.says(group(count))
        self.world.pass_by(10)

    @rule(count=st.integers(0, 3))
    def answer(self, count: int) -> None:
        self.world.planner.says(*([group(count)] if count else []))

    @rule()
    def answer_nothing(self) -> None:
        self.world.planner.says_body(None)

    @rule(passes=st.integers(1, 4), every_s=st.sampled_from([10, 30, 200]))
    def pass_by(self, passes: int, every_s: int) -> None:
        self.world.pass_by(passes * every_s, every_s=every_s)

    @rule(seconds=st.sampled_from([300, 700]))
    def wait(self, seconds: int) -> None:
        self.world.run.advance_by(seconds)

    @rule(writes=st.integers(1, 6))
    def die_after(self, writes: int) -> None:
        self.world.crash = CrashAfter(writes)

    @rule(is_silent=st.booleans(), loses=st.integers(0, 2))
    def pd_fails(self, *, is_silent: bool, loses: int) -> None:
        self.world.pd.is_silent, self.world.pd.loses = is_silent, loses

    @rule(number=st.integers(1, 4), heard=st.sampled_from(["Up", "Up", "Down"]))
    def trouble(self, number: int, heard: str) -> None:
        self.world.pd.stores[number].heard = heard

    @rule()
    def raise_by_hand(self) -> None:
        if AUTO in self.world.clusters:
            replicas = self.world.tc()["spec"]["tikv"]["replicas"]
            self.world.server.edit("tidbclusters", AUTO, {"spec": {"tikv": {"replicas": min(4, replicas + 1)}}})

    @rule()
    def delete(self) -> None:
        if "as1" in self.world.server.names("tidbclusterautoscalers"):
            self.world.server.delete("tidbclusterautoscalers", "as1")

    @invariant()
    def nothing_is_lost(self) -> None:
        if not hasattr(self, "world"):
            return
        assert self.world.lost == []
        assert self.world.pd.together <= 1
        written = [self.world.tc(name)["metadata"].get("annotations", {}).get(MARK) for name in self.world.clusters]
        assert self.world.pd.evicting <= {json.loads(text)["storeID"] for text in written if text}

    def teardown(self) -> None:
        if not hasattr(self, "world"):
            return
        world = self.world
        try:
            self.delete()
            world.pd.is_silent, world.pd.loses, world.crash = False, 0, None
            for number in range(1, 5):
                world.pd.stores[number].heard = "Up"
            world.pass_by(900, every_s=15)
            assert (world.clusters, world.server.names("tidbclusterautoscalers")) == (["db"], [])
            assert (world.lost, world.pd.evicting) == ([], set())
            assert all(breathing_store.state == 2 for breathing_store in world.stores)
        finally:
            world.__exit__(None, None, None)


TestScaling = AutoscalerMachine.TestCase
TestScaling.settings = settings(max_examples=8, stateful_step_count=20, deadline=None)
