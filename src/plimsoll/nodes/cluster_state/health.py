"""The health of the cluster and of each node group: counts, upcoming nodes, back-offs. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from plimsoll.core.plans import Reason
from plimsoll.nodes.cluster_state.readiness import Readiness
from plimsoll.nodes.model.reasons import CLUSTER_UNHEALTHY

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from plimsoll.nodes.cluster_state.backoffs import BackedOff, CreationKey
    from plimsoll.nodes.cluster_state.observed import ObservedGroup
    from plimsoll.nodes.cluster_state.scale_up_requests import ScaleUpRequest
    from plimsoll.nodes.config.policy import GroupRules


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupHealth:
    """The health of one node group."""

    group: ObservedGroup
    target_size: int
    """The provider's target size, with scale-ups requested since it was read."""
    readiness: Readiness
    scale_up_request: ScaleUpRequest | None
    backoff: BackedOff | None
    is_healthy: bool

    @property
    def upcoming(self) -> int:
        return self.readiness.count_upcoming(self.target_size)

    @property
    def is_scaling_up(self) -> bool:
        return self.scale_up_request is not None and self.target_size > self.readiness.arrived

    @property
    def missing(self) -> int:
        return count_missing_nodes(self.target_size, self.readiness, self.scale_up_request)

    @property
    def not_usable(self) -> str:
        """Why the group cannot be scaled up now; empty if it can."""
        if not self.is_healthy:
            return "not ready"
        return "" if self.backoff is None else str(self.backoff)

    @property
    def reason(self) -> Reason | None:
        """The same as a reason with facts."""
        if not self.is_healthy:
            message = f"group {self.group.id} is not ready: {self.missing} of {self.target_size} nodes are missing"
            return Reason(code="NotReady", message=message, facts={"missing": self.missing, "target": self.target_size})
        if self.backoff is None:
            return None
        error = self.backoff.error
        return Reason(
            code="InBackoff",
            message=f"group {self.group.id} is {self.backoff} after {error}: {error.message}",
            facts={
                "until": self.backoff.until.isoformat(),
                "errorClass": str(error.error_class),
                "errorCode": error.code,
            },
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterHealth:
    """The health of all groups by id, and of the whole cluster."""

    at: datetime
    groups: Mapping[str, GroupHealth] = field(default_factory=dict)
    total: Readiness = field(default_factory=Readiness)
    is_healthy: bool = True
    creation_backoffs: Mapping[CreationKey, BackedOff] = field(default_factory=dict)

    @property
    def upcoming(self) -> dict[str, int]:
        """Upcoming nodes by group, including registered nodes that have not started."""
        return {name: group.upcoming for name, group in self.groups.items() if group.upcoming}

    @property
    def not_started(self) -> frozenset[str]:
        """Nodes that the snapshot leaves out, because upcoming nodes stand for them."""
        return frozenset(name for group in self.groups.values() for name in group.readiness.not_started)

    def explain_not_created(self) -> dict[CreationKey, str]:
        """Why kinds of groups cannot be created now, as text."""
        return {key: str(wait) for key, wait in self.creation_backoffs.items()}

    def find_unhealthy_reason(self) -> Reason | None:
        if self.is_healthy:
            return None
        unready, nodes = len(self.total.unready), self.total.registered
        return Reason(
            code=CLUSTER_UNHEALTHY,
            message=f"{unready} of {nodes} nodes are unready",
            facts={"unready": unready, "nodes": nodes},
        )


def is_cluster_healthy(total: Readiness, rules: GroupRules) -> bool:
    return not _is_too_many(len(total.unready), total.registered, rules)


def is_group_healthy(target: int, readiness: Readiness, request: ScaleUpRequest | None, rules: GroupRules) -> bool:
    nodes = len(readiness.ready) + len(readiness.unready) + len(readiness.not_started)
    return not _is_too_many(count_missing_nodes(target, readiness, request), nodes, rules)


def count_missing_nodes(target: int, readiness: Readiness, request: ScaleUpRequest | None) -> int:
    """The number of ready nodes that are missing from the target, without upcoming, given-up and suspended ones."""
    expected = target - len(readiness.long_unregistered) - len(readiness.suspended)
    if request is not None:
        expected -= request.increase
    return max(0, expected - len(readiness.ready))


def _is_too_many(bad: int, nodes: int, rules: GroupRules) -> bool:
    # Compared without dividing, so that 45 % of 20 is 9 and not a hair more.
    return bad > rules.unready_count and bad * 100 > rules.unready_percentage * nodes
