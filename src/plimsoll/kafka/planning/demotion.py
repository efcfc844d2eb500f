"""Brokers that shall not lead: other in-sync replicas lead, and their own replicas go to the end of the lists."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from plimsoll.core.plans import Reason
from plimsoll.kafka.planning.loads import Metric
from plimsoll.kafka.planning.scope import list_partitions
from plimsoll.kafka.planning.search.metric_search import list_able_to_lead

if TYPE_CHECKING:
    from plimsoll.kafka.model.requests import RebalanceRequest
    from plimsoll.kafka.planning.placement import Placement
    from plimsoll.kafka.planning.search.budget import Budget


def demote_brokers(placement: Placement, request: RebalanceRequest, budget: Budget) -> tuple[Reason, ...]:
    """Take leadership from brokers; reasons name the partitions that no other replica can lead."""
    model = placement.model
    is_demoted = np.isin(model.broker_ids, request.brokers)
    is_led = (placement.leading >= 0) & is_demoted[placement.leader] & placement.scope.leadership_is_movable
    load = placement.load[Metric.LEADERS]
    stuck = []
    for partition in np.flatnonzero(is_led).tolist():
        budget.spend()
        rows = np.arange(model.offsets[partition], model.offsets[partition + 1])
        rows = rows[list_able_to_lead(placement, rows)]
        if len(rows):
            placement.lead(int(rows[load[placement.broker_of[rows]].argmin()]))
        else:
            stuck.append(partition)
    # Those that lead now stay: the preferred leader is the first of the new list.
    placement.scope.leadership_is_movable[:] = False
    if not stuck:
        return ()
    partitions = np.array(stuck, dtype=np.int64)
    return (
        Reason(
            code="NoOtherLeader",
            message=f"{list_partitions(model, partitions)}: no in-sync replica on another broker can lead",
            facts={"partitions": [str(model.name_partition(partition)) for partition in stuck]},
        ),
    )
