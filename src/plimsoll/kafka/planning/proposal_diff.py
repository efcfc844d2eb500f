"""Proposals: the difference between the model and a placement."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from plimsoll.kafka.model.cluster import NONE
from plimsoll.kafka.model.proposals import Proposal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plimsoll.kafka.model.cluster import Flags, Ints
    from plimsoll.kafka.planning.placement import Placement


def list_proposals(
    placement: Placement, goals: tuple[str, ...], *, goes_last: Flags | None = None
) -> tuple[Proposal, ...]:
    """The partitions that change. A new replica has the place of the one it replaces; the leader is first.

    Replicas of the brokers in `goes_last` [B] are at the end: preferred leaders are elsewhere then.
    """
    model = placement.model
    changed = np.zeros(model.partition_count, dtype=np.bool_)
    changed[model.partition_of[placement.moved]] = True
    changed |= placement.leader != model.leader
    if goes_last is not None:
        is_preferred = goes_last[model.broker_of[placement.rows[:, 0]]] & ~goes_last[placement.leader]
        changed |= is_preferred & ~placement.scope.is_fixed
    partitions = np.flatnonzero(changed)
    return tuple(_build_proposals(placement, partitions, goals, goes_last))


def _build_proposals(
    placement: Placement, partitions: Ints, goals: tuple[str, ...], goes_last: Flags | None
) -> Iterator[Proposal]:
    model = placement.model
    members = placement.rows[partitions]
    exists = members >= 0
    width = members.shape[1] if len(members) else 1
    brokers = np.where(exists, placement.broker_of[members], 0)
    rank = np.where(members == placement.leading[partitions][:, None], -1, np.arange(width))
    if goes_last is not None:
        rank = np.where(goes_last[brokers] & (rank >= 0), rank + width, rank)
    rank = np.where(exists, rank, 3 * width)
    order = np.argsort(rank, axis=1, kind="stable")
    new = model.broker_ids[np.take_along_axis(brokers, order, axis=1)].tolist()
    old = model.broker_ids[np.where(exists, model.broker_of[members], 0)].tolist()
    counts = exists.sum(axis=1).tolist()
    leaders = model.leader[partitions]
    leader_ids = np.where(leaders == NONE, NONE, model.broker_ids[leaders]).tolist()
    topics = model.topic_of[partitions].tolist()
    numbers = model.numbers[partitions].tolist()
    sizes = model.size_bytes[partitions].tolist()
    causes = placement.cause[partitions].tolist()
    for index, count in enumerate(counts):
        old_replicas, new_replicas = tuple(old[index][:count]), tuple(new[index][:count])
        if old_replicas == new_replicas and leader_ids[index] == new_replicas[0]:
            continue
        yield Proposal(
            topic=model.topics[topics[index]],
            partition=numbers[index],
            old_leader=leader_ids[index],
            old_replicas=old_replicas,
            new_replicas=new_replicas,
            size_bytes=sizes[index],
            reason=goals[causes[index]] if causes[index] >= 0 else goals[0],
        )
