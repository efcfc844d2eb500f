"""Why pods stay without a place: the reason is true, and names what is lacking."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.nodes.model.scale_up_plan import Result
from plimsoll.nodes.planning.scaleup.planner import plan_scale_up
from tests.nodes.planning.builders import daemon_set, policy
from tests.nodes.planning.plan_checks import problems
from tests.nodes.planning.scale_up_clusters import group, left, machine, reason_codes, reported, waiting, world
from tests.scheduling.builders import ZONE, node, required, spread, term

if TYPE_CHECKING:
    from plimsoll.nodes.model.scale_up_plan import ScaleUpPlan
    from plimsoll.nodes.model.snapshot import Snapshot
    from tests.golden.reviewed_sentences import ReviewedSentences

TAINT = {"key": "dedicated", "value": "ml", "effect": "NoSchedule"}


def planned(snapshot: Snapshot, **options: Any) -> ScaleUpPlan:
    rules = policy(**{"expander": "cost", **options})
    plan = plan_scale_up(snapshot, rules)
    assert problems(snapshot, rules, plan) == []
    return plan


def test_nothing_is_offered(reviewed: ReviewedSentences):
    plan = planned(world(waiting("web", 2)))
    assert plan.result is Result.NO_OPTIONS
    assert reason_codes(plan) == ["NoNodeGroups"]
    reviewed(reported(plan))


def test_nothing_is_pending():
    assert planned(world(groups=[group("g")])).result is Result.NOT_NEEDED


def test_everything_fits_already():
    plan = planned(world(waiting("web", 2), nodes=[node("n1")]))
    assert (plan.result, plan.unschedulable, plan.scheduled) == (Result.NOT_NEEDED, (), 2)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"cpu": 64}, "Insufficient cpu"),
        ({"requests": {"memory": "900Gi"}}, "Insufficient memory"),
        ({"requests": {"nvidia.com/gpu": 1}}, "Insufficient nvidia.com/gpu"),
        ({"nodeSelector": {"team": "red"}}, "didn't match Pod's node affinity/selector"),
    ],
)
def test_no_node_of_the_group_would_take_it(more: dict[str, Any], words: str):
    plan = planned(world(waiting("web", 2, **more), groups=[group("g")]))
    assert words in reported(plan)
    assert "(g)" in reported(plan)


def test_a_taint_is_in_the_way():
    plan = planned(world(waiting("web", 1), groups=[group("g", taints=[TAINT])]))
    assert "untolerated taint(s) (g)" in reported(plan)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"most": 0}, "max size reached (g)"),
        ({"not_usable": "in backoff until 12:05"}, "in backoff until 12:05 (g)"),
        ({"not_usable": "not ready"}, "not ready (g)"),
        ({"autoscaled": False}, "not autoscaled (g)"),
    ],
)
def test_the_group_is_not_offered(more: dict[str, Any], words: str):
    assert words in reported(planned(world(waiting("web", 1), groups=[group("g", **more)])))


def test_the_group_is_full_after_this_plan(reviewed: ReviewedSentences):
    plan = planned(world(waiting("web", 12), groups=[group("g", cpu=4, most=2)]))
    assert left(plan) == {"web": 4}
    assert reason_codes(plan) == ["MaxSizeReached"]
    reviewed(reported(plan))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"max_cpu": 8}, "max cluster cpu limit reached (8 of 8 in use)"),
        ({"max_memory": 32}, "max cluster memory limit reached"),
        ({"max_nodes_total": 2}, "max-nodes-total reached (2 of 2)"),
    ],
)
def test_limits_are_named_with_what_this_plan_uses_of_them(options: dict[str, Any], words: str):
    plan = planned(world(waiting("web", 12), groups=[group("g", cpu=4)]), **options)
    assert left(plan) == {"web": 4}
    assert words in reported(plan)


def test_the_cap_on_new_groups_is_named(reviewed: ReviewedSentences):
    pending = [waiting(color, 1, nodeSelector={"color": color}) for color in ("red", "blue")]
    options = {"node_autoprovisioning": True, "max_autoprovisioned_node_group_count": 1}
    plan = planned(world(*pending, machine_types=(machine("m4", 4),)), **options)
    assert plan.scheduled == 1
    assert reason_codes(plan) == ["MaxAutoprovisionedNodeGroupCount"]
    reviewed(reported(plan))


def test_a_bundle_says_how_many_of_its_pods_would_fit(reviewed: ReviewedSentences):
    plan = planned(world(waiting("whole", 24, bundle="default/r"), groups=[group("g", cpu=7, most=2)]))
    assert "14 of 24 pods fit" in reported(plan)
    assert reason_codes(plan) == ["NotAllFit", "MaxSizeReached"]
    reviewed(reported(plan))


def test_each_pod_set_of_a_refused_bundle_says_so():
    pending = [waiting("a", 2, bundle="default/r"), waiting("b", 1, 64, bundle="default/r")]
    plan = planned(world(*pending, groups=[group("g")]))
    assert left(plan) == {"a": 2, "b": 1}
    assert all(refused.reasons for refused in plan.unschedulable)
    mine = next(refused for refused in plan.unschedulable if "default/a" in refused.keys)
    assert "2 of 3 pods fit" in "; ".join(map(str, mine.reasons))


def test_a_zone_that_holds_the_others_back_is_named(reviewed: ReviewedSentences):
    groups = [group("a", zone="a"), group("b", zone="b", most=2, target=1, cpu=1)]
    full = node("full", zone="b", cpu="100m")
    snapshot = world(waiting("web", 6, **spread({"app": "web"})), nodes=[full], groups=groups)
    plan = planned(snapshot)
    assert left(plan) == {"web": 3}
    assert "3 pods cannot be spread" in reported(plan)
    assert reason_codes(plan) == ["SpreadHeld", "MaxSizeReached"]
    reviewed(reported(plan))
    assert ZONE in reported(plan)


class TestDaemonsInTheWay:
    def test_the_daemon_set_is_named_with_what_it_takes_of_what(self):
        plan = planned(world(waiting("web"), groups=[group("g")], daemon_sets=(daemon_set("agent", "3500m"),)))
        assert reported(plan) == "Insufficient cpu: daemon set kube-system/agent takes 3500m of 4 on each node (g)"

    def test_one_that_is_larger_than_the_node(self):
        plan = planned(world(waiting("web"), groups=[group("g")], daemon_sets=(daemon_set("agent", "6"),)))
        assert reported(plan) == "Insufficient cpu: daemon set kube-system/agent takes 6 of 4 on each node (g)"

    def test_of_several_the_largest_is_named(self):
        sets = (daemon_set("small", "1"), daemon_set("large", "2"), daemon_set("free", "0"))
        plan = planned(world(waiting("web", 1, 2), groups=[group("g")], daemon_sets=sets))
        assert "daemon sets kube-system/large and 1 more take 3 of 4 on each node (g)" in reported(plan)

    def test_a_pod_too_large_for_the_bare_node_is_not_their_fault(self):
        plan = planned(world(waiting("web", 1, 5), groups=[group("g")], daemon_sets=(daemon_set("agent", "1"),)))
        assert reported(plan) == "Insufficient cpu (g): cpu 5 requested, g has 3"

    def test_of_machine_types_too(self):
        snapshot = world(waiting("web"), machine_types=(machine("four", 4),), daemon_sets=(daemon_set("agent", "4"),))
        plan = planned(snapshot, node_autoprovisioning=True)
        assert reported(plan) == "Insufficient cpu: daemon set kube-system/agent takes 4 of 4 on each node (four)"


def test_a_contradiction_is_no_error():
    pod = waiting("web", 1, nodeSelector={ZONE: "a", "disk": "ssd"})
    plan = planned(world(pod, groups=[group("g", zone="b")]))
    assert "node affinity/selector" in reported(plan)


@pytest.mark.parametrize(
    "spec",
    [
        {"requests": {"cpu": "-1"}},
        {"requests": {"cpu": "lots"}},
        {"resourceClaims": [{"name": "gpu"}]},
        {
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Near", "values": ["x"]}]}]
                    }
                }
            }
        },
    ],
)
def test_what_cannot_be_read_is_left_with_a_reason_and_stops_nothing(spec: dict[str, Any]):
    plan = planned(world(waiting("bad", 1, **spec), waiting("web", 4), groups=[group("g")]))
    assert left(plan) == {"bad": 1}
    assert plan.scheduled == 4


def test_a_machine_without_memory_is_no_error():
    types = (machine("none", 4, 0.0), machine("m4", 4))
    plan = planned(world(waiting("web", 4), machine_types=types), node_autoprovisioning=True)
    assert plan.scheduled == 4


SELF = {"app": "web"}


@pytest.mark.parametrize("expander", ["cost", "least-waste"])
@pytest.mark.parametrize("nap", [True, False])
class TestOtherPodsAreInTheWay:
    """The words are the scheduler's, and no message promises that a later loop iteration may help."""

    def test_affinity_and_anti_affinity_to_the_own_kind_contradict_each_other(self, expander: str, nap: bool):
        near, apart = required(term(SELF), "podAffinity")["affinity"], required(term(SELF))["affinity"]
        web = waiting("web", 3, affinity={**near, **apart})
        plan = planned(world(web, **offered(nap=nap)), expander=expander, node_autoprovisioning=nap)
        assert left(plan) == {"web": 2}
        assert "didn't match pod affinity rules" in reported(plan)
        assert "didn't match pod anti-affinity rules" in reported(plan)
        assert not false_words(plan)

    def test_pods_with_affinity_to_each_other_wait(self, expander: str, nap: bool):
        web = waiting("web", 3, **required(term({"app": "db"}), "podAffinity"))
        db = waiting("db", 2, **required(term(SELF), "podAffinity"))
        plan = planned(world(web, db, **offered(nap=nap)), expander=expander, node_autoprovisioning=nap)
        assert left(plan) == {"web": 3, "db": 2}
        assert "didn't match pod affinity rules" in reported(plan)
        assert not false_words(plan)

    def test_anti_affinity_in_the_only_zone_is_explained(self, expander: str, nap: bool):
        web = waiting("web", 2, 3, **required(term({"app": "db"}, key=ZONE)))
        db = waiting("db", 1, 3, priority=10)
        plan = planned(world(web, db, **offered(nap=nap)), expander=expander, node_autoprovisioning=nap)
        assert plan.unschedulable
        assert "anti-affinity rules" in reported(plan)
        assert not false_words(plan)


def offered(*, nap: bool) -> dict[str, Any]:
    return {"machine_types": [machine("m4", 4, zones=("a",))]} if nap else {"groups": [group("g", zone="a")]}


def false_words(plan: ScaleUpPlan) -> list[str]:
    false = ("no room is left", "no more node groups may be created", "a later loop iteration may help")
    return [words for words in false if words in reported(plan)]
