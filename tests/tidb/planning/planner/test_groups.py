"""Groups in particular: limits, veto, types that changed or are gone, older names, instances on their way."""

from __future__ import annotations

from plimsoll.tidb.model.names import make_size_suffix
from tests.tidb.planning.planner.builders import (
    BIG,
    SMALL,
    base,
    codes,
    counts,
    disks,
    group_of,
    instance,
    planned,
    strategy,
    thresholds,
)

PARTLY_HOT = base(0.95, 0.3, 0.3)
IDLE = base(0.05, 0.05)
CALM = base(0.4, 0.4)


def test_a_lowered_count_cuts_a_group_in_every_branch():
    two = group_of("small", 0.3, 0.3)
    asked = strategy({**SMALL, "count": 1})
    assert counts(asked, *CALM, *two) == {"small": 1}
    assert codes(asked, *CALM, *two) == ["steady", "cut_to_count"]
    assert counts(strategy({**SMALL, "count": 0}), *CALM, *two) == {}
    assert counts(asked, *base(0.95, 0.95), *group_of("small", 0.95, 0.95))["small"] == 1


def test_a_removal_that_would_make_the_others_too_busy_is_vetoed():
    """Only the group works: without it nothing could."""
    asked = strategy(BIG, cpu=thresholds(0.3, 0.25))
    instances = [*base(0.24, 0.24, quota=1), *group_of("big", 0.24, quota=8)]
    assert counts(asked, *instances) == {"big": 1}
    assert codes(asked, *instances) == ["scale_in_veto"]


def test_a_group_whose_type_is_gone_goes_first_and_is_never_raised():
    assert counts(strategy(SMALL), *IDLE, *group_of("gone", 0.1), *group_of("small", 0.1)) == {"small": 1}
    assert counts(strategy(), *PARTLY_HOT, *group_of("gone", 0.3)) == {"gone": 1}
    assert codes(strategy(), *PARTLY_HOT, *group_of("gone", 0.3)) == ["no_room"]


def test_a_type_that_no_rule_names_is_not_added_but_removed():
    asked = strategy(SMALL, BIG, cpu=thresholds(resource_types=["big"]))
    assert counts(asked, *PARTLY_HOT, *group_of("small", 0.3)) == {"big": 1, "small": 1}
    assert counts(asked, *IDLE, *group_of("small", 0.1)) == {}


def test_a_group_that_an_older_planner_named_takes_new_instances():
    old = group_of("small", 0.3, label="pd-auto-scaling-tikv")
    (found,) = planned(strategy(SMALL), *PARTLY_HOT, *old).plans
    assert (found.group, found.count) == ("pd-auto-scaling-tikv", 3)


def test_after_a_change_of_size_there_is_a_second_group_and_the_first_only_shrinks():
    suffix = make_size_suffix(2000, 4, 10)
    asked = strategy({**SMALL, "group_suffix": suffix})
    found = planned(asked, *PARTLY_HOT, *group_of("small", 0.3)).plans
    first = "pd-auto-scaling-tikv-small"
    assert [(entry.group, entry.count) for entry in found] == [(first, 1), (f"{first}-{suffix}", 2)]
    both = [*group_of("small", 0.1), *group_of("small", 0.1, label=f"{first}-{suffix}")]
    assert [plan.group for plan in planned(asked, *IDLE, *both).plans] == [f"{first}-{suffix}"]


def test_labels_of_groups_are_found_in_any_case():
    labels = {"Group": "pd-auto-scaling-tikv-small", "RESOURCE-TYPE": "small"}
    odd = instance(0.3, quota=2, base=False, labels=labels)
    assert counts(strategy(SMALL), *CALM, odd) == {"small": 1}


def test_a_label_that_is_only_the_prefix_makes_no_group():
    odd = instance(0.3, base=False, labels={"group": "pd-auto-scaling"})
    assert counts(strategy(SMALL), *CALM, odd) == {}


def test_instances_on_their_way_are_not_advised_again():
    asked = strategy(SMALL, pending={"small": 2})
    assert counts(asked, *PARTLY_HOT) == {"small": 2}
    assert codes(asked, *PARTLY_HOT) == ["heterogeneous_pending"]
    own = strategy(pending={"default_homogeneous_tikv": 3})
    assert counts(own, *base(0.9, 0.9, 0.9)) == {}
    assert codes(own, *base(0.9, 0.9, 0.9)) == ["homogeneous_pending"]
    assert counts(strategy(pending={"default_homogeneous_tikv": 1}), *base(0.9, 0.9, 0.9)) == {"own": 6}


def test_instances_on_their_way_take_nodes_and_hold_back_removals():
    assert codes(strategy(SMALL, nodes=4, pending={"small": 1}), *PARTLY_HOT) == ["no_free_node"]
    asked = strategy(SMALL, pending={"small": 1})
    assert counts(asked, *IDLE, *group_of("small", 0.05)) == {"small": 2}


def test_without_a_number_of_nodes_there_are_enough():
    assert counts(strategy({**SMALL, "count": None}, nodes=None), *base(*[0.95] * 9, *[0.1] * 9)) == {"small": 17}
    assert counts(strategy(nodes=None), *base(*[0.9] * 30)) == {"own": 55}


def test_groups_do_not_go_for_instances_that_find_no_node_anyway():
    """Nodes are full of a cluster of the user's own."""
    foreign = [instance(0.95, base=False, name=f"cold-{i}") for i in range(4)]
    instances = [*base(0.95, 0.95), *foreign, *group_of("small", 0.95)]
    assert counts(strategy(SMALL, nodes=6), *instances) == {"small": 1}


def test_storage_that_finds_no_room_leaves_the_word_to_cpu():
    busy = [
        {**instance, "cpu_used_seconds": used} for instance, used in zip(disks(270), (228.0, 72.0, 72.0), strict=True)
    ]
    asked = strategy(SMALL, storage=thresholds(), cpu=thresholds(), limit=3)
    assert counts(asked, *busy) == {"small": 2}
    assert codes(asked, *busy) == ["homogeneous_limit", "heterogeneous_out"]


def test_a_storage_rule_of_the_older_form_is_none():
    asked = strategy(SMALL)
    asked["rules"][0]["storage_rule"] = {"min_threshold": 0.2, "resource_types": ["small"]}
    assert counts(asked, *disks(290)) == {}


def test_facts_show_the_arithmetic():
    (reason,) = planned(strategy(), *base(0.9, 0.9, 0.9)).reasons
    assert reason.facts == {
        "rule": "cpu",
        "usedCores": 10.8,
        "quotaCores": 12.0,
        "average": 0.9,
        "max": 0.8,
        "min": 0.2,
        "target": 0.5,
        "needCores": 9.6,
        "wanted": 3,
        "standing": 3,
        "added": 3,
    }
