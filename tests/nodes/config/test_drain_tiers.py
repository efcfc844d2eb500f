"""Which pods go first, and how much time each tier gives them (`--drain-priority-config`)."""

from __future__ import annotations

import pytest

from plimsoll.core.errors import InvalidInput
from plimsoll.nodes.config.drain_tiers import DrainTier, build_drain_tiers, group_by_tier, parse_drain_tiers
from plimsoll.nodes.config.policy import ScaleDown
from plimsoll.objects.api.meta import ObjectMeta
from plimsoll.objects.api.pods import Pod, PodSpec


def pod(name: str, priority: int | None) -> Pod:
    return Pod(metadata=ObjectMeta(name=name), spec=PodSpec(priority=priority))


def test_without_tiers_all_pods_go_at_once_under_one_grace_period():
    assert build_drain_tiers(ScaleDown()) == (DrainTier(0, 600),)
    ((tier, pods),) = group_by_tier([pod("a", 5), pod("b", -5), pod("c", None)], build_drain_tiers(ScaleDown()))
    assert (tier.grace_s, len(pods)) == (600, 3)


def test_tiers_are_in_the_order_of_priorities():
    assert parse_drain_tiers("1000:10, 0:30,-10:5") == (DrainTier(-10, 5), DrainTier(0, 30), DrainTier(1000, 10))


def test_a_pod_belongs_to_the_highest_tier_that_is_not_above_it():
    tiers = parse_drain_tiers("10:1,20:2,30:3")
    pods = [pod(str(priority), priority) for priority in (-5, 10, 19, 20, 31)] + [pod("none", None)]
    found = {tier.priority: [pod.metadata.name for pod in listed] for tier, listed in group_by_tier(pods, tiers)}
    assert found == {10: ["-5", "10", "19", "none"], 20: ["20"], 30: ["31"]}


@pytest.mark.parametrize("text", ["10", "a:5", "10:-5", "10:5:3", "10:5,", "1:2,1:3"])
def test_what_is_no_list_of_tiers_is_refused(text: str):
    with pytest.raises(InvalidInput, match="drain-priority-config"):
        parse_drain_tiers(text)
