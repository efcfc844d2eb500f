"""Groups below their minimum size are raised to it and reported like every scale-up."""

from __future__ import annotations

from tests.nodes.autoscaler.loop_scenarios import TYPES, group, lived

ENFORCED = {"enforce-node-group-min-size": True}
REFUSED = {"provider": {"failIncrease": {"a": "no more machines"}}}


def test_a_group_raised_to_its_minimum_is_in_the_loop_the_events_and_the_metrics():
    end = lived({"loop": 1}, nodeGroups=[group("a", min=2, target=0)], machineTypes=TYPES, options=ENFORCED)

    growing = end.outcome["loops"][0]["scaleUp"]
    assert growing["result"] == "ScaleUpNeeded"
    assert growing["plan"] == [
        {
            "group": "a",
            "machineType": "n1-standard-4",
            "from": 0,
            "to": 2,
            "max": 10,
            "created": False,
            "zone": "local-a",
            "patterns": [],
        }
    ]
    reported = [event["message"] for event in end.outcome["events"] if event["reason"] == "ScaledUpGroup"]
    assert reported == [
        "Scale-up: group a size set to 2 instead of 0 (max: 10)",
        "Scale-up: setting group a size to 2 instead of 0 (max: 10)",
    ]
    assert end.outcome["metrics"]["scaled_up_nodes_total"] == 2


def test_a_group_that_cannot_be_raised_is_a_failed_growth():
    end = lived(REFUSED, {"loop": 1}, nodeGroups=[group("a", min=2, target=0)], machineTypes=TYPES, options=ENFORCED)

    [entry] = end.outcome["loops"][0]["scaleUp"]["plan"]
    assert "no more machines" in entry["error"]
    reasons = [event["reason"] for event in end.outcome["events"]]
    assert "FailedToScaleUpGroup" in reasons
    assert "FailedToRevertScaleUp" not in reasons
    assert end.outcome["metrics"]["scaled_up_nodes_total"] == 0


def test_machines_on_their_way_are_no_nodes_that_could_go():
    slow = group("a", min=2, target=0, bootSeconds=60)
    end = lived({"loop": 3}, nodeGroups=[slow, group("b", target=1)], machineTypes=TYPES, options=ENFORCED)

    assert [[*loop["scaleDown"]["unremovable"]] for loop in end.outcome["loops"]] == [["b-0"]] * 3
