"""Rack goals: the replicas of a partition on different racks, or spread evenly over them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from plimsoll.core.formatting import format_count
from plimsoll.core.plans import Reason
from plimsoll.kafka.model.proposals import Provision, ProvisionStatus, Refusal
from plimsoll.kafka.planning.goals.goal import Goal
from plimsoll.kafka.planning.placement import RackRule
from plimsoll.kafka.planning.scope import BrokerRole, explain_uncounted, explain_uneven_factor, list_partitions
from plimsoll.kafka.planning.search.relocation import find_crowded_partitions, repair_racks

if TYPE_CHECKING:
    from plimsoll.kafka.model.settings import AnalyzerSettings
    from plimsoll.kafka.planning.placement import Placement
    from plimsoll.kafka.planning.search.budget import Budget


class RackGoal(Goal):
    """RackAwareGoal and RackAwareDistributionGoal."""

    def __init__(self, name: str, placement: Placement, settings: AnalyzerSettings, *, rule: RackRule) -> None:
        super().__init__(name, placement, settings)
        self._rule = rule

    def find_obstacle(self) -> Refusal | None:
        if self._rule is not RackRule.ONE_PER_RACK:
            return None
        model, scope = self.placement.model, self.placement.scope
        factors = np.where(scope.is_fixed, 0, np.diff(model.offsets))
        racks = len(self.placement.racks_left)
        most = int(factors.max(initial=0))
        if most <= racks:
            return None
        topic_index = int(model.topic_of[int(factors.argmax())])
        topic = model.topics[topic_index]
        missing = most - racks
        return Refusal(
            goal=self.name,
            reason=Reason(
                code="InsufficientRacks",
                message=f"topic {topic} has replication factor {most}, racks left {racks}",
                facts={"topic": topic, "replicationFactor": most, "racks": racks},
                because=(
                    *explain_uneven_factor(model, topic_index, most),
                    *explain_uncounted(model, scope.is_alive | (scope.role == BrokerRole.LEAVING)),
                ),
            ),
            provision=Provision(
                status=ProvisionStatus.UNDER_PROVISIONED,
                recommendation=f"[{self.name}] Add at least {format_count(missing, 'rack')} with brokers.",
                brokers_to_add=missing,
            ),
        )

    def judge(self) -> Reason | None:
        partitions = find_crowded_partitions(self.placement, self._rule)
        if not len(partitions):
            return None
        model = self.placement.model
        return Reason(
            code="RacksHoldTooMany",
            message=f"{list_partitions(model, partitions)}: a rack holds more replicas than another one needs",
            facts={
                "partitions": len(partitions),
                "topics": sorted({model.topics[topic] for topic in model.topic_of[partitions[:100]]}),
            },
        )

    def optimize(self, budget: Budget) -> None:
        repair_racks(self.placement, self._rule, budget)
