"""Metrics: Cluster Autoscaler's names and labels, counted from loop results alone."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from plimsoll.core.plans import Reason
from plimsoll.nodes.cluster_state.changes import (
    Changes,
    FailedScaleUp,
    build_failed_instances_reason,
    build_timeout_reason,
    build_unregistered_reason,
)
from plimsoll.nodes.cluster_state.observed import ScaleUpError
from plimsoll.nodes.cluster_state.registry import ClusterState
from plimsoll.nodes.model.results import DeletedGroup, GroupRepair, PodState, RemovalResult, ScaleUpPart
from plimsoll.nodes.model.scale_up_plan import SkippedGroup
from plimsoll.nodes.reporting.metrics.metrics import Metrics
from plimsoll.objects.api.nodes import NodeSpec, Taint
from tests.nodes.cluster_state import builders
from tests.nodes.planning.builders import NOON, policy, standard
from tests.nodes.planning.builders import group as planned_group
from tests.nodes.reporting.loop_results import (
    STOCKOUT,
    ended,
    filtered_pod,
    loop_result,
    node,
    option,
    planned,
    removal,
    scale_down,
    scale_up,
    scale_up_result,
    scaled_up_loop,
    unneeded,
    unremovable,
    unschedulable_loop,
    waiting,
)


def after(*turns: Any) -> dict[str, float]:
    metrics = Metrics()
    for result in turns:
        metrics.observe(result)
    return metrics.collect_samples()


# ---- names


def test_what_never_happened_is_zero_n32():
    samples = Metrics().collect_samples()

    for name in (
        "created_node_groups_total",
        "deleted_node_groups_total",
        "scaled_up_nodes_total",
        "unremovable_nodes_count",
        "skipped_scale_events_count{direction=up,reason=CpuResourceLimit}",
        'cluster_autoscaler_created_node_groups_total{group_type="autoprovisioned"}',
        "errors_total{type=cloudProviderError}",
        "provreq_total",
        "rollbacks_total",
    ):
        assert samples[name] == 0, name


def test_nothing_measured_is_in_a_scenarios_output():
    busy = loop_result(
        function_seconds={"main": 1.5}, scale_down=scale_down(finished=(ended(removal("n1"), seconds=4.0),))
    )

    by_objects = "provreq_time_to_provisioned_seconds"
    bare = {name.partition("{")[0] for name in after(busy) if not name.startswith(by_objects)}
    assert not [name for name in bare if name.endswith(("_created", "_seconds", "_bucket", "_sum"))]
    assert not [name for name in bare if "seconds" in name or name.endswith("last_activity")]


def test_the_exposition_is_one_that_prometheus_reads_with_the_types_of_cluster_autoscaler():
    metrics = Metrics()
    metrics.observe(loop_result(function_seconds={"main": 0.2}))
    text = metrics.render().decode()
    families = {family.name: family for family in text_string_to_metric_families(text)}

    assert not [family for family in families if family.endswith("_created")]
    assert "# TYPE cluster_autoscaler_skipped_scale_events_count counter\n" in text
    assert "skipped_scale_events_count_total" not in text
    assert 'cluster_autoscaler_skipped_scale_events_count{direction="up",reason="CpuResourceLimit"} 0.0' in text
    assert "# TYPE cluster_autoscaler_created_node_groups_total counter\n" in text
    assert families["cluster_autoscaler_function_duration_seconds"].type == "histogram"
    assert families["cluster_autoscaler_function_duration_quantile_seconds"].type == "summary"
    assert 'function_duration_seconds_bucket{function="main",le="0.01"} 0.0' in text
    assert families["cluster_autoscaler_last_activity"].samples[0].value == NOON.timestamp()


SPECIFIED = (
    "cluster_safe_to_autoscale nodes_count node_groups_count unschedulable_pods_count max_nodes_count "
    "cluster_cpu_current_cores cpu_limits_cores cluster_memory_current_bytes memory_limits_bytes "
    "node_group_min_count node_group_max_count node_group_target_count node_group_healthiness "
    "node_group_backoff_status last_activity function_duration_seconds function_duration_quantile_seconds "
    "pending_node_deletions errors_total scaled_up_nodes_total scaled_up_gpu_nodes_total "
    "failed_scale_ups_total failed_node_creations_total failed_gpu_scale_ups_total scaled_down_nodes_total "
    "scaled_down_gpu_nodes_total evicted_pods_total unneeded_nodes_count unremovable_nodes_count "
    "scale_down_in_cooldown old_unregistered_nodes_removed_count "
    "skipped_scale_events_count created_node_groups_total deleted_node_groups_total node_taints_count "
    "binpacking_heterogeneity node_removal_latency_seconds "
    "skipped_pods_count nap_enabled provreq_total provreq_pending provreq_time_to_provisioned_seconds "
    "provreq_booked_pods provreq_unbookable_pods plan_seconds plan_cost_per_hour "
    "plan_cost_lower_bound_per_hour plan_verification_failures_total rollbacks_total "
)


@pytest.mark.parametrize("name", SPECIFIED.split())
def test_every_metric_of_the_specification_is_declared(name: str):
    assert f"# TYPE cluster_autoscaler_{name} ".encode() in Metrics().render()


# ---- growing


def test_nodes_added_and_groups_made_n26():
    samples = after(
        scaled_up_loop(scale_up(option("g", size=1), waiting("p"), nodes=2), scale_up(option("n", exists=False)))
    )

    assert samples["scaled_up_nodes_total"] == 3
    assert samples["created_node_groups_total"] == 1
    assert samples["created_node_groups_total{group_type=autoprovisioned}"] == 1


def test_accelerators_are_distinguished():
    with_gpu = node("t", **{"cpu": "8", "nvidia.com/gpu": "2"})
    with_gpu.metadata.labels["cloud.google.com/gke-accelerator"] = "nvidia-t4"
    samples = after(scaled_up_loop(scale_up(option("g", node=with_gpu), nodes=2)))

    assert samples["scaled_up_gpu_nodes_total{gpu_name=nvidia-t4,gpu_resource_name=nvidia.com/gpu}"] == 2
    assert samples["scaled_up_nodes_total{dra_drivers=,gpu_name=nvidia-t4,gpu_resource_name=nvidia.com/gpu}"] == 2


def test_growth_that_fails_is_counted_by_reason():
    bad = scale_up(option("g"))
    refused = loop_result(scale_up=ScaleUpPart(plan=planned(bad), results=(scale_up_result(bad, failure=STOCKOUT),)))
    error = ScaleUpError(code="STOCKOUT")
    late = FailedScaleUp(group="g", error=error, nodes=2, reason=build_timeout_reason("g", missing=2, waited_s=900))
    unmade = FailedScaleUp(
        group="g", error=error, nodes=3, reason=build_failed_instances_reason("g", error, failed=3, new=3, messages=[])
    )
    samples = after(refused, loop_result(changes=Changes(failed=(late, unmade))))

    assert samples["failed_scale_ups_total"] == 3
    reasons = [name for name in samples if name.startswith("failed_scale_ups_total{") and samples[name]]
    assert [name.rpartition("reason=")[2] for name in reasons] == ["cloudProviderError}", "timeout}", "STOCKOUT}"]
    assert samples["failed_node_creations_total{reason=STOCKOUT}"] == 3
    assert samples["errors_total{type=cloudProviderError}"] == 1


def test_a_turn_that_cannot_see_is_an_error_by_its_type():
    blind = loop_result(ended_early=Reason(code="CannotSee", message="x", facts={"errorType": "apiCallError"}))

    assert after(blind)["errors_total{type=apiCallError}"] == 1


def test_a_limit_that_stands_in_the_way_is_counted_n23():
    limit = Reason(code="CpuResourceLimit", message="max cluster cpu limit reached (13 of 5 in use)")
    assert (
        after(unschedulable_loop(waiting("p"), reasons=(limit,)))[
            "skipped_scale_events_count{direction=up,reason=CpuResourceLimit}"
        ]
        == 1
    )


def test_each_group_that_a_limit_keeps_from_growing_counts():
    kinds = tuple(
        SkippedGroup(group=name, machine_type="", code="MemoryResourceLimit", reason="max") for name in ("a", "b")
    )
    samples = after(loop_result(scale_up=ScaleUpPart(plan=planned(skipped_groups=kinds))))

    assert samples["skipped_scale_events_count{direction=up,reason=MemoryResourceLimit}"] == 2
    assert samples["skipped_scale_events_count"] == 2


def test_pods_that_wait_are_counted_by_what_the_scheduler_did_n10():
    one = loop_result(
        pods_by_state={PodState.UNSCHEDULABLE: 205, PodState.UNPROCESSED: 3},
        filtered_pods=(filtered_pod("p", "Expendable"), filtered_pod("q", "Expendable")),
    )
    samples = after(one)

    assert samples["unschedulable_pods_count{type=unschedulable}"] == 205
    assert samples["unschedulable_pods_count"] == 208
    assert samples["skipped_pods_count{requestor=Expendable}"] == 2


# ---- shrinking


def test_nodes_removed_by_why_they_went():
    one = loop_result(
        scale_down=scale_down(
            finished=(
                ended(removal("n1")),
                ended(removal("n2", "web-0"), evicted=1),
                ended(removal("n3"), was_unready=True),
                ended(removal("n4", "db-0"), RemovalResult.FAILED, failed_evictions=1),
            )
        )
    )
    samples = after(one)

    for reason in ("empty", "underutilized", "unready"):
        name = f"scaled_down_nodes_total{{dra_drivers=,gpu_name=,gpu_resource_name=,reason={reason}}}"
        assert samples[name] == 1
    assert samples["scaled_down_nodes_total"] == 3
    assert samples["evicted_pods_total{eviction_result=succeeded}"] == 1
    assert samples["evicted_pods_total{eviction_result=failed}"] == 1


def test_nodes_that_stay_are_counted_anew_each_turn():
    first = loop_result(
        scale_down=scale_down(unremovable=(unremovable("a", "NotUnderutilized"), unremovable("b", "NotUnderutilized")))
    )
    second = loop_result(
        scale_down=scale_down(
            unremovable=(unremovable("a", "NodeGroupMinSizeReached"),), unneeded=(unneeded("b"),), under_way=4
        )
    )
    samples = after(first, second)

    assert samples["unremovable_nodes_count"] == 1
    assert samples["unremovable_nodes_count{reason=NodeGroupMinSizeReached}"] == 1
    assert "unremovable_nodes_count{reason=NotUnderutilized}" not in samples
    assert samples["unneeded_nodes_count"] == 1
    assert samples["pending_node_deletions"] == 4


def test_minima_of_the_cluster_count_as_skipped_scale_downs():
    message = "minimal cluster cpu limit reached (8 left, at least 8 wanted)"
    samples = after(
        loop_result(scale_down=scale_down(unremovable=(unremovable("a", "MinimalResourceLimitExceeded", message),)))
    )

    assert samples["skipped_scale_events_count{direction=down,reason=CpuResourceLimit}"] == 1


def test_groups_deleted_n31():
    one = loop_result(deleted_groups=(DeletedGroup(group="a"), DeletedGroup(group="b", failure=STOCKOUT)))

    assert after(one)["deleted_node_groups_total"] == 1


def test_machines_that_never_became_nodes():
    reason = build_unregistered_reason("g", 2, limit_s=900, kept=0)
    done = GroupRepair(group="g", reason=reason, instances=("i-1", "i-2"))

    assert after(loop_result(repairs=(done,)))["old_unregistered_nodes_removed_count"] == 2


# ---- the cluster


def standing_of(**options: Any) -> Any:
    state = ClusterState(policy(**options))
    state.observe(builders.world(3, *builders.ready_nodes(2), min_size=1), NOON)
    return state.assess_health(NOON)


def test_nodes_and_groups_of_the_cluster():
    one = loop_result(health=standing_of(), nodes=(node("n0"), node("n1")), options={"max_cpu": 32, "min_memory": 8})
    samples = after(one)

    assert samples["cluster_safe_to_autoscale"] == 1
    assert samples["nodes_count{state=ready}"] == 2
    assert samples["node_groups_count{node_group_type=autoscaled}"] == 1
    assert samples["max_nodes_count"] == 100
    assert samples["cluster_cpu_current_cores"] == 8
    assert samples["cluster_memory_current_bytes"] == 32 << 30
    assert samples["cpu_limits_cores{direction=maximum}"] == 32
    assert samples["memory_limits_bytes{direction=minimum}"] == 8 << 30
    assert "memory_limits_bytes{direction=maximum}" not in samples


def test_groups_that_auto_provisioning_made_are_counted_apart():
    state = ClusterState(policy(node_autoprovisioning=True))
    made = builders.group(1, id="nodeautoprovisioning-x")
    state.observe(replace(builders.world(3, *builders.ready_nodes(2)), groups=(made,)), NOON)
    one = loop_result(health=state.assess_health(NOON), options={"node_autoprovisioning": True})
    known = planned_group("nodeautoprovisioning-x", standard(1), autoprovisioned=True)
    samples = after(replace(one, snapshot=replace(one.snapshot, groups=(known,))))  # type: ignore[type-var]

    assert samples["node_groups_count{node_group_type=autoprovisioned}"] == 1
    assert samples["node_groups_count{node_group_type=autoscaled}"] == 0


def test_groups_are_listed_one_by_one_only_if_that_is_wanted():
    assert "node_group_target_count{node_group=g}" not in after(loop_result(health=standing_of()))
    samples = after(loop_result(health=standing_of(), options={"emit_per_nodegroup_metrics": True}))
    assert samples["node_group_target_count{node_group=g}"] == 3
    assert samples["node_group_min_count{node_group=g}"] == 1
    assert samples["node_group_backoff_status{node_group=g,reason=}"] == 0


def test_taints_are_counted_by_what_they_are():
    keys = ("ToBeDeletedByClusterAutoscaler", "node.kubernetes.io/not-ready", "boot", "dedicated", "own")
    tainted = type(node("n"))(
        metadata=node("n").metadata,
        spec=NodeSpec(taints=tuple(Taint(key=key) for key in keys)),
        status=node("n").status,
    )
    samples = after(loop_result(nodes=(tainted,), options={"startup_taint": "boot"}))

    assert samples["node_taints_count{type=ToBeDeletedByClusterAutoscaler}"] == 1
    assert samples["node_taints_count{type=node.kubernetes.io/not-ready}"] == 1
    assert samples["node_taints_count{type=startup-taint}"] == 1
    assert samples["node_taints_count{type=other}"] == 2


# ---- sums


numbers = st.integers(min_value=0, max_value=5)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(numbers, numbers, numbers, st.booleans()), max_size=6))
def test_counters_are_the_sums_of_what_turns_say(stories: list[tuple[int, int, int, bool]]):
    turns = []
    for added, removed, deleted, is_refused in stories:
        growths = [scale_up(option(f"g{number}", exists=False), nodes=number + 1) for number in range(added)]
        failure = STOCKOUT if is_refused else None
        done = tuple(scale_up_result(scale_up, failure=failure) for scale_up in growths)
        turns.append(
            loop_result(
                scale_up=ScaleUpPart(plan=planned(*growths), results=done),
                scale_down=scale_down(
                    finished=tuple(ended(removal(f"n{number}"), evicted=2) for number in range(removed))
                ),
                deleted_groups=tuple(DeletedGroup(group=f"g{number}", failure=failure) for number in range(deleted)),
            )
        )
    samples = after(*turns)

    grew_by = sum(
        result.after - result.before
        for loop_result in turns
        for result in loop_result.scale_up.results
        if result.is_done
    )
    assert samples["scaled_up_nodes_total"] == grew_by
    assert samples["failed_scale_ups_total"] == sum(
        result.failure is not None for t in turns for result in t.scale_up.results
    )
    assert samples["created_node_groups_total"] == sum(result.created for t in turns for result in t.scale_up.results)
    assert samples["scaled_down_nodes_total"] == sum(len(loop_result.scale_down.finished) for loop_result in turns)
    assert samples["evicted_pods_total"] == 2 * sum(len(loop_result.scale_down.finished) for loop_result in turns)
    assert samples["deleted_node_groups_total"] == sum(
        deleted_group.failure is None for t in turns for deleted_group in t.deleted_groups
    )
