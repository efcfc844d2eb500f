"""Growing, shrinking and removing through the objects of Cluster API (docs/design/nodes.md 9.4)."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.kube.errors import Forbidden, ServerFailed, Status, TimedOut
from plimsoll.local.cluster_api.machines import BOOT_S
from plimsoll.nodes.model.call_outcomes import CallFailed, Done, FailureKind, Outcome
from plimsoll.nodes.model.instances import InstanceState
from plimsoll.nodes.providers.values import NodeRef
from tests.kube.embedded_api import unchanged
from tests.nodes.providers.clusterapi.capi_clusters import CapiCluster
from tests.nodes.providers.clusterapi.capi_objects import MARK, bounds, collection, machine, scalable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.golden.reviewed_sentences import ReviewedSentences

READY_S = BOOT_S + 5


@contextlib.contextmanager
def started(replicas: int, *, least: int = 0, through: Any = unchanged) -> Iterator[CapiCluster]:
    """A deployment whose nodes have all come up."""
    with CapiCluster(through=through) as world:
        world.deployment("md", replicas=replicas, annotations=bounds(least, 10))
        world.after(READY_S)
        yield world


def refusal(outcome: Outcome) -> str:
    assert isinstance(outcome, CallFailed)
    assert outcome.kind is FailureKind.REFUSED
    return outcome.message


# ---- growing


def test_growth_sets_replicas_and_nodes_come():
    with started(1) as world:
        group = world.refreshed()
        assert world.do(group.increase_size(2, expected=1)) == Done()
        assert world.replicas() == 3
        assert world.do(group.target_size()) == 3
        world.after(READY_S)
        assert len(world.nodes()) == 3


def test_repeated_growth_does_no_more_than_one():
    with started(1) as world:
        group = world.refreshed()
        assert world.do(group.increase_size(2, expected=1)) == Done()
        assert world.do(group.increase_size(2, expected=1)) == Done()
        assert world.replicas() == 3


def test_growth_from_another_size_than_expected_is_refused():
    with started(2) as world:
        assert "is 2, not 1" in refusal(world.do(world.refreshed().increase_size(5, expected=1)))
        assert world.replicas() == 2


@pytest.mark.parametrize("delta", [0, -1, 8])
def test_growth_by_nothing_or_above_the_maximum_is_refused(delta: int):
    with started(3) as world:
        refusal(world.do(world.refreshed().increase_size(delta, expected=3)))
        assert world.replicas() == 3


def test_a_group_that_went_away_is_reported():
    with started(1) as world:
        group = world.refreshed()
        world.kube.ask("DELETE", f"{collection('MachineDeployment')}/md")
        outcome = world.do(group.increase_size(1, expected=1))
        assert isinstance(outcome, CallFailed)
        assert outcome.kind is FailureKind.NO_SUCH_GROUP


# ---- giving up what has not come


def test_what_has_not_come_is_given_up():
    with started(1) as world:
        world.do(world.refreshed().increase_size(2, expected=1))
        world.after(5)
        assert world.do(world.refreshed().decrease_target_size(-2, expected=3)) == Done()
        assert world.replicas() == 1


def test_real_nodes_are_never_given_up():
    with started(3) as world:
        group = world.refreshed()
        assert "has 3 nodes" in refusal(world.do(group.decrease_target_size(-1, expected=3)))
        refusal(world.do(group.decrease_target_size(1, expected=3)))
        assert world.replicas() == 3


def test_failed_machines_are_no_real_nodes():
    with CapiCluster() as world:
        world.capi.failing.add("md")
        world.deployment("md", replicas=2)
        world.after(READY_S)
        group = world.refreshed()
        assert all(instance.error is not None for instance in world.do(group.nodes()))
        assert world.do(group.decrease_target_size(-2, expected=2)) == Done()
        assert world.replicas() == 0


# ---- removing


def test_just_the_nodes_that_are_named_go():
    with started(4) as world:
        first, second, third, fourth = world.nodes()
        group = world.refreshed()
        assert world.do(group.delete_nodes([world.node(third), world.node(second)])) == Done()
        assert world.replicas() == 2
        assert world.do(group.target_size()) == 2
        states = {instance.name: instance.state for instance in world.do(group.nodes())}
        assert states[third] is states[second] is InstanceState.DELETING
        assert states[first] is InstanceState.RUNNING
        world.after(5)
        assert world.nodes() == [first, fourth]


def test_a_failed_machine_is_removed_by_the_id_it_was_listed_under():
    with CapiCluster() as world:
        world.deployment("md", replicas=1)
        world.after(READY_S)
        world.capi.failing.add("md")
        world.do(world.refreshed().increase_size(1, expected=1))
        world.after(READY_S)
        group = world.refreshed()
        (failed,) = [instance for instance in world.do(group.nodes()) if instance.error]
        assert world.do(group.delete_nodes([NodeRef.from_instance(failed)])) == Done()
        world.after(5)
        assert (world.replicas(), len(world.nodes()), len(world.machines())) == (1, 1, 1)


def test_removal_below_the_minimum_is_refused_and_marks_nothing(reviewed: ReviewedSentences):
    with started(3, least=2) as world:
        nodes = [world.node(name) for name in world.nodes()]
        group = world.refreshed()
        reviewed(refusal(world.do(group.delete_nodes(nodes[:2]))))
        assert (world.replicas(), world.marked(MARK)) == (3, [])
        assert world.do(group.delete_nodes(nodes[:1])) == Done()
        refusal(world.do(group.delete_nodes(nodes[1:2])))
        assert world.do(group.force_delete_nodes(nodes[1:2])) == Done()
        assert world.replicas() == 1


def test_a_node_of_another_group_is_refused_and_marks_nothing(reviewed: ReviewedSentences):
    with started(2) as world:
        world.deployment("other", replicas=1)
        world.after(READY_S)
        other = next(name for name in world.nodes() if "other" in name)
        mine = next(name for name in world.nodes() if "md" in name)
        outcome = world.do(world.refreshed().delete_nodes([world.node(mine), world.node(other)]))
        reviewed(refusal(outcome))
        assert (world.replicas(), world.marked(MARK)) == (2, [])


def test_what_is_gone_or_going_needs_no_removing():
    with CapiCluster(runs=False) as world:
        world.made(scalable("MachineSet", "ms", replicas=2))
        world.made(machine("m", ("MachineSet", "ms"), providerID="x/1", finalizers=["a.b/c"]))
        world.kube.ask("DELETE", f"{collection('Machine')}/m")
        group = world.refreshed("ms", "MachineSet")
        nodes = [NodeRef(provider_id="x/1", name="n1"), NodeRef(provider_id="x/2", name="gone")]
        assert world.do(group.delete_nodes(nodes)) == Done()
        assert world.replicas("ms", "MachineSet") == 2


def test_repeated_removal_does_no_more_than_one_while_cluster_api_has_not_acted():
    """Also by another process, which knows nothing but the objects."""
    with CapiCluster(runs=False) as world:
        world.made(scalable("MachineSet", "ms", replicas=3))
        for name in "abc":
            world.made(machine(name, ("MachineSet", "ms"), providerID=f"x/{name}"))
        going = [NodeRef(provider_id="x/b", name="b")]
        for _ in range(3):
            group = world.refreshed("ms", "MachineSet")
            assert world.do(group.delete_nodes(going)) == Done()
            assert world.do(group.delete_nodes(going)) == Done()
            world.provider = world.restarted()
        assert world.replicas("ms", "MachineSet") == 2
        other = [NodeRef(provider_id="x/c", name="c")]
        assert world.do(world.refreshed("ms", "MachineSet").delete_nodes(other)) == Done()
        assert (world.replicas("ms", "MachineSet"), world.marked(MARK)) == (1, ["b", "c"])


def test_a_mark_that_was_never_paid_for_is_taken_back_before_it_misleads():
    with CapiCluster(runs=False) as world:
        world.made(scalable("MachineSet", "ms", replicas=2))
        for name in "ab":
            marks = {MARK: "plimsoll"} if name == "a" else {}
            world.made(machine(name, ("MachineSet", "ms"), providerID=f"x/{name}", annotations=marks))
        group = world.refreshed("ms", "MachineSet")
        assert world.do(group.delete_nodes([NodeRef(provider_id="x/b", name="b")])) == Done()
        assert (world.marked(MARK), world.replicas("ms", "MachineSet")) == (["b"], 1)


def test_marks_of_others_are_left_alone():
    with CapiCluster(runs=False) as world:
        world.made(scalable("MachineSet", "ms", replicas=2))
        for name in "ab":
            marks = {MARK: "by hand"} if name == "a" else {}
            world.made(machine(name, ("MachineSet", "ms"), providerID=f"x/{name}", annotations=marks))
        group = world.refreshed("ms", "MachineSet")
        assert world.do(group.delete_nodes([NodeRef(provider_id="x/b", name="b")])) == Done()
        assert world.marked(MARK) == ["a", "b"]


# ---- pools without machines


def pool(world: CapiCluster, *ids: str, replicas: int) -> None:
    world.made(scalable("MachinePool", "p", replicas=replicas, providerIDList=list(ids)))


def test_a_pool_without_machines_only_becomes_smaller():
    with CapiCluster(runs=False) as world:
        pool(world, "x/1", "x/2", "x/3", replicas=3)
        group = world.refreshed("p", "MachinePool")
        for name in ("x/1", "x/1", "x/2"):
            assert world.do(group.delete_nodes([NodeRef(provider_id=name, name=name)])) == Done()
        assert world.replicas("p", "MachinePool") == 1


def test_a_new_process_takes_what_a_pool_has_too_many_as_given_up_already():
    with CapiCluster(runs=False) as world:
        pool(world, "x/1", "x/2", "x/3", replicas=2)
        group = world.refreshed("p", "MachinePool")
        assert world.do(group.delete_nodes([NodeRef(provider_id="x/1", name="n")])) == Done()
        assert world.replicas("p", "MachinePool") == 2


# ---- a server that refuses or does not answer


class ScaleFaults:
    """Goes wrong when a size is changed: before it is done, or after."""

    def __init__(self, error: Exception, *, done: bool = False) -> None:
        self._error, self.is_done = error, done
        self.is_on = True

    def __call__(self, transport: Any) -> ScaleFaults:
        self._transport = transport
        return self

    async def send(self, call: Any) -> Any:
        wrong = self.is_on and call.method == "PATCH" and call.path.endswith("/scale")
        if wrong and not self.is_done:
            raise self._error
        reply = await self._transport.send(call)
        if wrong:
            raise self._error
        return reply

    async def aclose(self) -> None:
        """Nothing is held."""


def test_a_refused_size_takes_the_marks_back():
    fault = ScaleFaults(Forbidden(Status(message="quota", code=403)), done=False)
    with started(2, through=fault) as world:
        outcome = world.do(world.refreshed().delete_nodes([world.node(world.nodes()[1])]))
        assert isinstance(outcome, CallFailed)
        assert (outcome.kind, outcome.message) == (FailureKind.FAILED, "quota")
        assert (world.replicas(), world.marked(MARK)) == (2, [])


@pytest.mark.parametrize("done", [True, False])
def test_after_a_lost_answer_the_same_call_ends_what_was_begun(done: bool):
    fault = ScaleFaults(TimedOut("lost"), done=done)
    with started(3, through=fault) as world:
        first, second, third = world.nodes()
        ref = world.node(second)
        outcome = world.do(world.refreshed().delete_nodes([ref]))
        assert isinstance(outcome, CallFailed)
        assert outcome.kind is FailureKind.UNKNOWN
        fault.is_on = False
        assert world.do(world.refreshed().delete_nodes([ref])) == Done()
        world.after(5)
        assert (world.nodes(), world.replicas()) == ([first, third], 2)


def test_machines_that_came_since_the_last_look_are_counted_when_a_removal_is_repeated():
    """Else the repeated call would take one more node away, and it would not be known which."""
    fault = ScaleFaults(TimedOut("lost"), done=True)
    fault.is_on = False
    with started(3, through=fault) as world:
        ref = world.node(world.nodes()[1])
        group = world.refreshed()
        world.do(group.increase_size(2, expected=3))
        world.after(5)
        world.capi.is_idle = True
        fault.is_on = True
        world.do(group.delete_nodes([ref]))
        fault.is_on = False
        assert world.do(group.delete_nodes([ref])) == Done()
        assert world.replicas() == 4


def test_a_server_in_trouble_leaves_growth_unknown():
    fault = ScaleFaults(ServerFailed(Status(message="etcd", code=500)), done=False)
    with started(1, through=fault) as world:
        outcome = world.do(world.refreshed().increase_size(1, expected=1))
        assert isinstance(outcome, CallFailed)
        assert outcome.kind is FailureKind.UNKNOWN
