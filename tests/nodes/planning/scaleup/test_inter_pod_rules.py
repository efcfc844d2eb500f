"""The traps of docs/design/nodes.md 7.4: pods that look at other pods, planned in bulk and still right."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.nodes.model.scale_up_plan import NodePattern
from plimsoll.nodes.planning.problem.verifier import verify
from plimsoll.nodes.planning.scaleup import planner
from plimsoll.nodes.planning.scaleup.planner import plan_scale_up, propose, verify_proposal
from plimsoll.scheduling import Storage
from tests.nodes.planning.builders import daemon_set, policy
from tests.nodes.planning.plan_checks import problems
from tests.nodes.planning.scale_up_clusters import (
    COST,
    added,
    by_zone,
    group,
    left,
    on_existing,
    on_new_nodes,
    reason_codes,
    reported,
    running,
    waiting,
    world,
)
from tests.scheduling.builders import HOSTNAME, ZONE, claim, csi_node, node, required, spread, term, uses, volume

if TYPE_CHECKING:
    from plimsoll.nodes.model.scale_up_plan import ScaleUpPlan
    from plimsoll.nodes.model.snapshot import PendingPods, Snapshot
    from tests.golden.reviewed_sentences import ReviewedSentences

BIG = group("big", cpu=16, most=10)
THREE_ZONES = tuple(group(f"g-{zone}", zone=zone) for zone in ("a", "b", "c"))


def planned(snapshot: Snapshot, **options: Any) -> ScaleUpPlan:
    """A plan that the plain rules agree with, made without falling back to pod by pod."""
    rules = policy(expander="cost", **options)
    plan = plan_scale_up(snapshot, rules)
    assert problems(snapshot, rules, plan) == []
    return plan


def ports(*wanted: dict[str, Any]) -> list[dict[str, Any]]:
    amounts = {"requests": {"cpu": 1, "memory": "1Gi"}}
    return [{"name": "c", "resources": amounts, "ports": [{"containerPort": 80, **port} for port in wanted]}]


class TestHostPorts:
    def test_a_node_takes_one_pod_of_a_port(self):
        plan = planned(world(waiting("web", 3, containers=ports({"hostPort": 80})), groups=[BIG]))
        assert on_new_nodes(plan) == {"web": [1, 1, 1]}

    def test_another_protocol_is_another_port(self):
        tcp = waiting("tcp", 2, containers=ports({"hostPort": 53}))
        udp = waiting("udp", 2, containers=ports({"hostPort": 53, "protocol": "UDP"}))
        assert added(planned(world(tcp, udp, groups=[BIG]))) == {"big": 2}

    def test_addresses_are_apart_but_every_address_clashes_with_all(self):
        one = waiting("one", 1, containers=ports({"hostPort": 80, "hostIP": "10.0.0.1"}))
        two = waiting("two", 1, containers=ports({"hostPort": 80, "hostIP": "10.0.0.2"}))
        every = waiting("every", 1, containers=ports({"hostPort": 80}))
        assert added(planned(world(one, two, groups=[BIG]))) == {"big": 1}
        assert added(planned(world(one, two, every, groups=[BIG]))) == {"big": 2}

    def test_a_port_held_by_a_running_pod_is_taken(self):
        holder = running("holder", containers=ports({"hostPort": 80}))
        snapshot = world(
            waiting("web", 2, containers=ports({"hostPort": 80})),
            nodes=[node("n1"), node("n2")],
            on=[("n1", holder)],
            groups=[BIG],
        )
        plan = planned(snapshot)
        assert on_existing(plan) == {"n2": {"web": 1}}
        assert added(plan) == {"big": 1}


def apart(name: str, count: int, *apps: str, key: str = HOSTNAME, **more: Any) -> PendingPods:
    expression = {"key": "app", "operator": "In", "values": list(apps or (name,))}
    selector = {"labelSelector": {"matchExpressions": [expression]}}
    return waiting(name, count, **required(term(None, key=key, **selector)), **more)


class TestApartOnNodes:
    def test_one_of_its_own_on_each_node(self):
        plan = planned(world(apart("db", 3), groups=[BIG]))
        assert on_new_nodes(plan) == {"db": [1, 1, 1]}

    def test_a_running_pod_of_its_own_keeps_its_node(self):
        snapshot = world(
            apart("db", 2), nodes=[node("n1"), node("n2")], on=[("n1", running("db-0", app="db"))], groups=[BIG]
        )
        plan = planned(snapshot)
        assert on_existing(plan) == {"n2": {"db": 1}}
        assert added(plan) == {"big": 1}

    def test_a_clique_of_several_classes_has_one_of_all_on_a_node(self):
        both = ("red", "blue")
        plan = planned(world(apart("red", 2, *both), apart("blue", 3, *both), groups=[BIG]))
        assert added(plan) == {"big": 5}

    def test_sizes_of_one_app_are_a_clique_too(self):
        small = apart("small", 2, "db", app="db", cpu=1)
        large = apart("large", 2, "db", app="db", cpu=3)
        assert added(planned(world(small, large, groups=[BIG]))) == {"big": 4}

    def test_a_pod_that_others_repel_is_kept_away_without_terms_of_its_own(self):
        plan = planned(world(apart("db", 1, "noisy"), waiting("noisy", 3), groups=[BIG]))
        assert added(plan) == {"big": 2}

    def test_a_chain_that_is_no_clique_still_holds(self):
        snapshot = world(apart("a", 2, "b"), apart("b", 2, "c"), waiting("c", 2), groups=[BIG])
        plan = planned(snapshot)
        assert left(plan) == {}
        assert added(plan) == {"big": 2}


class TestApartOverZones:
    def test_one_in_each_zone_and_no_more(self, reviewed: ReviewedSentences):
        snapshot = world(apart("db", 5, key=ZONE), groups=THREE_ZONES)
        plan = planned(snapshot)
        assert by_zone(plan, snapshot, "db") == {"a": 1, "b": 1, "c": 1}
        assert left(plan) == {"db": 2}
        assert reason_codes(plan) == ["OnePerDomain"]
        reviewed(reported(plan))

    def test_one_pod_goes_to_the_cheapest_zone(self):
        groups = [group("dear", zone="a", price=0.9), group("cheap", zone="b", price=0.3)]
        assert added(planned(world(apart("db", 1, key=ZONE), groups=groups))) == {"cheap": 1}

    def test_a_zone_with_one_running_is_taken(self):
        snapshot = world(
            apart("db", 3, key=ZONE),
            nodes=[node("n1", zone="a")],
            on=[("n1", running("db-0", app="db"))],
            groups=THREE_ZONES,
        )
        assert by_zone(planned(snapshot), snapshot, "db") == {"b": 1, "c": 1}


class TestSpreadOverNodes:
    def test_new_nodes_are_filled_evenly_where_nothing_holds_them_down(self):
        plan = planned(world(waiting("web", 8, **spread({"app": "web"}, key=HOSTNAME)), groups=[group("g", cpu=4)]))
        assert on_new_nodes(plan) == {"web": [4, 4]}

    def test_no_node_is_two_ahead_of_another(self):
        few = [group("g", cpu=4, most=3)]
        plan = planned(world(waiting("web", 10, **spread({"app": "web"}, key=HOSTNAME)), groups=few))
        assert on_new_nodes(plan) == {"web": [4, 3, 3]}

    def test_an_idle_node_it_cannot_use_holds_the_minimum(self):
        """The node is tainted, taints are ignored by default: it counts as a domain, and stays empty."""
        idle = node("idle", taints=[{"key": "dedicated", "value": "x", "effect": "NoSchedule"}])
        snapshot = world(waiting("web", 4, **spread({"app": "web"}, key=HOSTNAME)), nodes=[idle], groups=[BIG])
        assert on_new_nodes(planned(snapshot)) == {"web": [1, 1, 1, 1]}

    def test_an_idle_node_does_not_count_when_taints_do(self):
        idle = node("idle", taints=[{"key": "dedicated", "value": "x", "effect": "NoSchedule"}])
        rule = spread({"app": "web"}, key=HOSTNAME, nodeTaintsPolicy="Honor")
        snapshot = world(waiting("web", 4, **rule), nodes=[idle], groups=[BIG])
        assert on_new_nodes(planned(snapshot)) == {"web": [4]}

    def test_an_idle_node_with_room_is_filled_too(self):
        rule = spread({"app": "web"}, key=HOSTNAME)
        snapshot = world(waiting("web", 2, **rule), nodes=[node("n1"), node("n2")], groups=[BIG])
        plan = planned(snapshot)
        assert on_existing(plan) == {"n1": {"web": 1}, "n2": {"web": 1}}
        assert added(plan) == {}

    def test_sizes_of_one_app_are_counted_together(self):
        rule = spread({"app": "web"}, key=HOSTNAME)
        idle = node("idle", cpu="100m")
        snapshot = world(
            waiting("small", 2, app="web", **rule),
            waiting("large", 2, 2, app="web", **rule),
            nodes=[idle],
            groups=[BIG],
        )
        assert added(planned(snapshot)) == {"big": 4}

    def test_nodes_for_others_hold_the_minimum_as_well(self):
        rule = spread({"app": "web"}, key=HOSTNAME)
        pinned = waiting("other", 1, 4, nodeSelector={"pool": "x"})
        groups = [group("g", cpu=4), group("x", cpu=4, labels={"pool": "x"})]
        plan = planned(world(waiting("web", 4, **rule), pinned, groups=groups))
        assert left(plan) == {}
        assert on_new_nodes(plan)["web"] == [1, 1, 1, 1]


class TestSpreadOverZones:
    def test_zones_get_as_many_each(self):
        snapshot = world(waiting("web", 6, **spread({"app": "web"})), groups=THREE_ZONES)
        assert by_zone(planned(snapshot), snapshot, "web") == {"a": 2, "b": 2, "c": 2}

    def test_what_runs_counts(self):
        on = [("n1", running(f"web-{index}", app="web")) for index in range(3)]
        snapshot = world(
            waiting("web", 3, **spread({"app": "web"})), nodes=[node("n1", zone="a", cpu=3)], on=on, groups=THREE_ZONES
        )
        assert by_zone(planned(snapshot), snapshot, "web") in ({"b": 2, "c": 1}, {"b": 1, "c": 2})

    @pytest.mark.parametrize(
        ("frozen", "code"),
        [({"most": 1, "target": 1}, "MaxSizeReached"), ({"not_usable": "in backoff until 12:05"}, "InBackoff")],
    )
    def test_a_zone_that_cannot_grow_holds_the_others(
        self, frozen: dict[str, Any], code: str, reviewed: ReviewedSentences
    ):
        groups = [*THREE_ZONES[:2], group("g-c", zone="c", **frozen)]
        full = node("full", zone="c", cpu="100m")
        snapshot = world(waiting("web", 6, **spread({"app": "web"})), nodes=[full], groups=groups)
        plan = planned(snapshot)
        assert by_zone(plan, snapshot, "web") == {"a": 1, "b": 1}
        assert left(plan) == {"web": 4}
        assert reason_codes(plan) == ["SpreadHeld", code]
        reviewed(reported(plan))

    def test_a_zone_that_runs_out_on_the_way_holds_the_others(self):
        """A node stands in it, so it counts, and cannot be left closed."""
        groups = [*THREE_ZONES[:2], group("g-c", zone="c", most=2, target=1)]
        full = node("full", zone="c", cpu="100m")
        snapshot = world(waiting("web", 30, **spread({"app": "web"})), nodes=[full], groups=groups)
        assert by_zone(planned(snapshot), snapshot, "web") == {"a": 5, "b": 5, "c": 4}

    def test_a_zone_that_never_exists_blocks_nothing(self):
        """Its only group has nodes too small for the pod: no node, no domain."""
        groups = [*THREE_ZONES[:2], group("tiny", zone="c", cpu=1)]
        snapshot = world(waiting("web", 6, 2, **spread({"app": "web"})), groups=groups)
        assert by_zone(planned(snapshot), snapshot, "web") == {"a": 3, "b": 3}

    def test_fewer_domains_than_wanted_count_as_one_empty(self):
        rule = spread({"app": "web"}, minDomains=3)
        snapshot = world(waiting("web", 6, **rule), groups=THREE_ZONES[:2])
        plan = planned(snapshot)
        assert by_zone(plan, snapshot, "web") == {"a": 1, "b": 1}
        assert left(plan) == {"web": 4}

    def test_node_affinity_says_which_zones_count(self):
        only: dict[str, Any] = {"nodeSelector": {"disk": "ssd"}}
        groups = [group("a", zone="a", labels={"disk": "ssd"}), group("b", zone="b", labels={"disk": "ssd"})]
        full = node("full", zone="c", cpu="100m")
        honor = world(waiting("web", 4, **spread({"app": "web"}), **only), nodes=[full], groups=groups)
        assert by_zone(planned(honor), honor, "web") == {"a": 2, "b": 2}
        rule = spread({"app": "web"}, nodeAffinityPolicy="Ignore")
        ignore = world(waiting("web", 4, **rule, **only), nodes=[full], groups=groups)
        assert by_zone(planned(ignore), ignore, "web") == {"a": 1, "b": 1}

    def test_zone_and_node_together(self):
        constraints = [spread({"app": "web"}, key=key)["topologySpreadConstraints"][0] for key in (ZONE, HOSTNAME)]
        pending = waiting("web", 6, topologySpreadConstraints=constraints)
        snapshot = world(pending, nodes=[node("n1", zone="a")], groups=THREE_ZONES)
        plan = planned(snapshot)
        assert by_zone(plan, snapshot, "web") == {"a": 2, "b": 2, "c": 2}
        # All three nodes rise together: one node per pod would cost more and be no more even.
        assert on_existing(plan) == {"n1": {"web": 2}}
        assert on_new_nodes(plan)["web"] == [2, 2]

    def test_pods_it_counts_but_that_have_no_rule_go_anywhere(self):
        pending = [waiting("web", 2, **spread({"app": "web"})), waiting("old", 4, app="web", nodeSelector={ZONE: "a"})]
        snapshot = world(*pending, groups=THREE_ZONES)
        plan = planned(snapshot)
        assert left(plan) == {}
        assert by_zone(plan, snapshot, "old") == {"a": 4}

    def test_pods_the_rule_does_not_count_go_where_the_others_are_level(self):
        on = [("n1", running(f"web-{index}", app="web")) for index in range(2)]
        nodes = [node("n1", zone="a", cpu=8), node("n2", zone="b", cpu="100m")]
        snapshot = world(waiting("odd", 3, **spread({"app": "web"})), nodes=nodes, on=on, groups=THREE_ZONES[:2])
        assert by_zone(planned(snapshot), snapshot, "odd") == {"b": 3}


def together(name: str, count: int, app: str, key: str, **more: Any) -> PendingPods:
    return waiting(name, count, **required(term({"app": app}, key=key), "podAffinity"), **more)


class TestCompany:
    def test_targets_are_placed_first(self):
        snapshot = world(
            together("cache", 2, "db", ZONE), waiting("db", 1, nodeSelector={ZONE: "c"}), groups=THREE_ZONES
        )
        assert by_zone(planned(snapshot), snapshot, "cache") == {"c": 2}

    def test_company_on_a_node_joins_it(self):
        snapshot = world(together("cache", 2, "db", HOSTNAME), waiting("db", 1), groups=[BIG])
        assert added(planned(snapshot)) == {"big": 1}

    def test_no_pod_to_be_with(self):
        plan = planned(world(together("cache", 2, "db", ZONE), groups=THREE_ZONES))
        assert left(plan) == {"cache": 2}
        assert "affinity" in reported(plan)

    def test_one_home_the_cheapest(self):
        groups = [group("a", zone="a", price=0.5), group("b", zone="b", price=0.4), group("c", zone="c", price=0.6)]
        snapshot = world(together("ring", 9, "ring", ZONE), groups=groups)
        assert added(planned(snapshot)) == {"b": 3}

    def test_the_cheapest_home_is_found_by_trying(self):
        """By its share of a node zone b looks cheaper; whole nodes of it cost more."""
        groups = [group("a", zone="a", cpu=4, price=0.42), group("b", zone="b", cpu=16, price=1.6)]
        snapshot = world(together("ring", 4, "ring", ZONE), groups=groups)
        assert added(planned(snapshot)) == {"a": 1}

    def test_a_home_that_is_too_small_is_none(self):
        groups = [group("a", zone="a", most=1, price=0.3), group("b", zone="b", price=0.4)]
        snapshot = world(together("ring", 8, "ring", ZONE), groups=groups)
        assert added(planned(snapshot)) == {"b": 2}

    def test_company_on_one_node_stays_together(self):
        plan = planned(world(together("ring", 6, "ring", HOSTNAME), groups=[group("g", cpu=4), BIG]))
        assert on_new_nodes(plan) == {"ring": [6]}

    def test_more_than_a_node_takes_is_reported(self, reviewed: ReviewedSentences):
        plan = planned(world(together("ring", 6, "ring", HOSTNAME), groups=[group("g", cpu=4)]))
        assert on_new_nodes(plan) == {"ring": [4]}
        assert reason_codes(plan) == ["NoCompany"]
        reviewed(reported(plan))


class TestSymmetry:
    def test_a_running_pod_keeps_pods_without_terms_off_its_node(self):
        shy = running("shy", **required(term({"app": "web"})))
        snapshot = world(waiting("web", 1), nodes=[node("n1", cpu=8)], on=[("n1", shy)], groups=[BIG])
        plan = planned(snapshot)
        assert on_existing(plan) == {}
        assert added(plan) == {"big": 1}

    def test_and_out_of_its_zone_new_nodes_too(self):
        shy = running("shy", **required(term({"app": "web"}, key=ZONE)))
        groups = [group("a", zone="a", price=0.1), group("b", zone="b")]
        snapshot = world(waiting("web", 1), nodes=[node("n1", zone="a")], on=[("n1", shy)], groups=groups)
        assert added(planned(snapshot)) == {"b": 1}

    def test_a_daemon_that_comes_with_the_node_keeps_them_off_it(self):
        shy = running("shy", **required(term({"app": "web"})))
        groups = [group("guarded", price=0.1, daemons=(shy,)), group("open", price=0.4)]
        assert added(plan_scale_up(world(waiting("web", 1), groups=groups), COST)) == {"open": 1}


class TestClasses:
    def test_pods_of_one_shape_are_distinguished_by_labels_a_selector_sees(self):
        snapshot = world(apart("db", 1, "noisy"), waiting("noisy", 2), waiting("quiet", 2), groups=[BIG])
        plan = planned(snapshot)
        assert added(plan) == {"big": 2}
        assert not any("db" in str(p.pods) and "noisy" in str(p.pods) for g in plan.scale_ups for p in g.patterns)

    def test_match_label_keys_split_classes(self):
        """Each rollout keeps its own pods apart, and does not see the other's."""
        rule = required(term({"app": "web"}, matchLabelKeys=["hash"]))
        old = waiting("old", 2, labels={"app": "web", "hash": "1"}, **rule)
        new = waiting("new", 2, labels={"app": "web", "hash": "2"}, **rule)
        assert added(planned(world(old, new, groups=[BIG]))) == {"big": 2}

    def test_volumes_bound_in_zones_make_classes_of_one_set(self):
        storage = Storage(
            claims=[claim(f"data-{zone}", volume=f"pv-{zone}") for zone in "ab"],
            volumes=[volume(f"pv-{zone}", zone=zone) for zone in "ab"],
        )
        pending = [waiting(f"db-{zone}", 1, app="db", **uses(f"data-{zone}")) for zone in "ab"]
        snapshot = world(*pending, groups=THREE_ZONES, storage=storage)
        assert added(planned(snapshot)) == {"g-a": 1, "g-b": 1}

    def test_attach_limits_of_existing_nodes_count(self):
        storage = Storage(
            claims=[claim(f"data-{index}", volume=f"pv-{index}") for index in range(2)],
            volumes=[
                volume(f"pv-{index}", csi={"driver": "csi.example.com", "volumeHandle": f"h{index}"})
                for index in range(2)
            ],
            csi_nodes=[csi_node("n1", count=1)],
        )
        pending = [waiting(f"db-{index}", 1, app="db", **uses(f"data-{index}")) for index in range(2)]
        snapshot = world(*pending, nodes=[node("n1", cpu=8)], groups=[BIG], storage=storage)
        plan = planned(snapshot)
        assert added(plan) == {"big": 1}
        assert left(plan) == {}


class TestPatterns:
    def test_daemons_take_their_share_of_every_new_node(self):
        snapshot = world(waiting("web", 6), groups=[group("g", cpu=4)], daemon_sets=(daemon_set("logs", "1"),))
        assert on_new_nodes(planned(snapshot)) == {"web": [3, 3]}


class TestVerifier:
    """A wrong bulk plan is refused, replaced pod by pod, and counted."""

    SNAPSHOT = world(apart("db", 3), waiting("web", 2), groups=[BIG])

    def wrong(self) -> Any:
        """All pods of db on one node."""
        proposal = propose(self.SNAPSHOT, COST)
        growth = replace(proposal.plan.scale_ups[0], after=1, patterns=(NodePattern(nodes=1, pods={"default/db": 3}),))
        return replace(proposal, plan=replace(proposal.plan, scale_ups=(growth,)))

    def test_the_wrong_plan_is_refuted(self):
        refuted = verify(self.SNAPSHOT, self.wrong().plan)
        assert {pending.key for pending in refuted} == {"default/db"}
        assert "anti-affinity" in refuted[0].reason

    def test_it_is_replaced_and_counted(self):
        plan = verify_proposal(self.wrong())
        assert plan.verification_failures == 1
        assert verify(self.SNAPSHOT, plan) == ()
        assert on_new_nodes(plan)["db"] == [1, 1, 1]
        assert left(plan) == {}

    def test_what_is_refuted_whatever_is_done_is_left_out_and_reported(
        self, monkeypatch: pytest.MonkeyPatch, reviewed: ReviewedSentences
    ):
        def never(snapshot: Snapshot, plan: ScaleUpPlan) -> Any:
            found = verify(snapshot, self.wrong().plan)
            return found if any("default/db" in p.pods for g in plan.scale_ups for p in g.patterns) else ()

        monkeypatch.setattr(planner, "verify", never)
        plan = plan_scale_up(self.SNAPSHOT, COST)
        assert plan.verification_failures == 1
        assert left(plan) == {"db": 3}
        assert reason_codes(plan) == ["VerificationFailed"]
        reviewed(reported(plan))
        assert plan.scheduled == 2

    def test_too_much_on_a_node_is_refuted(self):
        snapshot = world(waiting("web", 4), groups=[group("g", cpu=4)])
        plan = plan_scale_up(snapshot, COST)
        growth = replace(plan.scale_ups[0], patterns=(NodePattern(nodes=1, pods={"default/web": 5}),))
        assert verify(snapshot, replace(plan, scale_ups=(growth,)))
