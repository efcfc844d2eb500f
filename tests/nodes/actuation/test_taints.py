"""Marks on nodes: soft taints in step with what is unneeded, leftovers taken off, and no other taint ever lost."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.core.plans import Reason
from plimsoll.kube.errors import Conflict, Forbidden, Status, TimedOut
from plimsoll.nodes.actuation.node_writer import NodeGone, NodeWriter
from plimsoll.nodes.actuation.taints import (
    SoftTaints,
    add_deletion_taint,
    remove_deletion_taint,
    restore_unneeded_since,
)
from plimsoll.nodes.actuation.timing import Pacing
from plimsoll.nodes.config.policy import ScaleDown
from plimsoll.nodes.model.taints import DELETION_CANDIDATE
from plimsoll.objects.api.meta import ObjectMeta
from plimsoll.objects.api.nodes import Node, NodeSpec, Taint
from plimsoll.runtime.virtual_run import DEFAULT_START
from plimsoll.testing import run_virtual
from tests.nodes.actuation.builders import DELETED, DeletionCluster, removal

if TYPE_CHECKING:
    from plimsoll.runtime.clocks import VirtualClock

NOW = DEFAULT_START
PLAIN = ScaleDown()


def node_with(name: str = "n", *taints: Taint, uid: str = "u", unschedulable: bool = False) -> Node:
    return Node(
        metadata=ObjectMeta(name=name, uid=uid, resource_version="1"),
        spec=NodeSpec(taints=taints, unschedulable=unschedulable),
    )


def candidate(since_s: float) -> Taint:
    moment = str(int((NOW + timedelta(seconds=since_s)).timestamp()))
    return Taint(key=DELETION_CANDIDATE, value=moment, effect="PreferNoSchedule")


# ---- soft taints


def test_unneeded_nodes_carry_since_when_they_are_and_needed_ones_lose_it():
    with DeletionCluster() as world:
        world.group("g", target=3)
        soft = SoftTaints(writer_of(world), clock=world.clock)
        nodes = {name: world.node(name) for name in world.nodes()}
        since = world.clock.now() - timedelta(seconds=90)
        reported = world.do(soft.update({"g-0": since, "g-1": since}, nodes, PLAIN))
        assert (reported.added, reported.removed, reported.left) == (("g-0", "g-1"), (), ())
        (taint,) = world.node("g-0").spec.taints
        assert (taint.key, taint.effect) == (DELETION_CANDIDATE, "PreferNoSchedule")
        assert taint.value == str(int(since.timestamp()))
        nodes = {name: world.node(name) for name in world.nodes()}
        reported = world.do(soft.update({"g-1": since}, nodes, PLAIN))
        assert (reported.added, reported.removed) == ((), ("g-0",))
        assert [world.marks(name)[0] for name in world.nodes()] == [[], [DELETION_CANDIDATE], []]


def test_a_turn_changes_only_so_many_nodes_and_takes_marks_off_first():
    with DeletionCluster() as world:
        world.group("g", target=5)
        soft = SoftTaints(writer_of(world), clock=world.clock)
        since = dict.fromkeys(world.nodes(), world.clock.now())
        few = ScaleDown(soft_taint_count=3)
        nodes = {name: world.node(name) for name in world.nodes()}
        reported = world.do(soft.update(since, nodes, few))
        assert (reported.added, reported.left) == (("g-0", "g-1", "g-2"), ("g-3", "g-4"))
        nodes = {name: world.node(name) for name in world.nodes()}
        reported = world.do(soft.update({"g-3": since["g-3"], "g-4": since["g-4"]}, nodes, few))
        assert (reported.removed, reported.added, reported.left) == (("g-0", "g-1", "g-2"), (), ("g-3", "g-4"))


def test_a_turn_spends_only_so_much_time_on_soft_taints():
    async def story(clock: VirtualClock) -> Any:
        class Slow(ScriptedNodeClient):
            async def merge_patch(self, *args: Any) -> Node:
                await clock.sleep(2)
                return await super().merge_patch(*args)

        nodes = {name: node_with(name) for name in ("a", "b", "c", "d")}
        soft = SoftTaints(NodeWriter(Slow(nodes["a"]), clock=clock, pacing=Pacing.STEPPED), clock=clock)  # type: ignore[arg-type]
        return await soft.update(dict.fromkeys(nodes, NOW), nodes, ScaleDown(soft_taint_time_s=3))

    reported = run_virtual(story)
    assert (reported.added, reported.left) == (("a", "b"), ("c", "d"))


def test_nodes_on_their_way_out_are_left_alone():
    with DeletionCluster() as world:
        world.group("g", target=1)
        world.remove(removal("g-0", is_empty=True))
        world.after(1)
        soft = SoftTaints(writer_of(world), clock=world.clock)
        reported = world.do(soft.update({"g-0": world.clock.now()}, {"g-0": world.node("g-0")}, PLAIN))
        assert reported.added == ()


@pytest.mark.parametrize(("ttl_s", "age_s", "is_restored"), [(0, 10, False), (600, 600, True), (600, 601, False)])
def test_timers_are_restored_from_marks_that_are_not_stale(ttl_s: float, age_s: float, is_restored: bool):
    found = restore_unneeded_since([node_with("n", candidate(-age_s))], ScaleDown(candidate_ttl_s=ttl_s), NOW)
    assert found == ({"n": NOW - timedelta(seconds=age_s)} if is_restored else {})


@pytest.mark.parametrize("value", ["", "soon", "-5", "99999999999999", "१२३"])
def test_unreadable_marks_restore_nothing(value: str):
    odd = Taint(key=DELETION_CANDIDATE, value=value, effect="PreferNoSchedule")
    assert restore_unneeded_since([node_with("n", odd)], ScaleDown(candidate_ttl_s=600), NOW) == {}


def test_a_mark_from_the_future_counts_from_now():
    found = restore_unneeded_since([node_with("n", candidate(50))], ScaleDown(candidate_ttl_s=600), NOW)
    assert found == {"n": NOW}


# ---- leftovers


def test_marks_and_cordons_of_an_earlier_process_come_off_at_the_start():
    with DeletionCluster() as world:
        world.group("g", target=2)
        world.do(add_deletion_taint(writer_of(world), world.node("g-0"), at=world.clock.now(), cordon=True))
        assert world.marks("g-0") == ([DELETED], True)
        nodes = [world.node(name) for name in world.nodes()]
        cleaned = world.do(world.cleaner.remove_deletion_taints(nodes, PLAIN))
        assert [(cleanup.node, cleanup.failure) for cleanup in cleaned] == [("g-0", None)]
        assert world.marks("g-0") == ([], False)


def test_a_cordon_by_another_writer_outlives_the_mark_also_after_a_crash():
    with DeletionCluster() as world:
        world.group("g", target=1)
        world.kube.do(world.client.merge_patch(Node, "g-0", {"spec": {"unschedulable": True}}))
        world.do(add_deletion_taint(writer_of(world), world.node("g-0"), at=world.clock.now(), cordon=True))
        world.do(world.cleaner.remove_deletion_taints([world.node("g-0")], PLAIN))
        assert world.marks("g-0") == ([], True)


def test_nodes_that_this_process_removes_are_not_cleaned():
    with DeletionCluster() as world:
        world.group("g", target=1)
        world.remove(removal("g-0", is_empty=True))
        world.after(1)
        leaving = world.remover.in_progress.nodes
        assert world.do(world.cleaner.remove_deletion_taints([world.node("g-0")], PLAIN, leaving=leaving)) == ()
        assert world.marks("g-0") == ([DELETED], True)


def test_a_node_whose_machine_is_being_deleted_keeps_its_mark():
    with DeletionCluster() as world:
        world.group("g", target=2)
        world.do(add_deletion_taint(writer_of(world), world.node("g-0"), at=world.clock.now(), cordon=True))
        node = world.node("g-0")
        world.do(world.cloud.delete_nodes("g", ["g-0"]))
        world.do(world.provider.refresh())
        assert world.do(world.cleaner.remove_deletion_taints([node], PLAIN)) == ()


def test_a_node_of_no_group_is_cleaned_too():
    with DeletionCluster() as world:
        world.kube.made("/api/v1/nodes", {"metadata": {"name": "lone"}, "spec": {"providerID": "x://lone"}})
        world.do(add_deletion_taint(writer_of(world), world.node("lone"), at=world.clock.now(), cordon=False))
        world.do(world.cleaner.remove_deletion_taints([world.node("lone")], PLAIN))
        assert DELETED not in world.marks("lone")[0]


@pytest.mark.parametrize(("ttl_s", "left"), [(0, []), (60, [DELETION_CANDIDATE])])
def test_soft_taints_are_cleaned_unless_timers_are_restored_from_them(ttl_s: float, left: list[str]):
    with DeletionCluster() as world:
        world.group("g", target=1)
        soft = SoftTaints(writer_of(world), clock=world.clock)
        world.do(soft.update({"g-0": world.clock.now()}, {"g-0": world.node("g-0")}, PLAIN))
        options = ScaleDown(candidate_ttl_s=ttl_s)
        world.do(world.cleaner.remove_soft_taints([world.node("g-0")], options))
        assert world.marks("g-0")[0] == left


# ---- writing


def writer_of(world: DeletionCluster) -> NodeWriter:
    return NodeWriter(world.client, clock=world.clock, pacing=world.pacing)


class ScriptedNodeClient:
    """A client of one node. The script says what its writes meet: a faster writer, a lost answer, or nothing."""

    def __init__(self, node: Node, *script: str) -> None:
        self.node = node
        self.script = list(script)
        self.version = 1
        self.others = 0

    async def get(self, _kind: type[Node], _name: str) -> Node:
        return self.node

    async def merge_patch(self, _kind: type[Node], name: str, body: dict[str, Any]) -> Node:
        step = self.script.pop(0) if self.script else ""
        if step == "forbidden":
            raise Forbidden(Status(code=403, message="no"))
        if step == "before":
            raise TimedOut("lost before it had an effect")
        if step == "conflict":
            self.others += 1
            taint = Taint(key=f"other-{self.others}", effect="NoSchedule")
            self._put(NodeSpec(taints=(*self.node.spec.taints, taint), unschedulable=self.node.spec.unschedulable))
        stated = body["metadata"]["resourceVersion"]
        if stated != self.node.metadata.resource_version and name == self.node.metadata.name:
            raise Conflict(Status(code=409, message="changed"))
        spec = body["spec"]
        unschedulable = spec.get("unschedulable", self.node.spec.unschedulable) or False
        self._put(NodeSpec(taints=tuple(spec["taints"]), unschedulable=unschedulable))
        if step == "after":
            raise TimedOut("lost after it had its effect")
        return self.node

    def _put(self, spec: NodeSpec) -> None:
        self.version += 1
        meta = ObjectMeta(name=self.node.metadata.name, uid=self.node.metadata.uid, resource_version=str(self.version))
        self.node = Node(metadata=meta, spec=spec)


steps = st.lists(st.sampled_from(["conflict", "before", "after", ""]), max_size=5)


@settings(deadline=None, max_examples=100)
@given(going=steps, coming=steps, own=st.booleans())
def test_whatever_happens_on_the_way_no_taint_of_others_is_lost(going: list[str], coming: list[str], own: bool):
    async def story(clock: VirtualClock) -> ScriptedNodeClient:
        first = node_with("n", Taint(key="first", effect="NoExecute"), unschedulable=own)
        client = ScriptedNodeClient(first, *going)
        writer = NodeWriter(client, clock=clock, pacing=Pacing())  # type: ignore[arg-type]
        marked = await add_deletion_taint(writer, first, at=NOW, cordon=False)
        assert isinstance(marked, Node)
        assert sum(taint.key == DELETED for taint in client.node.spec.taints) == 1
        client.script = coming
        assert isinstance(await remove_deletion_taint(writer, first, uncordon=False), Node)
        return client

    client = run_virtual(story)
    keys = [taint.key for taint in client.node.spec.taints]
    assert keys == ["first", *(f"other-{number + 1}" for number in range(client.others))]
    assert client.node.spec.unschedulable is own


def test_a_node_of_the_same_name_is_not_touched():
    async def story(clock: VirtualClock) -> Any:
        client = ScriptedNodeClient(node_with("n", uid="another"), "conflict")
        writer = NodeWriter(client, clock=clock, pacing=Pacing())  # type: ignore[arg-type]
        return await add_deletion_taint(writer, node_with("n"), at=NOW, cordon=True), client.node

    written, node = run_virtual(story)
    assert isinstance(written, NodeGone)
    assert DELETED not in [taint.key for taint in node.spec.taints]


def test_what_is_forbidden_is_not_tried_again():
    async def story(clock: VirtualClock) -> Any:
        client = ScriptedNodeClient(node_with("n"), "forbidden", "")
        writer = NodeWriter(client, clock=clock, pacing=Pacing())  # type: ignore[arg-type]
        return await add_deletion_taint(writer, client.node, at=NOW, cordon=True), client.script

    written, script = run_virtual(story)
    assert isinstance(written, Reason)
    assert script == [""]


def test_a_node_that_is_changed_all_the_time_is_given_up():
    async def story(clock: VirtualClock) -> Any:
        client = ScriptedNodeClient(node_with("n"), *["conflict"] * 100)
        writer = NodeWriter(client, clock=clock, pacing=Pacing())  # type: ignore[arg-type]
        return await add_deletion_taint(writer, client.node, at=NOW, cordon=True), clock.monotonic_s()

    written, seconds = run_virtual(story)
    assert isinstance(written, Reason)
    assert seconds < 6
