"""A removal that does not come to its end leaves no mark, and no other removal suffers (docs/design/nodes.md 6.8)."""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll.core.plans import Reason
from plimsoll.kube.errors import NotAllowed, NotSent, Status, TimedOut, build_error
from plimsoll.kube.informer import Informer
from plimsoll.nodes.actuation.deletion_guard import DeletionGuard
from plimsoll.nodes.actuation.drain import find_pods_to_evict
from plimsoll.nodes.actuation.node_pods import ListedPods, PodsOfNode
from plimsoll.nodes.actuation.timing import Pacing
from plimsoll.nodes.config.policy import ScaleDown
from plimsoll.nodes.planning.scaledown.drainability import DrainRules
from plimsoll.nodes.providers.values import NodeRef
from plimsoll.objects.api.nodes import Node
from plimsoll.objects.api.simulated_cloud import CallFault
from plimsoll.objects.api.simulated_cloud_errors import CloudTimedOut
from plimsoll.runtime.entropy import SeededEntropy
from tests.local.apiserver.builders import START
from tests.narrowing import present
from tests.nodes.actuation.builders import DELETED, DeletionCluster, removal

DISABLED = {"cluster-autoscaler.kubernetes.io__scale_down_disabled": "true"}


class FaultyPort:
    """A port whose calls go wrong while `error` says so: before they take effect, or (`late`) after."""

    def __init__(self, port: Any, method: str) -> None:
        self._port = port
        self._method = method

    is_late = False
    error: Exception | None = None
    struck = 0
    limit = 1_000_000

    def __getattr__(self, name: str) -> Any:
        if name != self._method:
            return getattr(self._port, name)
        return self._called

    async def _called(self, *args: Any, **options: Any) -> Any:
        strikes = self._strikes(*args)
        if strikes and not self.is_late:
            raise self._struck()
        answer = await getattr(self._port, self._method)(*args, **options)
        if strikes:
            raise self._struck()
        return answer

    def _strikes(self, *_args: Any) -> bool:
        return self.error is not None and self.struck < self.limit

    def _struck(self) -> Exception:
        self.struck += 1
        assert self.error is not None
        return self.error


class FaultyCalls(FaultyPort):
    """Only calls of a method, and whose path holds a text."""

    def __init__(self, port: Any) -> None:
        super().__init__(port, "send")
        self.verb, self.path = "", ""

    def _strikes(self, *args: Any) -> bool:
        call = args[0]
        return super()._strikes() and self.verb in {"", call.method} and self.path in call.path


class PortFaults:
    """Keeps the last port it wrapped."""

    def __init__(self, make: Any) -> None:
        self._make = make
        self.port: Any = None

    def wrap(self, port: Any) -> Any:
        self.port = self._make(port)
        return self.port


# ---- pods that do not go


def test_an_eviction_that_a_budget_refuses_is_tried_every_ten_seconds_for_two_minutes():
    calls = PortFaults(FaultyCalls)
    with DeletionCluster(through=calls.wrap) as world:
        world.group("g", target=1)
        world.pod("web-0", node="g-0", labels={"app": "web"})
        world.budget(maxUnavailable=0, selector={"matchLabels": {"app": "web"}})
        world.remove(removal("g-0"))
        world.after(5 + 109)
        assert world.results() == {}
        assert world.marks("g-0") == ([DELETED], True)
        world.after(2)
        ended = world.end_of("g-0")
        assert (ended.result, present(ended.reason).code, ended.failed_evictions) == ("failed", "FailedToEvictPods", 1)
        assert "pdb" in str(ended.reason)
        assert world.marks("g-0") == ([], False)
        assert world.pods() == ["web-0"]


def test_an_eviction_goes_through_when_the_budget_allows_it_in_time():
    with DeletionCluster() as world:
        world.group("g", target=1)
        world.pod("web-0", node="g-0", labels={"app": "web"})
        world.budget(maxUnavailable=0, selector={"matchLabels": {"app": "web"}})
        world.remove(removal("g-0"))
        world.after(60)
        world.kube.ask("DELETE", "/apis/policy/v1/namespaces/here/poddisruptionbudgets/pdb")
        world.after(20)
        assert world.results() == {"g-0": "removed"}


def test_a_pod_that_does_not_end_is_waited_for_as_long_as_the_longest_grace_and_headroom():
    with DeletionCluster(graceful_termination_s=60) as world:
        world.group("g", target=1)
        world.pod("web-0", node="g-0")
        body = {"metadata": {"finalizers": ["example.com/stays"]}}
        world.kube.ask("PATCH", "/api/v1/namespaces/here/pods/web-0", body, content="application/merge-patch+json")
        world.remove(removal("g-0"))
        world.after(5 + 89)
        assert world.results() == {}
        world.after(2)
        ended = world.end_of("g-0")
        assert (ended.result, present(ended.reason).code) == ("failed", "FailedToEvictPods")
        assert "here/web-0" in present(ended.reason).message
        assert world.marks("g-0") == ([], False)


# ---- what changed since the plan


def test_a_pod_that_came_to_an_empty_node_keeps_it():
    with DeletionCluster() as world:
        world.group("g", target=1)
        world.remove(removal("g-0", is_empty=True))
        world.after(1)
        world.pod("web-0", node="g-0")
        world.after(6)
        ended = world.end_of("g-0")
        assert (ended.result, present(ended.reason).code) == ("overtaken", "NewPodsScheduled")
        assert world.marks("g-0") == ([], False)
        assert world.deletions() == []


def test_a_pod_that_must_not_be_moved_keeps_its_node():
    with DeletionCluster() as world:
        world.group("g", target=1)
        world.pod("web-0", node="g-0")
        world.remove(removal("g-0"))
        world.after(1)
        world.pod("lone", node="g-0", owner=None)
        world.after(6)
        ended = world.end_of("g-0")
        assert (ended.result, present(ended.reason).code) == ("overtaken", "BlockedByPod")
        assert world.pods() == ["lone", "web-0"]


def test_a_pod_that_came_and_may_move_is_drained_with_the_others():
    with DeletionCluster() as world:
        world.group("g", target=1)
        world.pod("web-0", node="g-0")
        world.remove(removal("g-0"))
        world.after(1)
        world.pod("web-1", node="g-0")
        world.after(10)
        assert world.end_of("g-0").evicted == 2


def test_a_node_that_is_gone_was_overtaken():
    with DeletionCluster() as world:
        world.group("g", target=1)
        world.remove(removal("g-0", is_empty=True), removal("never-was", is_empty=True))
        world.after(1)
        world.kube.ask("DELETE", "/api/v1/nodes/g-0")
        world.after(6)
        assert world.results() == {"never-was": "overtaken", "g-0": "overtaken"}
        assert world.deletions() == []


def test_a_node_whose_taint_is_removed_stays():
    with DeletionCluster() as world:
        world.group("g", target=1)
        world.remove(removal("g-0", is_empty=True))
        world.after(1)
        world.kube.do(world.client.merge_patch(Node, "g-0", {"spec": {"taints": None}}))
        world.after(6)
        assert world.results() == {"g-0": "overtaken"}
        assert world.marks("g-0") == ([], False)


def test_a_node_that_is_annotated_stays():
    with DeletionCluster() as world:
        world.group("g", target=1)
        world.remove(removal("g-0", is_empty=True))
        world.after(1)
        key = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
        world.kube.do(world.client.merge_patch(Node, "g-0", {"metadata": {"annotations": {key: "true"}}}))
        world.after(6)
        assert present(world.end_of("g-0").reason).code == "NodeKept"
        assert world.marks("g-0") == ([], False)


def test_a_node_whose_taint_is_removed_during_the_drain_stays():
    with DeletionCluster(stop_s=20) as world:
        world.group("g", target=1)
        world.pod("web-0", node="g-0")
        world.remove(removal("g-0"))
        world.after(15)
        world.kube.do(world.client.merge_patch(Node, "g-0", {"spec": {"taints": None}}))
        world.after(20)
        assert (world.results(), world.pods()) == ({"g-0": "overtaken"}, [])
        assert world.deletions() == []


def test_a_pod_that_cannot_be_read_keeps_its_node():
    odd = PodsOfNode(unreadable=1)
    found = find_pods_to_evict(odd, DrainRules(options=ScaleDown(), now=START), was_empty=True)
    assert isinstance(found, Reason)
    assert found.code == "BlockedByPod"


# ---- the taint


def test_a_taint_that_another_client_writes_at_the_same_time_is_kept():
    with DeletionCluster() as world:
        world.group("g", target=1)
        stale = world.node("g-0")
        other = {"key": "other", "effect": "NoSchedule"}
        world.kube.do(world.client.merge_patch(Node, "g-0", {"spec": {"taints": [other]}}))
        world.remover.start([removal("g-0", is_empty=True)], {"g-0": stale}, world.clock.now())
        world.after(1)
        assert world.marks("g-0") == (["other", DELETED], True)


def test_a_failure_to_taint_one_node_undoes_all_that_were_to_go_with_it():
    calls = PortFaults(FaultyCalls)
    with DeletionCluster(through=calls.wrap) as world:
        world.group("g", target=7)
        calls.port.error = build_error(Status(code=403, message="no"))
        calls.port.verb, calls.port.path = "PATCH", "/nodes/g-6"
        world.remove(*(removal(f"g-{number}", is_empty=True) for number in range(7)))
        world.after(20)
        assert world.results() == {f"g-{number}": "failed" for number in range(7)}
        assert present(world.end_of("g-0").reason).code == "FailedToMarkToBeDeleted"
        assert all(world.marks(f"g-{number}") == ([], False) for number in range(7))
        assert world.deletions() == []


def test_nodes_to_drain_do_not_pay_for_empty_ones():
    calls = PortFaults(FaultyCalls)
    with DeletionCluster(through=calls.wrap) as world:
        world.group("g", target=2)
        calls.port.error = build_error(Status(code=403, message="no"))
        calls.port.verb, calls.port.path = "PATCH", "/nodes/g-0"
        world.remove(removal("g-0", is_empty=True), removal("g-1"))
        world.after(20)
        assert world.results() == {"g-0": "failed", "g-1": "removed"}


def test_a_lost_answer_to_the_taint_is_looked_up():
    calls = PortFaults(FaultyCalls)
    with DeletionCluster(through=calls.wrap) as world:
        world.group("g", target=1)
        calls.port.error, calls.port.verb, calls.port.limit = TimedOut("lost"), "PATCH", 1
        calls.port.is_late = True
        world.remove(removal("g-0", is_empty=True))
        world.after(7)
        assert world.results() == {"g-0": "removed"}


def test_a_cordon_that_was_there_before_stays_after_a_failure():
    with DeletionCluster() as world:
        world.group("g", target=1)
        world.kube.do(world.client.merge_patch(Node, "g-0", {"spec": {"unschedulable": True}}))
        world.do(world.hand.add_fault(CallFault(name="f", call="DeleteNodes")))
        world.remove(removal("g-0", is_empty=True))
        world.after(10)
        assert world.results() == {"g-0": "failed"}
        assert world.marks("g-0") == ([], True)
        assert "plimsoll.io/was-cordoned" not in world.node("g-0").metadata.annotations


# ---- the provider


def test_a_provider_that_fails_gives_the_node_back():
    with DeletionCluster() as world:
        world.group("g", target=1)
        world.do(world.hand.add_fault(CallFault(name="f", call="DeleteNodes", message="quota of calls")))
        world.remove(removal("g-0", is_empty=True))
        world.after(6)
        ended = world.end_of("g-0")
        assert (ended.result, present(ended.reason).code, present(ended.reason).message) == (
            "failed",
            "FailedToDelete",
            "quota of calls",
        )
        assert world.marks("g-0") == ([], False)
        assert world.remover.in_progress.nodes == frozenset()


def test_an_answer_that_was_lost_is_looked_up_and_nothing_is_deleted_twice():
    with DeletionCluster() as world:
        world.group("g", target=3)
        world.do(world.hand.add_fault(CallFault(name="f", call="DeleteNodes", kind="TimeOut", seconds=30, times=1)))
        world.remove(removal("g-0", is_empty=True))
        world.after(60)
        assert world.results() == {"g-0": "removed"}
        assert [entry.call for entry in world.log] == ["DeleteNodes"]
        assert world.nodes() == ["g-1", "g-2"]
        assert world.get_group().spec.target == 2


def test_a_late_answer_is_waited_for():
    with DeletionCluster() as world:
        world.group("g", target=2)
        world.do(world.hand.add_fault(CallFault(name="f", call="DeleteNodes", kind="Late", seconds=40)))
        world.remove(removal("g-0", is_empty=True))
        world.after(30)
        assert world.remover.in_progress.removals == 1
        world.after(20)
        assert world.results() == {"g-0": "removed"}


def test_a_call_that_never_arrived_is_made_again():
    cloud = PortFaults(lambda port: FaultyPort(port, "delete_nodes"))
    with DeletionCluster(over_cloud=cloud.wrap) as world:
        world.group("g", target=2)
        cloud.port.error, cloud.port.limit = CloudTimedOut("no answer"), 2
        world.remove(removal("g-0", is_empty=True))
        world.after(70)
        assert world.results() == {"g-0": "removed"}
        assert world.deletions() == [["g-0"]]


def test_calls_that_never_arrive_give_the_node_back():
    cloud = PortFaults(lambda port: FaultyPort(port, "delete_nodes"))
    with DeletionCluster(over_cloud=cloud.wrap) as world:
        world.group("g", target=2)
        cloud.port.error = CloudTimedOut("no answer")
        world.remove(removal("g-0", is_empty=True))
        world.after(100)
        ended = world.end_of("g-0")
        assert (ended.result, present(ended.reason).code) == ("failed", "FailedToDelete")
        assert "still runs after 3 calls" in present(ended.reason).message
        assert world.marks("g-0") == ([], False)


def test_while_the_provider_does_not_answer_the_mark_stays_and_is_then_handled():
    cloud = PortFaults(lambda port: FaultyPort(FaultyPort(port, "delete_nodes"), "node_groups"))
    with DeletionCluster(over_cloud=cloud.wrap) as world:
        world.group("g", target=2)
        world.do(world.provider.refresh())
        cloud.port._port.error, cloud.port.error = CloudTimedOut("no answer"), CloudTimedOut("not now")
        world.remove(removal("g-0", is_empty=True))
        world.after(5 + 301)
        ended = world.end_of("g-0")
        assert (ended.result, present(ended.reason).code) == ("failed", "DeletionNotConfirmed")
        assert world.marks("g-0") == ([DELETED], True)
        assert world.remover.in_progress.nodes == {"g-0"}
        cleaning = world.cleaner.remove_deletion_taints([world.node("g-0")], world.policy.scale_down)
        assert world.do(cleaning) == ()
        cloud.port.error = None
        world.after(300)
        world.remover.forget_deleted({"g-0": world.node("g-0")}, {})
        leaving = world.remover.in_progress.nodes
        world.do(world.provider.refresh())
        world.do(world.cleaner.remove_deletion_taints([world.node("g-0")], world.policy.scale_down, leaving=leaving))
        assert world.marks("g-0") == ([], False)


@pytest.mark.parametrize("is_late", [True, False])
def test_a_stepped_removal_looks_up_a_lost_answer_without_taking_time(is_late: bool):
    cloud = PortFaults(lambda port: FaultyPort(port, "delete_nodes"))
    with DeletionCluster(over_cloud=cloud.wrap, runs=False, pacing=Pacing.STEPPED) as world:
        world.group("g", target=2)
        cloud.port.error, cloud.port.is_late, cloud.port.limit = CloudTimedOut("no answer"), is_late, 1
        before = world.clock.now()
        world.remove(removal("g-0", is_empty=True))
        world.do(world.remover.wait_until_idle())
        assert world.clock.now() == before
        assert world.results() == {"g-0": "removed"}
        assert world.deletions() == [["g-0"]]


# ---- the API server is down


@pytest.mark.parametrize("down_after_s", [0, 2])
def test_without_the_api_server_nothing_is_deleted_and_marks_come_off_when_it_is_back(down_after_s: int):
    calls = PortFaults(FaultyCalls)
    with DeletionCluster(through=calls.wrap) as world:
        world.group("g", target=1)
        if down_after_s:
            world.remove(removal("g-0", is_empty=True))
            world.after(down_after_s)
            calls.port.error = NotSent("no route")
        else:
            nodes = {"g-0": world.node("g-0")}
            calls.port.error = NotSent("no route")
            world.remover.start([removal("g-0", is_empty=True)], nodes, world.clock.now())
        world.after(600)
        assert world.results() == {"g-0": "failed"}
        assert world.deletions() == []
        calls.port.error = None
        leaving = world.remover.in_progress.nodes
        world.do(world.cleaner.remove_deletion_taints([world.node("g-0")], world.policy.scale_down, leaving=leaving))
        assert world.marks("g-0") == ([], False)


def test_while_an_annotation_is_waited_for_a_server_that_is_down_keeps_the_node():
    calls = PortFaults(FaultyCalls)
    with DeletionCluster(through=calls.wrap) as world:
        world.group("g", target=1)
        world.annotate("g-0", **{"delay-deletion.cluster-autoscaler.kubernetes.io__x": "y"})
        world.remove(removal("g-0", is_empty=True))
        world.after(30)
        calls.port.error = NotSent("no route")
        world.after(600)
        assert world.results() == {"g-0": "failed"}
        assert world.deletions() == []


def test_an_autoscaler_that_loses_the_lease_stops_at_once_and_leaves_the_taints_to_the_next():
    calls = PortFaults(FaultyCalls)
    with DeletionCluster(through=calls.wrap) as world:
        world.group("g", target=1)
        world.pod("web-0", node="g-0")
        world.remove(removal("g-0"))
        world.after(4)
        calls.port.error = NotAllowed("the lease is lost")
        world.after(2)
        assert world.results() == {"g-0": "failed"}
        assert (world.marks("g-0"), world.pods()) == (([DELETED], True), ["web-0"])
        world.new_process(is_faultless=True)
        world.do(world.provider.refresh())
        world.do(world.cleaner.remove_deletion_taints([world.node("g-0")], world.policy.scale_down))
        assert world.marks("g-0") == ([], False)


# ---- being stopped


def test_a_stop_takes_marks_off_nodes_that_the_provider_was_not_asked_for():
    with DeletionCluster(stop_s=20) as world:
        world.group("g", target=3)
        world.pod("web-0", node="g-0")
        world.do(world.hand.add_fault(CallFault(name="f", call="DeleteNodes", kind="Late", seconds=100)))
        world.remove(removal("g-0"), removal("g-1", is_empty=True))
        world.after(7)
        world.stop_process()
        world.run.settle()
        assert world.marks("g-0") == ([], False)
        assert world.nodes() == ["g-0", "g-2"]
        assert world.remover.in_progress.nodes == frozenset()


def test_a_stop_is_not_held_up_by_a_server_that_does_not_answer():
    calls = PortFaults(FaultyCalls)
    with DeletionCluster(through=calls.wrap) as world:
        world.group("g", target=1)
        world.remove(removal("g-0", is_empty=True))
        world.after(1)
        calls.port.error = NotSent("no route")
        world.stop_process()
        world.after(5)
        assert world.running is not None
        assert world.running.done()


# ---- two Nodes of one machine


@pytest.mark.parametrize("is_drained", [False, True])
def test_a_machine_that_registered_under_a_second_name_is_kept(*, is_drained: bool):
    with DeletionCluster() as world:
        world.group("g", target=2)
        taints = [{"key": DELETED, "effect": "NoSchedule"}] if is_drained else []
        spec = {"providerID": world.node("g-0").spec.provider_id, "taints": taints}
        world.kube.made("/api/v1/nodes", {"metadata": {"name": "renamed"}, "spec": spec})
        world.pod("web-0", node="renamed")
        world.remove(removal("g-0", is_empty=True))
        world.after(60)
        assert world.results() == {"g-0": "overtaken"}
        assert world.deletions() == []
        why = "pod here/web-0 runs on node renamed" if is_drained else "node renamed of instance"
        assert why in present(world.end_of("g-0").reason).message


def test_nodes_of_the_cache_with_the_same_provider_id_are_read_live():
    with DeletionCluster() as world:
        world.group("g", target=2)
        provider_id = world.node("g-0").spec.provider_id
        taints = [{"key": DELETED, "effect": "NoSchedule"}]
        for name in ("drained", "renamed"):
            spec = {"providerID": provider_id, "taints": taints if name == "drained" else []}
            world.kube.made("/api/v1/nodes", {"metadata": {"name": name}, "spec": spec})
        informer = Informer(world.kube.new_client(), Node, clock=world.clock, entropy=SeededEntropy("nodes"))
        guard = DeletionGuard(world.client, ListedPods(world.client), clock=world.clock, informer=informer)
        world.run.spawn(informer.run(), name="nodes of the guard")
        world.run.settle()
        ref = NodeRef(provider_id=provider_id, name="drained")
        for name in ("g-0", "renamed"):
            assert world.kube.do(guard.find_in_use([ref]))["drained"].facts["node"] == name
            world.kube.do(world.client.merge_patch(Node, name, {"spec": {"taints": taints}}))
        assert world.kube.do(guard.find_in_use([ref])) == {}
