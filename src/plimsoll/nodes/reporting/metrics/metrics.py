"""Updates the metrics from the result of each loop.

Everything counted comes from a `LoopResult`, so metrics, Events and the journal cannot contradict each other.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from plimsoll.core.resources import CPU, MEMORY
from plimsoll.nodes.cluster_state.node_readiness import StartupTaints
from plimsoll.nodes.model.gpus import GPU_LABELS, is_gpu
from plimsoll.nodes.model.node_templates import is_upcoming
from plimsoll.nodes.model.reasons import BELOW_MINIMUM, CANNOT_SEE, DELETE_UNREGISTERED, SCALE_UP_TIMED_OUT
from plimsoll.nodes.model.results import PodState, RemovalResult
from plimsoll.nodes.model.taints import BEING_DELETED, DELETION_CANDIDATE, IGNORED_PREFIX, STATUS_PREFIX
from plimsoll.nodes.planning.state.group_sizes import is_autoprovisioned
from plimsoll.nodes.planning.state.resource_limits import CountedNode, is_counted
from plimsoll.nodes.reporting.metrics import families
from plimsoll.nodes.reporting.metrics.families import (
    AUTOPROVISIONED,
    CLOUD_PROVIDER_ERROR,
    DOWN,
    RESOURCE_LIMITS,
    TIMEOUT,
    UP,
    Families,
)
from plimsoll.nodes.reporting.metrics.requests import observe_requests
from plimsoll.nodes.reporting.min_size_enforcement import find_raised_groups

if TYPE_CHECKING:
    from plimsoll.nodes.cluster_state.health import ClusterHealth, GroupHealth
    from plimsoll.nodes.config.policy import PodRules, Policy
    from plimsoll.nodes.loop_result import LoopResult
    from plimsoll.nodes.model.results import FinishedRemoval, ScaleUpResult
    from plimsoll.nodes.model.snapshot import Snapshot
    from plimsoll.objects.api.nodes import Node
    from plimsoll.scheduling import ClusterView


_MILLI = 1000


class Metrics:
    """The metrics of one autoscaler. `families` is public for counts that no loop result holds."""

    def __init__(self) -> None:
        self.families = Families()
        self._totals = NodeTotals(CPU, MEMORY)

    def observe(self, loop: LoopResult) -> None:
        self._observe_policy(loop.policy)
        if loop.health is not None:
            self._observe_standing(loop.health, loop.policy)
        if loop.health is not None and loop.snapshot is not None:
            self._observe_groups(loop.health, loop.snapshot, loop.policy)
        self._observe_nodes(loop)
        self._observe_failures(loop)
        for result in loop.scale_up_results:
            self._observe_scale_up(result)
        for raised in find_raised_groups(loop):
            devices = NO_DEVICES if raised.template is None else get_gpu_labels(raised.template)
            self._observe_resize(raised.after - raised.before, devices, failed=raised.failure is not None)
        self._observe_plan(loop)
        self._observe_scale_down(loop)
        for ended in loop.scale_down.finished:
            self._observe_removal(ended, loop)
        observe_requests(loop, self.families)
        self._observe_work(loop)

    def render(self) -> bytes:
        """The metrics in Prometheus' text format."""
        return families.render_metrics(self.families.registry)

    def collect_samples(self) -> dict[str, float]:
        """All values that are not measured times, by the names used in scenarios."""
        return families.collect_samples(self.families.registry)

    # ---- the cluster

    def _observe_policy(self, policy: Policy) -> None:
        to = self.families
        to.nap_enabled.set(policy.nap.enabled)
        for resource, gauge, unit in ((CPU, to.cpu_limits, _MILLI), (MEMORY, to.memory_limits, 1)):
            bounds = policy.limits.list_bounds().get(resource)
            gauge.clear()
            gauge.labels("minimum").set(0 if bounds is None else bounds.least / unit)
            if bounds is not None and bounds.most is not None:
                gauge.labels("maximum").set(bounds.most / unit)

    def _observe_standing(self, standing: ClusterHealth, policy: Policy) -> None:
        to, total = self.families, standing.total
        to.safe_to_autoscale.set(standing.is_healthy)
        to.nodes.labels("ready").set(len(total.ready))
        to.nodes.labels("unready").set(len(total.unready))
        to.nodes.labels("notStarted").set(len(total.not_started))
        to.nodes.labels("longUnregistered").set(len(total.long_unregistered))
        to.nodes.labels("unregistered").set(len(total.unregistered))
        most = sum(
            group_standing.group.max_size
            for group_standing in standing.groups.values()
            if group_standing.group.autoscaled
        )
        to.compute_max_nodes.set(min(most, policy.limits.max_nodes_total or most))

    def _observe_groups(self, standing: ClusterHealth, snapshot: Snapshot, policy: Policy) -> None:
        to = self.families
        managed = [group for group in standing.groups.values() if group.group.autoscaled]
        ours = {group.id for group in snapshot.groups if is_autoprovisioned(group, policy)}
        made = sum(1 for managed_group in managed if managed_group.group.id in ours)
        to.node_groups.labels(AUTOPROVISIONED).set(made)
        to.node_groups.labels("autoscaled").set(len(managed) - made)
        for family in (to.group_min, to.group_max, to.group_target, to.group_health, to.group_backoff):
            family.clear()
        for group_standing in managed if policy.operation.metrics_per_group else ():
            self._observe_group(group_standing)

    def _observe_group(self, health: GroupHealth) -> None:
        to, name = self.families, health.group.id
        to.group_min.labels(name).set(health.group.min_size)
        to.group_max.labels(name).set(health.group.max_size)
        to.group_target.labels(name).set(health.target_size)
        to.group_health.labels(name).set(health.is_healthy)
        reason = "" if health.backoff is None else health.backoff.error.code
        to.group_backoff.labels(name, reason).set(health.backoff is not None)

    def _observe_nodes(self, loop: LoopResult) -> None:
        to = self.families
        if loop.ended_early is None:
            for state in PodState:
                to.unschedulable_pods.labels(state.value).set(loop.pods_by_state.get(state, 0))
            to.skipped_pods.clear()
            for code, pods in Counter(filtered.reason.code for filtered in loop.filtered_pods).items():
                to.skipped_pods.labels(code).set(pods)
        if loop.snapshot is not None:
            view = loop.snapshot.view
            cpu, memory = self._totals.add_up(view)
            to.cpu_cores.set(cpu // _MILLI)
            to.memory_bytes.set(memory)
            to.node_taints.clear()
            for kind, taints in count_taints_by_type(view, loop.policy.pods).items():
                to.node_taints.labels(kind).set(taints)

    # ---- growing

    def _observe_failures(self, loop: LoopResult) -> None:
        to = self.families
        ended = loop.ended_early
        if ended is not None and ended.code == CANNOT_SEE:
            to.errors.labels(ended.facts.get("errorType", CLOUD_PROVIDER_ERROR)).inc()
        elif _has_failed(loop):
            to.errors.labels(CLOUD_PROVIDER_ERROR).inc()
        for failed in loop.changes.failed:
            is_late = failed.reason.code == SCALE_UP_TIMED_OUT
            reason = TIMEOUT if is_late else failed.error.code or CLOUD_PROVIDER_ERROR
            to.failed_scale_ups.labels(reason, *NO_DEVICES, "").inc()
            if not is_late:
                to.failed_creations.labels(reason).inc(failed.nodes)
        for repaired in loop.repairs:
            if repaired.reason.code == DELETE_UNREGISTERED and repaired.failure is None:
                to.unregistered_removed.inc(len(repaired.instances))
        if loop.hold is not None:
            to.held_deletions.labels(loop.hold.code).inc()
        for held in loop.held_deletions:
            to.held_deletions.labels(held.reason.code).inc()

    def _observe_scale_up(self, result: ScaleUpResult) -> None:
        to = self.families
        devices = get_gpu_labels(result.scale_up.option.node)
        if result.created:
            to.created_groups.labels(AUTOPROVISIONED).inc()
        if result.held_back is None:
            self._observe_resize(result.after - result.before, devices, failed=result.failure is not None)

    def _observe_resize(self, nodes: int, devices: tuple[str, str], *, failed: bool) -> None:
        to = self.families
        if not failed:
            to.scaled_up.labels(*devices, "").inc(nodes)
            if devices != NO_DEVICES:
                to.scaled_up_gpu.labels(*devices).inc(nodes)
        else:
            to.failed_scale_ups.labels(CLOUD_PROVIDER_ERROR, *devices, "").inc()
            if devices != NO_DEVICES:
                to.failed_gpu_scale_ups.labels(CLOUD_PROVIDER_ERROR, *devices).inc()

    def _observe_plan(self, loop: LoopResult) -> None:
        to, plan = self.families, loop.scale_up.plan
        to.plan_cost.set(plan.cost_per_hour)
        to.plan_bound.set(plan.lower_bound_per_hour)
        to.verification_failures.inc(plan.verification_failures)
        codes = {reason.code for unschedulable in plan.unschedulable for reason in unschedulable.reasons}
        groups = Counter(not_offered.code for not_offered in plan.skipped_groups)
        for limit in RESOURCE_LIMITS:
            to.skipped_scale_events.labels(UP, limit).inc(max(groups[limit], int(limit in codes)))
        for scale_up in plan.scale_ups:
            keys = {key for pattern in scale_up.patterns for key in pattern.pods}
            spaces = {key.partition("/")[0] for key in keys}
            cores = scale_up.option.capacity[CPU] // _MILLI
            to.heterogeneity.labels(scale_up.option.machine_type, cores, len(spaces)).observe(len(keys))

    # ---- shrinking

    def _observe_scale_down(self, loop: LoopResult) -> None:
        to, part = self.families, loop.scale_down
        for gone in loop.deleted_groups:
            if gone.failure is None:
                to.deleted_groups.labels(AUTOPROVISIONED).inc()
        if loop.ended_early is not None:
            return
        to.pending_deletions.set(part.under_way)
        to.unneeded_nodes.set(len(part.unneeded))
        to.in_cooldown.set(part.is_in_cooldown)
        to.unremovable_nodes.clear()
        for code, nodes in Counter(unremovable_node.reason.code for unremovable_node in part.unremovable).items():
            to.unremovable_nodes.labels(code).set(nodes)
        for unremovable in part.unremovable:
            if unremovable.reason.code == BELOW_MINIMUM:
                # The planner names the minimum in its message: "minimal cluster cpu limit reached".
                is_cpu = unremovable.reason.message.startswith(f"minimal cluster {CPU} ")
                to.skipped_scale_events.labels(DOWN, RESOURCE_LIMITS[0 if is_cpu else 1]).inc()

    def _observe_removal(self, ended: FinishedRemoval, loop: LoopResult) -> None:
        to = self.families
        to.evicted_pods.labels("succeeded").inc(ended.evicted)
        to.evicted_pods.labels("failed").inc(ended.failed_evictions)
        is_removed = ended.result is RemovalResult.REMOVED
        to.removal_seconds.labels("true" if is_removed else "false").observe(ended.seconds)
        if not is_removed:
            return
        state = None if loop.snapshot is None else loop.snapshot.view.find_node(ended.removal.node)
        devices = NO_DEVICES if state is None else get_gpu_labels(state.node)
        emptiness = "empty" if ended.removal.is_empty else "underutilized"
        reason = "unready" if ended.was_unready else emptiness
        to.scaled_down.labels(reason, *devices, "").inc()
        if devices != NO_DEVICES:
            to.scaled_down_gpu.labels(reason, *devices).inc()

    # ---- time

    def _observe_work(self, loop: LoopResult) -> None:
        to = self.families
        for function, seconds in loop.function_seconds.items():
            to.last_activity.labels(function).set(loop.at.timestamp())
            to.function_seconds.labels(function).observe(seconds)
            to.function_quantile.labels(function).observe(seconds)
        if loop.snapshot is not None and loop.snapshot.pending:
            to.plan_seconds.labels("scaleUp").observe(loop.scale_up.plan_seconds)


def _has_failed(loop: LoopResult) -> bool:
    """Whether a scale-up was rejected."""
    failures = [
        *(result.failure for result in loop.scale_up_results),
        *(raised.failure for raised in find_raised_groups(loop)),
    ]
    return any(call_failed is not None for call_failed in failures)


NO_DEVICES: Final = ("", "")
_NAMED_TAINTS: Final = frozenset({BEING_DELETED, DELETION_CANDIDATE})
_OF_THE_SYSTEM: Final = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")


def get_gpu_labels(node: Node) -> tuple[str, str]:
    """Resource and type of a node's accelerators; "generic" if no label names the type."""
    resources = sorted(name for name in node.status.capacity or node.status.allocatable if is_gpu(name))
    if not resources:
        return NO_DEVICES
    labels = node.metadata.labels
    return resources[0], next((labels[gpu_label] for gpu_label in GPU_LABELS if labels.get(gpu_label)), "generic")


class NodeTotals:
    """Totals of some resources over all nodes. Unchanged Node objects are not read again."""

    def __init__(self, *resources: str) -> None:
        self._resources = resources
        self._read: dict[str, tuple[Node, tuple[int, ...]]] = {}

    def add_up(self, view: ClusterView) -> tuple[int, ...]:
        """The totals of registered nodes that are not being deleted."""
        before, self._read = self._read, {}
        for name, state in view.nodes.items():
            read = before.get(name)
            self._read[name] = read if read is not None and read[0] is state.node else self._measure(state.node)
        return tuple(map(sum, zip(*[amounts for _, amounts in self._read.values()], strict=True))) or self._nothing

    def _measure(self, node: Node) -> tuple[Node, tuple[int, ...]]:
        if is_upcoming(node) or not is_counted(node):
            return node, self._nothing
        counted = CountedNode.from_node(node)
        return node, tuple([counted.get_amount(resource) for resource in self._resources])

    @property
    def _nothing(self) -> tuple[int, ...]:
        return (0,) * len(self._resources)


def count_taints_by_type(view: ClusterView, rules: PodRules) -> Counter[str]:
    startup = StartupTaints(rules)
    keys = Counter(taint.key for state in view.nodes.values() for taint in state.node.spec.taints)
    found: Counter[str] = Counter()
    for key, taints in keys.items():
        found[_classify_taint(key, startup, rules)] += taints
    return found


def _classify_taint(key: str, startup: StartupTaints, rules: PodRules) -> str:
    """A well-known taint key by itself, others by their purpose."""
    if key.startswith(IGNORED_PREFIX):
        return IGNORED_PREFIX
    if key in _NAMED_TAINTS or key.startswith(_OF_THE_SYSTEM):
        return key
    if key in startup:
        return "startup-taint"
    return "status-taint" if key in rules.status_taints or key.startswith(STATUS_PREFIX) else "other"
