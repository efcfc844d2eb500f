"""Which groups may grow: docs/design/nodes.md 5.2, and the reasons for the others."""

import pytest

from plimsoll.nodes.config.policy import Policy
from plimsoll.nodes.model.scale_up_plan import SkippedGroup
from plimsoll.nodes.model.snapshot import NodeGroup
from plimsoll.nodes.planning.problem import options
from plimsoll.nodes.planning.state.group_sizes import find_size_bounds
from plimsoll.objects.api.nodes import Taint
from tests.nodes.planning.builders import amounts, group, machine, nap, node, policy, snapshot

KIND = machine("m", 4, 16, price=0.2)
OURS = "nodeautoprovisioning_m_12345678"


def refusal(one: NodeGroup, rules: Policy | None = None) -> SkippedGroup:
    offered = options.find_options(snapshot(groups=(one,)), rules or policy())
    assert offered.options == ()
    return offered.skipped_groups[0]


def sizes(one: NodeGroup, rules: Policy) -> tuple[int, int] | None:
    found = find_size_bounds(one, rules)
    return None if found is None else (found.least, found.most)


def test_a_usable_group_is_offered_with_its_price_and_room():
    [offer] = options.find_options(snapshot(groups=(group("g", KIND, target=3),)), policy()).options
    assert (offer.group, offer.size, offer.max_size, offer.room, offer.exists) == ("g", 3, 10, 7, True)
    assert offer.price_per_hour == 0.2
    assert offer.capacity == offer.free == amounts(4, 16)


def test_explicit_bounds_replace_the_providers_and_switch_scaling_on():
    frozen = group("as", KIND, autoscaled=False)
    assert sizes(frozen, policy()) is None
    assert sizes(frozen, policy(nodes="1:2:as")) == (1, 2)


def test_groups_of_auto_provisioning_are_bounded_by_its_flag_alone():
    ours = group(OURS, KIND, autoprovisioned=True, min_size=2, most=3)
    assert sizes(ours, nap(autoprovisioned_group_max_size=7)) == (0, 7)
    assert sizes(ours, nap()) == (0, (1 << 31) - 1)
    assert sizes(ours, policy()) is None
    assert sizes(group("other_m_1", KIND, autoprovisioned=True), nap()) is None


@pytest.mark.parametrize(
    ("one", "code", "reason"),
    [
        (group("g", KIND, autoscaled=False), "NotAutoscaled", "not autoscaled"),
        (group("g", KIND, target=10), "MaxSizeReached", "max size reached"),
        (group("g", KIND, not_usable="in backoff until 02:10"), "InBackoff", "in backoff until 02:10"),
        (group("g", KIND, not_usable="not ready"), "NotReady", "not ready"),
    ],
)
def test_what_is_left_out_says_why(one: NodeGroup, code: str, reason: str):
    found = refusal(one)
    assert (found.group, found.machine_type, found.code, found.reason) == ("g", "m", code, reason)


def test_a_template_that_cannot_be_read_is_left_out_and_reported():
    odd = node("n", amounts(4, 16))
    odd.status.allocatable["memory"] = "many"
    assert refusal(group("g", KIND, template=odd)).code == "UnreadableTemplate"


def test_a_group_named_only_by_the_option_is_reported():
    assert refusal(group("g", KIND, autoscaled=False), policy(nodes="0:1:h")).code == "NotAutoscaled"
    offered = options.find_options(snapshot(), policy(nodes="0:1:h"))
    assert [(skipped.group, skipped.code) for skipped in offered.skipped_groups] == [("h", "UnknownNodeGroup")]


def test_templates_lose_what_was_passing_on_their_node():
    keep = Taint(key="dedicated", value="ml", effect="NoSchedule")
    passing = Taint(key="startup-taint.cluster-autoscaler.kubernetes.io/cni", effect="NoSchedule")
    template = node("real-1", amounts(4, 16), labels={"kubernetes.io/hostname": "real-1"}, taints=(passing, keep))
    [offer] = options.find_options(snapshot(groups=(group("g", KIND, template=template, zone="z1"),)), policy()).options
    assert offer.node.spec.taints == (keep,)
    labels = offer.node.metadata.labels
    assert labels["kubernetes.io/hostname"] == offer.node.metadata.name != "real-1"
    assert labels["topology.kubernetes.io/zone"] == "z1"
    assert labels["cluster-autoscaler.kubernetes.io/template-node"] == "true"


@pytest.mark.parametrize(
    ("rules", "code", "cap"),
    [
        (nap(max_autoprovisioned_node_group_count=1), "MaxAutoprovisionedNodeGroupCount", "(1 of 1)"),
        (nap(max_autoprovisioned_node_group_count=2, max_node_groups=3), "MaxNodeGroups", "(3 of 3)"),
    ],
)
def test_caps_on_groups_are_named(rules: Policy, code: str, cap: str):
    groups = (group(OURS, KIND, autoprovisioned=True), group("a", KIND), group("b", KIND))
    offered = options.find_options(snapshot(groups=groups, machine_types=(KIND,)), rules)
    [found] = offered.skipped_groups
    assert (found.code, cap in found.reason, offered.new_groups_left) == (code, True, 0)


def test_groups_left_are_the_smaller_of_both_caps():
    world = snapshot(groups=(group(OURS, KIND, autoprovisioned=True), group("a", KIND)))
    assert options.find_options(world, nap(max_node_groups=6)).new_groups_left == 4
    assert options.find_options(world, nap(max_autoprovisioned_node_group_count=3)).new_groups_left == 2
    assert options.find_options(world, policy()).new_groups_left == 0
