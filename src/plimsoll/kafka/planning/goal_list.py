"""The goals by Cruise Control's names: priority, class (hard or soft), and the goals that a request means."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.core.formatting import choose_form
from plimsoll.core.plans import Reason
from plimsoll.kafka.model.proposals import Refusal

if TYPE_CHECKING:
    from plimsoll.kafka.model.requests import RebalanceRequest
    from plimsoll.kafka.model.settings import AnalyzerSettings

_HARD_BY_DEFAULT: Final = (
    "RackAwareGoal",
    "RackAwareDistributionGoal",
    "MinTopicLeadersPerBrokerGoal",
    "ReplicaCapacityGoal",
    "DiskCapacityGoal",
    "NetworkInboundCapacityGoal",
    "NetworkOutboundCapacityGoal",
    "CpuCapacityGoal",
)
"""The hard goals of Strimzi's default goals, by priority."""
DEFAULT_GOALS: Final = (
    *_HARD_BY_DEFAULT,
    "ReplicaDistributionGoal",
    "PotentialNwOutGoal",
    "DiskUsageDistributionGoal",
    "NetworkInboundUsageDistributionGoal",
    "NetworkOutboundUsageDistributionGoal",
    "CpuUsageDistributionGoal",
    "TopicReplicaDistributionGoal",
    "LeaderReplicaDistributionGoal",
    "LeaderBytesInDistributionGoal",
)
"""Strimzi's default goals, by priority."""
INTRA_BROKER_GOALS: Final = ("IntraBrokerDiskCapacityGoal", "IntraBrokerDiskUsageDistributionGoal")
"""The goals between the log directories of one broker, by priority."""
PREFERRED_LEADERS: Final = "PreferredLeaderElectionGoal"
SUPPORTED_GOALS: Final = tuple(sorted((*DEFAULT_GOALS, *INTRA_BROKER_GOALS, PREFERRED_LEADERS, "BrokerSetAwareGoal")))
HARD_GOALS: Final = frozenset((*_HARD_BY_DEFAULT, "BrokerSetAwareGoal", "IntraBrokerDiskCapacityGoal"))
"""Goals that must hold, by their class. The hard goals of the settings are only those that a request must name."""

_BY_LOWER_CASE: Final = {name.lower(): name for name in SUPPORTED_GOALS}


def find_goal(name: str) -> str | None:
    """The goal of a name: in any case, and with or without a Java package."""
    return _BY_LOWER_CASE.get(name.rpartition(".")[2].strip().lower())


def resolve_goals(request: RebalanceRequest, settings: AnalyzerSettings) -> tuple[str, ...] | Refusal:
    """The goals that a request means, by priority; a refusal names goals that are unknown or missing."""
    if request.rebalance_disk:
        return _resolve_intra_broker_goals(request)
    if not request.goals:
        return tuple(dict.fromkeys(settings.default_goals or DEFAULT_GOALS))
    goals = _find_goals(request.goals)
    if isinstance(goals, Refusal):
        return goals
    missing = [goal for goal in settings.hard_goals if goal not in goals]
    if missing and not request.skip_hard_goal_check and goals != (PREFERRED_LEADERS,):
        return _refuse_missing(missing, goals)
    return goals


def _find_goals(names: tuple[str, ...]) -> tuple[str, ...] | Refusal:
    unknown = [name for name in names if find_goal(name) is None]
    if unknown:
        return Refusal(
            reason=Reason(
                code="UnsupportedGoals",
                message=f"no goal is named {', '.join(unknown)}; there are {', '.join(SUPPORTED_GOALS)}",
                facts={"parameter": "goals", "goals": unknown, "supported": list(SUPPORTED_GOALS)},
            )
        )
    return tuple(dict.fromkeys(goal for name in names if (goal := find_goal(name)) is not None))


def _resolve_intra_broker_goals(request: RebalanceRequest) -> tuple[str, ...] | Refusal:
    if not request.goals:
        return INTRA_BROKER_GOALS
    goals = _find_goals(request.goals)
    if isinstance(goals, Refusal):
        return goals
    others = [goal for goal in goals if goal not in INTRA_BROKER_GOALS]
    if others:
        return Refusal(
            reason=Reason(
                code="UnsupportedGoals",
                message=f"{', '.join(others)} {choose_form(len(others), 'moves', 'move')} replicas between brokers; "
                "between log directories there are "
                f"{' and '.join(INTRA_BROKER_GOALS)}",
                facts={"parameter": "goals", "goals": others, "supported": list(INTRA_BROKER_GOALS)},
            )
        )
    return goals


def _refuse_missing(missing: list[str], goals: tuple[str, ...]) -> Refusal:
    return Refusal(
        reason=Reason(
            code="MissingHardGoals",
            message=f"the hard goals {', '.join(missing)} are missing; name them, or skip the hard goal check",
            facts={"parameter": "goals", "missing": missing, "goals": list(goals)},
        )
    )
