"""Planner and passes together over time: instances come late, stores leave slowly, a constant load comes to rest."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from plimsoll.objects.api.tidb import TidbCluster, TidbClusterAutoScaler
from plimsoll.objects.codec.decoding import convert_object
from plimsoll.tidb.model.components import make_group_labels
from plimsoll.tidb.model.reconcile_types import (
    CreateGroup,
    ObservedComponent,
    ObservedGroup,
    RaiseBase,
    Remove,
    TakeOut,
)
from plimsoll.tidb.model.snapshot import ObservedInstance, Snapshot
from plimsoll.tidb.planning.api.defaults import apply_defaults
from plimsoll.tidb.planning.planner.planner import plan
from plimsoll.tidb.planning.planner.result import PlannerResult
from plimsoll.tidb.planning.reconcile.decide import conclude, decide
from plimsoll.tidb.planning.reconcile.planner_request import build_planner_request
from tests.cli.tidb.tidb_commands import autoscaler, cluster
from tests.tidb.planning.reconcile.builders import MARK, POLICY, TIDB, TIKV, at, base, group, seen

PASS_S = 30
PASSES = 110
QUIET = 30
"""So many passes at the end nothing may change."""


class ReconcileLoop:
    """A cluster whose instances come after `start_s` and whose stores take `drain_s` to leave."""

    def __init__(
        self, component: Any, *, rule: dict[str, float], types: dict[str, Any], nodes: int, start_s: int, drain_s: int
    ) -> None:
        tc = convert_object(TidbCluster, cluster())
        spec = {"rules": {"cpu": rule}, "resources": types, "scaleInIntervalSeconds": 90, "scaleOutIntervalSeconds": 60}
        tac = convert_object(TidbClusterAutoScaler, autoscaler(**{component.value: spec}))
        assert isinstance(tc, TidbCluster)
        assert isinstance(tac, TidbClusterAutoScaler)
        self.cores = {name: int(resource["cpu"]) for name, resource in types.items()}
        self.tc, self.effective, self.nodes = tc, apply_defaults(tac, tc), nodes
        self.start_s, self.drain_s = start_s, drain_s
        scaled = self.effective.spec.tidb if component is TIDB else self.effective.spec.tikv
        self.world: ObservedComponent = seen(component=component, scaled=scaled, base=base(3))
        self.comes: dict[str, list[int]] = {}
        self.leaves: dict[str, int] = {}
        self.history: list[dict[str, int]] = []
        self.acts: list[int] = []

    def stand(self, kind: str, number: int) -> None:
        """A group that is there from the beginning."""
        if number:
            made = group(kind, number, component=self.world.component, size=None)
            self.world = replace(self.world, groups=(*self.world.groups, made))

    def run(self, load: Any) -> None:
        for number in range(PASSES):
            now = number * PASS_S
            self._arrive(now)
            self._turn(now, load)
            sizes = {group_seen.key: group_seen.replicas for group_seen in self.world.groups}
            self.history.append({"own": self.world.base.replicas, **sizes})

    def _turn(self, now: int, load: Any) -> None:
        world = self.world
        strategy = build_planner_request(
            world, self.tc, self.effective, node_count=self.nodes, policy=POLICY, now=at(now)
        )
        answer = plan(strategy, Snapshot(component=world.component, instances=tuple(self._instances(load))))
        assert isinstance(answer, PlannerResult)
        found = decide(world, answer.plans, policy=POLICY, now=at(now))
        done = {act.key for act in found.acts if not isinstance(act, TakeOut) or self._has_left(act, now)}
        self.acts.append(len(done))
        for act in found.acts:
            self._apply(act, now, is_done=act.key in done)
        self.world = replace(self.world, status=conclude(found, done, now=at(now)))

    def _has_left(self, act: TakeOut, now: int) -> bool:
        return now - self.leaves.setdefault(act.key, now) >= self.drain_s

    def _apply(self, act: Any, now: int, *, is_done: bool) -> None:
        groups = {group_seen.key: group_seen for group_seen in self.world.groups}
        if isinstance(act, RaiseBase):
            self.comes.setdefault("own", []).extend([now + self.start_s] * (act.replicas - act.was))
            own = replace(self.world.base, replicas=act.replicas, running=act.replicas)
            self.world = replace(self.world, base=own)
            return
        if isinstance(act, CreateGroup):
            made = group(act.plan.resource_type, act.plan.count, component=self.world.component, registered=0)
            made = replace(made, key=act.key, size=act.size, created=at(now), running=act.plan.count)
            groups[act.key] = made
            self.comes[act.key] = [now + self.start_s] * act.plan.count
        elif isinstance(act, Remove):
            del groups[act.key]
        elif isinstance(act, TakeOut):
            one = groups[act.key]
            is_offline = 2 * (now - self.leaves[act.key]) >= self.drain_s
            up = min(one.registered or 0, act.replicas if is_offline or is_done else act.was)
            mark, replicas = (None, act.replicas) if is_done else (MARK, act.was)
            leaving = int(is_offline and not is_done)
            one = replace(one, registered=up, offline=leaving, drain_record=mark, replicas=replicas, running=replicas)
            groups[act.key] = one
            if is_done:
                del self.leaves[act.key]
        else:
            one = groups[act.key]
            if act.replicas > act.was:
                self.comes.setdefault(act.key, []).extend([now + self.start_s] * (act.replicas - act.was))
            up = min((one.registered or 0) + one.offline, act.replicas)
            back = {"drain_record": None, "offline": 0, "replicas": act.replicas, "running": act.replicas}
            groups[act.key] = replace(one, registered=up, **back)
            self.leaves.pop(act.key, None)
        self.world = replace(self.world, groups=tuple(groups.values()))

    def _arrive(self, now: int) -> None:
        for key, times in self.comes.items():
            number = sum(time <= now for time in times)
            self.comes[key] = [time for time in times if time > now]
            if key == "own":
                own = self.world.base
                self.world = replace(self.world, base=replace(own, registered=(own.registered or 0) + number))
            groups = [
                self._joined(group_seen, number) if group_seen.key == key else group_seen
                for group_seen in self.world.groups
            ]
            self.world = replace(self.world, groups=tuple(groups))

    def _joined(self, one: ObservedGroup, number: int) -> ObservedGroup:
        return replace(one, registered=min((one.registered or 0) + number, one.replicas))

    def _instances(self, load: Any) -> list[ObservedInstance]:
        groups = {group_seen.key: group_seen for group_seen in self.world.groups}
        quotas = [4.0] * (self.world.base.registered or 0)
        members = [
            (group_seen, self.cores[group_seen.resource_type])
            for group_seen in groups.values()
            for _ in range(group_seen.registered or 0)
        ]
        usages = load(len(quotas), [float(cores) for _, cores in members])
        found = []
        for index, usage in enumerate(usages):
            quota = 4.0 if index < len(quotas) else float(members[index - len(quotas)][1])
            one = ObservedInstance(name=f"i-{index}", base=index < len(quotas), cpu_quota_cores=quota)
            if index >= len(quotas):
                of = members[index - len(quotas)][0]
                one = replace(one, labels=make_group_labels(self.world.component, of.resource_type, group=of.key))
            found.append(replace(one, cpu_used_seconds=usage * 60 * quota))
        return found


def turns(numbers: list[int]) -> int:
    steps = [after - before for before, after in pairwise(numbers) if after != before]
    return sum((step > 0) != (other > 0) for step, other in pairwise(steps))


@st.composite
def loops(draw: st.DrawFn) -> ReconcileLoop:
    low = draw(st.integers(0, 50))
    high = draw(st.integers(low + 20, 95))
    types = {
        name: {"cpu": draw(st.integers(1, 8)), "memory": "2Gi", "storage": "10Gi", "count": draw(st.integers(0, 3))}
        for name in ("a", "b")
    }
    loop = ReconcileLoop(
        draw(st.sampled_from([TIKV, TIDB])),
        rule={"max_threshold": high / 100, "min_threshold": low / 100},
        types=types,
        nodes=draw(st.integers(3, 12)),
        start_s=draw(st.sampled_from([0, 45, 120])),
        drain_s=draw(st.sampled_from([0, 60])),
    )
    for name in types:
        loop.stand(name, draw(st.integers(0, 3)))
    return loop


def assert_calm(loop: ReconcileLoop) -> None:
    assert not any(loop.acts[-QUIET:]), loop.history[-QUIET:]
    for before, after in pairwise(loop.history):
        assert after["own"] >= before["own"]
    for key in {key for sizes in loop.history for key in sizes}:
        assert turns([sizes.get(key, 0) for sizes in loop.history]) <= 1


@given(loops(), st.floats(0, 40))
@settings(max_examples=25, deadline=None)
def test_total_work_spread_evenly_comes_to_rest(loop: ReconcileLoop, work_cores: float):
    def load(own: int, members: list[float]) -> list[float]:
        return [work_cores / (4 * own + sum(members))] * (own + len(members))

    loop.run(load)
    assert_calm(loop)


@given(loops(), st.lists(st.floats(0, 1.3), min_size=3, max_size=3))
@settings(max_examples=25, deadline=None)
def test_fixed_hot_instances_whose_excess_moves_to_the_group_come_to_rest(loop: ReconcileLoop, usages: list[float]):
    scaled = loop.world.scaled
    assert scaled is not None
    rule = scaled.rules["cpu"]
    high, low = rule.max_threshold or 0.0, rule.min_threshold or 0.0
    target = (high + low) / 2

    def load(own: int, members: list[float]) -> list[float]:
        excess = [max(0.0, usage - target) * 4 if usage > high else 0.0 for usage in usages]
        moved = min(sum(excess), sum(members) * target)
        part = moved / sum(excess) if sum(excess) else 0.0
        left = [usage - share * part / 4 for usage, share in zip(usages, excess, strict=True)]
        each = moved / sum(members) if members else 0.0
        return [*left, *([0.0] * (own - len(usages))), *([each] * len(members))]

    loop.run(load)
    assert_calm(loop)
