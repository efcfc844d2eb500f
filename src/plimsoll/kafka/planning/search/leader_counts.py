"""Even leader counts by reordering replica lists: chains of changes from brokers with too many to those with too few.

A change of leader of one partition is an edge from its leader's broker to the broker of another replica. A broker above
its range sends one leader along the shortest chain of edges to a broker with room, so counts come into range wherever
any choice of leaders can bring them there, as long as no other limit forbids an edge.
"""

from __future__ import annotations

import itertools
from collections import defaultdict, deque
from typing import TYPE_CHECKING, Final

import numpy as np

from plimsoll.kafka.planning.loads import Metric
from plimsoll.kafka.planning.search.metric_search import list_able_to_lead

if TYPE_CHECKING:
    from collections.abc import Callable

    from plimsoll.kafka.model.cluster import Ints
    from plimsoll.kafka.planning.placement import Limits, Placement
    from plimsoll.kafka.planning.search.budget import Budget

_CHAIN_AT_MOST: Final = 6


class LeaderCounts:
    """The search over one placement."""

    def __init__(self, placement: Placement, limits: Limits, budget: Budget) -> None:
        self._placement = placement
        self._limits = limits
        self._budget = budget
        self._able = list_able_to_lead(placement, np.arange(len(placement.broker_of)))
        self._able &= placement.scope.leadership_is_movable[placement.model.partition_of]
        self._edges = self._list_edges()

    def run(self) -> None:
        """Bring all brokers into range that chains can bring there."""
        load = self._placement.load[Metric.LEADERS]
        low, high = self._limits.low, self._limits.high
        for broker in self._order(load - high):
            while load[broker] > high[broker] and self._push(broker):
                pass
        for broker in self._order(low - load):
            while load[broker] < low[broker] and self._pull(broker):
                pass

    def _order(self, excess: Ints) -> list[int]:
        found = np.flatnonzero(excess > 0)
        return [int(broker) for broker in found[np.argsort(-excess[found], kind="stable")]]

    def _list_edges(self) -> dict[int, dict[int, list[int]]]:
        """Rows that could take over, by the broker that leads now and their own broker."""
        placement = self._placement
        partition_of = placement.model.partition_of
        leading = placement.leading[partition_of]
        rows = np.flatnonzero(self._able & (leading >= 0) & (leading != np.arange(len(leading))))
        sources, destinations = placement.broker_of[leading[rows]], placement.broker_of[rows]
        keys = sources * len(placement.model.brokers) + destinations
        order = np.argsort(-keys, kind="stable")[::-1]
        edges: dict[int, dict[int, list[int]]] = defaultdict(dict)
        if not len(rows):
            return edges
        keys, rows = keys[order], rows[order]
        starts = np.flatnonzero(np.diff(keys, prepend=-1))
        for start, part in zip(starts.tolist(), np.split(rows, starts[1:]), strict=True):
            source, destination = divmod(int(keys[start]), len(placement.model.brokers))
            edges[source][destination] = part[::-1].tolist()
        return edges

    def _push(self, broker: int) -> bool:
        """Send one leader from a broker to one with room."""
        load, high = self._placement.load[Metric.LEADERS], self._limits.high
        return self._follow(self._find_chain(broker, lambda other: load[other] + 1 <= high[other]))

    def _pull(self, broker: int) -> bool:
        """Send one leader to a broker from one that can spare it."""
        load, low = self._placement.load[Metric.LEADERS], self._limits.low
        donors = np.argsort(-load, kind="stable").tolist()
        for donor in donors:
            if donor == broker or load[donor] - 1 < low[donor] or load[donor] <= load[broker] + 1:
                continue
            if self._follow(self._find_chain(donor, lambda other: other == broker)):
                return True
            if self._budget.is_spent:
                return False
        return False

    def _find_chain(self, start: int, is_end: Callable[[int], bool]) -> list[int]:
        """The shortest chain of brokers; among equals the one whose end leads least."""
        load = self._placement.load[Metric.LEADERS]
        before = {start: start}
        pending = deque([(start, 0)])
        while pending:
            broker, depth = pending.popleft()
            if depth >= _CHAIN_AT_MOST or not self._budget.spend():
                break
            following = [other for other in self._edges[broker] if other not in before and self._peek(broker, other)]
            ends = [other for other in following if is_end(other)]
            if ends:
                before[end := min(ends, key=lambda other: (load[other], other))] = broker
                return _trace(before, end)
            for other in sorted(following):
                before[other] = broker
                pending.append((other, depth + 1))
        return []

    def _peek(self, source: int, destination: int) -> bool:
        """Whether an edge has a row that still counts; stale rows and rows that limits forbid are dropped."""
        rows = self._edges[source].get(destination, [])
        placement = self._placement
        while rows:
            row = rows[-1]
            leading = placement.leading[placement.model.partition_of[row]]
            if (
                leading != row
                and placement.broker_of[leading] == source
                and self._is_accepted(row, source, destination)
            ):
                return True
            rows.pop()
        return False

    def _is_accepted(self, row: int, source: int, destination: int) -> bool:
        placement = self._placement
        if not placement.accepted:
            return True
        weights = placement.loads.of_leadership[:, placement.model.partition_of[row]]
        return bool(placement.accepts_destination(weights)[destination]) and placement.accepts_source(weights, source)

    def _follow(self, chain: list[int]) -> bool:
        """Change a leader along each edge of a chain, the last one first: no broker on the way gets more."""
        edges = list(itertools.pairwise(chain))
        for source, destination in reversed(edges):
            if not self._peek(source, destination):
                return False
            self._change(self._edges[source][destination].pop(), destination)
        return bool(edges)

    def _change(self, row: int, destination: int) -> None:
        placement = self._placement
        placement.lead(row)
        for member in placement.rows[placement.model.partition_of[row]].tolist():
            if member >= 0 and member != row and self._able[member]:
                self._edges[destination].setdefault(int(placement.broker_of[member]), []).append(member)


def _trace(before: dict[int, int], end: int) -> list[int]:
    chain = [end]
    while before[chain[-1]] != chain[-1]:
        chain.append(before[chain[-1]])
    return chain[::-1]
