"""The best node for the next pod of a class, without scoring all nodes again.

`preferences.choose_best_node` scores every feasible node for every pod: at a thousand nodes that is most of the cost of
scheduling. For a pod without preferences of its own the result depends on little: the node's own score, its number of
pods of the same class, and that of its zone. So nodes are kept in tiers of the same zone and the same number, each with
its best node on top, and only the tops are compared. The result equals that of `choose_best_node`; a test compares the
two. Pods with preferences (spread constraints, pod affinity) use `choose_best_node`.
"""

from __future__ import annotations

import heapq
from collections import Counter
from typing import TYPE_CHECKING, Final

from plimsoll.local.scheduler.scoring.preferences import HOSTNAME, ZONE, compute_spread_score

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plimsoll.local.scheduler.scoring.scoring import NodeEvaluation

    Tier = tuple[str | None, int]
    """A zone, and how many siblings a node has."""
    _Entry = tuple[int, str]
    """How good a node is, the best first, and its name."""

# Not worth tidying up.
_FEW: Final = 64


class Ranking:
    """The nodes that fit the pods of one class."""

    def __init__(self) -> None:
        self._fitting: dict[str, NodeEvaluation] = {}
        self._sizes: Counter[Tier] = Counter()
        self._heaps: dict[Tier, list[_Entry]] = {}  # may hold nodes that have changed since
        self._siblings: Counter[str | None] = Counter()  # by zone
        self._hosts: Counter[str | None] = Counter()
        self._shared = 0

    def __len__(self) -> int:
        return len(self._fitting)

    @property
    def knows_hosts(self) -> bool:
        """Whether every node is a host of its own; otherwise nodes share their counts of pods."""
        return not self._shared and not self._hosts[None]

    def put(self, judged: NodeEvaluation) -> None:
        """The node fits, and this is what is known of it."""
        place = judged.place
        name = place.name
        before = self._fitting.get(name)
        if before is judged:
            return
        if before is not None and before.place.labels is place.labels and before.siblings == judged.siblings:
            # Most changes of a node are pods of other classes: then it is at most better or worse than it was.
            self._fitting[name] = judged
            if before.score != judged.score:
                self._push(_get_tier(judged), judged)
            return
        self.drop(name)
        tier, host = _get_tier(judged), place.labels.get(HOSTNAME)
        self._sizes[tier] += 1
        self._siblings[tier[0]] += judged.siblings
        self._hosts[host] += 1
        self._shared += host is not None and self._hosts[host] == 2
        self._fitting[name] = judged
        self._push(tier, judged)

    def _push(self, tier: Tier, judged: NodeEvaluation) -> None:
        heap = self._heaps.setdefault(tier, [])
        heapq.heappush(heap, (-judged.score, judged.place.name))
        if len(heap) > 2 * self._sizes[tier] + _FEW:
            self._heaps[tier] = heap = [fromkey for fromkey in dict.fromkeys(heap) if self._is_current(tier, fromkey)]
            heapq.heapify(heap)

    def drop(self, name: str) -> None:
        """The node is gone, or does not fit any more."""
        before = self._fitting.pop(name, None)
        if before is None:
            return
        tier = _get_tier(before)
        self._sizes[tier] -= 1
        self._siblings[tier[0]] -= before.siblings
        host = before.place.labels.get(HOSTNAME)
        self._hosts[host] -= 1
        self._shared -= host is not None and self._hosts[host] == 1
        if not self._hosts[host]:
            del self._hosts[host]
        if not self._sizes[tier]:
            del self._sizes[tier], self._heaps[tier]

    def find_best(self, *, spreads: bool) -> str:
        """The name of the best one, the first by name among equals. There must be one.

        `spreads`: pods of the class are spread over nodes, as those of a controller are.
        """
        crowding = {tier: self._compute_crowding(tier) if spreads else 0 for tier in self._sizes}
        most = max(crowding.values())
        tops = ((judgement, compute_spread_score(crowding[tier], most)) for tier, judgement in self._iterate_tops())
        return min((-judgement.score - spread, judgement.place.name) for judgement, spread in tops)[1]

    def _compute_crowding(self, tier: Tier) -> int:
        """A node without a zone is the last choice."""
        zone, siblings = tier
        in_zone = max(self._siblings.values()) + 1 if zone is None else self._siblings[zone]
        return siblings + in_zone

    def _iterate_tops(self) -> Iterator[tuple[Tier, NodeEvaluation]]:
        for tier, heap in self._heaps.items():
            while not self._is_current(tier, heap[0]):
                heapq.heappop(heap)
            yield tier, self._fitting[heap[0][1]]

    def _is_current(self, tier: Tier, entry: _Entry) -> bool:
        known = self._fitting.get(entry[1])
        return known is not None and known.score == -entry[0] and _get_tier(known) == tier


def _get_tier(judged: NodeEvaluation) -> Tier:
    return judged.place.labels.get(ZONE), judged.siblings
