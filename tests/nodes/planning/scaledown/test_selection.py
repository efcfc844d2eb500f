"""Which unneeded nodes go now: timers, parallelism, minima, groups that go whole (docs/design/nodes.md 5.3, 6.8)."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from plimsoll.nodes.model.snapshot import GroupScaleDownOptions
from plimsoll.nodes.planning.scaledown.eligibility import ScaleDownState
from plimsoll.nodes.planning.scaledown.planner import find_unneeded
from plimsoll.nodes.planning.scaledown.selection import select_nodes_to_delete
from tests.nodes.planning.scaledown.builders import NOON, budget, group, node, pod, policy, snapshot

if TYPE_CHECKING:
    from plimsoll.nodes.model.scale_down_plan import NodesToDelete
    from plimsoll.nodes.model.snapshot import Snapshot

LONG_AGO = NOON - timedelta(days=1)
CA = "cluster-autoscaler.kubernetes.io"


def departing(
    world: Snapshot, *, since: Any = LONG_AGO, known: dict[str, Any] | None = None, **options: Any
) -> NodesToDelete:
    remembered = ScaleDownState(unneeded_since=dict.fromkeys(world.view.nodes, since), **(known or {}))
    chosen = policy(**options)
    simulation = find_unneeded(world, chosen, now=NOON, state=remembered)
    return select_nodes_to_delete(simulation, chosen, now=NOON, state=remembered)


def going(world: Snapshot, **more: Any) -> list[str]:
    return [node_removal.node for node_removal in departing(world, **more).removals]


def why(world: Snapshot, **more: Any) -> dict[str, str]:
    return {unremovable.node: unremovable.reason.code for unremovable in departing(world, **more).unremovable}


def four_nodes(**annotations: str) -> Snapshot:
    """Scenario N39."""
    nodes = [node("n1"), node("n2"), node("n3"), node("n4", annotations={f"{CA}/scale-down-disabled": "true"})]
    pods = [pod("a", on="n1", annotations=annotations), pod("b", on="n2", cpu="2400m")]
    return snapshot(nodes, pods, groups=[group(size=4, least=1)])


def empty_nodes(count: int, *, groups: Any = None) -> Snapshot:
    return snapshot([node(f"n{index}") for index in range(count)], groups=groups)


def test_n39_an_empty_node_goes_and_another_is_drained():
    found = departing(four_nodes(), since=NOON - timedelta(seconds=610))
    assert [(removal.node, removal.is_empty) for removal in found.removals] == [("n3", True), ("n1", False)]
    assert [(str(move.pod), move.source) for move in found.removals[1].moves] == [("default/a", "n1")]
    assert found.removals[1].moves[0].target in {"n2", "n4"}


def test_n39_a_pod_that_is_not_safe_to_evict_keeps_its_node():
    assert going(four_nodes(**{f"{CA}/safe-to-evict": "false"})) == ["n3"]


def test_n39_without_drains_only_empty_nodes_go():
    assert going(four_nodes(), max_drain_parallelism=0) == ["n3"]
    assert why(four_nodes(), max_drain_parallelism=0) == {"n1": "NodeGroupMaxDeletionCountReached"}


def test_a_node_goes_only_when_it_was_unneeded_for_longer_than_the_time():
    world = empty_nodes(1)
    assert why(world, since=NOON - timedelta(seconds=600)) == {"n0": "NotUnneededLongEnough"}
    assert going(world, since=NOON - timedelta(seconds=601)) == ["n0"]


def test_unready_nodes_wait_longer():
    world = snapshot([node("n0", ready=False)])
    assert why(world, since=NOON - timedelta(seconds=1200)) == {"n0": "NotUnreadyLongEnough"}
    assert going(world, since=NOON - timedelta(seconds=1201)) == ["n0"]
    assert departing(world).removals[0].reason.code == "Unready"


def test_no_more_go_at_once_than_may():
    assert len(going(empty_nodes(12))) == 10
    assert going(empty_nodes(3), max_scale_down_parallelism=2) == ["n0", "n1"]
    assert going(empty_nodes(3), known={"removals_under_way": 9}) == ["n0"]


def test_minimum_sizes_are_used_up_node_by_node():
    world = empty_nodes(3, groups=[group(size=3, least=2)])
    assert going(world) == ["n0"]
    assert set(why(world).values()) == {"NodeGroupMinSizeReached"}


def test_minima_of_the_cluster_are_used_up_node_by_node():
    world = empty_nodes(3)
    assert going(world, min_cpu=8) == ["n0"]
    assert set(why(world, min_cpu=8).values()) == {"MinimalResourceLimitExceeded"}
    assert going(world, min_memory=48) == []


def test_nodes_that_use_the_last_of_a_budget_go_last():
    pods = [pod("a", on="n1", labels={"app": "web"}), pod("b", on="n2", labels={"app": "db"})]
    nodes = [node("n1"), node("n2"), node("big", group="", cpu=32, gib=99)]
    world = snapshot(nodes, pods, budgets=(budget(allowed=1, app="web"),))
    assert going(world) == ["n2"]
    assert going(world, max_drain_parallelism=2) == ["n2", "n1"]


def test_destinations_are_nodes_that_stay():
    pods = [pod(f"p{index}", on=f"n{index}", cpu="500m") for index in range(6)]
    world = snapshot([node(f"n{index}") for index in range(6)], pods)
    found = departing(world, max_drain_parallelism=9)
    gone = {removal.node for removal in found.removals}
    assert len(gone) == 5
    assert {move.target for removal in found.removals for move in removal.moves} == {"n5"}


def test_daemon_pods_of_a_node_are_named():
    world = snapshot([node("n1")], [pod("d", owner="DaemonSet")])
    assert [str(daemon) for daemon in departing(world).removals[0].daemons] == ["default/d"]


class TestGroupsThatGoWhole:
    """Zero-or-max groups."""

    def world(self, size: int, *, pods: Any = (), **more: Any) -> Snapshot:
        return snapshot(
            [node(f"n{index}") for index in range(size)], pods, groups=[group(size=size, zero_or_max=True, **more)]
        )

    def test_all_of_it_goes(self):
        assert going(self.world(3)) == ["n0", "n1", "n2"]

    def test_its_removals_say_so(self):
        assert [removal.atomic for removal in departing(self.world(2)).removals] == [True, True]
        assert [removal.atomic for removal in departing(snapshot([node("n1")])).removals] == [False]

    def test_or_nothing_when_one_node_is_needed(self):
        world = self.world(3, pods=[pod("a", on="n1", owner="")])
        assert going(world) == []
        assert why(world) == {"n0": "AtomicScaleDownFailed", "n2": "AtomicScaleDownFailed"}

    def test_or_nothing_when_its_minimum_is_not_zero(self):
        assert going(self.world(3, least=1)) == []

    def test_one_such_group_may_be_more_than_may_go_at_once(self):
        assert len(going(self.world(3), max_scale_down_parallelism=2)) == 3
        assert going(self.world(3), max_scale_down_parallelism=2, known={"removals_under_way": 1}) == []

    def test_it_stays_when_the_cluster_would_fall_below_its_minimum(self):
        assert going(self.world(3), min_cpu=1) == []


def rules(**more: Any) -> GroupScaleDownOptions:
    """As the options are by default, but for what a provider says otherwise."""
    options = policy().scale_down
    return GroupScaleDownOptions(
        **{
            "utilization_threshold": options.utilization_threshold,
            "gpu_utilization_threshold": options.gpu_utilization_threshold,
            "unneeded_time_s": options.unneeded_time_s,
            "unready_time_s": options.unready_time_s,
            "ignore_daemon_sets": options.ignore_daemon_sets,
            **more,
        }
    )


def test_a_group_has_the_times_of_its_provider():
    nodes = [node("a1", group="a"), node("b1", group="b"), node("b2", group="b", ready=False)]
    reported = rules(unneeded_time_s=60.0, unready_time_s=30.0)
    world = snapshot(nodes, groups=[group("a", size=1), group("b", size=2, shrinking=reported)])

    assert why(world, since=NOON - timedelta(seconds=60)) == {
        "a1": "NotUnneededLongEnough",
        "b1": "NotUnneededLongEnough",
    }
    assert going(world, since=NOON - timedelta(seconds=31)) == ["b2"]
    assert going(world, since=NOON - timedelta(seconds=61)) == ["b1", "b2"]


def test_a_group_has_the_thresholds_of_its_provider():
    nodes = [
        node("a1", group="a"),
        node("b1", group="b"),
        node("c1", group="c", **dict[str, Any]({"nvidia.com/gpu": "4"})),
    ]
    nodes += [node("free", group="")]
    pods = [pod("a", on="a1", cpu="1"), pod("b", on="b1", cpu="1")]
    pods += [pod("c", on="c1", requests={"nvidia.com/gpu": 1}, annotations={f"{CA}/safe-to-evict": "false"})]
    groups = [
        group("a", size=1),
        group("b", size=1, shrinking=rules(utilization_threshold=0.2)),
        group("c", size=1, shrinking=rules(gpu_utilization_threshold=0.2)),
    ]
    found = find_unneeded(snapshot(nodes, pods, groups=groups), policy(), now=NOON)

    assert [unneeded.node for unneeded in found.unneeded] == ["a1"]
    kept = {unremovable.node: unremovable.reason for unremovable in found.unremovable}
    assert (kept["b1"].code, kept["b1"].facts["threshold"]) == ("NotUnderutilized", 0.2)
    assert (kept["c1"].code, kept["c1"].facts["threshold"]) == ("NotUnderutilized", 0.2)


def test_daemon_pods_are_left_out_where_the_provider_says_so():
    daemon: dict[str, Any] = {"owner": "DaemonSet", "cpu": "3"}
    nodes = [node("a1", group="a"), node("b1", group="b")]
    pods = [pod("x", on="a1", **daemon), pod("y", on="b1", **daemon)]
    groups = [group("a", size=1), group("b", size=1, shrinking=rules(ignore_daemon_sets=True))]
    found = find_unneeded(snapshot(nodes, pods, groups=groups), policy(), now=NOON)

    assert [unneeded.node for unneeded in found.unneeded] == ["b1"]
    assert [(unremovable.node, unremovable.reason.code) for unremovable in found.unremovable] == [
        ("a1", "NotUnderutilized")
    ]
