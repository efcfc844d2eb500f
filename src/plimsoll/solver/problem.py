"""The packing problem and its solution: items in classes, bins in types. Numbers only.

A class is a set of pods with one scheduling key, a type is a node group, or a machine type in a zone. Amounts are
integers, so that feasibility never depends on rounding; money is a float.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

UNBOUNDED: Final = 1 << 40
"""More bins, or more items of a class in one bin, than any problem has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PackingProblem:
    """C classes, T types, R resources, L limits that types share, K keys of which a bin takes one item each."""

    requests: Ints
    """[C, R]: what one item of a class takes."""
    counts: Ints
    """[C]: how many items there are of a class."""
    capacity: Ints
    """[T, R]: what an empty bin of a type has to give, daemons taken off."""
    price: Floats
    """[T]: what a bin costs an hour; preferences ("taste") are already in it."""
    allowed: Flags
    """[T, C]: whether items of a class may lie in bins of a type."""
    per_bin: Ints
    """[C]: at most so many of a class in one bin; UNBOUNDED where nothing says so."""
    exclusive: Flags
    """[C, K]: classes that share a key exclude each other, and themselves, in one bin (host ports, anti-affinity)."""
    available: Ints
    """[T]: so many bins of a type may be opened; UNBOUNDED where nothing says so."""
    use: Ints
    """[T, L]: what one bin of a type takes of a shared limit (cpu of the cluster, memory, one node, ...)."""
    room: Ints
    """[L]: what is left of each shared limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BinPattern:
    """So many bins of one type, each filled alike. `classes` ascend; `items[i]` of `classes[i]` lie in each bin."""

    type: int
    bins: int
    classes: tuple[int, ...]
    items: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Packing:
    """A valid answer: capacities, `allowed`, `per_bin`, `exclusive`, `available` and `room` hold for it as integers."""

    patterns: tuple[BinPattern, ...]
    left: Ints
    """[C]: items without a bin."""
    cost: float
    """Sum of bins times price."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """Counted work, never seconds: the same numbers give the same plan on any machine."""

    value_vectors: int = 3
    rounds: int = 40
    """Rounds of column generation; 0 leaves it out."""
    simplex_iterations: int = 8_000
    """The most iterations per program: a degenerate one may cycle for ever; others need a few hundred."""
    branch_nodes: int = 2_000
    cells: int = 256
    gap: float = 0.01
    """Good enough: stop improving at cost <= (1 + gap) x bound."""
