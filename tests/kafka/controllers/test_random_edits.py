"""Random edits of users and random faults, then quiet: the cluster ends where the last spec asked.

On the way no pod goes while its broker holds a replica, no two automatic rebalances are live, and no object of a user
is changed (`SweptBench` watches). Each history runs in a copy of one cluster.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from plimsoll.local.kafka.answers import NoAnswer
from tests.effort import IS_LONG, share_of
from tests.faults import Strike
from tests.faults.branches import run_in_copy
from tests.faults.strikes import Striking
from tests.kafka.controllers import operator_bench
from tests.kafka.controllers.operator_bench import API, BOTH_MODES
from tests.kafka.controllers.swept_bench import SweptBench
from tests.kafka.controllers.test_k11_k31_automatic_rebalancing import ADD, REMOVE, SETTINGS, make_settings
from tests.local.apiserver.builders import MERGE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.faults import Call

    Edit = tuple[Any, ...]

# Tasks of a process that crashed never end: their exceptions are not retrieved.
pytestmark = [
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]

KAFKA = f"{API}/kafkas/c"
SETTINGS_URL = f"{API}/kafkarebalancesettings/s"
MANUAL = "mine"
OWN_SPEC = {"mode": "add-brokers", "brokers": [0], "goals": ["RackAwareGoal"]}


def build_rebalance(name: str, spec: dict[str, Any], **annotations: str) -> dict[str, Any]:
    """An object of a user."""
    marks = {f"strimzi.io/{key.replace('_', '-')}": value for key, value in annotations.items()}
    return {
        "apiVersion": "kafka.strimzi.io/v1",
        "kind": "KafkaRebalance",
        "metadata": {"name": name, "labels": {"strimzi.io/cluster": "c", "made-by": "a-user"}, "annotations": marks},
        "spec": spec,
    }


class Armed(Striking):
    """Strikes a call of the process that runs, counted from the moment in which it is armed."""

    _left = 0
    _chosen: Strike | None = None

    def arm(self, strike: Strike, calls: int) -> None:
        self.struck = self.strike = None
        self._chosen, self._left = strike, calls

    def is_due(self, _call: Call, strike: Strike) -> bool:
        if strike is not self._chosen:
            return False
        self._left -= 1
        return self._left == 0


class EditedBench(SweptBench):
    """What users and faults do. Every edit may come at any moment."""

    pools = ("p", "b")

    def __init__(self) -> None:
        super().__init__()
        self.down: set[str] = set()
        """Pods whose brokers have died."""

    def start_operator(self) -> None:
        self.fault = self.armed = Armed()
        super().start_operator()

    def edit(self, edit: Edit) -> None:
        name, *values = edit
        getattr(self, f"edit_{name}")(*values)
        self.run.settle()

    # ---- users

    def edit_scale(self, pool: str, replicas: int) -> None:
        self.scale(replicas, pool)

    def edit_annotate(self, name: str, marks: dict[str, str | None]) -> None:
        body = {"metadata": {"annotations": {f"strimzi.io/{mark}": value for mark, value in marks.items()}}}
        self.ask("PATCH", f"{API}/kafkarebalances/{name}", body, content=MERGE)

    def edit_delete(self, name: str) -> None:
        self.ask("DELETE", f"{API}/kafkarebalances/{name}")

    def edit_strip(self, name: str) -> None:
        self.ask("PATCH", f"{API}/kafkarebalances/{name}", {"metadata": {"finalizers": []}}, content=MERGE)
        self.edit_delete(name)

    def edit_create(self, name: str) -> None:
        self.ask("POST", f"{API}/kafkarebalances", build_rebalance(name, OWN_SPEC))

    def edit_modes(self, modes: list[dict[str, str]] | None) -> None:
        self.patch(KAFKA, {"spec": {"cruiseControl": {"autoRebalance": modes}}})

    def edit_pause(self, is_paused: bool) -> None:
        self.annotate("kafkas", "c", pause_reconciliation="true" if is_paused else None)

    def edit_settings(self, throttle: int | None) -> None:
        """None: they are deleted."""
        if throttle is None:
            self.ask("DELETE", SETTINGS_URL)
        elif self.ask("GET", SETTINGS_URL).status == 404:
            make_settings(self)
        else:
            self.patch(SETTINGS_URL, {"spec": {"replicationThrottle": throttle}})

    # ---- faults

    def edit_strike(self, strike: Strike, calls: int) -> None:
        self.armed.arm(strike, calls)

    def edit_silence(self, request: str, times: int) -> None:
        self.brokers.reject(request, NoAnswer("no broker answers"), times=times)

    def edit_kill(self, number: int) -> None:
        """A broker dies; its pod is not ready until it returns."""
        name = self.live[number % len(self.live)]
        self.down.add(name)
        self.report(name, is_ready=False)

    def edit_return(self) -> None:
        self.down.clear()

    # ---- time

    def edit_work(self, times: int) -> None:
        for _ in range(times):
            self.step()
            self.make_all_ready()
            self.run_rebalances()
            self.run.advance_by(2)

    def make_all_ready(self) -> None:
        self.make_ready_except(self.down)

    def check(self) -> None:
        super().check()
        for rebalance in self.rebalances.values():
            if rebalance["metadata"]["labels"].get("made-by") == "a-user" and rebalance["metadata"]["name"] != MANUAL:
                assert rebalance["spec"] == OWN_SPEC
                assert "finalizers" not in rebalance["metadata"]
                assert "deletionTimestamp" not in rebalance["metadata"]

    def come_to_rest(self, replicas: dict[str, int]) -> None:
        """The last spec; a user who removes own objects that are in the way, and looks at rebalances that hold."""
        self.down.clear()
        self.edit(("pause", False))
        self.edit_settings(1_000_000)
        self.edit_modes(BOTH_MODES)
        for pool, count in replicas.items():
            self.scale(count, pool)
        for name, rebalance in self.rebalances.items():
            if name != MANUAL and rebalance["metadata"]["labels"].get("made-by") == "a-user":
                self.edit_delete(name)
        for _ in range(12):
            self.settle()
            held = [name for name in self.rebalances if name != MANUAL]
            counts = {pool: len(self.pool_ids(pool)) for pool in self.pools}
            if not held and counts == replicas and self.lists == ([], []):
                return
            for name in held:
                self.edit_annotate(name, {"rebalance": "refresh", "pause-reconciliation": None})


AUTOMATIC = st.sampled_from([ADD, REMOVE])
MARKS: list[dict[str, str | None]] = [
    {"rebalance": "stop"},
    {"rebalance": "refresh"},
    {"rebalance": "approve"},
    {"rebalance": "x"},
    {"pause-reconciliation": "true"},
    {"pause-reconciliation": None},
]
MODES = [None, BOTH_MODES, BOTH_MODES[:1], BOTH_MODES[1:], [{"mode": "add-brokers", "settings": "s"}]]
REQUESTS = ["describe_nodes", "describe_topics", "describe_log_dirs", "list_reassignments", "alter_reassignments"]
WORK = st.tuples(st.just("work"), st.integers(1, 4))
EDITS = st.one_of(
    st.tuples(st.just("scale"), st.just("p"), st.integers(2, 6)),
    st.tuples(st.just("scale"), st.just("b"), st.integers(1, 4)),
    st.tuples(st.just("annotate"), AUTOMATIC, st.sampled_from(MARKS)),
    st.tuples(st.just("delete"), AUTOMATIC),
    st.tuples(st.just("strip"), AUTOMATIC),
    st.tuples(st.just("create"), AUTOMATIC),
    st.tuples(st.just("modes"), st.sampled_from(MODES)),
    st.tuples(st.just("pause"), st.booleans()),
    st.tuples(st.just("settings"), st.one_of(st.none(), st.integers(100_000, 10_000_000))),
    st.tuples(st.just("strike"), st.sampled_from(Strike), st.integers(1, 60)),
    st.tuples(st.just("silence"), st.sampled_from(REQUESTS), st.integers(1, 20)),
    st.tuples(st.just("kill"), st.integers(0, 9)),
    st.tuples(st.just("return")),
    WORK,
    WORK,
    WORK,
)


PHASES = (Phase.explicit, Phase.reuse, Phase.generate)
"""Without shrinking: an example takes seconds."""


@pytest.fixture(scope="module")
def edited() -> Iterator[EditedBench]:
    """The cluster that every history begins with, with our engine."""
    with make_edited("plimsoll") as bench:
        yield bench


@pytest.fixture(scope="module")
def edited_with_cruise_control() -> Iterator[EditedBench]:
    """The same cluster with a Cruise Control that answers with recorded bodies."""
    with make_edited("cruise-control") as bench:
        yield bench


@contextmanager
def make_edited(engine: str) -> Iterator[EditedBench]:
    with ExitStack() as stack:
        stack.enter_context(pytest.MonkeyPatch.context()).setattr(operator_bench, "ENGINE", engine)
        bench = stack.enter_context(EditedBench())
        make_settings(bench)
        bench.made(
            f"{API}/kafkarebalances", build_rebalance(MANUAL, {"goals": ["RackAwareGoal"]}, rebalance_template="true")
        )
        bench.make_cluster(partitions=10, pools=bench.pools)
        bench.brokers.create_topic("other", [[10, 11, 12]] * 6, size_bytes=1_000_000)
        yield bench


def play(bench: EditedBench, edits: list[Edit], replicas: dict[str, int]) -> None:
    mine = bench.rebalances[MANUAL]
    for edit in edits:
        bench.edit(edit)
    bench.come_to_rest(replicas)
    assert {pool: len(bench.pool_ids(pool)) for pool in bench.pools} == replicas
    assert len(bench.live) == sum(replicas.values())
    assert bench.lists == ([], [])
    assert list(bench.rebalances) == [MANUAL]
    assert bench.rebalances[MANUAL] == mine, "nothing processes a template"
    changed = bench.ask("GET", SETTINGS_URL).body["spec"]
    assert {**changed, "replicationThrottle": SETTINGS["replicationThrottle"]} == SETTINGS
    assert "Ready" in bench.conditions
    held = sum(bench.count_replicas(broker) for broker in bench.ids)
    assert held == 48, "no replica is lost, and none is elsewhere"
    bench.read_end(is_whole=False)


HISTORIES = {"edits": st.lists(EDITS, min_size=2, max_size=14), "p": st.integers(3, 6), "b": st.integers(1, 4)}
UNHURRIED = settings(deadline=None, suppress_health_check=list(HealthCheck), phases=PHASES)


@pytest.mark.slow
@settings(UNHURRIED, max_examples=share_of(100))
@given(**HISTORIES)
def test_after_random_edits_the_cluster_is_where_the_last_spec_asked(
    edited: EditedBench, edits: list[Edit], p: int, b: int
):
    end = run_in_copy(lambda: play(edited, edits, {"p": p, "b": b}))
    assert not end.problem, end.problem


@pytest.mark.slow
@settings(UNHURRIED, max_examples=200 if IS_LONG else 10)
@given(**HISTORIES)
def test_after_random_edits_a_cluster_with_a_cruise_control_is_where_the_last_spec_asked(
    edited_with_cruise_control: EditedBench, edits: list[Edit], p: int, b: int
):
    end = run_in_copy(lambda: play(edited_with_cruise_control, edits, {"p": p, "b": b}))
    assert not end.problem, end.problem
