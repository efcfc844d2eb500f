"""Groups many item classes into a few cells of similar size: a k-d split of the logarithms of their sizes."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from plimsoll.solver.problem import Floats, Ints


def split_into_cells(sizes: Floats, counts: Floats, kinds: Ints, cells: int) -> Ints:
    """[C]: the cell of each class, from 0 without gaps. Classes of different kinds never share one.

    The cell with the most items times its widest ratio of sizes is split first, at the median item. There are as many
    cells as asked for, or fewer if nothing is left to split, or more if there are more kinds.
    """
    points = np.log(np.maximum(sizes, 1e-9))
    cell = np.unique(kinds, return_inverse=True)[1].astype(np.int64)
    made = int(cell.max(initial=-1)) + 1
    queue = [_rank_cell(points, counts, np.flatnonzero(cell == number), number) for number in range(made)]
    heapq.heapify(queue)
    while made < cells and queue:
        rank, _, dimension, members = heapq.heappop(queue)
        if rank >= 0:
            break
        order = members[np.argsort(points[members, dimension], kind="stable")]
        at = _find_median(points[order, dimension], counts[order])
        old = int(cell[order[0]])
        cell[order[at:]] = made
        heapq.heappush(queue, _rank_cell(points, counts, order[:at], old))
        heapq.heappush(queue, _rank_cell(points, counts, order[at:], made))
        made += 1
    return cell


def _rank_cell(points: Floats, counts: Floats, members: Ints, cell: int) -> tuple[float, int, int, Ints]:
    """Least first; the number of the cell keeps the order total."""
    extent = np.ptp(points[members], axis=0)
    widest = int(extent.argmax())
    return -round(float(counts[members].sum() * extent[widest]), 6), cell, widest, members


def _find_median(ordered: Floats, counts: Floats) -> int:
    """Where the upper half begins; equal points stay together, and neither half is empty."""
    half = int(np.searchsorted(np.cumsum(counts), counts.sum() / 2))
    at = int(np.searchsorted(ordered, ordered[min(half, len(ordered) - 1)], side="left"))
    return at if at > 0 else int(np.searchsorted(ordered, ordered[0], side="right"))
