"""All metrics of the node autoscaler: Cluster Autoscaler's names, labels and buckets, and a few of Plimsoll's own.

Series that Cluster Autoscaler exposes as zero before anything happens are zero here too. `render_metrics` writes the
text format of Prometheus; `collect_samples` returns a map for a scenario's `metrics`.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Final, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Summary
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from plimsoll.nodes.model.results import PodState

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


PREFIX: Final = "cluster_autoscaler_"
WITHOUT_TOTAL: Final = frozenset(
    {f"{PREFIX}skipped_scale_events_count", f"{PREFIX}old_unregistered_nodes_removed_count"}
)
"""Counters that Cluster Autoscaler names without `_total`; the client library insists on it."""
MEASURED: Final = frozenset(
    PREFIX + name
    for name in (
        "last_activity",
        "function_duration_seconds",
        "function_duration_quantile_seconds",
        "node_removal_latency_seconds",
        "binpacking_heterogeneity",
        "plan_seconds",
    )
)
"""Measured times, and distributions over names: not part of a scenario's output."""

NODE_STATES: Final = ("ready", "unready", "notStarted", "longUnregistered", "unregistered")
GROUP_TYPES: Final = ("autoscaled", "autoprovisioned")
AUTOPROVISIONED: Final = "autoprovisioned"
UP: Final = "up"
DOWN: Final = "down"
RESOURCE_LIMITS: Final = ("CpuResourceLimit", "MemoryResourceLimit")
CLOUD_PROVIDER_ERROR: Final = "cloudProviderError"
API_CALL_ERROR: Final = "apiCallError"
TIMEOUT: Final = "timeout"
_ERRORS: Final = (
    CLOUD_PROVIDER_ERROR,
    API_CALL_ERROR,
    "internalError",
    "transientError",
    "configurationError",
    "nodeGroupDoesNotExistError",
    "unexpectedScaleDownStateError",
)
_GPU: Final = ("gpu_resource_name", "gpu_name")
_DEVICES: Final = (*_GPU, "dra_drivers")

Family = TypeVar("Family", Counter, Gauge, Histogram, Summary)


def _build_buckets(start: float, factor: float, count: int) -> tuple[float, ...]:
    return tuple(start * factor**number for number in range(count))


class Families:
    """The metrics of one autoscaler, in their own registry: two autoscalers in one process do not share counts."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._declare_cluster()
        self._declare_groups()
        self._declare_work()
        self._declare_scale_up()
        self._declare_scale_down()
        self._declare_plans_and_requests()
        self._show_zeros()

    def _add_family(self, kind: type[Family], name: str, help_text: str, labels: tuple[str, ...] = ()) -> Family:
        return kind(PREFIX + name, help_text, labels, registry=self.registry)

    def _add_histogram(
        self, name: str, help_text: str, labels: tuple[str, ...], buckets: tuple[float, ...]
    ) -> Histogram:
        return Histogram(PREFIX + name, help_text, labels, registry=self.registry, buckets=buckets)

    def _declare_cluster(self) -> None:
        new = self._add_family
        self.safe_to_autoscale = new(Gauge, "cluster_safe_to_autoscale", "1 if the cluster is healthy enough, else 0.")
        self.nodes = new(Gauge, "nodes_count", "Nodes in the cluster.", ("state",))
        self.node_groups = new(Gauge, "node_groups_count", "Node groups that are managed.", ("node_group_type",))
        self.unschedulable_pods = new(Gauge, "unschedulable_pods_count", "Pods that are unschedulable.", ("type",))
        self.compute_max_nodes = new(Gauge, "max_nodes_count", "The most nodes there may be in all node groups.")
        self.cpu_cores = new(Gauge, "cluster_cpu_current_cores", "Cores in the cluster, without leaving nodes.")
        self.cpu_limits = new(Gauge, "cpu_limits_cores", "Least and most cores in the cluster.", ("direction",))
        self.memory_bytes = new(Gauge, "cluster_memory_current_bytes", "Memory, without that of leaving nodes.")
        self.memory_limits = new(Gauge, "memory_limits_bytes", "Least and most memory in the cluster.", ("direction",))
        self.node_taints = new(Gauge, "node_taints_count", "Taints on nodes, by type.", ("type",))
        self.nap_enabled = new(Gauge, "nap_enabled", "1 if node auto-provisioning is on, else 0.")

    def _declare_groups(self) -> None:
        new, labels = self._add_family, ("node_group",)
        self.group_min = new(Gauge, "node_group_min_count", "Least nodes of the group.", labels)
        self.group_max = new(Gauge, "node_group_max_count", "Most nodes of the group.", labels)
        self.group_target = new(Gauge, "node_group_target_count", "Nodes that the group wants.", labels)
        self.group_health = new(Gauge, "node_group_healthiness", "1 if the group can be scaled, else 0.", labels)
        help_text = "1 if the group is in back-off for this reason, else 0."
        self.group_backoff = new(Gauge, "node_group_backoff_status", help_text, ("node_group", "reason"))

    def _declare_work(self) -> None:
        new = self._add_family
        self.last_activity = new(Gauge, "last_activity", "When a part of the loop last ran.", ("activity",))
        help_text = "Time taken by parts of the loop."
        self.function_seconds = self._add_histogram(
            "function_duration_seconds", help_text, ("function",), _build_buckets(0.01, 1.5, 30)
        )
        self.function_quantile = new(Summary, "function_duration_quantile_seconds", help_text, ("function",))
        self.errors = new(Counter, "errors_total", "Turns that failed.", ("type",))

    def _declare_scale_up(self) -> None:
        new = self._add_family
        self.scaled_up = new(Counter, "scaled_up_nodes_total", "Nodes added.", _DEVICES)
        self.scaled_up_gpu = new(Counter, "scaled_up_gpu_nodes_total", "Nodes with accelerators added.", _GPU)
        self.failed_scale_ups = new(Counter, "failed_scale_ups_total", "Growths that failed.", ("reason", *_DEVICES))
        help_text = "Machines that could not be made."
        self.failed_creations = new(Counter, "failed_node_creations_total", help_text, ("reason",))
        help_text = "Growths of groups with accelerators that failed."
        self.failed_gpu_scale_ups = new(Counter, "failed_gpu_scale_ups_total", help_text, ("reason", *_GPU))
        help_text = "Machines removed that never became nodes."
        self.unregistered_removed = new(Counter, "old_unregistered_nodes_removed_count", help_text)
        help_text = "Deletions and lower target sizes that were held back because something may still run there."
        self.held_deletions = new(Counter, "held_back_deletions_total", help_text, ("reason",))
        help_text = "Times that a group was not scaled because of a limit."
        self.skipped_scale_events = new(Counter, "skipped_scale_events_count", help_text, ("direction", "reason"))
        help_text = "Groups made by auto-provisioning."
        self.created_groups = new(Counter, "created_node_groups_total", help_text, ("group_type",))
        help_text = "Groups deleted by auto-provisioning."
        self.deleted_groups = new(Counter, "deleted_node_groups_total", help_text, ("group_type",))
        self.heterogeneity = self._add_histogram(
            "binpacking_heterogeneity",
            "Different pods that were packed together.",
            ("instance_type", "cpu_count", "namespace_count"),
            _build_buckets(1, 2, 6),
        )
        self.skipped_pods = new(Gauge, "skipped_pods_count", "Pods that wait and are not planned for.", ("requestor",))

    def _declare_scale_down(self) -> None:
        new = self._add_family
        self.pending_deletions = new(Gauge, "pending_node_deletions", "Nodes whose removal is under way.")
        self.scaled_down = new(Counter, "scaled_down_nodes_total", "Nodes removed.", ("reason", *_DEVICES))
        help_text = "Nodes with accelerators removed."
        self.scaled_down_gpu = new(Counter, "scaled_down_gpu_nodes_total", help_text, ("reason", *_GPU))
        self.evicted_pods = new(Counter, "evicted_pods_total", "Pods evicted.", ("eviction_result",))
        self.unneeded_nodes = new(Gauge, "unneeded_nodes_count", "Nodes that are not needed now.")
        self.unremovable_nodes = new(Gauge, "unremovable_nodes_count", "Nodes that stay, by reason.", ("reason",))
        self.in_cooldown = new(Gauge, "scale_down_in_cooldown", "1 if removals wait for a cooldown, else 0.")
        help_text = "From being due for removal to being removed (deleted=true) or needed again."
        self.removal_seconds = self._add_histogram(
            "node_removal_latency_seconds", help_text, ("deleted",), _build_buckets(1, 1.5, 19)
        )

    def _declare_plans_and_requests(self) -> None:
        new = self._add_family
        self.plan_seconds = self._add_histogram(
            "plan_seconds", "Time taken by planning.", ("phase",), _build_buckets(0.001, 2, 16)
        )
        self.plan_cost = new(Gauge, "plan_cost_per_hour", "What the last plan adds, in money per hour.")
        help_text = "The least that the pods helped by the last plan could cost."
        self.plan_bound = new(Gauge, "plan_cost_lower_bound_per_hour", help_text)
        help_text = "Classes of pods whose plan the verifier refused."
        self.verification_failures = new(Counter, "plan_verification_failures_total", help_text)
        self.rollbacks = new(Counter, "rollbacks_total", "Growths taken back because they came in part.")
        self.requests = new(Counter, "provreq_total", "Requests that came to an end.", ("class", "outcome"))
        self.pending_requests = new(Gauge, "provreq_pending", "Requests that wait.", ("class",))
        self.request_seconds = self._add_histogram(
            "provreq_time_to_provisioned_seconds",
            "From a request's creation to its capacity.",
            ("class",),
            _build_buckets(1, 2, 16),
        )
        self.booked_pods = new(Gauge, "provreq_booked_pods", "Pods that room is booked for.")
        self.unbookable_pods = new(Gauge, "provreq_unbookable_pods", "Pods of bookings that fit nowhere now.")

    def _show_zeros(self) -> None:
        for state in NODE_STATES:
            self.nodes.labels(state)
        for kind in GROUP_TYPES:
            self.node_groups.labels(kind)
        for pods in PodState:
            self.unschedulable_pods.labels(pods.value)
        for error in _ERRORS:
            self.errors.labels(error)
        self.scaled_up.labels("", "", "")
        for reason in (CLOUD_PROVIDER_ERROR, API_CALL_ERROR, TIMEOUT):
            self.failed_scale_ups.labels(reason, "", "", "")
        for reason in ("underutilized", "empty", "unready"):
            self.scaled_down.labels(reason, "", "", "")
        for result in ("succeeded", "failed"):
            self.evicted_pods.labels(result)
        for direction, limit in product((UP, DOWN), RESOURCE_LIMITS):
            self.skipped_scale_events.labels(direction, limit)
        self.created_groups.labels(AUTOPROVISIONED)
        self.deleted_groups.labels(AUTOPROVISIONED)


_TOTAL = "_total"


class _AsNamed(Collector):
    """The registry without `_created` series, and without `_total` where Cluster Autoscaler has none."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def collect(self) -> Iterator[Metric]:
        for metric in self._registry.collect():
            shown = Metric(metric.name, metric.documentation, metric.type)
            for sample in metric.samples:
                if not sample.name.endswith("_created"):
                    name = sample.name.removesuffix(_TOTAL) if metric.name in WITHOUT_TOTAL else sample.name
                    shown.add_sample(name, sample.labels, sample.value)
            yield shown


def render_metrics(registry: CollectorRegistry) -> bytes:
    text = generate_latest(_AsNamed(registry))
    for name in WITHOUT_TOTAL:
        # The library still writes it in HELP and TYPE lines.
        text = text.replace(f"{name}{_TOTAL}".encode(), name.encode())
    return text


def collect_samples(registry: CollectorRegistry) -> dict[str, float]:
    """Each value by full and short name; the short name without labels is the sum over all labels."""
    found: dict[str, float] = {}
    for metric in _AsNamed(registry).collect():
        if metric.name in MEASURED:
            continue
        if metric.type == "histogram":
            found |= _sum_histogram(metric)
            continue
        is_counter = metric.type == "counter" and metric.name not in WITHOUT_TOTAL
        name = f"{metric.name}{_TOTAL}" if is_counter else metric.name
        short = name.removeprefix(PREFIX)
        found[short] = sum(sample.value for sample in metric.samples)
        for sample in metric.samples:
            found[name + _format_labels(sample.labels, quote='"')] = sample.value
            found[short + _format_labels(sample.labels)] = sample.value
    return found


def _sum_histogram(metric: Metric) -> dict[str, float]:
    """Count and sum of a histogram, which add up over labels; not its buckets."""
    found: dict[str, float] = {}
    for suffix in ("_count", "_sum"):
        name = metric.name + suffix
        short = name.removeprefix(PREFIX)
        some = [sample for sample in metric.samples if sample.name == name]
        found[short] = sum(sample.value for sample in some)
        for sample in some:
            found[name + _format_labels(sample.labels, quote='"')] = sample.value
            found[short + _format_labels(sample.labels)] = sample.value
    return found


def _format_labels(labels: Mapping[str, str], *, quote: str = "") -> str:
    listed = ",".join(f"{key}={quote}{value}{quote}" for key, value in sorted(labels.items()))
    return f"{{{listed}}}" if listed else ""
