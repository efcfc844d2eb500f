"""Small random worlds of pods with rules about each other, and the cheapest nodes for them, by trying everything.

The search knows the rules of kube-scheduler in its own words, and nothing of the planner: a set of nodes will do if
the pods can be scheduled onto it in some order. A spread over zones counts every zone that can be bought.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING, Any, Final

from tests.nodes.planning.scale_up_clusters import group, waiting, world
from tests.scheduling.builders import HOSTNAME, ZONE, required, spread, term

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plimsoll.nodes.model.snapshot import Snapshot

KINDS: Final = ("plain", "zone-spread", "host-spread", "host-together", "host-apart")
_MOST_PODS: Final = 6

Content = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallClass:
    """Pods that are alike."""

    kind: str
    cpu: int
    count: int
    label: str
    sought: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallNode:
    """A kind of node: its size and its zone."""

    cpu: int
    zone: str

    @property
    def price(self) -> float:
        return self.cpu / 10


@dataclass(frozen=True, kw_only=True)
class SmallWorld:
    """Classes of pods, and the nodes that can be bought."""

    classes: tuple[SmallClass, ...]
    nodes: tuple[SmallNode, ...]

    @classmethod
    def draw(cls, seed: int) -> SmallWorld:
        chance = random.Random(seed)
        zones = "abc"[: chance.randint(1, 3)]
        sizes = chance.sample((2, 4, 8), chance.randint(1, 2))
        left = chance.randint(1, _MOST_PODS)
        classes: list[SmallClass] = []
        while left and len(classes) < 4:
            count = chance.randint(1, min(left, 3))
            kind = chance.choice(KINDS)
            label = chance.choice("xy")
            # Pods that are kept apart, or want to be together, mostly mean their own kind.
            sought = label if chance.random() < 0.5 or kind == "host-apart" else chance.choice("xy")
            classes.append(SmallClass(kind=kind, cpu=chance.randint(1, 2), count=count, label=label, sought=sought))
            left -= count
        nodes = tuple(SmallNode(cpu=cpu, zone=zone) for cpu in sorted(sizes) for zone in zones)
        return cls(classes=tuple(classes), nodes=nodes)

    def build_snapshot(self) -> Snapshot:
        pods = [
            waiting(f"p{index}", pods.count, cpu=pods.cpu, labels={"letter": pods.label}, **_build_rule(pods))
            for index, pods in enumerate(self.classes)
        ]
        groups = [group(f"g-{node.cpu}-{node.zone}", cpu=node.cpu, zone=node.zone, most=20) for node in self.nodes]
        return world(*pods, groups=groups)

    @cached_property
    def zones(self) -> tuple[str, ...]:
        return tuple(sorted({node.zone for node in self.nodes}))

    def find_cheapest(self, below: float) -> float | None:
        """The least price of nodes that take all pods, if it is below this one; None if there are no such nodes."""
        for price, nodes in self._iterate_nodes(below):
            if self._can_schedule_all(nodes):
                return price
        return None

    def _iterate_nodes(self, below: float) -> Iterator[tuple[float, tuple[SmallNode, ...]]]:
        """Sets of nodes with room for all requests, the cheapest first."""
        pods = sum(pods.count for pods in self.classes)
        cpu = sum(pods.cpu * pods.count for pods in self.classes)
        found = [
            (round(sum(node.price for node in nodes), 9), nodes)
            for many in range(1, pods + 1)
            for nodes in combinations_with_replacement(self.nodes, many)
            if sum(node.cpu for node in nodes) >= cpu and sum(node.price for node in nodes) < below - 1e-9
        ]
        yield from sorted(found, key=lambda entry: entry[0])

    def _can_schedule_all(self, nodes: tuple[SmallNode, ...]) -> bool:
        empty = tuple((0,) * len(self.classes) for _ in nodes)
        left = tuple(pods.count for pods in self.classes)
        return self._search(nodes, empty, left, set())

    def _search(
        self, nodes: tuple[SmallNode, ...], contents: tuple[Content, ...], left: Content, seen: set[Any]
    ) -> bool:
        if not any(left):
            return True
        state = (left, tuple(sorted(zip(nodes, contents, strict=True), key=repr)))
        if state in seen:
            return False
        seen.add(state)
        for index, many in enumerate(left):
            for at in range(len(nodes)) if many else ():
                if self._fits(index, at, nodes, contents):
                    grown = tuple(content + (number == index) for number, content in enumerate(contents[at]))
                    after = (*contents[:at], grown, *contents[at + 1 :])
                    fewer = tuple(count - (number == index) for number, count in enumerate(left))
                    if self._search(nodes, after, fewer, seen):
                        return True
        return False

    # ---- the rules

    def _fits(self, index: int, at: int, nodes: tuple[SmallNode, ...], contents: tuple[Content, ...]) -> bool:
        pods = self.classes[index]
        used = sum(count * other.cpu for count, other in zip(contents[at], self.classes, strict=True))
        if used + pods.cpu > nodes[at].cpu or self._is_avoided(pods, contents[at]):
            return False
        here = self._count(pods.sought, contents[at])
        itself = pods.label == pods.sought
        if pods.kind == "host-apart":
            return not here
        if pods.kind == "host-together":
            return bool(here) or (itself and not any(self._count(pods.sought, content) for content in contents))
        if pods.kind == "host-spread":
            lowest = min(self._count(pods.sought, content) for content in contents)
            return here + itself - lowest <= 1
        if pods.kind == "zone-spread":
            levels = dict.fromkeys(self.zones, 0)
            for node, content in zip(nodes, contents, strict=True):
                levels[node.zone] += self._count(pods.sought, content)
            return levels[nodes[at].zone] + itself - min(levels.values()) <= 1
        return True

    def _is_avoided(self, pods: SmallClass, content: Content) -> bool:
        return any(
            count and other.kind == "host-apart" and other.sought == pods.label
            for count, other in zip(content, self.classes, strict=True)
        )

    def _count(self, label: str, content: Content) -> int:
        return sum(count for count, other in zip(content, self.classes, strict=True) if other.label == label)


def _build_rule(pods: SmallClass) -> dict[str, Any]:
    selector = {"letter": pods.sought}
    if pods.kind in {"zone-spread", "host-spread"}:
        return spread(selector, ZONE if pods.kind == "zone-spread" else HOSTNAME, 1)
    if pods.kind == "host-together":
        return required(term(selector, key=HOSTNAME), "podAffinity")
    if pods.kind == "host-apart":
        return required(term(selector, key=HOSTNAME), "podAntiAffinity")
    return {}
