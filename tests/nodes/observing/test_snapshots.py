"""Nodes on their way are the same objects from turn to turn, as long as nothing they are made of changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.nodes.config.options import read_options
from plimsoll.nodes.model.snapshot import NodeGroup
from plimsoll.nodes.observing.snapshots import UpcomingNodeCache
from tests.nodes.cluster_state.builders import NOON, node
from tests.scheduling.builders import pod

if TYPE_CHECKING:
    from plimsoll.nodes.observing.upcoming import UpcomingNode

TEMPLATE = node("template")


class FakeHealth:
    """Stands for a health: so many nodes of group g are on their way."""

    def __init__(self, count: int) -> None:
        self.at = NOON
        self.upcoming = {"g": count} if count else {}


def coming(nodes: UpcomingNodeCache, count: int, *, options: Any = None, **group: Any) -> list[UpcomingNode]:
    made = NodeGroup(id="g", min_size=0, max_size=9, target_size=count, **{"template": TEMPLATE, **group})
    health: Any = FakeHealth(count)
    return nodes.build((made,), health, read_options(options or {}), ())


def test_as_many_as_before_or_fewer_are_the_ones_of_before():
    nodes = UpcomingNodeCache()
    first = coming(nodes, 3)
    assert [upcoming.node.metadata.name for upcoming in first] == [
        f"template-node-for-g-upcoming-{number}" for number in range(3)
    ]
    assert all(upcoming is other for upcoming, other in zip(coming(nodes, 2), first, strict=False))
    assert len(coming(nodes, 2)) == 2
    assert len(coming(nodes, 4)) == 4
    assert coming(nodes, 0) == []


@pytest.mark.parametrize(
    "change",
    [
        {"template": node("template", taints=("mine",))},
        {"daemons": (pod("agent"),), "daemons_are_known": True},
        {"options": {"startup-taint": "mine"}},
    ],
)
def test_what_they_are_made_of_makes_them_anew(change: dict[str, Any]):
    nodes = UpcomingNodeCache()
    first = coming(nodes, 1)
    assert coming(nodes, 1, **change)[0] is not first[0]
    assert coming(nodes, 1, **change) == coming(UpcomingNodeCache(), 1, **change)
