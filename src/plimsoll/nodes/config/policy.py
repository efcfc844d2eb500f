"""What the operator wants of the node autoscaler: every flag of it as a field, grouped by what it is about.

This is the one table of flags: name, kind, default. `options.read_options` makes a `Policy` of what people wrote; the
planner, the loop and the reference all read it from here. Times are in seconds, amounts in the unit of the flag;
`Limits.bounds` has the cluster's limits in the units of `core.resources`. A policy never changes: a changed option
makes a new one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from plimsoll.core.resources import CPU, MEMORY
from plimsoll.nodes.config import flags
from plimsoll.nodes.config.flags import Bounds, NamedBounds, choice, count, duration, listed, ratio, switch, text, total

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.nodes.model.group_names import Naming
    from plimsoll.nodes.model.prices import Overlay

GIB: Final = 1 << 30
MILLI: Final = 1000
COST: Final = "cost"
PRIORITY: Final = "priority"
LEAST_WASTE: Final = "least-waste"
EXPANDERS: Final = (COST, LEAST_WASTE, "least-nodes", "most-pods", "price", PRIORITY, "random", "grpc")
# Cluster Autoscaler's limit, kept where its estimator is.
_COMPATIBLE_NODES_PER_SCALEUP: Final = 1000


class Planner(StrEnum):
    """Who plans: all groups at once for the least money, or one group at a time as Cluster Autoscaler does."""

    OPTIMAL = "optimal"
    COMPATIBLE = "compatible"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Of the whole cluster. `bounds` is what they come to."""

    cores_total: Bounds | None = total("cores-total", unit="cores")  # noqa: RUF009 - a field, like every flag
    memory_total: Bounds | None = total("memory-total", unit="GiB")  # noqa: RUF009 - likewise
    gpu_total: tuple[NamedBounds, ...] = listed("gpu-total", item=flags.parse_accelerator_bounds)
    min_cpu: int | None = count("min-cpu", None)
    max_cpu: int | None = count("max-cpu", None)
    min_memory: int | None = count("min-memory", None)
    max_memory: int | None = count("max-memory", None)
    max_nodes_total: int = count("max-nodes-total", 0)
    """0: no limit, and likewise below."""
    max_nodes_per_scaleup: int | None = count("max-nodes-per-scaleup", None)

    def bounds(self) -> dict[str, Bounds]:
        """By resource, in millicores and bytes; for an accelerator by its type. What is not limited is missing."""
        found = {
            CPU: _joined(self.cores_total, self.min_cpu, self.max_cpu, MILLI),
            MEMORY: _joined(self.memory_total, self.min_memory, self.max_memory, GIB),
            **{named_bounds.name: named_bounds.bounds for named_bounds in self.gpu_total},
        }
        return {name: bounds for name, bounds in found.items() if bounds != Bounds()}

    def nodes_per_scaleup(self, planner: Planner) -> int:
        """0: no limit. Only the compatible planner has one that nobody gave."""
        if self.max_nodes_per_scaleup is not None:
            return self.max_nodes_per_scaleup
        return _COMPATIBLE_NODES_PER_SCALEUP if planner is Planner.COMPATIBLE else 0


def _joined(total: Bounds | None, least: int | None, most: int | None, unit: int) -> Bounds:
    """Both spellings of one limit; where both are given they are equal."""
    given = total or Bounds()
    lower = given.least if least is None else least
    upper = given.most if most is None else most
    return Bounds(lower * unit, None if upper is None else upper * unit)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRules:
    """Which groups are autoscaled, and when one is not usable for a while."""

    nodes: tuple[NamedBounds, ...] = listed("nodes", item=flags.parse_group_bounds, commas=False)
    discovery: tuple[str, ...] = listed("node-group-auto-discovery", commas=False)
    enforce_min_size: bool = switch("enforce-node-group-min-size", default=False)
    scale_up_from_zero: bool = switch("scale-up-from-zero", default=True)
    first_backoff_s: float = duration("initial-node-group-backoff-duration", 300)
    longest_backoff_s: float = duration("max-node-group-backoff-duration", 1800)
    backoff_reset_s: float = duration("node-group-backoff-reset-timeout", 10_800)
    provision_time_s: float = duration("max-node-provision-time", 900)
    startup_time_s: float = duration("max-node-startup-time", 900)
    unready_percentage: float = ratio("max-total-unready-percentage", 45.0, most=100.0)
    unready_count: int = count("ok-total-unready-count", 3)
    force_delete_unregistered: bool = switch("force-delete-unregistered-nodes", default=False)
    force_delete_failed: bool = switch("force-delete-failed-nodes", default=False)
    simulate_skipped: bool = switch("scaleup-simulation-for-skipped-node-groups-enabled", default=True)

    def explicit(self) -> dict[str, Bounds]:
        return {named_bounds.name: named_bounds.bounds for named_bounds in self.nodes}


def _expander(value: object) -> str:
    return flags.parse_choice(value, EXPANDERS)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanningOptions:
    """How a plan is chosen among those that would do."""

    expander: tuple[str, ...] = listed("expander", item=_expander)
    """Empty: nobody said; see `effective_expanders`."""
    planner: str = choice("planner", "", ("", *Planner))
    plan_time_limit_s: float = duration("plan-time-limit", 0.7)
    plan_gap: float = ratio("plan-gap", 0.01, most=1.0)
    random_seed: str = text("random-seed", "")
    price_overlay: str = text("price-overlay", "")
    """A file: machine type to price or factor."""
    grpc_url: str = text("grpc-expander-url", "")
    grpc_cert: str = text("grpc-expander-cert", "")
    grpc_max_pods: int = count("grpc-expander-max-pods", 5000)

    def effective_expanders(self, *, prices_are_known: bool) -> tuple[str, ...]:
        """Cost where there are prices, or where the optimal planner was asked for; else least waste."""
        if self.expander:
            return self.expander
        return (COST,) if prices_are_known or self.planner == Planner.OPTIMAL else (LEAST_WASTE,)

    def effective_planner(self, *, prices_are_known: bool) -> Planner:
        if self.planner:
            return Planner(self.planner)
        chain = self.effective_expanders(prices_are_known=prices_are_known)
        return Planner.OPTIMAL if chain in OPTIMAL_CHAINS else Planner.COMPATIBLE


OPTIMAL_CHAINS: Final = ((COST,), (PRIORITY, COST))
"""What the optimal planner can follow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Balancing:
    """Which groups are alike, and whether growth is split among them."""

    enabled: bool = switch("balance-similar-node-groups", default=False)
    labels: tuple[str, ...] = listed("balancing-label")
    ignored_labels: tuple[str, ...] = listed("balancing-ignore-label")
    memory_ratio: float = ratio("memory-difference-ratio", 0.015)
    allocatable_ratio: float = ratio("max-allocatable-difference-ratio", 0.05)
    free_ratio: float = ratio("max-free-difference-ratio", 0.05)


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoProvisioning:
    """Groups made and removed at will. Sizes and counts of 0 mean no limit where they say so."""

    enabled: bool = switch(
        "node-autoprovisioning",
        default=False,
        aliases=("node-autoprovisioning-enabled", "enable-node-autoprovisioning"),
    )
    prefix: str = text("autoprovisioning-prefix", "nodeautoprovisioning")
    machine_types: tuple[str, ...] = listed("machine-types")
    """Empty: all the provider has."""
    max_node_groups: int = count("max-node-groups", 50)
    max_own_groups: int = count("max-autoprovisioned-node-group-count", 15)
    max_group_size: int = count("autoprovisioned-group-max-size", 0)
    """0: no limit but the cluster's."""
    label_merge: str = choice("nap-label-merge", "beta", ("beta", "alpha"))
    popularity: str = choice("nap-popularity", "pods", ("pods", "cpu"))
    taints: str = choice("nap-taints", "custom", ("custom", "matched", "none"))
    taints_merge: bool = switch("nap-taints-merge", default=False)
    empty_group_delay_s: float = duration("nap-empty-group-delay", 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class PodRules:
    """Which pods count, and what is left out of a node when its group's template is made of it."""

    expendable_below: int = count("expendable-pods-priority-cutoff", -10, least=-(1 << 31))
    new_pod_delay_s: float = duration("new-pod-scale-up-delay", 0)
    startup_taints: tuple[str, ...] = listed("startup-taint")
    startup_taint_prefixes: tuple[str, ...] = listed("startup-taint-prefix")
    status_taints: tuple[str, ...] = listed("status-taint")
    ignored_taints: tuple[str, ...] = listed("ignore-taint")
    force_daemon_sets: bool = switch("force-ds", default=False)
    scale_from_unschedulable: bool = switch("scale-from-unschedulable", default=False)
    scheduler_config_file: str = text("scheduler-config-file", "")
    bypassed_schedulers: tuple[str, ...] = listed("bypassed-scheduler-names")
    allowed_schedulers: tuple[str, ...] = listed("allowed-scheduler-names")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleDown:
    """When a node may go, and how it goes."""

    enabled: bool = switch("scale-down-enabled", default=True)
    unneeded_time_s: float = duration("scale-down-unneeded-time", 600)
    unready_time_s: float = duration("scale-down-unready-time", 1200)
    delay_after_add_s: float = duration("scale-down-delay-after-add", 600)
    delay_after_delete_s: float = duration("scale-down-delay-after-delete", 0)
    delay_after_failure_s: float = duration("scale-down-delay-after-failure", 180)
    delay_type_local: bool = switch("scale-down-delay-type-local", default=False)
    utilization_threshold: float = ratio("scale-down-utilization-threshold", 0.5, most=1.0)
    gpu_utilization_threshold: float = ratio("scale-down-gpu-utilization-threshold", 0.5, most=1.0)
    unready_enabled: bool = switch("scale-down-unready-enabled", default=True)
    non_empty_candidates: int = count("scale-down-non-empty-candidates-count", 30)
    candidates_ratio: float = ratio("scale-down-candidates-pool-ratio", 0.1, most=1.0)
    candidates_min: int = count("scale-down-candidates-pool-min-count", 50)
    simulation_timeout_s: float = duration("scale-down-simulation-timeout", 30)
    recheck_timeout_s: float = duration("unremovable-node-recheck-timeout", 300)
    parallelism: int = count("max-scale-down-parallelism", 10)
    drain_parallelism: int = count("max-drain-parallelism", 1)
    graceful_termination_s: int = count("max-graceful-termination-sec", 600)
    drain_priority_config: str = text("drain-priority-config", "")
    eviction_time_s: float = duration("max-pod-eviction-time", 120)
    delay_after_taint_s: float = duration("node-delete-delay-after-taint", 5)
    deletion_delay_timeout_s: float = duration("node-deletion-delay-timeout", 120)
    batcher_interval_s: float = duration("node-deletion-batcher-interval", 0)
    cordon_first: bool = switch("cordon-node-before-terminating", default=True)
    evict_daemons_of_empty: bool = switch("daemonset-eviction-for-empty-nodes", default=False)
    evict_daemons_of_occupied: bool = switch("daemonset-eviction-for-occupied-nodes", default=True)
    soft_taint_count: int = count("max-bulk-soft-taint-count", 10)
    soft_taint_time_s: float = duration("max-bulk-soft-taint-time", 3)
    candidate_ttl_s: float = duration("node-deletion-candidate-ttl", 0)
    skip_system_pods: bool = switch("skip-nodes-with-system-pods", default=True)
    skip_local_storage: bool = switch("skip-nodes-with-local-storage", default=True)
    skip_custom_controllers: bool = switch("skip-nodes-with-custom-controller-pods", default=True)
    min_replica_count: int = count("min-replica-count", 0)
    system_pod_timeout_s: float = duration("blocking-system-pod-distruption-timeout", 3600)
    ignore_daemon_sets: bool = switch("ignore-daemonsets-utilization", default=False)
    ignore_mirror_pods: bool = switch("ignore-mirror-pods-utilization", default=False)
    consolidation: str = choice("consolidation", "empty", ("off", "empty", "underutilized", "balanced"))
    consolidation_budgets: tuple[str, ...] = listed(
        "consolidation-budget", item=flags.parse_disruption_budget, commas=False
    )
    """Empty: one node in ten of each group at a time."""
    max_removals_per_hour: int | None = count("max-removals-per-hour", None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Requests:
    """ProvisioningRequests."""

    enabled: bool = switch("enable-provisioning-requests", default=False)
    first_backoff_s: float = duration("provisioning-request-initial-backoff-time", 60)
    longest_backoff_s: float = duration("provisioning-request-max-backoff-time", 600)
    batch_checks: bool = switch("check-capacity-batch-processing", default=True)
    batch_size: int = count("check-capacity-provisioning-request-max-batch-size", 1000, least=1)
    batch_timebox_s: float = duration("check-capacity-provisioning-request-batch-timebox", 2)
    """Counted, not timed, like the next: `requests.states` says how many pod sets are a second."""
    atomic_timebox_s: float = duration("atomic-provisioning-request-batch-timebox", 10)
    instance: str = text("check-capacity-processor-instance", "")
    provisioned_when: str = choice("provreq-provisioned-when", "requested", ("requested", "registered"))
    booking_s: float = duration("provreq-booking-default", 600)
    reservation_pods: bool = switch("provreq-reservation-pods", default=False)
    refresh_writes: int = count("provreq-refresh-writes", 200, least=1)
    """So many requests at most a turn writes to, or deletes, because time went by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """Where and how the program runs."""

    address: str = text("address", ":8085")
    kubeconfig: str = text("kubeconfig", "")
    kubernetes: str = text("kubernetes", "")
    namespace: str = text("namespace", "kube-system")
    provider: str = flags.parsed(
        "cloud-provider",
        "simulated",
        kind="simulated | externalgrpc | clusterapi",
        parse=lambda value: flags.parse_choice(
            value, ("simulated", "externalgrpc", "clusterapi"), {"fake": "simulated", "kwok": "simulated"}
        ),
        aliases=("provider",),
    )
    cloud_config: str = text("cloud-config", "")
    cloud_config_only: bool = switch("clusterapi-cloud-config-authoritative", default=False)
    """Without a cloud config the management cluster is the one this runs in, never that of the kubeconfig."""
    cluster_name: str = text("cluster-name", "")
    scan_interval_s: float = duration("scan-interval", 10)
    frequent_loops: bool = switch("frequent-loops-enabled", default=True)
    dry_run: bool = switch("dry-run", default=False)
    write_status: bool = switch("write-status-configmap", default=True)
    status_name: str = text("status-config-map-name", "cluster-autoscaler-status")
    duplicated_events: bool = switch("record-duplicated-events", default=False)
    max_inactivity_s: float = duration("max-inactivity", 600)
    max_failing_time_s: float = duration("max-failing-time", 900)
    max_startup_time_s: float = duration("max-startup-time", 1200)
    metrics_per_group: bool = switch("emit-per-nodegroup-metrics", default=False)
    debugging_snapshot: bool = switch("debugging-snapshot-enabled", default=False)
    profiling: bool = switch("profiling", default=False)
    client_qps: float = ratio("kube-client-qps", 5.0)
    client_burst: int = count("kube-client-burst", 10)
    leader_elect: bool = switch("leader-elect", default=True)
    lease_s: float = duration("leader-elect-lease-duration", 15)
    lease_renew_s: float = duration("leader-elect-renew-deadline", 10)
    lease_retry_s: float = duration("leader-elect-retry-period", 2)
    lease_name: str = text("leader-elect-resource-name", "cluster-autoscaler")
    lease_namespace: str = text("leader-elect-resource-namespace", "")
    node_info_cache_s: float = duration("node-info-cache-expire-time", 87_600 * 3600)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Everything the operator decided."""

    limits: Limits = field(default_factory=Limits)
    groups: GroupRules = field(default_factory=GroupRules)
    planning: PlanningOptions = field(default_factory=PlanningOptions)
    balancing: Balancing = field(default_factory=Balancing)
    nap: AutoProvisioning = field(default_factory=AutoProvisioning)
    pods: PodRules = field(default_factory=PodRules)
    scale_down: ScaleDown = field(default_factory=ScaleDown)
    requests: Requests = field(default_factory=Requests)
    operation: Operation = field(default_factory=Operation)
    overlay: Mapping[str, Overlay] = field(default_factory=dict)
    """What the price overlay file holds, by machine type; whoever reads the file puts it here."""
    priorities: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """What the priority expander's ConfigMap holds: number to patterns of group ids."""
    naming: Naming | None = None
    """What ids the provider takes; None: any."""
    expander_answers: Mapping[str, tuple[str, ...]] | None = None
    """What the expander outside said in this turn: groups by question. None: there is nobody to ask."""
