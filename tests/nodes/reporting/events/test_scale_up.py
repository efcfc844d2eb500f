"""Scale-up Events: Cluster Autoscaler's reasons and words, and never more of them than people can read."""

from dataclasses import replace

from plimsoll.core.plans import Reason
from plimsoll.kube.recorder import EventType
from plimsoll.nodes.cluster_state.changes import (
    Changes,
    FailedScaleUp,
    build_failed_instances_reason,
    build_size_mismatch_reason,
    build_unregistered_reason,
)
from plimsoll.nodes.cluster_state.observed import ScaleUpError
from plimsoll.nodes.config.policy import Policy
from plimsoll.nodes.loop_result import LoopResult
from plimsoll.nodes.model.reasons import CONSUMING, MAX_NODES_REACHED
from plimsoll.nodes.model.results import FilteredPod, GroupRepair, ScaleUpPart
from plimsoll.nodes.model.scale_up_plan import SkippedGroup
from plimsoll.nodes.model.snapshot import PendingPods
from plimsoll.nodes.reporting.events.emitter import build_events
from plimsoll.objects.api.provisioning_requests import CONSUME_ANNOTATIONS
from tests.nodes.reporting.loop_results import (
    STOCKOUT,
    event_messages,
    event_objects,
    filtered_pod,
    group_reason,
    loop_result,
    option,
    planned,
    pod,
    replicas,
    scale_up,
    scale_up_result,
    scaled_up_loop,
    unschedulable,
    unschedulable_loop,
    waiting,
)

CPU_LIMIT = Reason(code="CpuResourceLimit", message="max cluster cpu limit reached (13 of 5 in use)")


def test_a_group_that_grows_is_reported_before_and_after_on_the_status_config_map():
    one = scaled_up_loop(scale_up(option("g", size=1), waiting("p"), nodes=2))

    assert event_messages(one, "ScaledUpGroup") == [
        "Scale-up: setting group g size to 3 instead of 1 (max: 10)",
        "Scale-up: group g size set to 3 instead of 1 (max: 10)",
    ]
    about = build_events(one)[0].about
    assert (about.kind, about.namespace, about.name) == ("ConfigMap", "kube-system", "cluster-autoscaler-status")


def test_a_growth_that_the_cloud_refuses_is_a_warning():
    bad = scale_up(option("g"), waiting("p"))
    one = loop_result(scale_up=ScaleUpPart(plan=planned(bad), results=(scale_up_result(bad, failure=STOCKOUT),)))

    assert event_messages(one, "FailedToScaleUpGroup") == ["Scale-up failed for group g: no more machines of this type"]
    assert len(event_messages(one, "ScaledUpGroup")) == 1
    assert event_messages(one, "TriggeredScaleUp") == []


def test_a_group_that_is_made_is_reported_by_the_id_the_cloud_gave_it():
    new = scale_up(option("nap-1", exists=False), waiting("p"))
    one = loop_result(scale_up=ScaleUpPart(plan=planned(new), results=(scale_up_result(new, group="nap-1-x"),)))

    assert event_messages(one, "CreatedNodeGroup") == ["NodeAutoprovisioning: created new node group nap-1-x"]


def test_a_group_that_cannot_be_made_is_not_reported_as_scaled_up():
    new = scale_up(option("nap-1", exists=False), waiting("p"))
    one = loop_result(
        scale_up=ScaleUpPart(plan=planned(new), results=(scale_up_result(new, created=False, failure=STOCKOUT),))
    )

    assert event_messages(one, "FailedToCreateNodeGroup") == [
        "NodeAutoprovisioning: attempt to create node group nap-1 failed: no more machines of this type"
    ]
    assert event_messages(one, "ScaledUpGroup") == []


def test_what_was_held_back_is_not_reported_as_done():
    held = scale_up(option("g"), waiting("p"))
    brake = Reason(code="Paused", message="paused")
    one = loop_result(
        waiting("p"), scale_up=ScaleUpPart(plan=planned(held), results=(scale_up_result(held, held_back=brake),))
    )

    assert build_events(one) == ()


# ---- pods


def test_a_pod_gets_an_event_with_the_groups_scaled_up_for_it():
    red, blue = waiting("red"), waiting("blue")
    one = scaled_up_loop(
        scale_up(option("a"), red), scale_up(option("b", size=2, most=5), red, blue), pending=(red, blue)
    )

    assert event_messages(one, "TriggeredScaleUp") == [
        "pod triggered scale-up: [{a 0->1 (max: 10)} {b 2->3 (max: 5)}]",
        "pod triggered scale-up: [{b 2->3 (max: 5)}]",
    ]
    event = next(event for event in build_events(one) if event.reason == "TriggeredScaleUp")
    assert (event.about.kind, event.about.name, event.about.uid) == ("Pod", "red", "uid-of-red")
    assert event.type is EventType.NORMAL


def test_of_pods_alike_the_first_have_a_place_the_next_are_helped_and_the_last_are_left():
    four = PendingPods(key="default/four", pod=pod("four-0"), count=4, names=("four-0", "four-1", "four-2", "four-3"))
    some = scale_up(option("g"), PendingPods(key="default/four", pod=four.pod, count=2))
    plan = planned(
        some,
        remaining=(unschedulable(PendingPods(key="default/four", pod=four.pod, count=1), reasons=(CPU_LIMIT,)),),
        existing={"n1": {"default/four": 1}},
    )
    one = loop_result(four, scale_up=ScaleUpPart(plan=plan, results=(scale_up_result(some),)))

    assert event_objects(one, "TriggeredScaleUp") == ["Pod/four-1", "Pod/four-2"]
    assert event_objects(one, "NotTriggerScaleUp") == ["Pod/four-3"]


def test_a_pod_that_stays_pending_gets_an_event_with_the_number_of_groups_per_reason():
    reasons = (
        group_reason("MaxSizeReached", "max size reached", "a"),
        group_reason("InBackoff", "in backoff until 02:10", "b"),
        group_reason("InBackoff", "in backoff until 02:15", "c"),
        group_reason("NodeResourcesFit", "Insufficient cpu, Insufficient memory", "d", "e"),
        group_reason("NodeResourcesFit", "Insufficient cpu", "f"),
    )
    one = unschedulable_loop(waiting("p"), reasons=reasons)

    (message,) = event_messages(one, "NotTriggerScaleUp")
    assert message == (
        "pod didn't trigger scale-up: 1 max node group size reached, 2 in backoff after failed scale-up, "
        "3 Insufficient cpu, 2 Insufficient memory"
    )


def test_a_limit_of_the_cluster_is_named_n23_n32():
    one = unschedulable_loop(waiting("p"), reasons=(CPU_LIMIT,))

    assert event_messages(one, "NotTriggerScaleUp") == [
        "pod didn't trigger scale-up: 1 max cluster cpu limit reached (13 of 5 in use)"
    ]


def test_a_cap_on_groups_is_named_n35():
    cap = Reason(
        code="MaxAutoprovisionedNodeGroupCount",
        message="max-autoprovisioned-node-group-count reached (1 of 1)",
        facts={"groups": 0},
    )
    one = unschedulable_loop(waiting("p"), reasons=(cap,))

    assert event_messages(one, "NotTriggerScaleUp") == [
        "pod didn't trigger scale-up: 1 max-autoprovisioned-node-group-count reached (1 of 1)"
    ]


def test_a_full_cluster_is_reported_on_the_status_config_map_and_on_pods():
    entry = waiting("p")
    full = Reason(code=MAX_NODES_REACHED, message="the cluster has 9 ready nodes, max-nodes-total is 9")
    plan = planned(
        remaining=(unschedulable(entry, reasons=(Reason(code="MaxNodesTotal", message="max-nodes-total"),)),)
    )
    one = loop_result(entry, scale_up=ScaleUpPart(plan=plan, skipped=full), options={"max_nodes_total": 9})

    assert event_messages(one, "MaxNodesTotalReached") == ["Max total nodes in cluster reached: 9"]
    assert event_messages(one, "NotTriggerScaleUp") == [
        "pod didn't trigger scale-up: max total nodes in cluster reached"
    ]


def test_fifty_pods_of_a_class_get_events_of_their_own_and_their_owner_one_for_all():
    many = replicas("web", 300)
    one = unschedulable_loop(*many, reasons=(CPU_LIMIT,))

    names = event_objects(one, "NotTriggerScaleUp")
    assert len(names) == 51
    assert names[-1] == "ReplicaSet/web"
    assert event_messages(one, "NotTriggerScaleUp")[-1].startswith(
        "300 pods didn't trigger scale-up: 1 max cluster cpu"
    )


def test_fifty_pods_need_no_summary():
    one = unschedulable_loop(*replicas("web", 50), reasons=(CPU_LIMIT,))

    assert len(event_messages(one, "NotTriggerScaleUp")) == 50


def test_pods_that_stand_alone_are_summed_up_on_the_status_config_map():
    one = unschedulable_loop(*(waiting(f"p{number}") for number in range(60)), reasons=(CPU_LIMIT,))

    assert event_objects(one, "NotTriggerScaleUp")[-1] == "ConfigMap/cluster-autoscaler-status"


def test_every_owner_has_its_own_fifty():
    one = unschedulable_loop(*replicas("web", 60), *replicas("db", 60), reasons=(CPU_LIMIT,))

    names = event_objects(one, "NotTriggerScaleUp")
    assert names.count("ReplicaSet/web") == names.count("ReplicaSet/db") == 1
    assert len(names) == 102


def test_of_many_owners_fewer_pods_get_events_so_that_no_event_is_pushed_out():
    owners = [replicas(f"rs{number}", 60) for number in range(300)]
    one = unschedulable_loop(*(entry for entries in owners for entry in entries), reasons=(CPU_LIMIT,))

    names = event_objects(one, "NotTriggerScaleUp")
    assert len(names) < 1_000
    assert {name for name in names if name.startswith("ReplicaSet/")} == {f"ReplicaSet/rs{n}" for n in range(300)}


def test_what_is_only_asked_for_by_a_request_is_no_pod_to_report():
    asked = PendingPods(key="default/request/0", pod=pod("asked"), count=40)
    one = scaled_up_loop(scale_up(option("g"), asked), pending=(asked,))

    assert event_messages(one, "TriggeredScaleUp") == []


# ---- pods that consume a request


def consuming(count: int) -> tuple[FilteredPod, ...]:
    return tuple(filtered_pod(f"p{number}", CONSUMING, **{CONSUME_ANNOTATIONS[0]: "pr-x"}) for number in range(count))


def test_at_most_fifty_pods_per_loop_get_the_event_that_they_are_ignored_n10():
    one = loop_result(filtered_pods=consuming(205))

    assert len(event_messages(one, "IgnoredInScaleUp")) == 50
    assert event_messages(one, "IgnoredInScaleUp")[0] == (
        "Unschedulable pod didn't trigger scale-up, because it's consuming ProvisioningRequest default/pr-x"
    )


def test_the_old_annotation_counts_too():
    one = loop_result(filtered_pods=(filtered_pod("p", CONSUMING, **{CONSUME_ANNOTATIONS[1]: "pr-y"}),))

    assert event_messages(one, "IgnoredInScaleUp")[0].endswith("ProvisioningRequest default/pr-y")


def test_expendable_pods_get_no_event():
    assert build_events(loop_result(filtered_pods=(filtered_pod("p", "Expendable"),))) == ()


# ---- repairs, health, priorities


def test_growth_that_failed_later_is_reported_with_the_clouds_words():
    error = ScaleUpError(code="STOCKOUT", message="none left")
    reason = build_failed_instances_reason("g", error, failed=3, new=3, messages=["none left"])
    failed = FailedScaleUp(group="g", error=error, nodes=3, reason=reason)
    one = loop_result(changes=Changes(failed=(failed,)))

    assert event_messages(one, "ScaleUpFailed") == [reason.message]
    assert build_events(one)[0].type is EventType.WARNING


def test_each_machine_that_never_became_a_node_is_reported_when_it_is_deleted():
    reason = build_unregistered_reason("g", 2, limit_s=900, kept=0)
    gone = GroupRepair(group="g", reason=reason, instances=("i-1", "i-2"))

    assert event_messages(loop_result(repairs=(gone,)), "DeleteUnregistered") == [
        "Removed unregistered node i-1",
        "Removed unregistered node i-2",
    ]
    failed = GroupRepair(group="g", reason=reason, instances=("i-1",), failure=STOCKOUT)
    assert event_messages(loop_result(repairs=(failed,)), "DeleteUnregisteredFailed") == [
        "Failed to remove node i-1: no more machines of this type"
    ]


def test_a_target_that_cannot_be_lowered_is_a_scale_up_not_reverted():
    reason = build_size_mismatch_reason("g", nodes=1, target=3, limit_s=900)
    failed = GroupRepair(group="g", reason=reason, before=3, after=1, failure=STOCKOUT)

    assert event_messages(loop_result(repairs=(failed,)), "FailedToRevertScaleUp") == [
        "Failed to revert scale-up of group g: no more machines of this type"
    ]


def test_an_unhealthy_cluster_is_a_warning():
    one = loop_result(ended_early=Reason(code="ClusterUnhealthy", message="5 of 8 nodes are unready"))

    assert event_messages(one, "ClusterUnhealthy") == ["Cluster is unhealthy: 5 of 8 nodes are unready"]


def test_groups_without_a_priority_are_reported_on_the_priority_config_map():
    without = SkippedGroup(group="g", machine_type="", code="NoPriority", reason="no pattern meets it")
    one = loop_result(scale_up=ScaleUpPart(plan=planned(skipped_groups=(without,))))

    assert event_objects(one, "PriorityConfigMapNotMatchedGroup") == ["ConfigMap/cluster-autoscaler-priority-expander"]
    assert event_messages(one, "PriorityConfigMapNotMatchedGroup") == [
        "Priority expander: node group g not found in priority expander configuration. The group won't be used."
    ]


def test_a_bad_priority_config_map_is_reported_there():
    problem = Reason(code="PriorityConfigMapInvalid", message="priorities: 'x' is not a whole number")

    assert event_messages(loop_result(priority_problem=problem), "PriorityConfigMapInvalid") == [problem.message]


def prioritised(*groups: str, **numbers: str) -> LoopResult:
    """Growth of these groups under the priority expander; `numbers` as `p10="pattern"`."""
    one = scaled_up_loop(
        *(scale_up(option(name), waiting("web")) for name in groups),
        pending=(waiting("web"),),
        options={"expander": "priority,cost"},
    )
    patterns = {int(key.removeprefix("p")): (text,) for key, text in numbers.items()}
    return replace(one, policy=replace(one.policy, priorities=patterns))


def test_priorities_that_meet_no_group_at_all_are_reported_there():
    one = prioritised("pool-a", p10="gpu-.*", p50="spot")

    assert event_objects(one, "PriorityConfigMapNoGroupMatched") == ["ConfigMap/cluster-autoscaler-priority-expander"]
    assert event_messages(one, "PriorityConfigMapNoGroupMatched") == [
        "Priority expander: no priorities info found for any of the expansion options. No options filtered."
    ]


def test_nothing_is_reported_of_priorities_that_match_a_group_or_that_no_expander_uses():
    assert event_messages(prioritised("pool-a", p10="pool-.*"), "PriorityConfigMapNoGroupMatched") == []
    assert event_messages(prioritised("pool-a"), "PriorityConfigMapNoGroupMatched") == []
    unasked = prioritised("pool-a", p10="gpu-.*")
    unasked = replace(unasked, policy=replace(unasked.policy, planning=Policy().planning))
    assert event_messages(unasked, "PriorityConfigMapNoGroupMatched") == []
