"""Which nodes are not needed, and the reason of each that is (docs/design/nodes.md 6.8)."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from plimsoll.nodes.planning.scaledown.eligibility import ScaleDownState
from plimsoll.nodes.planning.scaledown.planner import ScaleDownSimulation, find_unneeded
from plimsoll.scheduling.cluster_view import PodKey
from tests.nodes.planning.scaledown.builders import HOSTNAME, NOON, budget, group, node, pod, policy, snapshot

if TYPE_CHECKING:
    from plimsoll.nodes.model.snapshot import Snapshot
    from tests.golden.reviewed_sentences import ReviewedSentences

CA = "cluster-autoscaler.kubernetes.io"
DISABLED = {f"{CA}/scale-down-disabled": "true"}
LEAVING = [{"key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule", "value": "1"}]


def found(world: Snapshot, known: ScaleDownState | None = None, **options: Any) -> ScaleDownSimulation:
    return find_unneeded(world, policy(**options), now=NOON, state=known)


def unneeded(world: Snapshot, known: ScaleDownState | None = None, **options: Any) -> list[str]:
    return [unneeded_node.node for unneeded_node in found(world, known, **options).unneeded]


def reasons(world: Snapshot, known: ScaleDownState | None = None, **options: Any) -> dict[str, str]:
    return {unremovable.node: unremovable.reason.code for unremovable in found(world, known, **options).unremovable}


def full(name: str = "n9", **more: Any) -> Any:
    """A node of no group that takes what is moved."""
    return node(name, group="", cpu=64, gib=256, **more)


def apart(app: str) -> dict[str, Any]:
    term = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": app}}}
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def test_empty_nodes_and_those_whose_pods_fit_elsewhere_are_unneeded():
    nodes = [node("n1"), node("n2"), node("n3"), node("n4", annotations=DISABLED)]
    world = snapshot(nodes, [pod("a", on="n1"), pod("b", on="n2", cpu="2400m")], groups=[group(size=4, least=1)])
    simulated = found(world)
    assert [(unneeded.node, unneeded.is_empty) for unneeded in simulated.unneeded] == [("n1", False), ("n3", True)]
    assert {unremovable.node: unremovable.reason.code for unremovable in simulated.unremovable} == {
        "n2": "NotUnderutilized",
        "n4": "ScaleDownDisabledAnnotation",
    }


def test_every_node_is_either_unneeded_or_kept_with_a_reason():
    world = snapshot([node("n1"), node("n2", taints=LEAVING), full()], [pod("a")])
    simulated = found(world)
    assert [unneeded.node for unneeded in simulated.unneeded] == ["n1"]
    assert reasons(world) == {"n2": "CurrentlyBeingDeleted", "n9": "NotAutoscaled"}


def test_nodes_of_groups_that_are_not_autoscaled_are_never_touched():
    world = snapshot([node("n1"), full()], groups=[group(size=1, autoscaled=False)])
    assert reasons(world) == {"n1": "NotAutoscaled", "n9": "NotAutoscaled"}


def test_a_group_at_its_minimum_keeps_its_nodes():
    assert reasons(snapshot([node("n1")], groups=[group(size=1, least=1)])) == {"n1": "NodeGroupMinSizeReached"}


def test_deletions_under_way_count_towards_the_minimum():
    world = snapshot([node("n1"), node("n2", taints=LEAVING)], groups=[group(size=2, least=1)])
    assert reasons(world)["n1"] == "NodeGroupMinSizeReached"
    assert unneeded(world, ScaleDownState(deletions={})) == ["n1"]


def test_unready_nodes_may_be_left_alone():
    world = snapshot([node("n1", ready=False)])
    assert unneeded(world) == ["n1"]
    assert reasons(world, scale_down_unready_enabled=False) == {"n1": "ScaleDownUnreadyDisabled"}


def test_nothing_is_moved_to_an_unready_or_leaving_node():
    world = snapshot([node("n1"), full("n2", ready=False), full("n3", taints=LEAVING)], [pod("a")])
    assert reasons(world)["n1"] == "NoPlaceToMovePods"


def test_a_node_found_unremovable_lately_is_not_tried_again():
    world = snapshot([node("n1"), full()], [pod("a")])
    later = ScaleDownState(unremovable_until={"n1": NOON + timedelta(seconds=1)})
    assert reasons(world, later)["n1"] == "RecentlyUnremovable"
    assert unneeded(world, ScaleDownState(unremovable_until={"n1": NOON})) == ["n1"]


def test_a_fruitless_look_says_when_to_look_again():
    kept = found(snapshot([node("n1")], [pod("a")]), unremovable_node_recheck_timeout="2m").unremovable[0]
    assert (kept.reason.code, kept.reason.facts) == ("NoPlaceToMovePods", {"pod": "default/a"})
    assert kept.retry_at == NOON + timedelta(minutes=2)


def test_a_pod_that_may_not_be_evicted_keeps_its_node_and_is_named(reviewed: ReviewedSentences):
    world = snapshot([node("n1"), full()], [pod("a"), pod("lonely", owner="")])
    kept = found(world).unremovable[0]
    assert (kept.reason.code, kept.reason.facts) == (
        "BlockedByPod",
        {"pod": "default/lonely", "reason": "NotReplicated"},
    )
    reviewed(str(kept.reason))


def test_a_pod_to_be_waited_for_keeps_its_node():
    waiting = pod("a", annotations={f"{CA}/safe-to-evict": "on-completion"})
    assert reasons(snapshot([node("n1"), full()], [waiting]))["n1"] == "BlockedByOnCompletionPod"


def test_daemon_pods_do_not_occupy_a_node():
    simulated = found(snapshot([node("n1")], [pod("d", owner="DaemonSet")]))
    assert [(unneeded.node, unneeded.is_empty) for unneeded in simulated.unneeded] == [("n1", True)]


def test_pods_are_not_moved_to_nodes_that_go_too():
    world = snapshot([node("n1"), node("n2")], [pod("a", on="n1"), pod("b", on="n2")])
    assert len(unneeded(world)) == 1


def test_node_rules_hold_for_pods_that_move():
    taint = [{"key": "x", "effect": "NoSchedule"}]
    world = snapshot([node("n1"), full(taints=taint)], [pod("a")])
    assert reasons(world)["n1"] == "NoPlaceToMovePods"
    tolerating = snapshot([node("n1"), full(taints=taint)], [pod("a", tolerations=[{"operator": "Exists"}])])
    assert unneeded(tolerating) == ["n1"]


def test_pods_that_keep_apart_stay_apart():
    pods = [pod(name, on=on, labels={"app": "web"}, **apart("web")) for name, on in (("a", "n1"), ("b", "n2"))]
    assert unneeded(snapshot([node("n1"), node("n2")], pods)) == []
    assert unneeded(snapshot([node("n1"), node("n2"), full()], pods)) == ["n1"]


def test_a_plain_pod_is_not_moved_beside_one_that_keeps_it_away():
    pods = [pod("a", labels={"app": "web"}), pod("b", on="n9", **apart("web"))]
    assert reasons(snapshot([node("n1"), full()], pods))["n1"] == "NoPlaceToMovePods"


def test_a_disruption_budget_is_used_up_across_nodes():
    pods = [pod(f"p{index}", on=f"n{index}", labels={"app": "web"}) for index in (1, 2, 3)]
    world = snapshot([node("n1"), node("n2"), node("n3"), full()], pods, budgets=(budget(allowed=2, app="web"),))
    simulated = found(world)
    assert [(unneeded.node, unneeded.is_risky) for unneeded in simulated.unneeded] == [("n1", False), ("n2", True)]
    assert str(simulated.unremovable[0].reason).endswith("(disruption budget default/b is used up by other nodes)")


def test_more_pods_on_a_node_than_a_budget_lets_go_are_evicted_in_turn():
    pods = [pod("a", labels={"app": "web"}), pod("b", labels={"app": "web"})]
    simulated = found(snapshot([node("n1"), full()], pods, budgets=(budget(allowed=1, app="web"),)))
    assert [(unneeded.node, unneeded.is_risky) for unneeded in simulated.unneeded] == [("n1", True)]


def test_nodes_unneeded_before_are_tried_first():
    world = snapshot([node("n1"), node("n2")], [pod("a", on="n1"), pod("b", on="n2")])
    assert unneeded(world, ScaleDownState(unneeded_since={"n2": NOON})) == ["n2"]
    assert unneeded(world, ScaleDownState(unneeded_since={"n1": NOON})) == ["n1"]


def test_the_search_ends_when_enough_nodes_are_unneeded():
    nodes = [node(f"n{index}") for index in range(6)]
    pods = [pod(f"p{index}", on=f"n{index}") for index in range(6)]
    world = snapshot([*nodes, full("n99")], pods)
    assert len(unneeded(world, max_scale_down_parallelism=2)) == 4
    assert set(reasons(world, max_scale_down_parallelism=2).values()) == {"NotTriedThisTime", "NotAutoscaled"}
    known = ScaleDownState(unneeded_since={"n0": NOON})
    assert len(unneeded(world, known, max_scale_down_parallelism=2)) == 5


def test_only_so_many_occupied_nodes_are_looked_at():
    nodes = [node(f"n{index}") for index in range(4)]
    world = snapshot([*nodes, full("n99")], [pod(f"p{index}", on=f"n{index}") for index in range(4)])
    few: dict[str, Any] = {"scale_down_non_empty_candidates_count": 1, "scale_down_candidates_pool_min_count": 1}
    assert unneeded(world, **few) == ["n0", "n1"]


def test_hints_name_the_places_that_were_found():
    assert found(snapshot([node("n1"), full()], [pod("a")])).build_pod_hints() == {PodKey("default", "a"): "n9"}


def test_a_node_held_for_a_request_stays():
    assert reasons(snapshot([node("n1")]), ScaleDownState(booked=frozenset({"n1"}))) == {"n1": "BookedCapacity"}


def test_a_later_turn_with_memory_answers_as_one_without():
    first = snapshot([node("n1"), node("n2"), full()], [pod("a"), pod("b", on="n2", cpu="3")])
    simulated = found(first)
    view = first.view.with_pod(pod("c", on="n1", owner=""))
    later = snapshot([node("n1"), node("n2"), full()], view=view)
    again = find_unneeded(later, policy(), now=NOON, cache=simulated.cache)
    assert (again.unneeded, again.unremovable) == (found(later).unneeded, found(later).unremovable)
    assert [unneeded.node for unneeded in again.unneeded] == []
