"""How much of each node is asked for: the number that decides whether a node may go (specs/nodes.md 6.8). Pure.

On a node with accelerators the share of these, elsewhere the larger of cpu and memory. Pods that are overdue in
leaving are not counted; pods that are only booked are counted apart; daemon and mirror pods may be left out, and then
what they take is left out of the divisor too.

Public: `utilisation_of(arrays, homes, rules=..., now=...) -> Utilisation`, and `Thresholds` for its rules.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from plimsoll.core.resources import CPU, MEMORY
from plimsoll.nodes.planning.drains import is_overdue
from plimsoll.nodes.planning.gpus import is_gpu

if TYPE_CHECKING:
    from datetime import datetime

    from plimsoll.nodes.planning.arrays import Arrays
    from plimsoll.nodes.planning.homes import Homes
    from plimsoll.nodes.planning.world import Snapshot
    from plimsoll.nodes.policy import ScaleDown
    from plimsoll.solver.problems import Flags, Floats, Ints


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Utilisation:
    """By row [N]. A node that offers nothing of what counts is not used at all."""

    share: Floats
    resource: tuple[str, ...]
    """What decided."""
    is_gpu: Flags
    threshold: Floats
    is_low: Flags
    """At the threshold a node still passes."""
    booked: Floats
    """Share of the same resource that nobody uses, but a request is to have; not a part of `share`."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Thresholds:
    """By row [N], because a provider may say otherwise for a group than the options do for all."""

    plain: Floats
    gpu: Floats
    ignores_daemons: Flags
    ignores_mirrors: bool

    @classmethod
    def of(cls, arrays: Arrays, options: ScaleDown, snapshot: Snapshot | None = None) -> Thresholds:
        rows = len(arrays)
        plain = np.full(rows, options.utilization_threshold)
        gpu = np.full(rows, options.gpu_utilization_threshold)
        ignores = np.full(rows, options.ignore_daemon_sets, dtype=np.bool_)
        told = {} if snapshot is None else {one.id: one.shrinking for one in snapshot.groups if one.shrinking}
        if snapshot is not None and told:
            for row, name in enumerate(arrays.names):
                own = told.get(snapshot.group_of.get(name, ""))
                if own is not None:
                    plain[row], gpu[row] = own.utilization_threshold, own.gpu_utilization_threshold
                    ignores[row] = own.ignore_daemon_sets
        return cls(plain=plain, gpu=gpu, ignores_daemons=ignores, ignores_mirrors=options.ignore_mirror_pods)


def utilisation_of(arrays: Arrays, homes: Homes, *, rules: Thresholds, now: datetime) -> Utilisation:
    """Rows of all are the nodes of one view."""
    offered = arrays.alloc.astype(np.float64)
    asked = offered - arrays.free
    overdue = np.zeros(len(homes.kinds), dtype=np.bool_)
    overdue[[number for number in homes.leaving if is_overdue(homes.kinds[number].pod, now)]] = True
    asked -= _taken(arrays, homes, overdue)
    booked = np.zeros(len(homes.kinds), dtype=np.bool_)
    booked[list(homes.booked)] = True
    kept_free = _taken(arrays, homes, booked)
    asked -= kept_free
    set_aside = _set_aside(arrays, homes, rules, overdue)
    shares = _shares(asked - set_aside, offered - set_aside)
    kept_shares = _shares(kept_free, offered - set_aside)
    names = arrays.columns.names
    gpus = [column for column, name in enumerate(names) if is_gpu(name)]
    plain = [arrays.columns.index[CPU], arrays.columns.index[MEMORY]]
    has_gpu: Flags = np.asarray((arrays.alloc[:, gpus] > 0).any(axis=1), dtype=np.bool_)
    deciding = np.where(has_gpu, _largest(shares, gpus), _largest(shares, plain))
    rows = np.arange(len(arrays))
    share = shares[rows, deciding]
    threshold = np.where(has_gpu, rules.gpu, rules.plain)
    return Utilisation(
        share=share,
        resource=tuple(names[column] for column in deciding.tolist()),
        is_gpu=has_gpu,
        threshold=threshold,
        is_low=np.asarray(share <= threshold, dtype=np.bool_),
        booked=kept_shares[rows, deciding],
    )


def _set_aside(arrays: Arrays, homes: Homes, rules: Thresholds, overdue: Flags) -> Floats:
    """[N, R]: what pods take that are left out of the share: mirror pods on all rows, daemon pods on some."""
    everywhere = np.array([one.is_mirror and rules.ignores_mirrors for one in homes.kinds], dtype=np.bool_)
    taken = _taken(arrays, homes, everywhere & ~overdue)
    if rules.ignores_daemons.any():
        daemons = np.array([one.is_daemon for one in homes.kinds], dtype=np.bool_)
        taken += _taken(arrays, homes, daemons & ~everywhere & ~overdue) * rules.ignores_daemons[:, None]
    return taken


def _taken(arrays: Arrays, homes: Homes, kinds: Flags) -> Floats:
    """[N, R]: what pods of some kinds ask for on each row."""
    taken = np.zeros(arrays.alloc.shape, dtype=np.float64)
    if kinds.any():
        chosen = kinds[homes.kind]
        numbers, position = np.unique(homes.kind[chosen], return_inverse=True)
        demands = arrays.columns.matrix([homes.kinds[number].sample.demand for number in numbers.tolist()])
        np.add.at(taken, homes.row[chosen], demands[position])
    return taken


def _shares(asked: Floats, offered: Floats) -> Floats:
    """Rounded, so that 0.5 of a node is 0.5 whatever was added up before."""
    shares = np.zeros(asked.shape, dtype=np.float64)
    np.divide(asked, offered, out=shares, where=offered > 0)
    return np.asarray(np.round(np.maximum(shares, 0.0), 12), dtype=np.float64)


def _largest(shares: Floats, columns: list[int]) -> Ints:
    """[N]: the column of the largest share, the first of equals."""
    if not columns:
        return np.zeros(len(shares), dtype=np.int64)
    return np.asarray(np.array(columns, dtype=np.int64)[np.argmax(shares[:, columns], axis=1)], dtype=np.int64)
