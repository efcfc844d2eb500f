"""Random edits of users and random faults, then quiet: the cluster ends where the last spec asked.

On the way no pod goes while its broker holds a replica, no two automatic rebalances are live, and no object of a user
is changed (`SweptBench` watches).
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.effort import share_of
from tests.faults import CrashAfter
from tests.kafka.controllers.operator_bench import API, BOTH_MODES
from tests.kafka.controllers.test_k11_k31_automatic_rebalancing import ADD, REMOVE, SETTINGS, make_settings
from tests.kafka.controllers.test_k22_cluster_crashes import SweptBench
from tests.local.apiserver.builders import MERGE

# Tasks of a process that crashed never end: their exceptions are not retrieved.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

KAFKA = f"{API}/kafkas/c"
MANUAL = "mine"


def build_manual() -> dict[str, Any]:
    """A template of a user: nothing processes it, and nothing may change it."""
    return {
        "apiVersion": "kafka.strimzi.io/v1",
        "kind": "KafkaRebalance",
        "metadata": {
            "name": MANUAL,
            "labels": {"strimzi.io/cluster": "c"},
            "annotations": {"strimzi.io/rebalance-template": "true"},
        },
        "spec": {"goals": ["RackAwareGoal"]},
    }


class EditedBench(SweptBench):
    """What users and faults do. Every edit may come at any moment."""

    def edit(self, edit: tuple[str, Any]) -> None:
        name, value = edit
        match name:
            case "scale":
                self.scale(value)
            case "annotate":
                mode, word = value
                marks = {"metadata": {"annotations": {"strimzi.io/rebalance": word}}}
                self.ask("PATCH", f"{API}/kafkarebalances/{mode}", marks, content=MERGE)
            case "delete":
                self.ask("DELETE", f"{API}/kafkarebalances/{value}")
            case "strip":
                self.ask("PATCH", f"{API}/kafkarebalances/{value}", {"metadata": {"finalizers": []}}, content=MERGE)
                self.ask("DELETE", f"{API}/kafkarebalances/{value}")
            case "modes":
                self.patch(KAFKA, {"spec": {"cruiseControl": {"autoRebalance": value}}})
            case "pause":
                self.annotate("kafkas", "c", pause_reconciliation="true" if value else None)
            case "settings":
                self.patch(f"{API}/kafkarebalancesettings/s", {"spec": {"replicationThrottle": value}})
            case "crash":
                self.fault = CrashAfter(value)
                self.start_operator()
            case "work":
                self.work(value)
        self.run.settle()

    def work(self, times: int) -> None:
        for _ in range(times):
            self.step()
            self.make_all_ready()
            self.run_rebalances()
            self.run.advance_by(2)

    def come_to_rest(self, replicas: int) -> None:
        """The last spec; a user who looks at rebalances that hold."""
        self.edit(("pause", False))
        self.edit(("modes", BOTH_MODES))
        self.scale(replicas)
        for _ in range(12):
            self.settle()
            held = [name for name in self.rebalances if name != MANUAL]
            if not held and self.pool_ids() and len(self.pool_ids()) == replicas and self.lists == ([], []):
                return
            for name in held:
                self.annotate("kafkarebalances", name, rebalance="refresh")


EDITS = st.one_of(
    st.tuples(st.just("scale"), st.integers(2, 6)),
    st.tuples(
        st.just("annotate"),
        st.tuples(st.sampled_from([ADD, REMOVE]), st.sampled_from(["stop", "refresh", "approve", "x"])),
    ),
    st.tuples(st.just("delete"), st.sampled_from([ADD, REMOVE])),
    st.tuples(st.just("strip"), st.sampled_from([ADD, REMOVE])),
    st.tuples(
        st.just("modes"),
        st.sampled_from([None, BOTH_MODES, BOTH_MODES[:1], BOTH_MODES[1:], [{"mode": "add-brokers", "settings": "s"}]]),
    ),
    st.tuples(st.just("pause"), st.booleans()),
    st.tuples(st.just("settings"), st.integers(100_000, 10_000_000)),
    st.tuples(st.just("crash"), st.integers(1, 60)),
    st.tuples(st.just("work"), st.integers(1, 4)),
    st.tuples(st.just("work"), st.integers(1, 4)),
)


PHASES = (Phase.explicit, Phase.reuse, Phase.generate)
"""Without shrinking: an example takes seconds."""


@pytest.mark.slow
@settings(max_examples=share_of(100), deadline=None, suppress_health_check=list(HealthCheck), phases=PHASES)
@given(edits=st.lists(EDITS, min_size=2, max_size=12), replicas=st.integers(3, 6))
def test_after_random_edits_the_cluster_is_where_the_last_spec_asked(edits: list[tuple[str, Any]], replicas: int):
    with EditedBench() as bench:
        make_settings(bench)
        bench.made(f"{API}/kafkarebalances", build_manual())
        bench.make_cluster(partitions=10)
        mine = bench.rebalances[MANUAL]
        for edit in edits:
            bench.edit(edit)
        bench.come_to_rest(replicas)
        assert len(bench.pool_ids()) == replicas
        assert len(bench.live) == replicas
        assert bench.lists == ([], [])
        assert list(bench.rebalances) == [MANUAL]
        assert bench.rebalances[MANUAL] == mine
        changed = bench.ask("GET", f"{API}/kafkarebalancesettings/s").body["spec"]
        assert {**changed, "replicationThrottle": SETTINGS["replicationThrottle"]} == SETTINGS
        assert "Ready" in bench.conditions
        held = sum(bench.count_replicas(broker) for broker in bench.pool_ids())
        assert held == 30, "no replica is lost, and none is elsewhere"
