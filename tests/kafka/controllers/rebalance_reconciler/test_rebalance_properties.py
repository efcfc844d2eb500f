"""Random edits of users, faults of Cruise Control and crashes, then quiet: a rebalance can be brought to Ready.

Never do two executions run at once, and nothing of ours is left on the object.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.effort import share_of
from tests.faults import CrashAfter
from tests.kafka.controllers.rebalance_reconciler.rebalance_cluster import KAFKA
from tests.kafka.controllers.rebalance_reconciler.test_rebalance_crashes import FaultyRebalanceCluster

if TYPE_CHECKING:
    from collections.abc import Callable

ANNOTATIONS = ("approve", "refresh", "stop", "nonsense", None)
STATES = {
    "PendingProposal",
    "ProposalReady",
    "Rebalancing",
    "Stopped",
    "NotReady",
    "Ready",
    "ReconciliationPaused",
}
STEPS = st.one_of(
    st.tuples(st.just("annotate"), st.sampled_from(ANNOTATIONS)),
    st.tuples(st.just("edit"), st.sampled_from(([3], [3, 4], []))),
    st.tuples(st.just("approve-automatically"), st.booleans()),
    st.tuples(st.just("pause"), st.booleans()),
    st.tuples(st.just("kafka-ready"), st.booleans()),
    st.tuples(st.just("down"), st.booleans()),
    st.tuples(st.just("slow"), st.booleans()),
    st.tuples(st.just("stops-slowly"), st.booleans()),
    st.tuples(st.just("foreign"), st.booleans()),
    st.tuples(st.just("crash"), st.integers(1, 12)),
    st.tuples(st.just("lose"), st.sampled_from(("real-run", "stop", "dry-run", "find-execution"))),
    st.tuples(st.sampled_from(("compute", "finish", "finish-stop", "restart", "recreate", "reconcile")), st.none()),
)


class Story:
    """A cluster, the steps of a user, and the checks after each."""

    def __init__(self, world: FaultyRebalanceCluster) -> None:
        self.world = world
        self.control = world.cruise_control

    def take(self, step: str, value: Any) -> None:
        """One step, and a pass after it."""
        control, world = self.control, self.world
        annotation = {
            "approve-automatically": "strimzi.io/rebalance-auto-approval",
            "pause": "strimzi.io/pause-reconciliation",
        }
        flags = {"down": "is_down", "slow": "is_slow", "stops-slowly": "stops_slowly", "foreign": "foreign"}
        happenings: dict[str, Callable[[], None]] = {
            "compute": control.compute,
            "finish-stop": control.finish_stop,
            "restart": control.restart,
            "finish": self.finish,
            "recreate": self.recreate,
        }
        if step == "annotate":
            world.annotate(value)
        elif step == "edit":
            world.edit({"spec": {"brokers": value}})
        elif step in annotation:
            world.edit({"metadata": {"annotations": {annotation[step]: "true" if value else None}}})
        elif step == "kafka-ready":
            world.set_kafka(is_ready=value)
        elif step in flags:
            # Another client cannot start while ours runs.
            setattr(control, flags[step], value and not (step == "foreign" and control.running is not None))
        elif step == "crash":
            world.through = CrashAfter(value).wrap
        elif step == "lose":
            control.loses_answer = lambda call: call == value
        elif step in happenings:
            happenings[step]()
        self.reconcile()
        world.through = lambda port: port
        control.loses_answer = lambda _call: False

    def reconcile(self) -> None:
        self.world.reconcile()
        self.world.run.advance_by(10)
        if self.world.status():
            assert self.world.state() in STATES, "exactly one state"

    def finish(self) -> None:
        if self.control.running is not None:
            self.control.compute()
            self.control.finish()

    def recreate(self) -> None:
        if "finalizers" not in (self.world.get() or {}).get("metadata", {}):
            self.world.delete()
            self.world.create()

    def calm_down(self) -> None:
        """No faults, no executions, no wishes of users but the last spec."""
        for step in ("down", "slow", "stops-slowly", "foreign", "pause"):
            self.take(step, value=False)
        self.take("kafka-ready", value=True)
        self.take("approve-automatically", value=False)
        self.take("edit", [3])
        self.take("annotate", None)
        self.take("compute", None)
        self.take("finish", None)
        self.world.settle()


@settings(max_examples=share_of(100), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps=st.lists(STEPS, min_size=5, max_size=25))
@example(
    steps=[("approve-automatically", True), ("lose", "real-run"), ("crash", 9), ("annotate", "stop"), ("finish", None)]
)
@example(steps=[("annotate", "approve"), ("crash", 7), ("edit", [3, 4]), ("finish", None)])
@example(steps=[("approve-automatically", True), ("reconcile", None), ("pause", True), ("pause", False)])
def test_any_story_ends_well(steps: list[tuple[str, Any]]):
    with FaultyRebalanceCluster(None) as world:
        story = Story(world)
        world.create()
        story.reconcile()
        for step, value in steps:
            story.take(step, value)
        story.calm_down()
        assert world.state() in {"ProposalReady", "Ready", "Stopped", "NotReady"}, world.status()
        assert world.cruise_control.running is None
        assert world.annotations() == {}, "nothing is left on the object"
        # A user can always bring it to its end.
        world.annotate("refresh")
        world.settle()
        assert (world.state(), world.warnings()) == ("ProposalReady", [])
        before = len(world.cruise_control.executed)
        world.annotate("approve")
        world.settle()
        assert world.state() == "Rebalancing"
        world.cruise_control.finish()
        world.settle()
        assert (world.state(), world.annotations()) == ("Ready", {})
        assert world.cruise_control.executed[before:] == [(3,)]
        kafka = world.ask("GET", f"{KAFKA}/kafkas/c").body
        assert kafka["metadata"]["generation"] == 1, "no object of a user was changed"
