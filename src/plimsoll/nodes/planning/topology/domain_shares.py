"""Shares of the domains (zones) for all classes that meet in spread constraints, decided once per set of constraints.

Classes that the same constraints count are one kind of pod to them, whatever their sizes: their sum is poured into the
lowest domains first (water-filling), and dealt out to the classes afterwards. So the counts of each constraint come out
even, within one pod, as far as running pods and the domains that a class may use allow it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from plimsoll.nodes.planning.topology.groups import SpreadGroup
    from plimsoll.solver.problem import Flags, Ints


@dataclass(slots=True)
class DomainLevels:
    """The counts of each constraint per domain while pods are dealt out, and the room that pods have used."""

    domains: tuple[str, ...]
    spreads: tuple[SpreadGroup, ...]
    counts: Ints = field(init=False)
    """[G, D]"""
    volume: Ints = field(init=False)
    """[D]: what the pods dealt out so far take, in thousandths of some unit; it breaks ties."""
    _signatures: dict[int, tuple[int, ...]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.counts = np.zeros((len(self.spreads), len(self.domains)), dtype=np.int64)
        self.volume = np.zeros(len(self.domains), dtype=np.int64)
        for index, spread in enumerate(self.spreads):
            for number in spread.counted:
                self._signatures[number] = (*self._signatures.get(number, ()), index)

    def add_running(self, index: int, levels: Mapping[str, int]) -> None:
        self.counts[index] += [levels.get(name, 0) for name in self.domains]

    def add(self, domain: int, content: Mapping[int, int]) -> None:
        """Pods by class that are in a domain already."""
        for number, pods in content.items():
            self.counts[list(self.get_signature(number)), domain] += pods

    def get_signature(self, number: int) -> tuple[int, ...]:
        """The constraints that count the class."""
        return self._signatures.get(number, ())

    def distribute(self, number: int, pods: int, may_use: Flags, size: int) -> Ints:
        """[D]: how many of the pods of a class go to each domain; `size` of one pod."""
        signature = list(self.get_signature(number))
        given = np.zeros(len(self.domains), dtype=np.int64)
        usable = np.flatnonzero(may_use)
        if not len(usable):
            return given
        levels = self.counts[signature].max(axis=0, initial=0)[usable] if signature else np.zeros_like(usable)
        shares = _fill_lowest(levels, pods, self.volume[usable])
        given[usable] = shares
        self.counts[signature] += given
        self.volume += given * size
        return given

    def is_even(self) -> bool:
        """Whether every constraint holds for the counts."""
        most = np.array([spread.max_skew for spread in self.spreads], dtype=np.int64)
        return bool((self.counts.max(axis=1, initial=0) - self.counts.min(axis=1) <= most).all())


def _fill_lowest(levels: Ints, pods: int, volume: Ints) -> Ints:
    """Pods per domain, the lowest domains first; of equally low ones that with the least volume."""
    order = np.lexsort((np.arange(len(levels)), volume, levels))
    low = levels[order]
    total = np.cumsum(low)
    sizes = np.arange(1, len(low) + 1)
    # The water covers the first k domains if it does not reach the next one.
    need = low * sizes - total
    covered = int(np.flatnonzero(need <= pods)[-1]) + 1
    height, more = divmod(pods + int(total[covered - 1]), covered)
    given = np.zeros(len(levels), dtype=np.int64)
    given[order[:covered]] = height - low[:covered]
    for index in _sort_by_volume(order[:covered], volume)[:more]:
        given[index] += 1
    return given


def _sort_by_volume(indices: Ints, volume: Ints) -> Sequence[int]:
    return sorted(indices.tolist(), key=lambda index: (int(volume[index]), index))
