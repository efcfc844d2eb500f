"""Goals over single leaders: the preferred ones, and the least number of leaders of a topic per broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from plimsoll.core.formatting import format_count
from plimsoll.core.plans import Reason
from plimsoll.kafka.model.proposals import Refusal
from plimsoll.kafka.planning.goals.goal import Goal
from plimsoll.kafka.planning.scope import list_partitions, match_topics
from plimsoll.kafka.planning.search.metric_search import list_able_to_lead

if TYPE_CHECKING:
    from plimsoll.kafka.model.cluster import Ints
    from plimsoll.kafka.model.settings import AnalyzerSettings
    from plimsoll.kafka.planning.placement import Placement
    from plimsoll.kafka.planning.search.budget import Budget


class PreferredLeaderElectionGoal(Goal):
    """The first replica leads."""

    def _list_wrong(self) -> Ints:
        placement = self.placement
        wrong: Ints = np.flatnonzero(
            (placement.leading != placement.rows[:, 0]) & placement.scope.leadership_is_movable
        )
        return wrong

    def judge(self) -> Reason | None:
        wrong = self._list_wrong()
        if not len(wrong):
            return None
        return Reason(
            code="NotThePreferredLeader",
            message=f"{list_partitions(self.placement.model, wrong)}: the first replica does not lead",
            facts={"partitions": len(wrong)},
        )

    def optimize(self, budget: Budget) -> None:
        rows = self.placement.rows[self._list_wrong(), 0]
        for row in rows[list_able_to_lead(self.placement, rows)].tolist():
            budget.spend()
            self.placement.lead(row)


class MinTopicLeadersPerBrokerGoal(Goal):
    """Each broker leads so many partitions of certain topics."""

    def __init__(self, name: str, placement: Placement, settings: AnalyzerSettings) -> None:
        super().__init__(name, placement, settings)
        pattern = settings.topics_with_min_leaders_per_broker
        matched = match_topics(placement.model.topics, pattern, parameter="topics_with_min_leaders_per_broker")
        self._refusal = matched if isinstance(matched, Refusal) else None
        self._topics: list[int] = [] if isinstance(matched, Refusal) else np.flatnonzero(matched).tolist()

    def find_inapplicable(self) -> Reason | None:
        if self._topics or self._refusal is not None:
            return None
        return Reason(code="NoTopics", message="no topic is configured to have leaders on every broker")

    def find_obstacle(self) -> Refusal | None:
        if self._refusal is not None:
            return self._refusal
        brokers = int(self.placement.scope.leads_balanced.sum())
        for topic in self._topics:
            leaders, least = self._count_leaders(topic), self._find_least(topic)
            if leaders.sum() < least * brokers:
                name = self.placement.model.topics[topic]
                return Refusal(
                    goal=self.name,
                    reason=Reason(
                        code="InsufficientLeaders",
                        message=f"topic {name} has {format_count(int(leaders.sum()), 'leader')}, "
                        f"{least} on each of {format_count(brokers, 'broker')} "
                        f"need {least * brokers}",
                        facts={"topic": name, "leaders": int(leaders.sum()), "needed": least * brokers},
                    ),
                )
        return None

    def _count_leaders(self, topic: int) -> Ints:
        placement = self.placement
        leaders = placement.leader[(placement.model.topic_of == topic) & (placement.leading >= 0)]
        return np.bincount(leaders, minlength=len(placement.model.brokers)).astype(np.int64)

    def _find_least(self, topic: int) -> int:
        if self.settings.min_topic_leaders_per_broker:
            return self.settings.min_topic_leaders_per_broker
        brokers = max(int(self.placement.scope.leads_balanced.sum()), 1)
        return int(self._count_leaders(topic).sum()) // brokers

    def _list_short(self, topic: int) -> list[int]:
        short = (self._count_leaders(topic) < self._find_least(topic)) & self.placement.scope.leads_balanced
        return [int(broker) for broker in np.flatnonzero(short)]

    def judge(self) -> Reason | None:
        for topic in self._topics:
            if short := self._list_short(topic):
                name, broker = self.placement.model.topics[topic], int(self.placement.model.broker_ids[short[0]])
                least = self._find_least(topic)
                return Reason(
                    code="TooFewTopicLeaders",
                    message=f"broker {broker} leads fewer than {format_count(least, 'partition')} of topic {name}",
                    facts={"topic": name, "broker": broker, "least": least},
                )
        return None

    def optimize(self, budget: Budget) -> None:
        for topic in self._topics:
            for broker in self._list_short(topic):
                while broker in self._list_short(topic) and budget.spend():
                    if not (self._take_leader(topic, broker) or self._move_leader(topic, broker)):
                        break

    def _list_spare(self, topic: int) -> Ints:
        """The partitions of a topic whose leader's broker has more than the least."""
        placement = self.placement
        counts, leader = self._count_leaders(topic), placement.leader
        is_spare = (placement.model.topic_of == topic) & (leader >= 0) & placement.scope.leadership_is_movable
        is_spare &= (counts[leader] > self._find_least(topic)) | ~placement.scope.leads_balanced[leader]
        spare: Ints = np.flatnonzero(is_spare)
        return spare

    def _take_leader(self, topic: int, broker: int) -> bool:
        placement = self.placement
        members = placement.rows[self._list_spare(topic)]
        rows = members[(members >= 0) & (placement.broker_of[members] == broker)]
        rows = rows[list_able_to_lead(placement, rows)]
        if not len(rows):
            return False
        placement.lead(int(rows[0]))
        return True

    def _move_leader(self, topic: int, broker: int) -> bool:
        placement = self.placement
        rows = placement.leading[self._list_spare(topic)]
        rows = rows[placement.scope.is_repairable[rows]]
        rows = rows[placement.list_legal(rows)[:, broker]] if len(rows) else rows
        weights = placement.weigh(rows)
        for index, row in enumerate(rows.tolist()):
            if placement.accepts_destination(weights[:, index])[broker]:
                placement.move(row, broker)
                return True
        return False

    def accept(self) -> None:
        """Pin the leaders of the topics: nothing that follows may take them away."""
        scope, model = self.placement.scope, self.placement.model
        pinned = np.isin(model.topic_of, self._topics)
        scope.leadership_is_movable[pinned] = False
        leading = self.placement.leading[pinned]
        scope.is_movable[leading[leading >= 0]] = False
