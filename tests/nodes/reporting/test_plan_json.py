"""Turns as elements of a scenario's `loops[]`: the keys of the specification, results in Cluster Autoscaler's words."""

import json
from dataclasses import replace

import pytest

from plimsoll.core.plans import Reason
from plimsoll.nodes.loop_result import LoopResult, ScaleDownPart
from plimsoll.nodes.model.results import ScaleUpPart
from plimsoll.nodes.model.scale_up_plan import LabelSet
from plimsoll.nodes.reporting.plan_json import build_loop_entry
from tests.nodes.reporting.loop_results import (
    STOCKOUT,
    loop_result,
    option,
    planned,
    removal,
    scale_down,
    scale_up,
    scale_up_result,
    scaled_up_loop,
    unneeded,
    unremovable,
    unschedulable_loop,
    waiting,
)

LIMIT = Reason(code="CpuResourceLimit", message="max cluster cpu limit reached (13 of 5 in use)")
PAUSED = Reason(code="Paused", message="paused")


def test_growth_as_the_specification_writes_it():
    entry = build_loop_entry(scaled_up_loop(scale_up(option("g", size=1, zone="z1"), waiting("p"), nodes=2)))["scaleUp"]

    assert entry["result"] == "ScaleUpNeeded"
    (line,) = entry["plan"]
    expected = {"group": "g", "from": 1, "to": 3, "max": 10, "created": False, "zone": "z1"}
    assert {key: line[key] for key in expected} == expected
    assert line["machineType"] == "n1-standard-4"
    assert entry["helped"] == 2
    assert entry["remaining"] == []
    assert {"costPerHour", "lowerBoundPerHour"} <= entry.keys()


def test_measured_seconds_only_when_asked_for():
    one = loop_result(scale_up=ScaleUpPart(plan=planned(), plan_seconds=0.25))

    assert "planSeconds" not in build_loop_entry(one)["scaleUp"]
    assert build_loop_entry(one, is_timed=True)["scaleUp"]["planSeconds"] == 0.25


def test_pods_that_remain_have_their_reasons():
    entry = build_loop_entry(unschedulable_loop(waiting("p"), waiting("q"), reasons=(LIMIT,)))["scaleUp"]

    assert entry["result"] == "NoOptions"
    assert entry["remaining"] == [{"pods": 2, "reasons": ["max cluster cpu limit reached (13 of 5 in use)"]}]


def test_label_sets_when_auto_provisioning_made_some():
    sets = LabelSet(labels={"a": "b"}, merged=({"a": "b"},), served=({"a": "b"},))
    entry = build_loop_entry(loop_result(scale_up=ScaleUpPart(plan=planned(label_sets=(sets,)))))["scaleUp"]

    assert entry["labelSets"] == [{"labels": {"a": "b"}, "merged": [{"a": "b"}], "served": [{"a": "b"}]}]


def test_a_group_that_was_made_has_the_clouds_id():
    new = scale_up(option("nap-1", exists=False))
    one = loop_result(scale_up=ScaleUpPart(plan=planned(new), results=(scale_up_result(new, group="nap-1-x"),)))

    (line,) = build_loop_entry(one)["scaleUp"]["plan"]
    assert (line["group"], line["created"]) == ("nap-1-x", True)


def test_a_group_made_as_several_is_several_lines_whose_patterns_are_reported_once():
    new = scale_up(option("nap-1", exists=False), waiting("p"), nodes=3)
    parts = (scale_up_result(new, group="nap-1-a", after=2), scale_up_result(new, group="nap-1-b", after=1))
    one = loop_result(scale_up=ScaleUpPart(plan=planned(new), results=parts))

    lines = build_loop_entry(one)["scaleUp"]["plan"]
    assert [(line["group"], line["to"], len(line["patterns"])) for line in lines] == [
        ("nap-1-a", 2, 1),
        ("nap-1-b", 1, 0),
    ]


def test_a_growth_that_failed_says_so():
    bad = scale_up(option("nap-1", exists=False))
    one = loop_result(
        scale_up=ScaleUpPart(plan=planned(bad), results=(scale_up_result(bad, created=False, failure=STOCKOUT),))
    )

    entry = build_loop_entry(one)["scaleUp"]
    assert entry["result"] == "ScaleUpError"
    assert entry["plan"][0]["error"] == "no more machines of this type"
    assert entry["plan"][0]["created"] is False


def test_a_growth_that_was_held_back_says_so():
    held = scale_up(option("nap-1", exists=False))
    one = loop_result(scale_up=ScaleUpPart(plan=planned(held), results=(scale_up_result(held, held_back=PAUSED),)))

    (line,) = build_loop_entry(one)["scaleUp"]["plan"]
    assert (line["heldBack"], line["created"]) == ("paused", True)


# ---- scale-down


def test_nodes_that_go_and_nodes_that_stay():
    part = scale_down(
        removal("n3"),
        removal("n1", "web-0"),
        unremovable=(unremovable("n4", "ScaleDownDisabledAnnotation"), unremovable("n2", "NotUnderutilized")),
    )
    entry = build_loop_entry(loop_result(scale_down=part))["scaleDown"]

    assert entry == {
        "result": "ScaleDownNodeDeleteStarted",
        "empty": ["n3"],
        "drained": ["n1"],
        "unremovable": {"n2": "NotUnderutilized", "n4": "ScaleDownDisabledAnnotation"},
    }


def test_a_pod_that_keeps_its_node_is_named_with_its_reason():
    why = Reason(code="NotReplicated", message="it has no controller")
    part = scale_down(unremovable=(unremovable("n1", "BlockedByPod", "pod default/db-0 keeps it", because=(why,)),))

    assert build_loop_entry(loop_result(scale_down=part))["scaleDown"]["unremovable"] == {
        "n1": "BlockedByPod: pod default/db-0 keeps it (it has no controller)"
    }


def test_what_a_brake_held_back_stays():
    entry = build_loop_entry(loop_result(scale_down=scale_down(removal("n1"), held_back={"n1": PAUSED})))["scaleDown"]

    assert entry["empty"] == []
    assert entry["unremovable"] == {"n1": "Paused"}


def test_a_dry_run_shows_what_would_go():
    dry = Reason(code="DryRun", message="dry run")
    entry = build_loop_entry(loop_result(scale_down=scale_down(removal("n1"), held_back={"n1": dry})))["scaleDown"]

    assert entry["empty"] == ["n1"]
    assert entry["result"] == "ScaleDownNoUnneeded"


SKIPPED = Reason(code="ScaleDownDisabled", message="scale-down-enabled is false")
NEW = Reason(code="PodsTooNew", message="wait")


@pytest.mark.parametrize(
    ("one", "result"),
    [
        (loop_result(scale_down=ScaleDownPart()), "ScaleDownNoUnneeded"),
        (loop_result(scale_down=ScaleDownPart(unneeded=(unneeded("n"),))), "ScaleDownNoNodeDeleted"),
        (loop_result(scale_down=ScaleDownPart(unneeded=(unneeded("n"),), under_way=1)), "ScaleDownInProgress"),
        (loop_result(scale_down=ScaleDownPart(is_in_cooldown=True, under_way=1)), "ScaleDownInCooldown"),
        (scaled_up_loop(scale_up(option("g"))), "ScaleDownInCooldown"),
        (loop_result(scale_up=ScaleUpPart(skipped=NEW)), "ScaleDownInCooldown"),
        (loop_result(scale_down=ScaleDownPart(skipped=SKIPPED)), "ScaleDownNotTried"),
        (loop_result(ended_early=Reason(code="CannotSee", message="x")), "ScaleDownNotTried"),
    ],
)
def test_how_scaling_down_ended(one: LoopResult, result: str):
    assert build_loop_entry(one)["scaleDown"]["result"] == result


def test_a_turn_that_ended_early_tried_nothing_and_says_why():
    entry = build_loop_entry(loop_result(ended_early=Reason(code="CannotSee", message="the cloud is gone")))

    assert entry["scaleUp"]["result"] == "NotTried"
    assert entry["endedEarly"] == "the cloud is gone"


def test_pods_that_are_too_new_put_growth_off():
    assert build_loop_entry(loop_result(scale_up=ScaleUpPart(skipped=NEW)))["scaleUp"]["result"] == "InCooldown"


def test_an_entry_is_plain_json():
    one = scaled_up_loop(scale_up(option("g"), waiting("p")), pending=(waiting("p"),))
    entry = build_loop_entry(replace(one, scale_down=scale_down(removal("n1"))))

    assert json.loads(json.dumps(entry)) == entry
