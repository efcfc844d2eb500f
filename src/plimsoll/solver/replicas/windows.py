"""The windows of counts and bytes per broker (docs/design/performance.md, joint balance, step 1).

Each rack has a share: one level is raised over all brokers, and a rack is capped at what rack awareness lets it hold.
The mean of a broker is its rack's share, divided by weight.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from plimsoll.solver.replicas.problem import BrokerRange, BrokerState, Windows, find_rack_caps

if TYPE_CHECKING:
    from plimsoll.solver.problem import Flags, Floats, Ints
    from plimsoll.solver.replicas.problem import ReplicaProblem

_CLOSE: Final = 1e-9


def find_windows(problem: ReplicaProblem, *, counts: Ints, held: Floats) -> Windows:
    """The windows for the given counts [B] and bytes [B]."""
    brokers = len(problem.rack_of)
    stays = problem.state != BrokerState.LEAVING
    racks = int(problem.rack_of.max()) + 1 if brokers else 0
    weight = np.where(stays, problem.weight, 0.0)
    rack_weight = np.bincount(problem.rack_of, weight, minlength=racks).astype(np.float64)
    caps = find_rack_caps(problem)
    share = _share_out(float(counts.sum()), rack_weight, float(caps.sum()))
    closed = _find_closed_racks(problem, share, caps)
    byte_share = _share_bytes(held, share, closed, problem.rack_of)
    part = np.divide(weight, rack_weight[problem.rack_of], out=np.zeros(brokers), where=weight > 0)
    mean_count = share[problem.rack_of] * part
    mean_bytes = byte_share[problem.rack_of] * part
    low = np.minimum(np.ceil(mean_count * (1 - problem.count_window) - _CLOSE), np.floor(mean_count + _CLOSE))
    high = np.maximum(np.floor(mean_count * (1 + problem.count_window) + _CLOSE), np.ceil(mean_count - _CLOSE))
    high = np.minimum(high, problem.max_replicas)
    low = np.minimum(low, high)
    high_bytes = np.minimum(mean_bytes * (1 + problem.byte_window), problem.max_bytes)
    low_bytes = np.minimum(mean_bytes * (1 - problem.byte_window), high_bytes)
    count_range, byte_range = BrokerRange(low, high), BrokerRange(low_bytes, high_bytes)
    groups = _group_brokers(problem.rack_of, closed)
    if problem.count_limits is not None:
        whole = BrokerRange(np.ceil(problem.count_limits.low), np.floor(problem.count_limits.high))
        count_range = _narrow(count_range, whole, counts.astype(np.float64), groups)
    if problem.byte_limits is not None:
        byte_range = _narrow(byte_range, problem.byte_limits, held, groups)
    return Windows(
        mean_count=mean_count,
        mean_bytes=mean_bytes,
        low_count=count_range.low.astype(np.int64),
        high_count=count_range.high.astype(np.int64),
        low_bytes=byte_range.low,
        high_bytes=byte_range.high,
        groups=groups,
    )


def _narrow(window: BrokerRange, limits: BrokerRange, amounts: Floats, groups: tuple[Ints, ...]) -> BrokerRange:
    """The window within limits, for the groups of brokers in which all of them can be inside both."""
    low, high = window.low.copy(), window.high.copy()
    for group in groups:
        bottom, top = np.maximum(low[group], limits.low[group]), np.minimum(high[group], limits.high[group])
        if (bottom <= top).all() and bottom.sum() <= amounts[group].sum() <= top.sum():
            low[group], high[group] = bottom, top
    return BrokerRange(low, high)


def _share_out(total: float, rack_weight: Floats, cap: float) -> Floats:
    """The share per rack: proportional to weight, at most `cap`. If the caps leave a rest, it is shared out too."""
    share = np.zeros(len(rack_weight))
    is_open = rack_weight > 0
    left = total
    while is_open.any():
        level = left / rack_weight[is_open].sum()
        over = is_open & (level * rack_weight > cap * (1 + _CLOSE))
        if not over.any():
            share[is_open] = level * rack_weight[is_open]
            return share
        share[over] = cap
        left -= cap * int(over.sum())
        is_open &= ~over
    if left > 0 and rack_weight.sum() > 0:
        share += left * rack_weight / rack_weight.sum()
    return share


def _find_closed_racks(problem: ReplicaProblem, share: Floats, caps: Ints) -> Flags:
    """Racks that have their cap of every partition: rack awareness keeps their contents where they are."""
    racks = len(share)
    if not problem.is_rack_aware or not len(caps):
        return np.zeros(racks, dtype=np.bool_)
    saturated = share >= float(caps.sum()) * (1 - 1e-6)
    held = np.bincount(problem.rack_of[problem.broker_of], minlength=racks)
    only_one = bool((caps == 1).all())
    closed: Flags = saturated & (held == int(caps.sum())) & only_one & (share > 0)
    return closed


def _share_bytes(held: Floats, share: Floats, closed: Flags, rack_of: Ints) -> Floats:
    """Bytes per rack: those of closed racks stay there, the rest follows the shares of counts."""
    by_rack = np.bincount(rack_of, held, minlength=len(share))
    rest = by_rack[~closed].sum()
    open_share = share[~closed].sum()
    result = np.where(closed, by_rack, 0.0)
    if open_share > 0:
        result[~closed] = rest * share[~closed] / open_share
    return result


def _group_brokers(rack_of: Ints, closed: Flags) -> tuple[Ints, ...]:
    groups = [np.flatnonzero(rack_of == rack) for rack in np.flatnonzero(closed)]
    rest = np.flatnonzero(~closed[rack_of]) if len(closed) else np.zeros(0, dtype=np.int64)
    return (*groups, rest) if len(rest) else tuple(groups)
