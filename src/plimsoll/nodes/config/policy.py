"""The policy of the node autoscaler: every flag as a field, grouped by topic.

This is the one table of flags: name, kind, default, description. `options.read_options` builds a `Policy` from what
people wrote; the planner, the loop, `--help` and the reference page read it from here. Times are in seconds, amounts in
the unit of the flag; `Limits.list_bounds` has the limits of the cluster in the units of `core.resources`. A policy is
immutable: a changed option makes a new one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from plimsoll.core import value_parsing
from plimsoll.core.resources import CPU, MEMORY
from plimsoll.nodes.config import flags
from plimsoll.nodes.config.flags import (
    Bounds,
    NamedBounds,
    choice,
    count,
    duration,
    list_flag,
    ratio,
    switch,
    text,
    total,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.nodes.model.group_names import Naming
    from plimsoll.nodes.model.prices import Overlay

GIB: Final = 1 << 30
MILLI: Final = 1000
COST: Final = "cost"
PRIORITY: Final = "priority"
LEAST_WASTE: Final = "least-waste"
AUTOSCALER_NAME: Final = "cluster-autoscaler"
"""In field managers and Events: that of the program whose place it takes."""
AUTOSCALER_LEASE: Final = "cluster-autoscaler"
"""The name Cluster Autoscaler uses, so that it and Plimsoll never act at the same time."""
EXPANDERS: Final = (COST, LEAST_WASTE, "least-nodes", "most-pods", "price", PRIORITY, "random", "grpc")
# Cluster Autoscaler's limit, kept where its estimator is.
_COMPATIBLE_NODES_PER_SCALEUP: Final = 1000


class Planner(StrEnum):
    """The planner: all groups together for the lowest cost, or one group at a time as Cluster Autoscaler does."""

    OPTIMAL = "optimal"
    COMPATIBLE = "compatible"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of the whole cluster; `list_bounds` combines them."""

    cores_total: Bounds | None = total(  # noqa: RUF009 - a field, like every flag
        "cores-total",
        unit="cores",
        description=(
            "Minimum and maximum number of cores in the cluster, as MIN:MAX; without it cores are not limited."
        ),
    )
    memory_total: Bounds | None = total(  # noqa: RUF009 - a field, like every flag
        "memory-total",
        unit="GiB",
        description=("Minimum and maximum memory of the cluster in GiB, as MIN:MAX; without it memory is not limited."),
    )
    gpu_total: tuple[NamedBounds, ...] = list_flag(
        "gpu-total",
        item=flags.parse_accelerator_bounds,
        description=(
            "Minimum and maximum number of accelerators of one type in the cluster, as TYPE:MIN:MAX; may be repeated."
        ),
    )
    min_cpu: int | None = count(
        "min-cpu",
        None,
        description=("Minimum number of cores in the cluster; the same limit as the first number of --cores-total."),
    )
    max_cpu: int | None = count(
        "max-cpu",
        None,
        description=("Maximum number of cores in the cluster; the same limit as the second number of --cores-total."),
    )
    min_memory: int | None = count(
        "min-memory",
        None,
        description=("Minimum memory of the cluster in GiB; the same limit as the first number of --memory-total."),
    )
    max_memory: int | None = count(
        "max-memory",
        None,
        description=("Maximum memory of the cluster in GiB; the same limit as the second number of --memory-total."),
    )
    max_nodes_total: int = count(
        "max-nodes-total",
        0,
        description=("Maximum number of nodes in the cluster, nodes without a group included; 0 means no limit."),
    )
    max_nodes_per_scaleup: int | None = count(
        "max-nodes-per-scaleup",
        None,
        description=(
            "Maximum number of nodes that one scale-up adds; 0 means no limit, and without it only "
            "the compatible planner has one (1000)."
        ),
    )

    def list_bounds(self) -> dict[str, Bounds]:
        """By resource, in millicores and bytes; for an accelerator by its type. What is not limited is missing."""
        found = {
            CPU: _join_bounds(self.cores_total, self.min_cpu, self.max_cpu, MILLI),
            MEMORY: _join_bounds(self.memory_total, self.min_memory, self.max_memory, GIB),
            **{named_bounds.name: named_bounds.bounds for named_bounds in self.gpu_total},
        }
        return {name: bounds for name, bounds in found.items() if bounds != Bounds()}

    def get_nodes_per_scaleup(self, planner: Planner) -> int:
        """The limit, 0 for none. Without the flag only the compatible planner has one."""
        if self.max_nodes_per_scaleup is not None:
            return self.max_nodes_per_scaleup
        return _COMPATIBLE_NODES_PER_SCALEUP if planner is Planner.COMPATIBLE else 0


def _join_bounds(total: Bounds | None, least: int | None, most: int | None, unit: int) -> Bounds:
    """Both spellings of one limit; they are equal where both are given."""
    given = total or Bounds()
    lower = given.least if least is None else least
    upper = given.most if most is None else most
    return Bounds(lower * unit, None if upper is None else upper * unit)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRules:
    """Which groups are autoscaled, and when a group is backed off."""

    nodes: tuple[NamedBounds, ...] = list_flag(
        "nodes",
        item=flags.parse_group_bounds,
        commas=False,
        description=(
            "Size limits of one node group, as MIN:MAX:ID; may be repeated. Without it the provider's own limits hold."
        ),
    )
    discovery: tuple[str, ...] = list_flag(
        "node-group-auto-discovery",
        commas=False,
        description=(
            "How the provider finds node groups, such as "
            "clusterapi:namespace=NAMESPACE,clusterName=NAME; may be repeated. Only the provider "
            "clusterapi uses it."
        ),
    )
    enforce_min_size: bool = switch(
        "enforce-node-group-min-size",
        default=False,
        description="Whether a node group below its minimum size is scaled up to it.",
    )
    scale_up_from_zero: bool = switch(
        "scale-up-from-zero",
        default=True,
        description="Whether the autoscaler scales up while the cluster has no ready node.",
    )
    first_backoff_s: float = duration(
        "initial-node-group-backoff-duration",
        300,
        description=(
            "How long a node group is not scaled up after its first failed scale-up; every further "
            "failure doubles the time."
        ),
    )
    longest_backoff_s: float = duration(
        "max-node-group-backoff-duration",
        1800,
        description="The longest time that a node group is not scaled up after failed scale-ups.",
    )
    backoff_reset_s: float = duration(
        "node-group-backoff-reset-timeout",
        10_800,
        description=(
            "How long after its last failed scale-up the back-off of a node group starts again at its first length."
        ),
    )
    provision_time_s: float = duration(
        "max-node-provision-time",
        900,
        description=(
            "How long a requested node may take to register before its scale-up counts as failed and "
            "the node is given up."
        ),
    )
    startup_time_s: float = duration(
        "max-node-startup-time",
        900,
        description=("How long a registered node may stay unready before it counts as unready instead of starting."),
    )
    unready_percentage: float = ratio(
        "max-total-unready-percentage",
        45.0,
        most=100.0,
        description=(
            "Maximum percentage of unready nodes; above it, and above --ok-total-unready-count, the "
            "autoscaler stops acting."
        ),
    )
    unready_count: int = count(
        "ok-total-unready-count",
        3,
        description=("Number of unready nodes that is always accepted, whatever --max-total-unready-percentage says."),
    )
    force_delete_unregistered: bool = switch(
        "force-delete-unregistered-nodes",
        default=False,
        description=(
            "Whether instances that did not register in time are deleted even below the minimum size of their group."
        ),
    )
    force_delete_failed: bool = switch(
        "force-delete-failed-nodes",
        default=False,
        description=(
            "Whether instances that failed to be created are deleted even below the minimum size of their group."
        ),
    )
    simulate_skipped: bool = switch(
        "scaleup-simulation-for-skipped-node-groups-enabled",
        default=True,
        description=(
            "Whether scale-up is simulated for skipped node groups too, so that the reasons for pods name them."
        ),
    )

    def list_explicit_bounds(self) -> dict[str, Bounds]:
        return {named_bounds.name: named_bounds.bounds for named_bounds in self.nodes}


def _parse_expander(value: object) -> str:
    return value_parsing.parse_choice(value, EXPANDERS)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanningOptions:
    """How scale-ups are planned and chosen."""

    expander: tuple[str, ...] = list_flag(
        "expander",
        item=_parse_expander,
        description=(
            "How a scale-up is chosen among those possible; several names are tried in order. Without "
            "it: cost where prices are known, else least-waste."
        ),
    )
    """Empty without the flag; see `choose_expanders`."""
    planner: str = choice(
        "planner",
        "",
        ("", *Planner),
        description=(
            "optimal plans all node groups together for the lowest cost; compatible plans one node "
            "group at a time, as Cluster Autoscaler does. Without it the expander decides."
        ),
    )
    plan_time_limit_s: float = duration(
        "plan-time-limit", 0.7, description="The time that the optimal planner may spend on one plan."
    )
    plan_gap: float = ratio(
        "plan-gap",
        0.01,
        most=1.0,
        description=(
            "The share of the cost by which a plan may be above the proven lower bound before the "
            "optimal planner stops; 0.01 is 1 %."
        ),
    )
    random_seed: str = text(
        "random-seed",
        "",
        description=(
            "Seed of the expander random; without it the ids of the node groups decide, so that the "
            "same input gives the same plan."
        ),
    )
    price_overlay: str = text(
        "price-overlay", "", description="YAML file that sets the price per hour of machine types, or a factor on it."
    )
    grpc_url: str = text(
        "grpc-expander-url", "", description="Address (host:port) of the external expander that --expander=grpc calls."
    )
    grpc_cert: str = text(
        "grpc-expander-cert",
        "",
        description=(
            "File of the certificate authorities that the external expander's certificate is checked "
            "with; without it the connection is not encrypted."
        ),
    )
    grpc_max_pods: int = count(
        "grpc-expander-max-pods",
        5000,
        description="Maximum number of pods sent to the external expander with one request.",
    )

    def choose_expanders(self, *, prices_are_known: bool) -> tuple[str, ...]:
        """Without the flag: cost if prices are known or the optimal planner is chosen, else least waste."""
        if self.expander:
            return self.expander
        return (COST,) if prices_are_known or self.planner == Planner.OPTIMAL else (LEAST_WASTE,)

    def choose_planner(self, *, prices_are_known: bool) -> Planner:
        if self.planner:
            return Planner(self.planner)
        chain = self.choose_expanders(prices_are_known=prices_are_known)
        return Planner.OPTIMAL if chain in OPTIMAL_CHAINS else Planner.COMPATIBLE


OPTIMAL_CHAINS: Final = ((COST,), (PRIORITY, COST))
"""The expanders that the optimal planner supports."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Balancing:
    """Which groups are similar, and whether scale-ups are balanced among them."""

    enabled: bool = switch(
        "balance-similar-node-groups",
        default=False,
        description="Whether a scale-up is split evenly among similar node groups.",
    )
    labels: tuple[str, ...] = list_flag(
        "balancing-label",
        description=(
            "Labels that alone decide whether two node groups are similar; may be repeated. Without "
            "it resources and all labels are compared."
        ),
    )
    ignored_labels: tuple[str, ...] = list_flag(
        "balancing-ignore-label",
        description="Labels that are ignored when two node groups are compared; may be repeated.",
    )
    memory_ratio: float = ratio(
        "memory-difference-ratio",
        0.015,
        description=(
            "Maximum difference in memory capacity between similar node groups, as a share of the larger one."
        ),
    )
    allocatable_ratio: float = ratio(
        "max-allocatable-difference-ratio",
        0.05,
        description=(
            "Maximum difference in allocatable resources between similar node groups, as a share of the larger one."
        ),
    )
    free_ratio: float = ratio(
        "max-free-difference-ratio",
        0.05,
        description=("Maximum difference in free resources between similar node groups, as a share of the larger one."),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoProvisioning:
    """Auto-provisioning: node groups that the autoscaler creates and deletes."""

    enabled: bool = switch(
        "node-autoprovisioning",
        default=False,
        aliases=("node-autoprovisioning-enabled", "enable-node-autoprovisioning"),
        description=(
            "Whether the autoscaler creates node groups for pending pods, and deletes them when they are empty."
        ),
    )
    prefix: str = text(
        "autoprovisioning-prefix", "nodeautoprovisioning", description="Prefix of the ids of created node groups."
    )
    machine_types: tuple[str, ...] = list_flag(
        "machine-types",
        description=("Machine types that node groups may be created of; without it all that the provider offers."),
    )
    max_node_groups: int = count(
        "max-node-groups",
        50,
        description=("Maximum number of node groups in the cluster, created ones included; above it none is created."),
    )
    max_own_groups: int = count(
        "max-autoprovisioned-node-group-count", 15, description="Maximum number of created node groups."
    )
    max_group_size: int = count(
        "autoprovisioned-group-max-size",
        0,
        description="Maximum size of a created node group; 0 means that only the limits of the cluster hold.",
    )
    label_merge: str = choice(
        "nap-label-merge",
        "beta",
        ("beta", "alpha"),
        description=(
            "beta puts the labels of pods that do not contradict each other on one node group; alpha "
            "creates one node group per distinct node selector."
        ),
    )
    popularity: str = choice(
        "nap-popularity",
        "pods",
        ("pods", "cpu"),
        description=("What ranks the label sets of new node groups: pods counts pods, cpu adds up their CPU requests."),
    )
    taints: str = choice(
        "nap-taints",
        "custom",
        ("custom", "matched", "none"),
        description=(
            "Which taints created node groups get: custom one per toleration of their own that pods "
            "have, matched only those that a pod also selects by label, none no taints, not even those of accelerators."
        ),
    )
    taints_merge: bool = switch(
        "nap-taints-merge",
        default=False,
        description=("Whether pods share a created node group when the tolerations of one include those of the other."),
    )
    allowed_labels: tuple[str, ...] = list_flag(
        "nap-allowed-labels",
        description=(
            "Labels that created node groups may carry, as patterns of a key or of KEY=VALUE (team, example.com/*); "
            "without it all labels outside the reserved domains kubernetes.io and k8s.io."
        ),
    )
    node_group_labels: str = choice(
        "nap-node-group-labels",
        "reserved",
        ("reserved", "shared"),
        description=(
            "Labels and taints of existing node groups: reserved keeps pods that select them on those node groups, "
            "within their maximum sizes; shared lets created node groups carry them too."
        ),
    )
    empty_group_delay_s: float = duration(
        "nap-empty-group-delay",
        0,
        description=(
            "How long a created node group stays empty before it is deleted; 0 deletes it in the next loop iteration."
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PodRules:
    """Which pods are planned for, and which taints templates leave out."""

    expendable_below: int = count(
        "expendable-pods-priority-cutoff",
        -10,
        least=-(1 << 31),
        description=(
            "Pods with a priority below this number cause no scale-up and do not keep a node from being removed."
        ),
    )
    new_pod_delay_s: float = duration(
        "new-pod-scale-up-delay",
        0,
        description=(
            "The age that a pending pod must have before it causes a scale-up; a pod's annotation can make it longer."
        ),
    )
    startup_taints: tuple[str, ...] = list_flag(
        "startup-taint",
        description=(
            "Taints of nodes that are still starting: such a node counts as not ready, and templates "
            "leave the taint out; may be repeated."
        ),
    )
    startup_taint_prefixes: tuple[str, ...] = list_flag(
        "startup-taint-prefix",
        description="Prefixes of taint keys that are treated as with --startup-taint; may be repeated.",
    )
    status_taints: tuple[str, ...] = list_flag(
        "status-taint",
        description=(
            "Taints that describe the state of a node: such a node counts as ready, and templates "
            "leave the taint out; may be repeated."
        ),
    )
    ignored_taints: tuple[str, ...] = list_flag(
        "ignore-taint", description="Deprecated name for --startup-taint; may be repeated."
    )
    force_daemon_sets: bool = switch(
        "force-ds",
        default=False,
        description=(
            "Whether templates made from a real node get the pods of all fitting DaemonSets, not only "
            "those that run on that node."
        ),
    )
    scale_from_unschedulable: bool = switch(
        "scale-from-unschedulable",
        default=False,
        description="Whether a template ignores that the node it is made from is cordoned.",
    )
    scheduler_config_file: str = text(
        "scheduler-config-file",
        "",
        description=(
            "KubeSchedulerConfiguration file of the cluster's scheduler; without it the default profile is assumed."
        ),
    )
    bypassed_schedulers: tuple[str, ...] = list_flag(
        "bypassed-scheduler-names",
        description=("Schedulers whose pods cause a scale-up before the scheduler has marked them unschedulable."),
    )
    allowed_schedulers: tuple[str, ...] = list_flag(
        "allowed-scheduler-names",
        description="Schedulers whose pods cause a scale-up; without it those of all schedulers.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleDown:
    """When nodes are removed, and how."""

    enabled: bool = switch("scale-down-enabled", default=True, description="Whether nodes are removed.")
    unneeded_time_s: float = duration(
        "scale-down-unneeded-time", 600, description="How long a node must be unneeded before it is removed."
    )
    unready_time_s: float = duration(
        "scale-down-unready-time", 1200, description="How long an unready node must be unneeded before it is removed."
    )
    delay_after_add_s: float = duration(
        "scale-down-delay-after-add", 600, description="How long after a scale-up no node is removed."
    )
    delay_after_delete_s: float = duration(
        "scale-down-delay-after-delete", 0, description="How long after a removal no further node is removed."
    )
    delay_after_failure_s: float = duration(
        "scale-down-delay-after-failure", 180, description="How long after a failed removal no node is removed."
    )
    delay_type_local: bool = switch(
        "scale-down-delay-type-local",
        default=False,
        description=(
            "Whether the --scale-down-delay-after-* times hold per node group instead of for the whole cluster."
        ),
    )
    utilization_threshold: float = ratio(
        "scale-down-utilization-threshold",
        0.5,
        most=1.0,
        description=("Requests divided by allocatable resources below which a node can be unneeded; 0.5 is half."),
    )
    gpu_utilization_threshold: float = ratio(
        "scale-down-gpu-utilization-threshold",
        0.5,
        most=1.0,
        description=("The same threshold for nodes with accelerators, of which only the accelerators are counted."),
    )
    unready_enabled: bool = switch(
        "scale-down-unready-enabled", default=True, description="Whether unready nodes are removed."
    )
    non_empty_candidates: int = count(
        "scale-down-non-empty-candidates-count",
        30,
        description=(
            "Maximum number of non-empty nodes that one loop "
            "iteration considers for removal; 0 considers only empty nodes."
        ),
    )
    candidates_ratio: float = ratio(
        "scale-down-candidates-pool-ratio",
        0.1,
        most=1.0,
        description=(
            "Share of the nodes that are added to the candidates for removal when earlier candidates "
            "turn out to be needed."
        ),
    )
    candidates_min: int = count(
        "scale-down-candidates-pool-min-count",
        50,
        description="Minimum number of nodes that --scale-down-candidates-pool-ratio stands for.",
    )
    simulation_timeout_s: float = duration(
        "scale-down-simulation-timeout",
        30,
        description="The time that one loop iteration may spend on simulating removals.",
    )
    recheck_timeout_s: float = duration(
        "unremovable-node-recheck-timeout",
        300,
        description="How long a node that could not be removed is not considered again.",
    )
    parallelism: int = count(
        "max-scale-down-parallelism", 10, description="Maximum number of nodes that are removed at the same time."
    )
    drain_parallelism: int = count(
        "max-drain-parallelism", 1, description="Maximum number of non-empty nodes that are drained at the same time."
    )
    graceful_termination_s: int = count(
        "max-graceful-termination-sec",
        600,
        description=(
            "Longest termination grace period, in seconds, that a pod gets when its node is drained; 0 means no limit."
        ),
    )
    drain_priority_config: str = text(
        "drain-priority-config",
        "",
        description=(
            "Order and grace periods of a drain by pod priority, as PRIORITY:SECONDS,...; excludes "
            "--max-graceful-termination-sec."
        ),
    )
    eviction_time_s: float = duration(
        "max-pod-eviction-time",
        120,
        description=("How long refused or failed evictions are tried again before the drain of their node fails."),
    )
    delay_after_taint_s: float = duration(
        "node-delete-delay-after-taint",
        5,
        description="How long the autoscaler waits between tainting a node and draining or deleting it.",
    )
    deletion_delay_timeout_s: float = duration(
        "node-deletion-delay-timeout",
        120,
        description="How long delay-deletion annotations can hold the deletion of a node up; 0 ignores them.",
    )
    batcher_interval_s: float = duration(
        "node-deletion-batcher-interval",
        0,
        description=(
            "How long nodes of one group are collected to be deleted by one call to the provider; 0 "
            "deletes each by its own call."
        ),
    )
    cordon_first: bool = switch(
        "cordon-node-before-terminating", default=True, description="Whether a node is cordoned before it is drained."
    )
    evict_daemons_of_empty: bool = switch(
        "daemonset-eviction-for-empty-nodes",
        default=False,
        description="Whether DaemonSet pods are evicted from empty nodes before they are deleted.",
    )
    evict_daemons_of_occupied: bool = switch(
        "daemonset-eviction-for-occupied-nodes",
        default=True,
        description="Whether DaemonSet pods are evicted from non-empty nodes when they are drained.",
    )
    soft_taint_count: int = count(
        "max-bulk-soft-taint-count",
        10,
        description=(
            "Maximum number of nodes whose PreferNoSchedule taint one loop "
            "iteration adds or removes; 0 turns these taints off."
        ),
    )
    soft_taint_time_s: float = duration(
        "max-bulk-soft-taint-time",
        3,
        description="The time that one loop iteration may spend on adding and removing PreferNoSchedule taints.",
    )
    candidate_ttl_s: float = duration(
        "node-deletion-candidate-ttl",
        0,
        description=(
            "How old the taint of an unneeded node may be for its time to count after a restart; 0 "
            "starts all times again."
        ),
    )
    skip_system_pods: bool = switch(
        "skip-nodes-with-system-pods",
        default=True,
        description=("Whether pods in kube-system without a PodDisruptionBudget keep their node from being removed."),
    )
    skip_local_storage: bool = switch(
        "skip-nodes-with-local-storage",
        default=True,
        description="Whether pods with local storage (emptyDir, hostPath) keep their node from being removed.",
    )
    skip_custom_controllers: bool = switch(
        "skip-nodes-with-custom-controller-pods",
        default=True,
        description=("Whether pods of controllers that Kubernetes does not know keep their node from being removed."),
    )
    min_replica_count: int = count(
        "min-replica-count",
        0,
        description=(
            "Minimum number of replicas of a ReplicaSet or ReplicationController whose pods may be "
            "moved; 0 means no minimum."
        ),
    )
    system_pod_timeout_s: float = duration(
        "blocking-system-pod-distruption-timeout",
        3600,
        description=(
            "How long pods in kube-system without a PodDisruptionBudget keep their node from being "
            "removed after they started."
        ),
    )
    ignore_daemon_sets: bool = switch(
        "ignore-daemonsets-utilization",
        default=False,
        description="Whether DaemonSet pods are left out of the utilization of a node.",
    )
    ignore_mirror_pods: bool = switch(
        "ignore-mirror-pods-utilization",
        default=False,
        description="Whether mirror pods are left out of the utilization of a node.",
    )
    consolidation: str = choice(
        "consolidation",
        "empty",
        ("off", "empty", "underutilized", "balanced"),
        description=(
            "Which nodes are removed to save money beyond unneeded ones: off and empty none, "
            "underutilized all that save, balanced those that save enough for their disruption."
        ),
    )
    consolidation_budgets: tuple[str, ...] = list_flag(
        "consolidation-budget",
        item=flags.parse_disruption_budget,
        commas=False,
        description=(
            "How many nodes consolidation may remove at a time, and when, such as 10% or a number "
            "with a schedule; may be repeated. Without it one node in ten per group."
        ),
    )
    max_removals_per_hour: int | None = count(
        "max-removals-per-hour",
        None,
        description=(
            "Maximum number of nodes removed per hour, counted across restarts; without it there is no limit."
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Requests:
    """How ProvisioningRequests are served."""

    enabled: bool = switch(
        "enable-provisioning-requests", default=False, description="Whether ProvisioningRequests are served."
    )
    first_backoff_s: float = duration(
        "provisioning-request-initial-backoff-time",
        60,
        description=(
            "How long a ProvisioningRequest waits after its first failed attempt; every further "
            "failure doubles the time."
        ),
    )
    longest_backoff_s: float = duration(
        "provisioning-request-max-backoff-time",
        600,
        description="The longest time that a ProvisioningRequest waits between two attempts.",
    )
    batch_checks: bool = switch(
        "check-capacity-batch-processing",
        default=True,
        description="Whether one loop iteration checks capacity for several ProvisioningRequests instead of one.",
    )
    batch_size: int = count(
        "check-capacity-provisioning-request-max-batch-size",
        1000,
        least=1,
        description="Maximum number of ProvisioningRequests whose capacity one loop iteration checks.",
    )
    batch_timebox_s: float = duration(
        "check-capacity-provisioning-request-batch-timebox",
        2,
        description=(
            "The time that one loop iteration may spend on capacity "
            "checks, counted in pod sets so that plans can be replayed."
        ),
    )
    atomic_timebox_s: float = duration(
        "atomic-provisioning-request-batch-timebox",
        10,
        description=(
            "The time that one loop iteration may spend on atomic scale-up requests, counted in pod sets so "
            "that plans can be replayed."
        ),
    )
    check_counts_upcoming: bool = switch(
        "check-capacity-count-upcoming-nodes",
        default=False,
        description=(
            "Whether a capacity check counts nodes that were requested and have not joined; the parameter "
            "countUpcoming of a request overrides it."
        ),
    )
    instance: str = text(
        "check-capacity-processor-instance",
        "",
        description=(
            "Only capacity checks whose parameter processorInstance has this value are served; empty "
            "serves those without the parameter."
        ),
    )
    provisioned_when: str = choice(
        "provreq-provisioned-when",
        "registered",
        ("requested", "registered"),
        description=(
            "When a request that adds nodes becomes Provisioned: registered when all of them have joined, "
            "requested when they are asked for, as in Cluster Autoscaler."
        ),
    )
    booking_s: float = duration(
        "provreq-booking-default",
        600,
        description="How long capacity is kept for a ProvisioningRequest that does not say so itself.",
    )
    reservation_pods: bool = switch(
        "provreq-reservation-pods",
        default=False,
        description="Whether pods are created that hold the booked capacity on nodes.",
    )
    refresh_writes: int = count(
        "provreq-refresh-writes",
        200,
        least=1,
        description=(
            "Maximum number of ProvisioningRequests that one loop iteration "
            "updates or deletes because their time is over."
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """Where and how the program runs."""

    address: str = text("address", ":8085", description="Address on which metrics, health and debug pages are served.")
    kubeconfig: str = text(
        "kubeconfig",
        "",
        description=(
            "Kubeconfig file of the cluster that is autoscaled; without it the usual places, or the "
            "service account of the pod."
        ),
    )
    kubernetes: str = text(
        "kubernetes", "", description="Address of the API server; goes before the one of the kubeconfig."
    )
    namespace: str = text(
        "namespace",
        "kube-system",
        description="Namespace of the autoscaler: of its ConfigMaps, its lease and the status.",
    )
    provider: str = flags.custom_flag(
        "cloud-provider",
        "simulated",
        kind="simulated | externalgrpc | clusterapi",
        parse=lambda value: value_parsing.parse_choice(
            value, ("simulated", "externalgrpc", "clusterapi"), {"fake": "simulated", "kwok": "simulated"}
        ),
        aliases=("provider",),
        description="The provider that node groups and machines come from.",
    )
    cloud_config: str = text(
        "cloud-config",
        "",
        description=(
            "Configuration file of the provider: the server of externalgrpc, or the kubeconfig of the "
            "management cluster of clusterapi."
        ),
    )
    cloud_config_only: bool = switch(
        "clusterapi-cloud-config-authoritative",
        default=False,
        description=(
            "Whether, without --cloud-config, Cluster API is looked for in the cluster this program "
            "runs in instead of the autoscaled one."
        ),
    )
    cluster_name: str = text("cluster-name", "", description="Name of the cluster in journal entries.")
    scan_interval_s: float = duration(
        "scan-interval", 10, description="How often the cluster is looked at for scale-up and scale-down."
    )
    frequent_loops: bool = switch(
        "frequent-loops-enabled",
        default=True,
        description="Whether a loop iteration starts at once when a pod becomes unschedulable.",
    )
    dry_run: bool = switch(
        "dry-run",
        default=False,
        description="Whether plans are only reported and never carried out; a dry run takes no lease.",
    )
    write_status: bool = switch(
        "write-status-configmap", default=True, description="Whether the status is written to a ConfigMap."
    )
    status_name: str = text(
        "status-config-map-name",
        "cluster-autoscaler-status",
        description="Name of the ConfigMap that the status is written to.",
    )
    duplicated_events: bool = switch(
        "record-duplicated-events",
        default=False,
        description="Whether Events are written again when nothing about them has changed.",
    )
    max_inactivity_s: float = duration(
        "max-inactivity", 600, description="How long no loop iteration may start before the health check fails."
    )
    max_failing_time_s: float = duration(
        "max-failing-time", 900, description="How long loop iterations may fail before the health check fails."
    )
    max_startup_time_s: float = duration(
        "max-startup-time",
        1200,
        description="How long the first loop iteration may take to start before the health check fails.",
    )
    metrics_per_group: bool = switch(
        "emit-per-nodegroup-metrics", default=False, description="Whether metrics per node group are exported."
    )
    debugging_snapshot: bool = switch(
        "debugging-snapshot-enabled",
        default=False,
        description="Whether /snapshotz shows the whole cluster as the last loop iteration saw it.",
    )
    profiling: bool = switch(
        "profiling", default=False, description="Whether /debug/pprof/profile serves stacks of the running program."
    )
    client_qps: float = ratio(
        "kube-client-qps", 5.0, description="Average number of requests per second to the API server."
    )
    client_burst: int = count(
        "kube-client-burst", 10, description="Number of requests that may go to the API server at once."
    )
    ignore_other_autoscalers: bool = switch(
        "ignore-other-autoscalers",
        default=False,
        description=(
            "Whether this autoscaler acts although another one (Cluster Autoscaler with another lease, Karpenter) is "
            "at work in the cluster."
        ),
    )
    leader_elect: bool = switch(
        "leader-elect", default=True, description="Whether a lease decides which of several replicas acts."
    )
    lease_s: float = duration(
        "leader-elect-lease-duration",
        15,
        description="How long other replicas wait after the last renewal before they take the lease.",
    )
    lease_renew_s: float = duration(
        "leader-elect-renew-deadline",
        10,
        description="How long the leader tries to renew the lease before it stops acting.",
    )
    lease_retry_s: float = duration(
        "leader-elect-retry-period",
        2,
        description="How long a replica waits between two attempts to take or renew the lease.",
    )
    lease_name: str = text("leader-elect-resource-name", AUTOSCALER_LEASE, description="Name of the lease.")
    lease_namespace: str = text(
        "leader-elect-resource-namespace", "", description="Namespace of the lease; without it --namespace."
    )
    node_info_cache_s: float = duration(
        "node-info-cache-expire-time",
        87_600 * 3600,
        description="How long the template of a node group without a usable node is remembered.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """All options of the node autoscaler."""

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
    """The content of the price overlay file, by machine type."""
    priorities: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """The content of the priority expander's ConfigMap: priority to patterns of group ids."""
    naming: Naming | None = None
    """The rules for group ids of the provider; None for no rules."""
    expander_answers: Mapping[str, tuple[str, ...]] | None = None
    """Answers of the external expander in this loop iteration, by question; None without such an expander."""
