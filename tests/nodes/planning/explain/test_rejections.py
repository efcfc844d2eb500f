"""A reason names the fact: the request against the largest machine, the label that no node has, the taint."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.nodes.planning.scaleup.planner import plan_scale_up
from plimsoll.nodes.reporting.events.scale_up import count_reasons
from tests.nodes.planning.builders import policy
from tests.nodes.planning.scale_up_clusters import group, machine, waiting, world

if TYPE_CHECKING:
    from plimsoll.core.plans import Reason
    from plimsoll.nodes.model.snapshot import PendingPods

TYPE = "node.kubernetes.io/instance-type"
ZONE = "topology.kubernetes.io/zone"
TYPES = tuple(machine(f"m6i.{size}", cpu, zones=("a", "b")) for size, cpu in (
    ("large", 2), ("xlarge", 4), ("2xlarge", 8), ("4xlarge", 16), ("24xlarge", 96)
))  # fmt: skip


def explained(pending: PendingPods, *, nap: bool = True, **more: Any) -> tuple[Reason, ...]:
    snapshot = world(pending, machine_types=TYPES if nap else (), groups=[group("workers", **more)])
    plan = plan_scale_up(snapshot, policy(expander="cost", node_autoprovisioning=nap))
    [left] = plan.unschedulable
    return left.reasons


def test_a_request_is_compared_with_the_largest_machine_on_offer():
    [reason] = explained(waiting("web", cpu=500, requests={"cpu": "500"}))
    assert reason.message == (
        "Insufficient cpu (workers, 5 machine types): cpu 500 requested, the largest is m6i.24xlarge with 96"
    )
    assert reason.facts["shortages"] == {"cpu": {"requested": "500", "largest": "m6i.24xlarge", "offered": "96"}}


def test_two_requests_that_no_machine_has_together_are_reported_as_that():
    [reason] = explained(waiting("web", requests={"cpu": "96", "memory": "380Gi", "nvidia.com/gpu": 1}))
    assert "none has nvidia.com/gpu" in reason.message


def test_a_misspelled_resource_is_recognised():
    [reason] = explained(
        waiting("web", requests={"cpu": "1", "nvidia.com/gpus": 1}), nap=False, **{"nvidia.com/gpu": 4}
    )
    assert reason.message.endswith("none has nvidia.com/gpus; did you mean nvidia.com/gpu?")


@pytest.mark.parametrize(
    ("selector", "fact"),
    [
        ({TYPE: "m6i.larg"}, f"none has {TYPE}=m6i.larg; did you mean m6i.large?"),
        ({ZONE: "z"}, f"none has {ZONE}=z; the values are a, b"),
        ({"kubernetes.io/arch": "arm46"}, "none has kubernetes.io/arch=arm46; the values are amd64"),
    ],
)
def test_the_label_that_fails_is_named_with_the_nearest_one(selector: dict[str, str], fact: str):
    reasons = explained(waiting("web", nodeSelector=selector))
    assert len(reasons) == 1
    assert reasons[0].message == f"node(s) didn't match Pod's node affinity/selector (workers, 5 machine types): {fact}"


def test_of_several_labels_only_the_one_that_fails_is_named():
    [reason] = explained(waiting("web", nodeSelector={ZONE: "a", TYPE: "m5.large"}))
    assert f"none has {TYPE}=m5.large" in reason.message
    assert ZONE not in reason.message


def test_labels_that_exist_but_not_together():
    [reason] = explained(waiting("web", nodeSelector={"disk": "ssd", "team": "red"}), nap=False, labels={"disk": "ssd"})
    assert reason.message.endswith("(workers): none has team=red")


def test_node_affinity_is_named_by_its_expression():
    expression = {"key": ZONE, "operator": "In", "values": ["x", "y"]}
    required = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    [reason] = explained(waiting("web", affinity=affinity))
    assert reason.message.endswith(f"none has {ZONE} In x, y; the values are a, b")


def test_a_misspelled_key_is_recognised():
    [reason] = explained(
        waiting("web", nodeSelector={"kubernetes.io/arhc": "amd64"}), nap=False, labels={"kubernetes.io/arch": "arm64"}
    )
    assert reason.message.endswith("none has kubernetes.io/arhc=amd64; did you mean kubernetes.io/arch?")


def test_the_taint_is_named():
    taint = {"key": "dedicated", "value": "ml", "effect": "NoSchedule"}
    [reason] = explained(waiting("web"), nap=False, taints=[taint])
    assert reason.message == "node(s) had untolerated taint(s) (workers): dedicated=ml:NoSchedule is not tolerated"


def test_events_count_groups_in_the_words_of_the_scheduler():
    assert count_reasons(explained(waiting("web", requests={"cpu": "500"}))) == "6 Insufficient cpu"
    assert count_reasons(explained(waiting("web", nodeSelector={ZONE: "z"}))) == (
        "6 node(s) didn't match Pod's node affinity/selector"
    )
