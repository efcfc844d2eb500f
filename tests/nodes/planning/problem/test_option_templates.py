"""What a new node of a group takes: its template with its daemons, and the attach limits of that template's node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.nodes.planning.scaleup.planner import plan_scale_up
from plimsoll.scheduling import Storage
from tests.nodes.planning.builders import policy
from tests.nodes.planning.plan_checks import problems
from tests.nodes.planning.scale_up_clusters import added, group, left, on_new_nodes, reported, waiting, world
from tests.scheduling.builders import HOSTNAME, claim, csi_node, node, pod, required, storage_class, term, uses

if TYPE_CHECKING:
    from plimsoll.nodes.model.scale_up_plan import ScaleUpPlan
    from plimsoll.nodes.model.snapshot import PendingPods, Snapshot

PORT: dict[str, Any] = {"containers": [{"name": "c", "ports": [{"hostPort": 80}]}]}


def planned(snapshot: Snapshot, **options: Any) -> ScaleUpPlan:
    rules = policy(**{"expander": "cost", **options})
    plan = plan_scale_up(snapshot, rules)
    assert problems(snapshot, rules, plan) == []
    return plan


# ---- daemons, names


def test_daemons_take_their_share_of_the_node():
    carrying = group("g", cpu=4, daemons=(pod("agent", requests={"cpu": "1500m"}),))
    assert on_new_nodes(planned(world(waiting("web", 4), groups=[carrying]))) == {"web": [2, 2]}


def test_a_port_of_a_daemon_is_taken():
    plan = planned(world(waiting("web", 1, **PORT), groups=[group("g", daemons=(pod("agent", **PORT),))]))
    assert left(plan) == {"web": 1}
    assert "didn't have free ports" in reported(plan)


def test_a_pod_with_a_host_port_comes_once_to_a_node():
    assert on_new_nodes(planned(world(waiting("web", 3, **PORT), groups=[group("g")]))) == {"web": [1, 1, 1]}


def test_a_daemon_that_is_avoided_keeps_pods_off():
    apart = required(term({"app": "agent"}))
    groups = [group("with", price=0.1, daemons=(pod("agent", labels={"app": "agent"}),)), group("without")]
    assert added(planned(world(waiting("web", 1, **apart), groups=groups))) == {"without": 1}


def test_the_name_of_the_node_a_template_was_made_from_cannot_be_selected():
    plan = planned(world(waiting("web", 1, nodeSelector={HOSTNAME: "g"}), groups=[group("g")]))
    assert left(plan) == {"web": 1}


# ---- volumes


def stateful(name: str, count: int, cpu: int = 1, **more: Any) -> list[PendingPods]:
    """Pods that each have a claim of their own."""
    return [waiting(f"{name}-{i}", 1, cpu, app=name, **uses(f"{name}-{i}"), **more) for i in range(count)]


def storage(pending: list[PendingPods], **limits: int) -> Storage:
    claims = [claim(pending_pods.key.partition("/")[2]) for pending_pods in pending]
    limited = [csi_node(name, count=count) for name, count in limits.items()]
    return Storage(claims=claims, classes=[storage_class()], csi_nodes=limited)


def test_new_nodes_attach_what_the_node_does_that_their_template_was_made_from():
    pending = stateful("db", 5)
    plan = planned(world(*pending, groups=[group("g", cpu=16)], storage=storage(pending, g=2)))
    assert added(plan) == {"g": 3}


def test_a_template_without_a_node_attaches_as_the_nodes_of_its_group():
    pending = stateful("db", 4)
    full = node("n1", cpu="100m", memory="1Mi")
    kept = storage(pending, n1=2)
    plan = planned(world(*pending, groups=[group("g", cpu=16)], nodes=[full], group_of={"n1": "g"}, storage=kept))
    assert added(plan) == {"g": 2}
    assert added(planned(world(*pending, groups=[group("g", cpu=16)], nodes=[full], storage=kept))) == {"g": 1}


def test_pods_of_all_shapes_share_the_limit_of_a_node():
    pending = [*stateful("db", 5), *stateful("kv", 4, 2)]
    plan = planned(world(*pending, groups=[group("g", cpu=32)], storage=storage(pending, g=3)))
    assert added(plan) == {"g": 3}


def test_each_group_has_the_limits_of_its_own():
    pending = stateful("db", 9)
    groups = [group("tight", cpu=16, most=9, price=1), group("wide", cpu=16, most=1)]
    plan = planned(world(*pending, groups=groups, storage=storage(pending, tight=1, wide=7)))
    assert added(plan) == {"tight": 2, "wide": 1}


def test_pods_on_large_nodes_are_not_held_to_what_small_ones_take():
    pending = stateful("db", 16)
    groups = [group("small", cpu=2, price=5), group("large", cpu=16)]
    assert added(planned(world(*pending, groups=groups, storage=storage(pending, n1=1)))) == {"large": 1}


def test_a_class_that_is_placed_pod_by_pod_attaches_volumes_of_its_own():
    # Two keys of affinity at once are only for the estimator.
    close = required([term({"app": "db"}, key="row"), term({"app": "db"}, key="hall")], "podAffinity")
    pending = stateful("db", 4, **close)
    groups = [group("g", cpu=16, labels={"row": "1", "hall": "a"})]
    assert added(planned(world(*pending, groups=groups, storage=storage(pending, g=2)))) == {"g": 2}


@pytest.mark.parametrize("expander", ["cost", "least-waste"])
def test_where_nothing_can_be_attached_that_is_the_reason(expander: str):
    pending = stateful("db", 2)
    snapshot = world(*pending, groups=[group("g")], storage=storage(pending, g=0))
    assert "node(s) exceed max volume count (g)" in reported(planned(snapshot, expander=expander))
