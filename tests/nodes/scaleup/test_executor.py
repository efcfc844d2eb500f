"""Growing groups, making them, putting sizes right, deleting what is empty: against the simulated cloud."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.core.plans import Reason
from plimsoll.core.resources import ResourceVector
from plimsoll.nodes.actuation.deletion_guard import DeletionGuard
from plimsoll.nodes.actuation.instance_deleter import InstanceDeleter
from plimsoll.nodes.actuation.node_group_maintenance import fix_group_sizes
from plimsoll.nodes.actuation.node_pods import ListedPods
from plimsoll.nodes.cluster_state.changes import Changes, DeleteInstances, ShrinkTarget
from plimsoll.nodes.cluster_state.registry import ClusterState
from plimsoll.nodes.config.policy import Policy
from plimsoll.nodes.model.call_outcomes import FailureKind
from plimsoll.nodes.model.scale_up_plan import GroupProfile, GroupScaleUp, ScaleUpOption
from plimsoll.nodes.scaleup.executor import ScaleUpExecutor
from plimsoll.objects.api.meta import ObjectMeta
from plimsoll.objects.api.nodes import Node, NodeStatus, Taint
from tests.local.apiserver.builders import START
from tests.narrowing import instance_of
from tests.nodes.providers.simulated.simulated_clusters import ProviderCluster

if TYPE_CHECKING:
    from tests.golden.reviewed_sentences import ReviewedSentences

WHY = Reason(code="Test", message="for a test")
SIZE: dict[str, str | int | float] = {"cpu": "2", "memory": "8Gi", "pods": "110"}


def offer(group: str, *, exists: bool = True, **changes: Any) -> ScaleUpOption:
    node = Node(metadata=ObjectMeta(name="template"), status=NodeStatus(capacity=SIZE, allocatable=SIZE))
    plain: dict[str, Any] = {
        "group": group,
        "node": node,
        "daemons": (),
        "free": ResourceVector.from_quantities(SIZE),
        "capacity": ResourceVector.from_quantities(SIZE),
        "price_per_hour": 0.2,
        "planning_price": 0.2,
        "size": 0,
        "max_size": 10,
        "room": 10,
        "machine_type": "small",
        "exists": exists,
        "profile": None if exists else GroupProfile(labels={"team": "red"}, hash="red"),
    }
    return ScaleUpOption(**{**plain, **changes})


def growth(what: ScaleUpOption, before: int, after: int) -> GroupScaleUp:
    return GroupScaleUp(option=what, before=before, after=after, patterns=(), reason=WHY)


class ScaleUpCluster(ProviderCluster):
    """A cluster with an executor that scales up its groups."""

    def grow(self, *growths: GroupScaleUp) -> list[Any]:
        self.do(self.provider.refresh())
        self.state = ClusterState(Policy())
        return list(self.do(ScaleUpExecutor(self.provider, self.state, self.deleter()).execute(growths, now=START)))

    def deleter(self) -> InstanceDeleter:
        client = self.kube.new_client()
        return InstanceDeleter(DeletionGuard(client, ListedPods(client), clock=self.clock))

    def target(self, group: str) -> int:
        return self.do(self.refreshed(group).target_size())


def test_a_group_is_raised_from_the_size_that_the_plan_saw():
    with ScaleUpCluster() as world:
        world.group("g", target=1)
        (done,) = world.grow(growth(offer("g"), 1, 3))
        assert (done.before, done.after, done.is_done) == (1, 3, True)
        assert world.target("g") == 3
        assert world.state.assess_health(START).groups == {}


def test_a_plan_that_was_overtaken_does_nothing():
    with ScaleUpCluster() as world:
        world.group("g", target=2)
        (done,) = world.grow(growth(offer("g"), 1, 3))
        assert done.failure is not None
        assert "its size is 2, not 1 any more" in done.failure.message
        assert (world.target("g"), world.calls()) == (2, [])


def test_a_group_that_is_gone_stops_no_other():
    with ScaleUpCluster() as world:
        world.group("g")
        gone, done = world.grow(growth(offer("nobody"), 0, 1), growth(offer("g"), 0, 1))
        assert gone.failure.kind is FailureKind.NO_SUCH_GROUP
        assert done.is_done


def test_a_group_is_made_with_the_labels_of_its_profile_and_then_grown():
    with ScaleUpCluster() as world:
        (done,) = world.grow(growth(offer("nap-small-1", exists=False), 0, 2))
        assert (done.group, done.created, done.after) == ("nap-small-1", True, 2)
        assert [call for call, *_ in world.calls()] == ["Create", "IncreaseSize"]
        template = instance_of(Node, world.do(world.refreshed("nap-small-1").template_node_info()))
        assert template.metadata.labels["team"] == "red"


def test_what_is_not_sold_is_not_made_and_its_kind_is_backed_off(reviewed: ReviewedSentences):
    with ScaleUpCluster() as world:
        (done,) = world.grow(growth(offer("nap-huge-1", exists=False, machine_type="huge"), 0, 1))
        reviewed(done.failure.message)
        assert world.calls() == []
        assert list(world.state.assess_health(START).creation_backoffs) == [("huge", "", "")]


@pytest.mark.parametrize(
    ("planned", "why"),
    [
        ({"cpu": "64", "memory": "8Gi", "pods": "110"}, "have less cpu than planned"),
        ({"cpu": "2", "memory": "64Gi", "pods": "110"}, "have less memory than planned"),
    ],
)
def test_a_group_that_is_not_what_was_planned_is_deleted_again_unused(planned: dict[str, str], why: str):
    with ScaleUpCluster() as world:
        wrong = offer("nap-small-1", exists=False)
        node = Node(metadata=ObjectMeta(name="t"), status=NodeStatus(capacity=planned, allocatable=planned))  # type: ignore[arg-type]
        (done,) = world.grow(growth(replace(wrong, node=node), 0, 1))
        assert why in done.failure.message
        assert [call for call, *_ in world.calls()] == ["Create", "Delete"]


def test_a_taint_that_the_plan_did_not_know_makes_the_group_useless(reviewed: ReviewedSentences):
    with ScaleUpCluster() as world:
        tainted = GroupProfile(taints=(Taint(key="dedicated", value="red", effect="NoSchedule"),), hash="t")
        (done,) = world.grow(growth(offer("nap-small-1", exists=False, profile=tainted), 0, 1))
        reviewed(done.failure.message)


def test_instances_that_failed_are_deleted_and_targets_lowered_to_what_is_there():
    with ScaleUpCluster() as world:
        world.group("g", target=3, bootSeconds=600)
        world.run.advance_by(60)
        world.do(world.provider.refresh())
        (instance, *_) = world.do(world.refreshed("g").nodes())
        deletion = DeleteInstances(group="g", instances=(instance.id,), force=False, reason=WHY)
        (done,) = world.do(fix_group_sizes(world.provider, Changes(delete_failed=(deletion,)), world.deleter()))
        assert done.failure is None
        assert world.target("g") == 2
        shrink = ShrinkTarget(group="g", before=5, after=4, reason=WHY)
        (refused,) = world.do(fix_group_sizes(world.provider, Changes(shrink=(shrink,)), world.deleter()))
        assert refused.failure is not None
