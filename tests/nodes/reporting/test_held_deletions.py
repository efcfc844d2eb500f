"""What is kept because something may run there has a reason in the journal, in Events, in the log and in a metric."""

from __future__ import annotations

from plimsoll.core.plans import Reason, Ref
from plimsoll.nodes.model.results import HeldDeletion
from plimsoll.nodes.reporting.journal.plan_entries import build_plan
from plimsoll.nodes.reporting.log_line import build_log_line
from plimsoll.nodes.reporting.metrics.metrics import Metrics
from tests.nodes.reporting.loop_results import event_messages, event_objects, loop_result

EXISTS = Reason(code="NodeExists", message="node g-1 of instance i-1 exists and was not drained", facts={"node": "g-1"})
MISSED = Reason(code="ListNotBelieved", message="a list of nodes missed 5 of 10, of which g-1 exists")
HELD = loop_result(held_deletions=(HeldDeletion(group="g", instance="i-1", node="g-1", reason=EXISTS),), hold=MISSED)


def test_why_names_the_node_and_its_group():
    (entry,) = [entry for entry in build_plan(HELD).not_done if entry.what == "is not deleted"]
    assert entry.about == (Ref(kind="node", name="g-1"), Ref(kind="nodegroup", name="g"))
    assert entry.reason == EXISTS


def test_why_says_that_the_cluster_is_not_scaled_down():
    (entry,) = [entry for entry in build_plan(HELD).not_done if entry.what == "is not scaled down"]
    assert entry.reason == MISSED


def test_events_are_about_the_node_and_the_status():
    assert event_objects(HELD, "DeletionHeldBack") == ["Node/g-1"]
    (message,) = event_messages(HELD, "DeletionHeldBack")
    assert EXISTS.message in message
    (message,) = event_messages(HELD, "ListNotBelieved")
    assert MISSED.message in message


def test_the_log_line_and_the_metric_count_them():
    assert EXISTS.message in build_log_line(HELD)
    assert MISSED.message in build_log_line(HELD)
    metrics = Metrics()
    metrics.observe(HELD)
    counted = {name: value for name, value in metrics.collect_samples().items() if "held_back_deletions" in name}
    for code in ("NodeExists", "ListNotBelieved"):
        assert any(code in name and value == 1.0 for name, value in counted.items()), counted
