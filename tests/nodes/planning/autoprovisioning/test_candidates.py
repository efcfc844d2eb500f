"""Groups that could be made: docs/design/nodes.md 5.5 to 5.8, at the level of offers (N26, N27, N28, N30, N42)."""

from typing import Any, ClassVar

import pytest

from plimsoll.nodes.model.node_labels import REGION, ZONE
from plimsoll.nodes.model.scale_up_plan import ScaleUpOption
from plimsoll.nodes.model.snapshot import MachineType, PendingPods
from plimsoll.nodes.planning.problem import options as candidates
from plimsoll.nodes.planning.problem.options import ScaleUpOptions
from plimsoll.objects.api.affinity import Toleration, TopologySpreadConstraint
from plimsoll.objects.api.nodes import Taint
from plimsoll.scheduling import ClusterView, Fits, check_node
from tests.golden.reviewed_sentences import ReviewedSentences
from tests.nodes.planning.builders import amounts, group, machine, nap, node, pending, pod, policy, snapshot, standard

TYPES = tuple(standard(cores) for cores in (1, 2, 4, 8, 16))
GPU = machine(
    "gpu-8", 8, 30, gpu=1, price=1.0, taints=(Taint(key="nvidia.com/gpu", value="present", effect="NoSchedule"),)
)
GPU_TOLERATION = Toleration(key="nvidia.com/gpu", operator="Exists")
INSTANCE_TYPE = "node.kubernetes.io/instance-type"


def tolerating(value: str) -> tuple[Toleration, ...]:
    return (Toleration(key="dedicated", value=value, effect="NoSchedule"),)


def offered(
    *entries: PendingPods, types: tuple[MachineType, ...] = TYPES, world: dict[str, Any] | None = None, **options: Any
) -> ScaleUpOptions:
    return candidates.find_options(snapshot(*entries, machine_types=types, **(world or {})), nap(**options))


def kinds(found: ScaleUpOptions) -> list[str]:
    return [offer.machine_type for offer in found.options]


def profiles(found: ScaleUpOptions) -> list[tuple[dict[str, str], list[str]]]:
    """Labels and taints of what is offered, each once."""
    seen: list[tuple[dict[str, str], list[str]]] = []
    for offer in found.options:
        assert offer.profile is not None
        written = [f"{taint.key}={taint.value}:{taint.effect}" for taint in offer.profile.taints]
        if (one := (dict(offer.profile.labels), written)) not in seen:
            seen.append(one)
    return seen


def takes(offer: ScaleUpOption, entry: PendingPods) -> bool:
    return isinstance(check_node(entry.pod, offer.node, ClusterView.from_objects([offer.node])), Fits)


def test_only_types_that_some_pod_fits_are_offered():
    found = offered(pending("big", pod("12", "40Gi")))
    assert kinds(found) == ["n1-standard-16"]
    [offer] = found.options
    assert offer.group.startswith("nodeautoprovisioning_n1-standard-16_")
    assert (offer.exists, offer.size, offer.room) == (False, 0, offer.max_size)
    assert profiles(found) == [({}, [])]


def test_nothing_is_made_unless_auto_provisioning_is_on():
    world = snapshot(pending("p", pod()), machine_types=TYPES)
    assert candidates.find_options(world, nap()).options
    assert candidates.find_options(world, policy()).options == ()


def test_a_selector_becomes_labels_and_the_pod_fits_what_is_offered():
    red = pending("red", pod(selector={"team": "red"}))
    found = offered(red)
    assert profiles(found) == [({"team": "red"}, [])]
    assert all(takes(offer, red) for offer in found.options)
    assert len(found.options) == 5


def test_a_machine_type_is_a_condition_and_no_label():
    found = offered(pending("p", pod(selector={INSTANCE_TYPE: "n1-standard-4"})))
    assert kinds(found) == ["n1-standard-4"]
    assert profiles(found) == [({}, [])]


def test_the_designs_key_for_the_machine_type_is_put_on_nodes_because_pods_select_by_it():
    entry = pending("p", pod(selector={"machine_type": "n1-standard-4"}))
    found = offered(entry)
    assert kinds(found) == ["n1-standard-4"]
    assert profiles(found) == [({"machine_type": "n1-standard-4"}, [])]
    assert takes(found.options[0], entry)


def test_selectors_that_agree_share_a_group_and_others_do_not():
    red, blue = pending("r", pod(selector={"color": "red"})), pending("b", pod(selector={"color": "blue"}))
    ssd = pending("s", pod(selector={"disk": "ssd"}))
    assert profiles(offered(red, blue)) == [({"color": "blue"}, []), ({"color": "red"}, [])]
    assert profiles(offered(red, ssd)) == [({"color": "red", "disk": "ssd"}, [])]
    assert profiles(offered(red, ssd, nap_label_merge="alpha")) == [({"color": "red"}, []), ({"disk": "ssd"}, [])]


def test_popularity_is_pods_or_cpu():
    many = pending("many", pod("100m", selector={"color": "red"}), 5)
    large = pending("large", pod("900m", selector={"color": "blue"}), 2)
    assert offered(many, large).label_sets[0].labels == {"color": "red"}
    assert offered(many, large, nap_popularity="cpu").label_sets[0].labels == {"color": "blue"}


def test_the_label_sets_of_the_design_come_out_as_it_says():
    s1, s2 = {"x": "a", "machine_type": "n1-standard-2"}, {"y": "b"}
    s3, s4 = {"x": "c"}, {"machine_type": "n1-standard-16"}
    entries = [
        pending(f"s{index}", pod(selector=selector), 5 - index) for index, selector in enumerate((s1, s2, s3, s4))
    ]
    found = offered(*entries, types=(standard(2), standard(16)))
    first = found.label_sets[0]
    assert first.labels == {"x": "a", "y": "b", "machine_type": "n1-standard-2"}
    assert (first.merged, first.served) == ((s1, s2, s4), (s1, s2))
    for entry in entries:
        assert any(takes(offer, entry) for offer in found.options)


def test_system_labels_and_labels_of_the_type_choose_candidates():
    arm = machine("arm", 4, 16, architecture="arm64", labels={"family": "t2a"})
    plain = standard(4, labels={"family": "n1"})
    assert kinds(offered(pending("p", pod(selector={"kubernetes.io/arch": "arm64"})), types=(plain, arm))) == ["arm"]
    found = offered(pending("p", pod(selector={"family": "n1"})), types=(plain, arm))
    assert kinds(found) == ["n1-standard-4"]
    assert profiles(found) == [({}, [])]


@pytest.mark.parametrize(
    "affinity",
    [
        [[("pool", "Exists", [])]],
        [[("pool", "In", ["a", "b"])]],
        [[("pool", "Gt", ["3"])]],
    ],
    ids=str,
)
def test_labels_are_never_made_up(affinity: Any, reviewed: ReviewedSentences):
    entry = pending("p", pod(affinity=affinity))
    found = offered(entry)
    assert found.options == ()
    impossible = found.impossible["default/p"]
    assert impossible.code == "NoGroupCanBeMade"
    reviewed(impossible.message)


def test_affinity_to_one_value_is_a_selector_and_the_first_term_that_can_be_met_counts():
    entry = pending("p", pod(affinity=[[("pool", "Exists", [])], [("pool", "In", ["a"]), ("x", "NotIn", ["y"])]]))
    found = offered(entry)
    assert profiles(found) == [({"pool": "a"}, [])]
    assert takes(found.options[0], entry)


def test_a_pod_that_forbids_what_others_require_gets_a_group_of_its_own():
    red = pending("red", pod(selector={"color": "red"}), 3)
    not_red = pending("not-red", pod(affinity=[[("color", "NotIn", ["red"])]]))
    found = offered(red, not_red)
    assert profiles(found) == [({"color": "red"}, []), ({}, [])]
    assert any(takes(offer, not_red) for offer in found.options)


def test_a_pod_that_names_its_node_gets_none(reviewed: ReviewedSentences):
    impossible = offered(pending("p", pod(node_name="n1"))).impossible["default/p"]
    assert impossible.code == "NoGroupCanBeMade"
    reviewed(impossible.message)


# ---- taints


def test_each_set_of_custom_tolerations_gets_a_group_and_plain_pods_an_untainted_one():
    ml, web = (pending(name, pod(tolerations=tolerating(name))) for name in ("ml", "web"))
    found = offered(ml, web, pending("plain", pod()), types=(standard(1),))
    assert profiles(found) == [
        ({}, ["dedicated=ml:NoSchedule"]),
        ({}, ["dedicated=web:NoSchedule"]),
        ({}, []),
    ]
    assert [[taint.value for taint in offer.node.spec.taints] for offer in found.options] == [["ml"], ["web"], []]
    assert profiles(offered(ml, web, pending("plain", pod()), nap_taints="none")) == [({}, [])]


# ---- accelerators


def test_pods_that_ask_for_accelerators_get_types_that_have_them():
    entry = pending("p", pod(gpu=1, tolerations=(GPU_TOLERATION,)))
    found = offered(entry, types=(*TYPES, GPU))
    assert kinds(found) == ["gpu-8"]
    assert profiles(found) == [({}, [])]
    assert takes(found.options[0], entry)


def test_pods_that_do_not_tolerate_a_types_taint_do_not_get_it():
    assert offered(pending("p", pod(gpu=1)), types=(*TYPES, GPU)).options == ()


def test_accelerators_are_spared_unless_nothing_else_fits():
    untainted = machine("gpu-8", 8, 30, gpu=1, price=1.0)
    assert "gpu-8" not in kinds(offered(pending("p", pod("6")), types=(*TYPES, untainted)))
    assert kinds(offered(pending("p", pod("6")), types=(standard(4), untainted))) == ["gpu-8"]


# ---- zones, back-offs, limits, names


def test_zones_get_an_offer_each_only_where_they_matter():
    kind = standard(4, zones=("z1", "z2"))
    assert [offer.zone for offer in offered(pending("p", pod()), types=(kind,)).options] == ["z1"]
    spread = TopologySpreadConstraint(
        max_skew=1, topology_key="topology.kubernetes.io/zone", when_unsatisfiable="DoNotSchedule"
    )
    entry = pending("p", pod(topology_spread_constraints=(spread,)))
    found = offered(entry, types=(kind,))
    assert [offer.zone for offer in found.options] == ["z1", "z2"]
    assert len({offer.group for offer in found.options}) == 2
    assert [offer.node.metadata.labels["topology.kubernetes.io/zone"] for offer in found.options] == ["z1", "z2"]
    pinned = pending("p", pod(selector={"topology.kubernetes.io/zone": "z2"}))
    assert [offer.zone for offer in offered(pinned, types=(kind,)).options] == ["z2"]


class TestRegions:
    """Of a zone, as nodes and templates there have it."""

    TYPES = (machine("m", 4, 16, zones=("a", "b")),)
    ENTRY = pending("p", pod("1", "1Gi", selector={REGION: "east"}))
    PLACE: ClassVar = {ZONE: "b", REGION: "east"}

    def regions(self, *entries: PendingPods, **world: Any) -> list[tuple[str, str | None, str | None]]:
        found = offered(*entries, types=self.TYPES, world=world)
        return [
            (offer.zone, labels.get(REGION), labels.get("failure-domain.beta.kubernetes.io/region"))
            for offer in found.options
            if not offer.exists
            for labels in [offer.node.metadata.labels]
        ]

    def test_from_a_node_in_the_zone(self):
        there = node("n", amounts(4, 16), labels=self.PLACE)
        assert self.regions(self.ENTRY, nodes=(there,)) == [("b", "east", "east")]

    def test_from_the_template_of_a_group_in_the_zone(self):
        one = group("g", self.TYPES[0], template=node("t", amounts(4, 16), labels=self.PLACE))
        assert self.regions(self.ENTRY, groups=(one,)) == [("b", "east", "east")]

    def test_a_zone_that_is_not_reported_has_none(self):
        assert self.regions(self.ENTRY) == []
        assert self.regions(pending("p", pod("1", "1Gi"))) == [("a", None, None)]

    def test_a_zone_that_is_reported_in_two_ways_has_none(self):
        there = [node(name, amounts(4, 16), labels={ZONE: "b", REGION: name}) for name in ("east", "west")]
        assert self.regions(self.ENTRY, nodes=tuple(there)) == []

    def test_the_catalogue_s_word_goes_first(self):
        kind = machine("m", 4, 16, zones=("b",), labels={REGION: "north"})
        there = node("n", amounts(4, 16), labels=self.PLACE)
        found = offered(pending("p", pod("1", "1Gi")), types=(kind,), world={"nodes": (there,)})
        assert [offer.node.metadata.labels[REGION] for offer in found.options] == ["north"]


def test_a_zone_in_back_off_is_passed_over_and_reported():
    kind = standard(4, zones=("z1", "z2"))
    backoffs = {(kind.name, "z1", ""): "out of stock until 02:10"}
    found = offered(pending("p", pod()), types=(kind,), world={"creation_backoffs": backoffs})
    assert [offer.zone for offer in found.options] == ["z2"]
    [reported] = found.skipped_groups
    assert (reported.code, reported.machine_type) == ("InBackoff", "n1-standard-4")
    assert "out of stock until 02:10" in reported.reason


def test_a_back_off_of_one_profile_leaves_others_alone():
    red, blue = pending("r", pod(selector={"color": "red"})), pending("b", pod(selector={"color": "blue"}))
    free = offered(red, blue, types=(standard(4),))
    profile = free.options[0].profile
    assert profile is not None
    backoffs = {("n1-standard-4", "", profile.hash): "illegal configuration"}
    found = offered(red, blue, types=(standard(4),), world={"creation_backoffs": backoffs})
    assert [offer.group for offer in found.options] == [free.options[1].group]


def test_only_allowed_types_are_offered_and_unknown_ones_reported():
    found = offered(pending("p", pod()), machine_types="n1-standard-2,n9")
    assert kinds(found) == ["n1-standard-2"]
    assert [(skipped.machine_type, skipped.code) for skipped in found.skipped_groups] == [("n9", "UnknownMachineType")]


def test_room_is_what_limits_and_the_flag_for_group_sizes_leave():
    found = offered(pending("p", pod()), types=(standard(4),), max_cpu=10, autoprovisioned_group_max_size=7)
    assert [(offer.room, offer.max_size) for offer in found.options] == [(2, 7)]
    assert offered(pending("p", pod()), types=(standard(1),), autoprovisioned_group_max_size=7).options[0].room == 7


def test_new_groups_cost_a_little_more_in_planning_and_nothing_more_in_money():
    [offer] = offered(pending("p", pod()), types=(standard(4),)).options
    assert offer.price_per_hour == standard(4).price_per_hour
    assert offer.planning_price == pytest.approx(1.02 * offer.price_per_hour, rel=1e-3)


def test_no_two_offers_have_one_id():
    entries = [pending(f"p{index}", pod(selector={"k": str(index)})) for index in range(20)]
    found = offered(*entries, max_autoprovisioned_node_group_count=30)
    assert len(found.options) == 20 * 5
    assert len({offer.group for offer in found.options}) == len(found.options)


def test_the_order_of_pods_does_not_change_what_is_offered():
    entries = [
        pending("a", pod(selector={"x": "1"}), 2),
        pending("b", pod(selector={"x": "2"}), 3),
        pending("c", pod(selector={"y": "1"})),
        pending("d", pod(tolerations=tolerating("ml"))),
    ]
    forth, back = offered(*entries), offered(*reversed(entries))
    assert {offer.group for offer in forth.options} == {offer.group for offer in back.options}


def test_of_one_type_no_more_kinds_of_groups_are_offered_than_may_be_made():
    entries = [pending(f"p{index}", pod(selector={"k": str(index)}), 1 + index) for index in range(4)]
    found = offered(*entries, types=(standard(1),), max_autoprovisioned_node_group_count=2)
    assert profiles(found) == [({"k": "3"}, []), ({"k": "2"}, [])]
    assert found.new_groups_left == 2
