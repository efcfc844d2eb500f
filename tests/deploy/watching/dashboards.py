"""The Grafana dashboards of the chart: `make render` writes them as JSON, a test compares.

A dashboard is a list of panels, a panel is a title, a unit and its queries. Two panels stand side by side.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pathlib import Path

_SOURCE: Final = {"type": "prometheus", "uid": "${source}"}
_WIDTH: Final = 12
_HEIGHT: Final = 8


@dataclass(frozen=True, slots=True)
class Panel:
    """Queries with the legends of their series."""

    title: str
    unit: str
    queries: tuple[tuple[str, str], ...]


_AGE: Final = 'time() - max(cluster_autoscaler_last_activity{activity="main"})'
_FLEET: Final = "kas_fleet_manager_"

DASHBOARDS: Final[dict[str, tuple[Panel, ...]]] = {
    "overview": (
        Panel("Leading processes", "short", (("max by (name) (leader_election_master_status)", "{{name}}"),)),
        Panel("Failures of leases", "ops", (("rate(plimsoll_lease_failures_total[5m])", "{{name}} {{instance}}"),)),
        Panel("Time since the last loop iteration of the node autoscaler", "s", ((_AGE, "age"),)),
        Panel(
            "Failed reconciles",
            "ops",
            (("sum by (controller) (rate(controller_runtime_reconcile_errors_total[5m]))", "{{controller}}"),),
        ),
        Panel("Keys that wait for a worker", "short", (("sum by (name) (workqueue_depth)", "{{name}}"),)),
        Panel(
            "Age of the oldest key", "s", (("max by (name) (plimsoll_workqueue_oldest_key_age_seconds)", "{{name}}"),)
        ),
        Panel(
            "Objects that cannot be decoded",
            "short",
            (("max by (name) (plimsoll_informer_undecodable_objects)", "{{name}}"),),
        ),
        Panel("Failed writes to the journal", "ops", (("rate(plimsoll_journal_failures_total[5m])", "{{instance}}"),)),
    ),
    "nodes": (
        Panel("Nodes by state", "short", (("max by (state) (cluster_autoscaler_nodes_count)", "{{state}}"),)),
        Panel(
            "Unschedulable pods",
            "short",
            (("max by (type) (cluster_autoscaler_unschedulable_pods_count)", "{{type}}"),),
        ),
        Panel(
            "Nodes added and removed per hour",
            "short",
            (
                ("sum(increase(cluster_autoscaler_scaled_up_nodes_total[1h]))", "added"),
                ("sum by (reason) (increase(cluster_autoscaler_scaled_down_nodes_total[1h]))", "removed: {{reason}}"),
            ),
        ),
        Panel(
            "Cost of the last plan and its lower bound",
            "short",
            (
                ("max(cluster_autoscaler_plan_cost_per_hour)", "cost per hour"),
                ("max(cluster_autoscaler_plan_cost_lower_bound_per_hour)", "lower bound"),
            ),
        ),
        Panel(
            "Duration of parts of the loop (99th percentile)",
            "s",
            (
                (
                    (
                        "histogram_quantile(0.99, sum by (le, function) "
                        "(rate(cluster_autoscaler_function_duration_seconds_bucket[10m])))"
                    ),
                    "{{function}}",
                ),
            ),
        ),
        Panel(
            "Failed scale-ups per hour",
            "short",
            (("sum by (reason) (increase(cluster_autoscaler_failed_scale_ups_total[1h]))", "{{reason}}"),),
        ),
        Panel("Nodes that are not needed", "short", (("max(cluster_autoscaler_unneeded_nodes_count)", "not needed"),)),
        Panel(
            "Nodes that stay, by reason",
            "short",
            (("max by (reason) (cluster_autoscaler_unremovable_nodes_count)", "{{reason}}"),),
        ),
        Panel(
            "Size of node groups (--emit-per-nodegroup-metrics)",
            "short",
            (("max by (node_group) (cluster_autoscaler_node_group_target_count)", "{{node_group}}"),),
        ),
        Panel(
            "Node groups in back-off (--emit-per-nodegroup-metrics)",
            "short",
            (
                (
                    "max by (node_group, reason) (cluster_autoscaler_node_group_backoff_status)",
                    "{{node_group}} {{reason}}",
                ),
            ),
        ),
    ),
    "requests": (
        Panel("Requests that wait", "short", (("max by (class) (cluster_autoscaler_provreq_pending)", "{{class}}"),)),
        Panel(
            "Requests that ended per hour",
            "short",
            (
                (
                    "sum by (class, outcome) (increase(cluster_autoscaler_provreq_total[1h]))",
                    "{{class}}: {{outcome}}",
                ),
            ),
        ),
        Panel(
            "Time to capacity (median)",
            "s",
            (
                (
                    (
                        "histogram_quantile(0.5, sum by (le, class) "
                        "(rate(cluster_autoscaler_provreq_time_to_provisioned_seconds_bucket[1h])))"
                    ),
                    "{{class}}",
                ),
            ),
        ),
        Panel(
            "Booked pods",
            "short",
            (
                ("max(cluster_autoscaler_provreq_booked_pods)", "booked"),
                ("max(cluster_autoscaler_provreq_unbookable_pods)", "without room"),
            ),
        ),
    ),
    "tidb": (
        Panel(
            "Instances",
            "short",
            (
                (
                    "max by (namespace, autoscaler, component, group) (plimsoll_tidb_replicas)",
                    "{{component}} {{group}}",
                ),
                (
                    "max by (namespace, autoscaler, component, group) (plimsoll_tidb_desired_replicas)",
                    "{{component}} {{group}} desired",
                ),
            ),
        ),
        Panel("Reconciles", "ops", (("sum by (result) (rate(plimsoll_tidb_passes_total[5m]))", "{{result}}"),)),
        Panel(
            "Held changes per hour",
            "short",
            (("sum by (component, reason) (increase(plimsoll_tidb_held_total[1h]))", "{{component}}: {{reason}}"),),
        ),
        Panel(
            "Blocked scale-ins",
            "short",
            (
                (
                    "max by (namespace, autoscaler) (plimsoll_tidb_scale_in_blocked)",
                    "{{namespace}}/{{autoscaler}}",
                ),
            ),
        ),
        Panel(
            "Requests without a usable answer per hour",
            "short",
            (
                (
                    "sum by (component, reason) (increase(plimsoll_tidb_unanswered_total[1h]))",
                    "{{component}}: {{reason}}",
                ),
            ),
        ),
        Panel(
            "Actions per hour",
            "short",
            (
                (
                    "sum by (component, verb, result) (increase(plimsoll_tidb_acts_total[1h]))",
                    "{{component}} {{verb}}: {{result}}",
                ),
            ),
        ),
    ),
    "kafka": (
        Panel("Resources", "short", (("max by (kind, namespace) (strimzi_resources)", "{{namespace}} {{kind}}"),)),
        Panel(
            "Resources whose last reconcile failed",
            "short",
            (("count by (kind, reason) (strimzi_resource_state == 0)", "{{kind}}: {{reason}}"),),
        ),
        Panel(
            "Reconciles",
            "ops",
            (
                ("sum by (kind) (rate(strimzi_reconciliations_successful_total[5m]))", "{{kind}} succeeded"),
                ("sum by (kind) (rate(strimzi_reconciliations_failed_total[5m]))", "{{kind}} failed"),
            ),
        ),
        Panel(
            "Movements of the running execution",
            "short",
            (("max by (type, state) (plimsoll_kafka_execution_movements)", "{{type}}: {{state}}"),),
        ),
        Panel(
            "Bytes of the running execution",
            "bytes",
            (
                ("max(plimsoll_kafka_execution_bytes_total)", "to move"),
                ("max(plimsoll_kafka_execution_bytes_finished)", "moved"),
            ),
        ),
        Panel("Bytes per broker", "bytes", (("max by (broker) (plimsoll_kafka_broker_bytes)", "{{broker}}"),)),
    ),
    "fleet": (
        Panel("Clusters by status", "short", ((f"max by (status) ({_FLEET}cluster_status_count)", "{{status}}"),)),
        Panel(
            "Kafka requests by status",
            "short",
            ((f"max by (status) ({_FLEET}kafka_requests_status_count)", "{{status}}"),),
        ),
        Panel(
            "Streaming units",
            "short",
            (
                (
                    f"sum by (region, instance_type) ({_FLEET}cluster_status_capacity_used)",
                    "{{region}} {{instance_type}} used",
                ),
                (
                    f"sum by (region, instance_type) ({_FLEET}cluster_status_capacity_max)",
                    "{{region}} {{instance_type}} max",
                ),
            ),
        ),
        Panel(
            "Time since the last report of an agent",
            "s",
            (("max by (cluster_id) (plimsoll_fleet_agent_last_report_seconds)", "{{cluster_id}}"),),
        ),
        Panel(
            "Decisions per hour",
            "short",
            (
                (
                    "sum by (worker, decision, reason) (increase(plimsoll_fleet_decisions_total[1h]))",
                    "{{worker}} {{decision}}: {{reason}}",
                ),
            ),
        ),
        Panel(
            "Problems of clusters",
            "short",
            (
                ("sum by (problem) (plimsoll_fleet_cluster_problems)", "{{problem}}"),
                ("max by (provider) (plimsoll_fleet_orphans)", "orphans of {{provider}}"),
            ),
        ),
        Panel("Requests of the API", "ops", (("sum by (code) (rate(api_inbound_request_count[5m]))", "{{code}}"),)),
        Panel(
            "Leading workers",
            "short",
            ((f"max by (worker_type) ({_FLEET}leader_worker)", "{{worker_type}}"),),
        ),
    ),
}


def build_dashboard(name: str) -> dict[str, Any]:
    """The JSON that Grafana imports."""
    panels = [_build_panel(number, panel) for number, panel in enumerate(DASHBOARDS[name])]
    source = {"name": "source", "label": "Data source", "type": "datasource", "query": "prometheus"}
    return {
        "uid": f"plimsoll-{name}",
        "title": f"Plimsoll / {name}",
        "tags": ["plimsoll"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": [source]},
        "panels": panels,
    }


def _build_panel(number: int, panel: Panel) -> dict[str, Any]:
    return {
        "id": number + 1,
        "type": "timeseries",
        "title": panel.title,
        "datasource": _SOURCE,
        "gridPos": {"x": number % 2 * _WIDTH, "y": number // 2 * _HEIGHT, "w": _WIDTH, "h": _HEIGHT},
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": [
            {"refId": chr(ord("A") + index), "expr": query, "legendFormat": legend, "datasource": _SOURCE}
            for index, (query, legend) in enumerate(panel.queries)
        ],
    }


def render_dashboards() -> dict[str, str]:
    """The text of each file, by its name."""
    return {f"{name}.json": json.dumps(build_dashboard(name), indent=2) + "\n" for name in DASHBOARDS}


def write_dashboards(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in render_dashboards().items():
        (folder / name).write_text(text)
