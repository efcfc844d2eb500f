"""N42, why auto-provisioning is needed: a group that is made says what those that are there lack."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.core.resources import ResourceVector
from plimsoll.nodes.model.snapshot import MachineType
from plimsoll.nodes.planning.scaleup.planner import plan_scale_up
from tests.nodes.planning.builders import policy
from tests.nodes.planning.scale_up_clusters import group, machine, running, waiting, world
from tests.scheduling.builders import node

if TYPE_CHECKING:
    from tests.golden.reviewed_sentences import ReviewedSentences

GPU = "nvidia.com/gpu"
TYPES = (
    machine("n1-standard-4", 4, 15, price=0.19),
    machine("n1-standard-8", 8, 30, price=0.38),
    MachineType(
        name="gpu-8",
        capacity=(size := ResourceVector({"cpu": 8000, "memory": 30 << 30, "pods": 110, GPU: 1})),
        allocatable=size,
        price_per_hour=1.0,
    ),
)


def why(one: Any, **more: Any) -> tuple[str, str]:
    snapshot = world(one, groups=[group("g", most=2, price=0.2, target=more.pop("target", 0))], **more)
    plan = plan_scale_up(snapshot, policy(node_autoprovisioning=True), cache=None)
    (growth,) = plan.scale_ups
    assert not growth.option.exists
    return growth.option.machine_type, "; ".join(map(str, growth.reason.because))


FIRST = "no node carries team=x yet: the new node group is the first"


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (
            waiting("p", cpu=6, bundle="default/r"),
            ("n1-standard-8", "a larger machine type is needed: Insufficient cpu (g)"),
        ),
        (
            waiting("p", bundle="default/r", nodeSelector={"team": "x"}),
            (
                "n1-standard-4",
                f"nodes labelled team=x are needed (g); {FIRST}",
            ),
        ),
        (
            waiting("p", bundle="default/r", requests={"cpu": "1", GPU: 1}),
            ("gpu-8", "nodes with nvidia.com/gpu are needed (g)"),
        ),
    ],
    ids=["larger", "label", "gpu"],
)
def test_a_group_lacks_something(one: Any, expected: tuple[str, str]):
    assert why(one, machine_types=TYPES) == expected


def test_a_group_is_full():
    nodes = [node(f"g-{number}", cpu=4, memory="16Gi") for number in range(2)]
    on = [(f"g-{number}", running(f"busy-{number}", cpu=4)) for number in range(2)]
    reported = why(waiting("p", bundle="default/r"), target=2, nodes=nodes, on=on, machine_types=TYPES)
    assert reported == ("n1-standard-4", "max size reached (g)")


def test_a_new_group_may_just_be_cheaper(reviewed: ReviewedSentences):
    snapshot = world(waiting("p"), groups=[group("g", price=0.5)], machine_types=TYPES)
    (growth,) = plan_scale_up(snapshot, policy(node_autoprovisioning=True)).scale_ups
    reviewed(str(growth.reason))


def test_without_groups_there_is_nothing_to_say():
    snapshot = world(waiting("p"), machine_types=TYPES)
    (growth,) = plan_scale_up(snapshot, policy(node_autoprovisioning=True)).scale_ups
    assert growth.reason.because == ()
