"""What the cache's snapshots show of pods that changed since."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from msgspec import structs

from plimsoll.local.scheduler.cache import SchedulerCache
from plimsoll.scheduling.cluster_view import get_pod_key
from tests.scheduling.builders import node, pod

if TYPE_CHECKING:
    from plimsoll.objects.api.pods import Pod
    from plimsoll.scheduling.cluster_view import PlacedPod

PLACED = pod("p", on="n", requests={"cpu": "1"})
RUNNING = structs.replace(PLACED, status=structs.replace(PLACED.status, phase="Running"))
ENDING = structs.replace(
    RUNNING, metadata=structs.replace(RUNNING.metadata, deletion_timestamp=datetime(2026, 1, 1, tzinfo=UTC))
)


def board_after(*states: Pod) -> SchedulerCache:
    cache = SchedulerCache()
    cache.put_node(node("n"))
    for state in states:
        cache.put_pod(state)
    return cache


def shown(cache: SchedulerCache) -> PlacedPod:
    return cache.take_snapshot().nodes["n"].pods[get_pod_key(PLACED)]


def test_a_snapshot_shows_what_no_rule_looks_at_as_it_is_now():
    assert shown(board_after(PLACED, RUNNING)).pod is RUNNING


def test_a_snapshot_does_not_bring_back_an_older_state():
    cache = board_after(PLACED, RUNNING, ENDING)
    assert shown(cache).leaving
    assert cache.view.nodes["n"].pods[get_pod_key(PLACED)].leaving


def test_a_snapshot_changes_nothing_about_nodes_that_are_up_to_date():
    cache = board_after(PLACED, RUNNING)
    before = cache.take_snapshot()
    assert cache.take_snapshot().nodes["n"] is before.nodes["n"]
