"""Capacity goals: no broker above a part of what it can carry."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from plimsoll.core.formatting import format_count
from plimsoll.core.plans import Reason
from plimsoll.kafka.model.cluster import MIB
from plimsoll.kafka.model.proposals import Provision, ProvisionStatus, Refusal
from plimsoll.kafka.model.requests import Mode
from plimsoll.kafka.planning.goals.goal import Goal
from plimsoll.kafka.planning.goals.windows import find_capacity_limits, find_replica_limits
from plimsoll.kafka.planning.goals.wording import (
    describe_no_capacity,
    describe_no_rates,
    describe_outside,
    format_value,
)
from plimsoll.kafka.planning.loads import KIB, Metric
from plimsoll.kafka.planning.placement import RackRule
from plimsoll.kafka.planning.scope import BrokerRole, explain_uncounted
from plimsoll.kafka.planning.search.metric_search import Means

if TYPE_CHECKING:
    from plimsoll.kafka.model.cluster import Flags
    from plimsoll.kafka.model.settings import AnalyzerSettings
    from plimsoll.kafka.planning.placement import Limits, Placement
    from plimsoll.kafka.planning.search.budget import Budget

_WORDS: Final = {
    Metric.DISK: ("disk", MIB),
    Metric.NW_IN: ("networkInbound", KIB),
    Metric.NW_OUT: ("networkOutbound", KIB),
    Metric.CPU: ("cpu", 1),
}
"""Cruise Control's name of a resource, and its unit."""
_WITH_LEADERSHIP: Final = frozenset({Metric.NW_OUT, Metric.CPU})


class ReplicaCapacityGoal(Goal):
    """At most so many replicas per broker."""

    def __init__(self, name: str, placement: Placement, settings: AnalyzerSettings) -> None:
        super().__init__(name, placement, settings)
        self._limits = find_replica_limits(placement, settings.max_replicas_per_broker)

    @property
    def limits(self) -> Limits | None:
        return self._limits

    def find_obstacle(self) -> Refusal | None:
        judged = np.isfinite(self._limits.high)
        most = self.settings.max_replicas_per_broker
        needed = self.placement.load[Metric.REPLICAS].sum()
        allowed = most * int(judged.sum())
        if needed <= allowed:
            return None
        missing = math.ceil((needed - allowed) / most)
        return Refusal(
            goal=self.name,
            reason=Reason(
                code="InsufficientCapacity",
                message=f"{format_count(int(judged.sum()), 'broker')} may hold {format_count(allowed, 'replica')}, "
                f"needed are {needed:.0f}: {format_count(missing, 'broker')} missing",
                facts={
                    "resource": "replicas",
                    "needed": needed,
                    "allowed": allowed,
                    "threshold": most,
                    "brokers": missing,
                },
                because=explain_uncounted(self.placement.model, judged | ~_list_staying(self.placement)),
            ),
            provision=_ask_for_brokers(self.name, missing),
        )

    def judge(self) -> Reason | None:
        return describe_outside(self.placement, self._limits)

    def optimize(self, budget: Budget) -> None:
        movable = self.placement.scope.is_repairable
        self.run_search(budget, means=Means(), movable=movable)


class CapacityGoal(Goal):
    """At most a part of the capacity of a resource. PotentialNwOutGoal is the soft one."""

    def __init__(
        self, name: str, placement: Placement, settings: AnalyzerSettings, *, metric: Metric, threshold: float
    ) -> None:
        super().__init__(name, placement, settings)
        self._metric = metric
        self._threshold = threshold
        self._limits = find_capacity_limits(placement, metric, threshold, is_hard=self.is_hard)

    @property
    def limits(self) -> Limits | None:
        return self._limits

    def find_inapplicable(self) -> Reason | None:
        loads = self.placement.loads
        if not loads.is_known(self._metric):
            return describe_no_rates(self._metric, has_rates=loads.has_rates)
        if not np.isfinite(self._limits.high).any():
            return describe_no_capacity(self._metric)
        return None

    def find_obstacle(self) -> Refusal | None:
        if not self.is_hard:
            return None
        judged = np.isfinite(self._limits.high)
        staying = _list_staying(self.placement)
        others = self.placement.scope.is_known & staying & ~judged
        if others.any():
            return None  # A broker without a known capacity might take all.
        return self._compare("the cluster", self._sum_needed(judged), judged, staying) or self._check_racks(judged)

    def _sum_needed(self, judged: Flags) -> float:
        """What the judged brokers must carry in sum: theirs, and what must leave other brokers."""
        placement = self.placement
        rows = np.flatnonzero(placement.scope.must_leave & ~judged[placement.broker_of])
        leaving = placement.weigh(rows)[self._metric].sum() if len(rows) else 0.0
        return float(placement.load[self._metric][judged].sum() + leaving)

    def _check_racks(self, judged: Flags) -> Refusal | None:
        """With as many racks as replicas, each rack must hold a replica of the partition."""
        placement = self.placement
        if placement.rack_rule is not RackRule.ONE_PER_RACK or self._metric not in {Metric.DISK, Metric.NW_IN}:
            return None
        factors = np.diff(placement.model.offsets)
        everywhere = (factors >= len(placement.racks_left)) & ~placement.scope.is_fixed
        needed = float(placement.loads.of_replica[self._metric][everywhere].sum())
        for rack in placement.racks_left.tolist():
            is_in_rack = placement.model.rack_of == rack
            members = judged & is_in_rack
            name = f"rack {placement.model.rack_names[rack]}"
            staying = _list_staying(placement) & is_in_rack
            if members.any() and (refusal := self._compare(name, needed, members, staying)) is not None:
                return refusal
        return None

    def _compare(self, place: str, needed: float, members: Flags, among: Flags) -> Refusal | None:
        """A refusal if the members carry less than is needed. It names those of `among` that are down or silent."""
        allowed = float(self._limits.high[members].sum())
        if needed <= allowed or is_partial_placement(self.placement):
            return None
        typical = float(np.median(self.placement.loads.capacity[self._metric][members]))
        missing = (needed - allowed) / self._threshold
        brokers = max(1, math.ceil(missing / typical)) if typical > 0 else 1
        word, unit = _WORDS.get(self._metric, ("", 1))
        return Refusal(
            goal=self.name,
            reason=Reason(
                code="InsufficientCapacity",
                message=f"{place} may hold {format_value(self._metric, allowed)} "
                f"({100 * self._threshold:g} % of {format_value(self._metric, allowed / self._threshold)}), "
                f"needs {format_value(self._metric, needed)}: {format_count(brokers, 'broker')} or "
                f"{format_value(self._metric, missing)} missing",
                facts={
                    "resource": word,
                    "place": place,
                    "needed": needed,
                    "allowed": allowed,
                    "missing": missing,
                    "brokers": brokers,
                    "utilization": needed / unit,
                    "allowedCapacity": allowed / unit,
                    "threshold": self._threshold,
                },
                because=explain_uncounted(self.placement.model, members | ~among),
            ),
            provision=_ask_for_brokers(self.name, brokers),
        )

    def judge(self) -> Reason | None:
        return describe_outside(self.placement, self._limits)

    def optimize(self, budget: Budget) -> None:
        scope = self.placement.scope
        means = Means(
            leadership=self._metric in _WITH_LEADERSHIP,
            swaps=scope.mode is Mode.FULL,
        )
        movable = scope.is_repairable if self.is_hard else scope.is_movable
        self.run_search(budget, means=means, movable=movable)


def _list_staying(placement: Placement) -> Flags:
    """[B]: the brokers that do not leave."""
    staying: Flags = placement.scope.role != BrokerRole.LEAVING
    return staying


def is_partial_placement(placement: Placement) -> bool:
    """Whether nothing at all may move, so that sums say nothing about what could be done."""
    return not placement.scope.is_repairable.any()


def _ask_for_brokers(goal: str, brokers: int) -> Provision:
    return Provision(
        status=ProvisionStatus.UNDER_PROVISIONED,
        recommendation=f"[{goal}] Add at least {format_count(brokers, 'broker')}.",
        brokers_to_add=brokers,
    )
