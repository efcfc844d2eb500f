"""What holds for every cluster: the rules are never broken, priority counts, no pod starves, nothing is bound twice."""

from __future__ import annotations

import asyncio
import itertools
from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.core.resources import ZERO, ResourceVector
from plimsoll.local.scheduler.cache import SchedulerCache
from plimsoll.local.scheduler.equivalence import PodClasses
from plimsoll.local.scheduler.schedule_one import FitError, ScheduleResult, schedule_pod
from plimsoll.scheduling import ClusterView, Fits, NotSchedulable, check_node, compute_scheduling_outcome
from plimsoll.scheduling.cluster_view import get_pod_key
from plimsoll.scheduling.verdicts import DoesNotFit
from tests.faults.crashes import CrashAfter, Crashed
from tests.local.scheduler.builders import PODS, SchedulerCluster
from tests.scheduling.builders import HOSTNAME, ZONE, node, pod, required, spread, term

if TYPE_CHECKING:
    from plimsoll.objects.api.nodes import Node
    from plimsoll.objects.api.pods import Pod

SPECS: list[dict[str, Any]] = [
    {},
    {"requests": {"cpu": "500m"}},
    {"requests": {"cpu": "2", "memory": "1Gi"}},
    {"requests": {"cpu": "9"}},
    {"nodeSelector": {ZONE: "z1"}},
    {"tolerations": [{"operator": "Exists"}]},
    required(term({"app": "a"})),
    required(term({"app": "b"}, key=ZONE), "podAffinity"),
    spread({"app": "a"}),
    spread({"app": "a"}, key=HOSTNAME, whenUnsatisfiable="ScheduleAnyway"),
    {"containers": [{"name": "c", "ports": [{"containerPort": 80, "hostPort": 80}]}]},
]
TAINT = [{"key": "k", "value": "v", "effect": "NoSchedule"}]

NODES = st.lists(
    st.tuples(st.sampled_from(["z1", "z2"]), st.sampled_from(["1", "4"]), st.booleans(), st.integers(1, 4)),
    max_size=4,
)
PENDING = st.lists(
    st.tuples(st.sampled_from(range(len(SPECS))), st.sampled_from(["a", "b"]), st.integers(0, 2)), max_size=14
)


def cluster(drawn: list[tuple[str, str, bool, int]]) -> list[Node]:
    return [
        node(f"n{number}", zone=zone, cpu=cpu, pods=str(pods), taints=TAINT if tainted else None)
        for number, (zone, cpu, tainted, pods) in enumerate(drawn)
    ]


def waiting(drawn: list[tuple[int, str, int]]) -> list[Pod]:
    return [
        pod(f"p{number}", labels={"app": app}, priority=priority, **SPECS[spec])
        for number, (spec, app, priority) in enumerate(drawn)
    ]


@given(nodes=NODES, pods=PENDING)
@settings(max_examples=120, deadline=None)
def test_a_pod_goes_only_where_the_rules_allow_it(nodes: list[Any], pods: list[Any]):
    """The remembered verdicts, one pod after the other, against the reference rules on a view made anew."""
    cache, classes = SchedulerCache(), PodClasses()
    for item in cluster(nodes):
        cache.put_node(item)
    reference = ClusterView.from_objects(cluster(nodes))
    for pending in waiting(pods):
        decision = schedule_pod(pending, cache, classes)
        outcome = compute_scheduling_outcome(pending, reference)
        if isinstance(decision, ScheduleResult):
            assert isinstance(check_node(pending, reference.nodes[decision.node].node, reference), Fits)
            reference = reference.with_pod(pending, decision.node)
            cache.assume(pending, decision.node)
        else:
            assert isinstance(outcome, NotSchedulable)
            assert outcome.message.startswith(decision.message)
            assert_refused_alike(decision, pending, reference)


def assert_refused_alike(decision: FitError, pod: Pod, reference: ClusterView) -> None:
    for name, verdict in decision.answers.items():
        expected = check_node(pod, reference.nodes[name].node, reference)
        assert isinstance(verdict, DoesNotFit)
        assert isinstance(expected, DoesNotFit)
        assert verdict.reason.messages == expected.reason.messages


@given(nodes=NODES, pods=PENDING, leaving=st.sets(st.integers(0, 13)))
@settings(max_examples=80, deadline=None)
def test_what_is_counted_is_what_is_there(nodes: list[Any], pods: list[Any], leaving: set[int]):
    """Pods come, are assumed, are forgotten and go; the cache holds what a view made from what is left holds."""
    cache = SchedulerCache()
    listed = cluster(nodes)
    for known in listed[::2]:
        cache.put_node(known)
    names = itertools.cycle([item.metadata.name for item in listed] or ["gone"])
    placed = []
    for number, item in enumerate(waiting(pods)):
        name = next(names)
        settled = pod(item.metadata.name, on=name, requests={"cpu": "100m"}, labels=item.metadata.labels)
        if number % 2 and cache.view.find_node(name) is not None:
            cache.assume(item, name)
        cache.put_pod(settled)
        placed.append(settled)
    for known in listed:
        cache.put_node(known)
    for number in leaving & set(range(len(placed))):
        cache.drop_pod(get_pod_key(placed[number]))
    left = [item for number, item in enumerate(placed) if number not in leaving]

    expected = ClusterView.from_objects(listed, left)

    assert {name: (state.used, set(state.pods)) for name, state in cache.view.nodes.items()} == {
        name: (state.used, set(state.pods)) for name, state in expected.nodes.items()
    }


SIZES = st.lists(st.tuples(st.sampled_from([250, 500, 1000, 2000]), st.integers(0, 2)), min_size=1, max_size=10)


@given(sizes=SIZES, nodes=st.integers(1, 3))
@settings(max_examples=15, deadline=None)
def test_no_node_is_ever_given_more_than_it_has_and_no_pod_starves(sizes: list[tuple[int, int]], nodes: int):
    with SchedulerCluster() as world:
        for number in range(3):
            world.priority(f"priority{number}", number * 10 + 1, preemptionPolicy="Never")
        for number, (milli, priority) in enumerate(sizes):
            world.pod(f"p{number}", cpu=f"{milli}m", priorityClassName=f"priority{priority}")
        for number in range(nodes):
            world.node(f"n{number}", allocatable={"cpu": "2"})
        world.run.advance_by(30)
        for _ in sizes:
            assert_within_limits(world)
            bound = [name for name, where in world.placements().items() if where]
            assert bound, "somebody fits, and nobody was placed"
            world.delete(bound[0])
            if not world.placements():
                break
            world.run.advance_by(12)  # longer than any back-off

        assert world.placements() == {}


def assert_within_limits(world: SchedulerCluster) -> None:
    used: dict[str, ResourceVector] = {}
    for item in world.ask("GET", PODS).body["items"]:
        where = item["spec"].get("nodeName")
        if where:
            asked = item["spec"]["containers"][0]["resources"]["requests"]
            used[where] = used.get(where, ZERO) + ResourceVector.from_quantities(asked)
    assert all(total["cpu"] <= 2000 for total in used.values()), used


@given(drawn=st.lists(st.integers(0, 4), min_size=2, max_size=8))
@settings(max_examples=10, deadline=None)
def test_the_highest_priorities_get_the_room_there_is(drawn: list[int]):
    with SchedulerCluster(stepped=True) as world:
        for number in range(5):
            world.priority(f"priority{number}", number + 1, preemptionPolicy="Never")
        for number, priority in enumerate(drawn):
            world.pod(f"p{number}", cpu="1", priorityClassName=f"priority{priority}")
        world.node("n1", allocatable={"cpu": "2"})
        world.run.settle()

        done = world.run.run_until(world.scheduler.schedule_once())

        in_line = sorted(range(len(drawn)), key=lambda number: (-drawn[number], number))
        assert [key.name for key, _ in done.bound] == [f"p{number}" for number in in_line[:2]]


def test_whatever_was_written_last_the_next_scheduler_goes_on():
    """Killed after every call it makes, in turn: in the end everybody is where they belong, and was bound once."""
    calls = 0
    for n in itertools.count(1):
        crash = CrashAfter(n)
        if not _survives(crash):
            break
        calls = n
    assert calls > 10


def _survives(crash: CrashAfter) -> bool:
    """The story of a preemption with a crash in it; gives whether the crash came."""
    switch = _SwitchableFault(crash)
    with SchedulerCluster(through=switch.wrap) as world:
        watch = world.watch(f"{PODS}?watch=true")
        switch.is_on = True
        _story(world)
        switch.is_on = False
        if crash.struck is not None:
            world.kill()
            world.start()
        world.run.advance_by(900)

        assert world.placements() == {"high": "n1", "other": "n2"}
        assert _bindings(watch.events) == {"low": 1, "other": 1, "high": 1}
        return crash.struck is not None


def _story(world: SchedulerCluster) -> None:
    world.priority("high", 100)
    world.node("n1", allocatable={"cpu": "3"})
    world.pod("low", cpu="3")
    world.node("n2", allocatable={"cpu": "1"})
    world.pod("other", cpu="1")
    world.pod("high", cpu="3", priorityClassName="high")


def _bindings(events: list[Any]) -> dict[str, int]:
    """How often each pod came to a node."""
    before: dict[str, str] = {}
    counts: dict[str, int] = {}
    for event in events:
        name = event["object"]["metadata"]["name"]
        where = event["object"]["spec"].get("nodeName", "")
        counts[name] = counts.get(name, 0) + (bool(where) and before.get(name, "") != where)
        before[name] = where
    return counts


class _SwitchableFault:
    """Writes pass through the fault while it is on; what informers read does not."""

    def __init__(self, crash: CrashAfter) -> None:
        self.is_on = False
        self.crash = crash

    def wrap(self, port: Any) -> Any:
        return _CrashingTransport(port, self)


class _CrashingTransport:
    """The transport of a process that may die: a dead one hears no answer and sends no more."""

    def __init__(self, port: Any, switch: _SwitchableFault) -> None:
        self._port = port
        self._faulty = switch.crash.wrap(port)
        self._switch = switch

    async def send(self, call: Any) -> Any:
        if not self._switch.is_on or call.method == "GET":
            return await self._port.send(call)
        try:
            return await self._faulty.send(call)
        except Crashed:
            await asyncio.Event().wait()

    async def aclose(self) -> None:
        await self._port.aclose()
