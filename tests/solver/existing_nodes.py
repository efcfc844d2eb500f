"""Builders of small demands, nodes and clusters, and a slow checker of what was placed."""

from __future__ import annotations

import numpy as np

from plimsoll.solver.consolidation.consolidate import NodeSet
from plimsoll.solver.filling.fill import ExistingNodes, FillDemand, FillResult
from plimsoll.solver.problem import UNBOUNDED, Ints, PackingProblem


def demand_of(seed: int, classes: int = 8, kinds: int = 3, keys: int = 2) -> FillDemand:
    dice = np.random.default_rng(seed)
    return FillDemand(
        requests=dice.integers(0, 9, (classes, 3)),
        counts=dice.integers(0, 12, classes),
        allowed=dice.random((kinds, classes)) < 0.8,
        per_bin=np.where(dice.random(classes) < 0.3, dice.integers(1, 4, classes), UNBOUNDED),
        exclusive=dice.random((classes, keys)) < 0.15,
        tighter=np.column_stack((dice.integers(0, classes, 4), dice.integers(0, 5, 4), dice.integers(0, 2, 4))),
        hints=np.where(dice.random(classes) < 0.3, dice.integers(0, 5, classes), -1),
    )


def standing_of(seed: int, rows: int = 6, kinds: int = 3, keys: int = 2) -> ExistingNodes:
    dice = np.random.default_rng(seed + 1)
    return ExistingNodes(
        free=dice.integers(-1, 30, (rows, 3)),
        kind=dice.integers(0, kinds, rows),
        multiplicity=dice.integers(1, 5, rows),
        taken=dice.random((rows, keys)) < 0.2,
    )


def assert_holds(demand: FillDemand, standing: ExistingNodes, filled: FillResult) -> None:
    """Everything is placed once or left, no node over its capacity, every cap and key honoured."""
    assert standing.multiplicity is not None
    given = np.zeros(len(standing.free), dtype=np.int64)
    np.add.at(given, filled.origin, filled.multiplicity)
    assert given.tolist() == standing.multiplicity.tolist()
    assert (filled.count_placed() + filled.left).tolist() == demand.counts.tolist()
    assert (filled.left >= 0).all()
    for row, origin in enumerate(filled.origin.tolist()):
        lines = filled.placements[filled.placements[:, 0] == row]
        used = (demand.requests[lines[:, 1]] * lines[:, 2:]).sum(axis=0)
        assert (filled.free[row] == standing.free[origin] - used).all()
        assert_node_holds(demand, standing, origin, lines[:, 1:])
        assert ((filled.free[row] >= 0) | (used == 0)).all()


def assert_node_holds(demand: FillDemand, standing: ExistingNodes, origin: int, lines: Ints) -> None:
    assert demand.per_bin is not None
    assert demand.exclusive is not None
    assert standing.taken is not None
    assert len(set(lines[:, 0].tolist())) == len(lines)
    held = standing.taken[origin].astype(np.int64)
    for cls, items in lines.tolist():
        assert demand.allowed[standing.kind[origin], cls]
        assert 1 <= items <= cap_of(demand, cls, origin)
        if demand.exclusive[cls].any():
            held += items * demand.exclusive[cls]
            assert (held[demand.exclusive[cls]] == 1).all()


def cap_of(demand: FillDemand, cls: int, row: int) -> int:
    assert demand.per_bin is not None
    tighter = [] if demand.tighter is None else demand.tighter.tolist()
    return min([int(demand.per_bin[cls]), *[cap for index, at, cap in tighter if (index, at) == (cls, row)]])


def packing_of(seed: int, classes: int = 7, types: int = 4) -> PackingProblem:
    dice = np.random.default_rng(seed)
    return PackingProblem(
        requests=dice.integers(1, 9, (classes, 3)),
        counts=dice.integers(0, 15, classes),
        capacity=dice.integers(9, 40, (types, 3)),
        price=np.round(dice.random(types) + 0.1, 3),
        allowed=np.ones((types, classes), dtype=np.bool_),
        per_bin=np.where(dice.random(classes) < 0.3, dice.integers(1, 4, classes), UNBOUNDED),
        exclusive=dice.random((classes, 2)) < 0.15,
        available=np.full(types, UNBOUNDED),
        use=np.zeros((types, 0), dtype=np.int64),
        room=np.zeros(0, dtype=np.int64),
    )


def cluster_of(seed: int, nodes: int = 12, classes: int = 6) -> NodeSet:
    """Nodes of two types, at most half full."""
    dice = np.random.default_rng(seed)
    requests = np.column_stack((dice.integers(1, 9, (classes, 2)), np.ones(classes, dtype=np.int64)))
    lines = [
        (node, cls, int(dice.integers(1, 3))) for node in range(nodes) for cls in range(classes) if dice.random() < 0.3
    ]
    big = dice.random(nodes) < 0.4
    free = np.where(big[:, None], (90, 80, 30), (45, 50, 20)).astype(np.int64)
    for node, cls, items in lines:
        free[node] -= items * requests[cls]
    return NodeSet(
        requests=requests,
        free=free.clip(0),
        price=np.where(big, 1.9, 1.0),
        kind=dice.integers(0, 2, nodes),
        allowed=np.array([[True] * classes, [True] * (classes - 1) + [False]]),
        starts=np.searchsorted([node for node, _, _ in lines], np.arange(nodes + 1)),
        movable=np.array([(cls, items) for _, cls, items in lines], dtype=np.int64).reshape(-1, 2),
        removable=dice.random(nodes) < 0.9,
        per_bin=np.where(np.arange(classes) == 1, 2, UNBOUNDED),
    )
