"""Goals by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.core.plans import Reason
from plimsoll.kafka.planning.goals.capacity import CapacityGoal, ReplicaCapacityGoal
from plimsoll.kafka.planning.goals.distribution import (
    DistributionGoal,
    LeaderBytesInDistributionGoal,
    LeaderReplicaDistributionGoal,
    TopicReplicaDistributionGoal,
)
from plimsoll.kafka.planning.goals.goal import Goal, InapplicableGoal
from plimsoll.kafka.planning.goals.leaders import MinTopicLeadersPerBrokerGoal, PreferredLeaderElectionGoal
from plimsoll.kafka.planning.goals.racks import RackGoal
from plimsoll.kafka.planning.goals.windows import find_margin
from plimsoll.kafka.planning.loads import Metric
from plimsoll.kafka.planning.placement import RackRule

if TYPE_CHECKING:
    from collections.abc import Callable

    from plimsoll.kafka.model.settings import AnalyzerSettings
    from plimsoll.kafka.planning.placement import Placement

    Build = Callable[[str, Placement, AnalyzerSettings], Goal]


def build_goals(names: tuple[str, ...], placement: Placement, settings: AnalyzerSettings) -> list[Goal]:
    """The goals of a list, over one placement."""
    return [_BUILDERS[name](name, placement, settings) for name in names]


def _distribute(metric: Metric, get_threshold: Callable[[AnalyzerSettings], float]) -> Build:
    def build(name: str, placement: Placement, settings: AnalyzerSettings) -> Goal:
        margin = find_margin(get_threshold(settings), settings)
        return DistributionGoal(name, placement, settings, metric=metric, margin=margin)

    return build


def _limit(metric: Metric, get_threshold: Callable[[AnalyzerSettings], float]) -> Build:
    def build(name: str, placement: Placement, settings: AnalyzerSettings) -> Goal:
        return CapacityGoal(name, placement, settings, metric=metric, threshold=get_threshold(settings))

    return build


def _spread(rule: RackRule) -> Build:
    def build(name: str, placement: Placement, settings: AnalyzerSettings) -> Goal:
        return RackGoal(name, placement, settings, rule=rule)

    return build


def _distribute_leaders(name: str, placement: Placement, settings: AnalyzerSettings) -> Goal:
    margin = find_margin(settings.leader_replica_count_balance_threshold, settings)
    return LeaderReplicaDistributionGoal(name, placement, settings, metric=Metric.LEADERS, margin=margin)


def _leave_out(code: str, message: str) -> Build:
    def build(name: str, placement: Placement, settings: AnalyzerSettings) -> Goal:
        return InapplicableGoal(name, placement, settings, Reason(code=code, message=message))

    return build


_IN_OTHER_MODE = "log directories are balanced by rebalance_disk and remove-disks only"
_BUILDERS: dict[str, Build] = {
    "RackAwareGoal": _spread(RackRule.ONE_PER_RACK),
    "RackAwareDistributionGoal": _spread(RackRule.EVEN),
    "MinTopicLeadersPerBrokerGoal": MinTopicLeadersPerBrokerGoal,
    "ReplicaCapacityGoal": ReplicaCapacityGoal,
    "DiskCapacityGoal": _limit(Metric.DISK, lambda settings: settings.disk_capacity_threshold),
    "NetworkInboundCapacityGoal": _limit(Metric.NW_IN, lambda settings: settings.network_inbound_capacity_threshold),
    "NetworkOutboundCapacityGoal": _limit(Metric.NW_OUT, lambda settings: settings.network_outbound_capacity_threshold),
    "CpuCapacityGoal": _limit(Metric.CPU, lambda settings: settings.cpu_capacity_threshold),
    "ReplicaDistributionGoal": _distribute(Metric.REPLICAS, lambda settings: settings.replica_count_balance_threshold),
    "PotentialNwOutGoal": _limit(
        Metric.POTENTIAL_NW_OUT, lambda settings: settings.network_outbound_capacity_threshold
    ),
    "DiskUsageDistributionGoal": _distribute(Metric.DISK, lambda settings: settings.disk_balance_threshold),
    "NetworkInboundUsageDistributionGoal": _distribute(
        Metric.NW_IN, lambda settings: settings.network_inbound_balance_threshold
    ),
    "NetworkOutboundUsageDistributionGoal": _distribute(
        Metric.NW_OUT, lambda settings: settings.network_outbound_balance_threshold
    ),
    "CpuUsageDistributionGoal": _distribute(Metric.CPU, lambda settings: settings.cpu_balance_threshold),
    "TopicReplicaDistributionGoal": TopicReplicaDistributionGoal,
    "LeaderReplicaDistributionGoal": _distribute_leaders,
    "LeaderBytesInDistributionGoal": LeaderBytesInDistributionGoal,
    "PreferredLeaderElectionGoal": PreferredLeaderElectionGoal,
    "BrokerSetAwareGoal": _leave_out("NoBrokerSets", "no broker sets are configured"),
    "IntraBrokerDiskCapacityGoal": _leave_out("OtherMode", _IN_OTHER_MODE),
    "IntraBrokerDiskUsageDistributionGoal": _leave_out("OtherMode", _IN_OTHER_MODE),
}
