"""Places a small demand as a whole, or proves that no assignment exists.

A capacity check, or an all-or-nothing request, is rejected only with a proof. Rows may be nodes that could be opened,
within limits and at a price. Sums of resources prove most cases; otherwise an integer program of bounded size searches
every assignment of classes to rows. Its floats decide nothing alone: what it places is filled in again with integers,
and its tolerance favours the demand.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Final

import highspy
import numpy as np

from plimsoll.solver.filling.fill import ExistingNodes, FillDemand, FillResult, fill
from plimsoll.solver.highs import build_solver, run_solver
from plimsoll.solver.problem import UNBOUNDED, Effort, Flags, Floats, Ints

MOST_VARIABLES: Final = 2_000
MOST_LEFT: Final = 200
"""Up to this number of left items a search is worth it, regardless of their share."""
_MOST_GROUPS: Final = 64
_MOST_PAIRS: Final = 200_000
"""Pairs of a class and a row that are looked at to see which of them can be variables."""


class Proof(Enum):
    """Why no assignment exists."""

    SUMS = "the nodes these items may lie on have less free, in all, than the items need"
    SEARCH = "no assignment of items to nodes exists"


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """All items are placed."""

    filled: FillResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Impossible:
    """No assignment places all items."""

    proof: Proof


@dataclass(frozen=True, slots=True)
class Unknown:
    """Too large to search, or the search ended first."""


SearchResult = Placed | Impossible | Unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class NewNodes:
    """M rows from `first` on that stand for nodes that may be added. They share L limits."""

    first: int
    price: Floats
    """[M]: the price of one node, which is minimized."""
    use: Ints
    """[M, L]: what one node takes of a limit."""
    room: Ints
    """[L]"""


def is_worth_searching(counts: Ints, left: Ints) -> bool:
    """Whether few enough items are left for a search: 200 items, or one in twenty."""
    missing, total = int(left.sum()), int(counts.sum())
    return missing > 0 and (missing <= MOST_LEFT or 20 * missing <= total)


def place_or_prove(
    demand: FillDemand, nodes: ExistingNodes, effort: Effort, new_nodes: NewNodes | None = None
) -> SearchResult:
    """Place the whole demand on the nodes, or prove that it cannot be done."""
    if _do_totals_forbid(demand, nodes):
        return Impossible(proof=Proof.SUMS)
    if int((demand.counts > 0).sum()) * len(nodes.free) > _MOST_PAIRS:
        return Unknown()
    rooms = _compute_rooms(demand, nodes)
    if _do_sums_forbid(demand, nodes, rooms):
        return Impossible(proof=Proof.SUMS)
    many = _get_multiplicity(nodes)
    if int((rooms > 0).sum(axis=0) @ many) <= MOST_VARIABLES:
        apart = np.repeat(np.arange(len(many)), many)
        alone = None if new_nodes is None else _split_opening(new_nodes, apart)
        found = _search(_expand_caps(demand, apart), _split_rows(nodes, apart), rooms[:, apart], effort, alone)
        if isinstance(found, Placed):
            return Placed(filled=replace(found.filled, origin=apart[found.filled.origin]))
        return found
    if int((rooms > 0).sum()) <= MOST_VARIABLES:
        return _search(demand, nodes, rooms, effort, new_nodes)
    return Unknown()


def _search(
    demand: FillDemand, standing: ExistingNodes, rooms: Ints, effort: Effort, opening: NewNodes | None
) -> SearchResult:
    """For rows of several nodes the program checks only sums: a negative result is a proof, a positive one is not."""
    classes, rows = np.nonzero(rooms > 0)
    program = _Program.build(demand, standing, rooms)
    if opening is not None:
        program = program.add_opening(opening, standing, rows=len(demand.counts))
    status, values = program.solve(effort)
    if status == highspy.HighsModelStatus.kInfeasible:
        return Impossible(proof=Proof.SEARCH)
    if values is None:
        return Unknown()
    counts = np.round(values[: len(classes)]).astype(np.int64)
    chosen = np.flatnonzero(counts > 0)
    filled = _fill_as_assigned(demand, standing, np.column_stack((classes[chosen], rows[chosen], counts[chosen])))
    return Placed(filled=filled) if np.array_equal(filled.count_placed(), demand.counts.clip(0)) else Unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Program:
    """Columns are pairs of a class and a row of nodes; rows say that all are placed and that nothing is overfull."""

    most: Floats
    """[pairs]: upper bounds."""
    lower: Floats
    upper: Floats
    entries: tuple[Ints, Ints, Floats]
    """(pair, row of the program, value), ascending."""
    price: Floats
    """[pairs]: the price of opened nodes, else 0."""

    @classmethod
    def build(cls, demand: FillDemand, standing: ExistingNodes, rooms: Ints) -> _Program:
        classes, rows = np.nonzero(rooms > 0)
        pairs = np.arange(len(classes))
        many = _get_multiplicity(standing)
        wanted = len(demand.counts)
        resources = demand.requests.shape[1]
        have = np.maximum(standing.free * many[:, None], 1)[rows]
        parts = [(pairs, classes, np.ones(len(pairs)))]
        for resource in range(resources):
            share = demand.requests[classes, resource] / have[:, resource]
            parts.append((pairs, wanted + rows * resources + resource, share))
        first_key = wanted + len(many) * resources
        keys = np.zeros((wanted, 0), dtype=np.bool_) if demand.exclusive is None else demand.exclusive
        for key in range(keys.shape[1]):
            ours = np.flatnonzero(keys[classes, key])
            parts.append((ours, first_key + rows[ours] * keys.shape[1] + key, 1.0 / many[rows[ours]]))
        counts = demand.counts.clip(0).astype(np.float64)
        ones = np.ones(len(many) * (resources + keys.shape[1]))
        columns, lines, values = (np.concatenate(part) for part in zip(*parts, strict=True))
        kept = values > 0
        order = np.lexsort((lines[kept], columns[kept]))
        return cls(
            most=np.minimum(rooms[classes, rows] * many[rows], demand.counts[classes]).astype(np.float64),
            lower=np.concatenate((counts, ones * 0)),
            upper=np.concatenate((counts, ones)),
            entries=(columns[kept][order], lines[kept][order], values[kept][order]),
            price=np.zeros(len(pairs)),
        )

    def add_opening(self, opening: NewNodes, standing: ExistingNodes, *, rows: int) -> _Program:
        """With a column for each row that may be opened: what lies on it is no more than what is open of it.

        `rows` of the program come before those of resources.
        """
        many = _get_multiplicity(standing)
        kinds = np.arange(opening.first, len(many))
        pairs, resources, limits = len(self.most), standing.free.shape[1], len(opening.room)
        columns = pairs + np.arange(len(kinds))
        lines = rows + kinds[:, None] * resources + np.arange(resources)[None, :]
        upper = self.upper.copy()
        upper[lines.reshape(-1)] = 0.0
        room = np.maximum(opening.room, 1)
        share = opening.use / room[None, :]
        parts = (
            self.entries,
            (np.repeat(columns, resources), lines.reshape(-1), np.repeat(-1.0 / many[kinds], resources)),
            (
                np.repeat(columns, limits),
                np.tile(len(upper) + np.arange(limits), len(kinds)),
                share.reshape(-1).astype(np.float64),
            ),
        )
        joined = [np.concatenate(part) for part in zip(*parts, strict=True)]
        order = np.lexsort((joined[1], joined[0]))
        within = (opening.room > 0).astype(np.float64)
        low = np.where(np.isin(np.arange(len(self.lower)), lines), -np.inf, self.lower)
        return _Program(
            most=np.concatenate((self.most, many[kinds].astype(np.float64))),
            lower=np.concatenate((low, np.full(limits, -np.inf))),
            upper=np.concatenate((upper, within)),
            entries=(joined[0][order], joined[1][order], joined[2][order]),
            price=np.concatenate((self.price, opening.price)),
        )

    def solve(self, effort: Effort) -> tuple[Any, Floats | None]:
        columns, lines, values = self.entries
        size = len(self.most)
        highs = build_solver(
            {
                "mip_max_nodes": effort.branch_nodes,
                "mip_max_stall_nodes": effort.branch_nodes,
                "simplex_iteration_limit": effort.simplex_iterations,
                "mip_rel_gap": effort.gap,
            }
        )
        none = np.zeros(0, dtype=np.int32)
        highs.addRows(len(self.lower), self.lower, self.upper, 0, none, none, np.zeros(0))
        starts = np.searchsorted(columns, np.arange(size)).astype(np.int32)
        nothing = np.zeros(size)
        highs.addCols(size, self.price, nothing, self.most, len(values), starts, lines.astype(np.int32), values)
        whole = np.full(size, int(highspy.HighsVarType.kInteger), dtype=np.uint8)
        highs.changeColsIntegrality(size, np.arange(size, dtype=np.int32), whole)
        if not run_solver(highs):
            return highspy.HighsModelStatus.kSolveError, None
        status = highs.getModelStatus()
        # A solution without proof of optimality is good enough.
        solved = highs.getInfo().primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
        return status, np.array(highs.getSolution().col_value, dtype=np.float64) if solved else None


def _fill_as_assigned(demand: FillDemand, standing: ExistingNodes, assigned: Ints) -> FillResult:
    """Fill rows with just what the search gave them: each pair is a class of its own that may lie on one row only."""
    classes, rows, counts = assigned.T
    order = np.lexsort((classes, rows))
    pair_of = {(int(cls), int(row)): index for index, (cls, row, _) in enumerate(assigned)}
    tighter = [] if demand.tighter is None else demand.tighter.tolist()
    caps = [(pair_of[cls, row], row, cap) for cls, row, cap in tighter if (cls, row) in pair_of]
    filled = fill(
        FillDemand(
            requests=demand.requests[classes],
            counts=counts,
            allowed=np.arange(len(standing.free))[:, None] == rows[None, :],
            per_bin=None if demand.per_bin is None else demand.per_bin[classes],
            exclusive=None if demand.exclusive is None else demand.exclusive[classes],
            tighter=np.array(caps, dtype=np.int64).reshape(-1, 3),
        ),
        replace(standing, kind=np.arange(len(standing.free))),
        order,
    )
    left = np.zeros(len(demand.counts), dtype=np.int64)
    np.add.at(left, classes, filled.left)
    placements = filled.placements.copy()
    placements[:, 1] = classes[placements[:, 1]]
    return replace(filled, placements=placements[np.lexsort((placements[:, 1], placements[:, 0]))], left=left)


def _compute_rooms(demand: FillDemand, standing: ExistingNodes) -> Ints:
    """[C, N]: how many of a class alone one node of a row takes; 0 for classes without items."""
    divisors = np.maximum(demand.requests, 1)
    fits = np.where(demand.requests[:, None, :] > 0, standing.free[None].clip(0) // divisors[:, None, :], UNBOUNDED)
    rooms = fits.min(axis=2, initial=UNBOUNDED)
    rooms = np.where(demand.allowed[standing.kind].T, rooms, 0)
    if demand.per_bin is not None:
        rooms = np.minimum(rooms, demand.per_bin[:, None])
    if demand.exclusive is not None:
        alone: Flags = np.asarray(demand.exclusive.any(axis=1), dtype=np.bool_)
        rooms = np.where(alone[:, None], np.minimum(rooms, 1), rooms)
        if standing.taken is not None:
            rooms = np.where(demand.exclusive @ standing.taken.T, 0, rooms)
    if demand.tighter is not None:
        classes, rows, caps = np.asarray(demand.tighter).reshape(-1, 3).T
        np.minimum.at(rooms, (classes, rows), caps)
    return np.asarray(np.minimum(rooms.clip(0), demand.counts.clip(0)[:, None]), dtype=np.int64)


def _do_totals_forbid(demand: FillDemand, standing: ExistingNodes) -> bool:
    need = (demand.requests * demand.counts.clip(0)[:, None]).sum(axis=0)
    return bool((need > (standing.free.clip(0) * _get_multiplicity(standing)[:, None]).sum(axis=0)).any())


def _do_sums_forbid(demand: FillDemand, standing: ExistingNodes, rooms: Ints) -> bool:
    many = _get_multiplicity(standing)
    if (rooms @ many < demand.counts).any():
        return True
    usable: Flags = rooms > 0
    free = standing.free.clip(0) * many[:, None]
    need = demand.requests * demand.counts.clip(0)[:, None]
    places = np.unique(usable[demand.counts > 0], axis=0)[:_MOST_GROUPS]
    somewhere: Flags = np.asarray(usable.any(axis=0), dtype=np.bool_)
    for place in np.concatenate((places, somewhere[None, :])):
        inside = ~(usable & ~place).any(axis=1)
        if (need[inside].sum(axis=0) > free[place].sum(axis=0)).any():
            return True
    return False


def _get_multiplicity(standing: ExistingNodes) -> Ints:
    return np.ones(len(standing.free), dtype=np.int64) if standing.multiplicity is None else standing.multiplicity


def _split_rows(standing: ExistingNodes, apart: Ints) -> ExistingNodes:
    """The nodes with one row per node."""
    taken = None if standing.taken is None else standing.taken[apart]
    return ExistingNodes(free=standing.free[apart], kind=standing.kind[apart], taken=taken)


def _split_opening(opening: NewNodes, apart: Ints) -> NewNodes:
    first = int(np.searchsorted(apart, opening.first))
    kinds = apart[first:] - opening.first
    return replace(opening, first=first, price=opening.price[kinds], use=opening.use[kinds])


def _expand_caps(demand: FillDemand, apart: Ints) -> FillDemand:
    """The demand with its caps expanded to the split rows."""
    if demand.tighter is None or not len(demand.tighter):
        return demand
    caps = [
        (cls, row, cap)
        for cls, given, cap in demand.tighter.tolist()
        for row in np.flatnonzero(apart == given).tolist()
    ]
    return replace(demand, tighter=np.array(caps, dtype=np.int64).reshape(-1, 3))
