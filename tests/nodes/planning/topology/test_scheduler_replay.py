"""Plans of small worlds with rules between pods, carried out by the embedded scheduler: all pods land in some order."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from msgspec import structs

from plimsoll.local.scheduler.cache import SchedulerCache
from plimsoll.local.scheduler.equivalence import PodClasses
from plimsoll.local.scheduler.schedule_one import ScheduleResult, schedule_pod
from plimsoll.nodes.model.node_templates import build_planned_node
from plimsoll.nodes.planning.scaleup.planner import plan_scale_up
from tests.effort import IS_LONG
from tests.nodes.planning.scale_up_clusters import COST
from tests.nodes.planning.topology.small_worlds import SmallWorld

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plimsoll.nodes.model.scale_up_plan import ScaleUpPlan
    from plimsoll.nodes.model.snapshot import Snapshot
    from plimsoll.objects.api.nodes import Node
    from plimsoll.objects.api.pods import Pod

_ORDERS = 300
"""The number of orders of scheduling that are tried."""


def build_nodes(plan: ScaleUpPlan) -> list[Node]:
    return [
        build_planned_node(growth.option, number)
        for growth in plan.scale_ups
        for number in range(growth.before, growth.after)
    ]


def build_pods(snapshot: Snapshot) -> list[Pod]:
    return [
        structs.replace(
            pending.pod, metadata=structs.replace(pending.pod.metadata, name=f"{pending.key}-{number}", uid="")
        )
        for pending in snapshot.pending
        for number in range(pending.count)
    ]


def count_unscheduled(nodes: Sequence[Node], pods: Sequence[Pod]) -> int:
    """Pods without a node once the scheduler has tried all of them in this order, again and again."""
    cache, classes = SchedulerCache(), PodClasses()
    for node in nodes:
        cache.put_node(node)
    waiting, progress = list(pods), True
    while waiting and progress:
        left: list[Pod] = []
        for pod in waiting:
            result = schedule_pod(pod, cache, classes)
            if isinstance(result, ScheduleResult):
                cache.assume(pod, result.node)
            else:
                left.append(pod)
        progress, waiting = len(left) < len(waiting), left
    return len(waiting)


def count_unscheduled_in_the_best_order(seed: int) -> int:
    snapshot = SmallWorld.draw(seed).build_snapshot()
    plan = plan_scale_up(snapshot, COST)
    if plan.unschedulable:
        return 0
    nodes, pods, chance = build_nodes(plan), build_pods(snapshot), random.Random(seed)
    fewest = len(pods)
    for _ in range(_ORDERS):
        fewest = min(fewest, count_unscheduled(nodes, pods))
        if not fewest:
            break
        chance.shuffle(pods)
    return fewest


def test_the_embedded_scheduler_places_all_pods_on_the_planned_nodes():
    unscheduled = {seed: count_unscheduled_in_the_best_order(seed) for seed in range(2_000 if IS_LONG else 40)}
    assert not {seed: pods for seed, pods in unscheduled.items() if pods}
