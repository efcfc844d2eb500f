"""Proposals: the difference between the model and a placement, and the model after them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from plimsoll.kafka.model.cluster import NONE
from plimsoll.kafka.model.proposals import Proposal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plimsoll.kafka.model.cluster import ClusterModel, Flags, Ints
    from plimsoll.kafka.planning.placement import Placement


def list_proposals(
    placement: Placement, goals: tuple[str, ...], *, goes_last: Flags | None = None
) -> tuple[tuple[Proposal, ...], ClusterModel]:
    """The partitions that change, and the cluster after them.

    A new replica has the place of the one it replaces; the leader is first. Replicas of the brokers in `goes_last` [B]
    are at the end: preferred leaders are elsewhere then.
    """
    model = placement.model
    partitions = _list_changed(placement, goes_last)
    members = placement.rows[partitions]
    order = _order_members(placement, partitions, goes_last)
    ordered = np.take_along_axis(members, order, axis=1)
    rows = np.arange(model.replica_count)
    rows[members[members >= 0]] = ordered[ordered >= 0]
    after = model.replace_assignment(placement.broker_of.copy(), placement.leader, rows)
    return tuple(_build_proposals(placement, partitions, ordered, goals)), after


def _list_changed(placement: Placement, goes_last: Flags | None) -> Ints:
    model = placement.model
    changed = np.zeros(model.partition_count, dtype=np.bool_)
    changed[model.partition_of[placement.moved]] = True
    changed |= placement.leader != model.leader
    if goes_last is not None:
        is_preferred = goes_last[model.broker_of[placement.rows[:, 0]]] & ~goes_last[placement.leader]
        changed |= is_preferred & ~placement.scope.is_fixed
    return np.flatnonzero(changed)


def _order_members(placement: Placement, partitions: Ints, goes_last: Flags | None) -> Ints:
    """[C, RF]: the columns of each partition's replicas in their new order. Columns without a replica are last."""
    members = placement.rows[partitions]
    exists = members >= 0
    width = members.shape[1]
    brokers = np.where(exists, placement.broker_of[members], 0)
    rank = np.where(members == placement.leading[partitions][:, None], -1, np.arange(width))
    if goes_last is not None:
        rank = np.where(goes_last[brokers] & (rank >= 0), rank + width, rank)
    rank = np.where(exists, rank, 3 * width)
    order: Ints = np.argsort(rank, axis=1, kind="stable")
    return order


def _build_proposals(
    placement: Placement, partitions: Ints, ordered: Ints, goals: tuple[str, ...]
) -> Iterator[Proposal]:
    model = placement.model
    members = placement.rows[partitions]
    exists = members >= 0
    new = model.broker_ids[np.where(ordered >= 0, placement.broker_of[ordered], 0)].tolist()
    old = model.broker_ids[np.where(exists, model.broker_of[members], 0)].tolist()
    counts = exists.sum(axis=1).tolist()
    leaders = model.leader[partitions]
    leader_ids = np.where(leaders == NONE, NONE, model.broker_ids[leaders]).tolist()
    topics = model.topic_of[partitions].tolist()
    numbers = model.numbers[partitions].tolist()
    sizes = model.size_bytes[partitions].tolist()
    known = model.size_known[partitions].tolist()
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
            is_size_known=known[index],
            reason=goals[causes[index]] if causes[index] >= 0 else goals[0],
        )
