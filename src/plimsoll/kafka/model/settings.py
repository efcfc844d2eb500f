"""Settings of the analyzer. Names and defaults follow Cruise Control as Strimzi configures it."""

from __future__ import annotations

from plimsoll.core.values import Value


class AnalyzerSettings(Value):
    """Goals, limits and counted budgets. A balance threshold of 1.10 with the margin 0.9 is a window of ±9 %."""

    default_goals: tuple[str, ...] = ()
    """The goals of a request that names none, by priority; empty: all between brokers, in Strimzi's order."""
    hard_goals: tuple[str, ...] = (
        "RackAwareGoal",
        "ReplicaCapacityGoal",
        "DiskCapacityGoal",
        "NetworkInboundCapacityGoal",
        "NetworkOutboundCapacityGoal",
        "CpuCapacityGoal",
    )
    """The goals that a request with own goals must name, unless it skips the check."""
    disk_capacity_threshold: float = 0.8
    network_inbound_capacity_threshold: float = 0.8
    network_outbound_capacity_threshold: float = 0.8
    cpu_capacity_threshold: float = 0.7
    replica_count_balance_threshold: float = 1.10
    leader_replica_count_balance_threshold: float = 1.10
    topic_replica_count_balance_threshold: float = 3.0
    topic_replica_count_balance_min_gap: int = 2
    topic_replica_count_balance_max_gap: int = 40
    disk_balance_threshold: float = 1.10
    network_inbound_balance_threshold: float = 1.10
    network_outbound_balance_threshold: float = 1.10
    cpu_balance_threshold: float = 1.10
    balance_margin: float = 0.9
    """The part of a balance threshold that is used, so that a result does not sit at the edge of it."""
    low_utilization_threshold: float = 0.0
    """At or under this mean utilization of a resource its distribution has no lower limit."""
    max_replicas_per_broker: int = 10_000
    topics_with_min_leaders_per_broker: str = ""
    """A regular expression (RE2) over whole topic names; empty: none."""
    min_topic_leaders_per_broker: int = 1
    """0: the leaders of the topic divided by the number of brokers, rounded down."""
    overprovisioned_max_replicas_per_broker: int = 1500
    overprovisioned_min_brokers: int = 3
    overprovisioned_min_extra_racks: int = 2
    priority_weight: float = 1.1
    strictness_weight: float = 1.5
    max_candidates_per_goal: int = 200_000
    """How many replicas one goal may try to move. Counted and not timed: equal input gives an equal plan."""
