"""Generated placement problems: rack-aware random starts with log-normal sizes, as docs/design/performance.md 5 has."""

from __future__ import annotations

import numpy as np

from plimsoll.solver.replicas.problem import UNLIMITED, BrokerState, ReplicaProblem


def make_problem(
    *,
    partitions: int = 100_000,
    brokers: int = 100,
    racks: int = 3,
    added: int = 0,
    removed: int = 0,
    replication_factor: int = 3,
    relief: bool = True,
    window: float = 0.01,
    sigma: float = 1.5,
    topics: int = 1,
    seed: int = 7,
) -> ReplicaProblem:
    """Brokers `added` are new and empty; the last `removed` of the old ones leave."""
    random = np.random.default_rng(seed)
    size = np.exp(random.normal(np.log(100.0), sigma, partitions)) * 1e6
    rack_of = np.arange(brokers + added) % racks
    old_racks = rack_of[:brokers]
    order = np.argsort(random.random((partitions, racks)), axis=1)[:, :replication_factor]
    broker_of = np.empty((partitions, replication_factor), dtype=np.int64)
    for rack in range(racks):
        members = np.flatnonzero(old_racks == rack)
        is_here = order == rack
        broker_of[is_here] = members[random.integers(0, len(members), int(is_here.sum()))]
    state = np.zeros(brokers + added, dtype=np.int64)
    state[brokers:] = BrokerState.NEW
    state[brokers - removed : brokers] = BrokerState.LEAVING
    may_give = np.ones(brokers + added, dtype=np.bool_)
    may_receive = state != BrokerState.LEAVING
    if not relief and added:
        may_receive = state == BrokerState.NEW
    if not relief and removed:
        may_give = state == BrokerState.LEAVING
    return ReplicaProblem(
        size=size,
        offsets=np.arange(0, partitions * replication_factor + 1, replication_factor),
        broker_of=broker_of.ravel(),
        rack_of=rack_of,
        state=state,
        movable=np.ones(partitions * replication_factor, dtype=np.bool_),
        may_give=may_give,
        may_receive=may_receive,
        weight=np.ones(brokers + added),
        max_replicas=np.full(brokers + added, UNLIMITED),
        max_bytes=np.full(brokers + added, 1e30),
        topic_of=np.arange(partitions) % topics,
        topic_cap=np.full(topics, UNLIMITED),
        count_window=window,
        byte_window=window,
        relief=relief,
    )
