"""Events about removals: on the status ConfigMap, on nodes, on pods that are moved, about groups that go."""

from plimsoll.core.plans import Reason
from plimsoll.kube.recorder import EventType
from plimsoll.nodes.model.results import CleanedNode, DeletedGroup, EvictedPod, RemovalResult
from plimsoll.nodes.reporting.events.emitter import build_events
from tests.golden.reviewed_sentences import ReviewedSentences
from tests.nodes.reporting.loop_results import (
    STOCKOUT,
    ended,
    event_messages,
    event_objects,
    loop_result,
    node,
    placed,
    pod,
    removal,
    scale_down,
)


def test_an_empty_node_that_goes():
    one = loop_result(nodes=(node("n3"),), scale_down=scale_down(removal("n3")))

    assert event_messages(one, "ScaleDownEmpty") == ['Scale-down: removing empty node "n3"']
    assert event_messages(one, "ScaleDown") == ["marked the node as toBeDeleted/unschedulable"]
    event = build_events(one)[-1]
    assert (event.about.kind, event.about.name, event.about.uid) == ("Node", "n3", "uid-of-n3")


def test_a_node_that_is_drained_names_its_use_and_its_pods():
    one = loop_result(nodes=(node("n1"),), pods=(placed("web-0", "n1"),), scale_down=scale_down(removal("n1", "web-0")))

    assert event_messages(one, "ScaleDown") == [
        "Scale-down: removing node n1, utilization: 0.25, pods to reschedule: web-0",
        "marked the node as toBeDeleted/unschedulable",
        "deleting pod for node scale down",
    ]
    assert build_events(one)[-1].about.uid == "uid-of-web-0"


def test_what_is_held_back_is_not_reported():
    brake = Reason(code="MaxRemovalsPerHour", message="enough for now")

    assert build_events(loop_result(scale_down=scale_down(removal("n1"), held_back={"n1": brake}))) == ()


def test_a_node_that_is_gone():
    one = loop_result(scale_down=scale_down(finished=(ended(removal("n1")),)))

    assert event_messages(one, "ScaleDown") == ["node removed by cluster autoscaler"]


def test_a_removal_that_failed_is_a_warning_on_the_node_and_on_the_pods_that_stayed():
    why = Reason(code="FailedToEvictPods", message="1 pod did not go")
    stays = EvictedPod(pod=pod("db-0"), failure=Reason(code="EvictionBlocked", message="budget db allows none"))
    went = EvictedPod(pod=pod("web-0"))
    failed = ended(removal("n1", "web-0", "db-0"), RemovalResult.FAILED, reason=why, pods=(went, stays))
    one = loop_result(scale_down=scale_down(finished=(failed,)))

    assert event_objects(one, "ScaleDownFailed") == ["Pod/db-0", "Node/n1"]
    assert event_messages(one, "ScaleDownFailed") == [
        "failed to delete pod for ScaleDown: budget db allows none",
        "failed to drain and delete node: 1 pod did not go",
    ]
    assert {event.type for event in build_events(one)} == {EventType.WARNING}


def test_a_removal_that_was_overtaken_is_no_warning(reviewed: ReviewedSentences):
    why = Reason(code="NeededAgain", message="pods came")
    one = loop_result(scale_down=scale_down(finished=(ended(removal("n1"), RemovalResult.OVERTAKEN, reason=why),)))

    (event,) = build_events(one)
    assert event.type is EventType.NORMAL
    reviewed(event.message)


def test_groups_of_auto_provisioning_that_go_n31():
    one = loop_result(deleted_groups=(DeletedGroup(group="nap-1"), DeletedGroup(group="nap-2", failure=STOCKOUT)))

    assert event_messages(one, "DeletedNodeGroup") == ["NodeAutoprovisioning: removed node group nap-1"]
    assert event_messages(one, "FailedToDeleteNodeGroup") == [
        "NodeAutoprovisioning: attempt to delete node group nap-2 failed: no more machines of this type"
    ]


def test_taints_that_are_no_longer_needed_are_reported_on_the_node():
    failed = CleanedNode(node="n2", failure=Reason(code="WriteFailed", message="conflict"))
    one = loop_result(nodes=(node("n1"),), cleaned=(CleanedNode(node="n1"), failed))

    assert event_messages(one, "ClusterAutoscalerCleanup") == [
        "removed ToBeDeletedByClusterAutoscaler taint from node n1",
        "failed to clean ToBeDeletedByClusterAutoscaler on node n2: conflict",
    ]
    assert [event.type for event in build_events(one)] == [EventType.NORMAL, EventType.WARNING]
