"""Files of `plimsoll plan`: nodes carry labels under their old names, and types without zones are sold everywhere."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.nodes.planning.scaleup.planner import plan_scale_up
from plimsoll.simulation.plan.inputs import read_plan_input
from tests.nodes.planning.builders import policy

if TYPE_CHECKING:
    from plimsoll.nodes.model.scale_up_plan import ScaleUpPlan

Json = dict[str, Any]
ZONE = "topology.kubernetes.io/zone"
OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
LABELS = {"app": "p"}


def pods(count: int, **spec: Any) -> Json:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
    template = {"metadata": {"labels": LABELS}, "spec": {"containers": [container], **spec}}
    return {"name": "p", "count": count, "template": template}


def kind(name: str = "m4", **more: Any) -> Json:
    return {"name": name, "cpu": 4, "memory": "15Gi", "price": 0.2, **more}


def planned(document: Json, *, nap: bool = True) -> ScaleUpPlan:
    given = read_plan_input([("story.json", json.dumps(document).encode())])
    return plan_scale_up(given.snapshot, policy(expander="cost", node_autoprovisioning=nap))


def required(side: str, key: str) -> Json:
    term = {"labelSelector": {"matchLabels": LABELS}, "topologyKey": key}
    return {side: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


@pytest.mark.parametrize(
    "selector",
    [
        {"beta.kubernetes.io/instance-type": "m4"},
        {"beta.kubernetes.io/arch": "amd64"},
        {"beta.kubernetes.io/os": "linux"},
        {OLD_ZONE: "a"},
    ],
)
class TestSelectorsWithOldNames:
    def test_a_group_is_made_without_labels_of_its_own(self, selector: Json):
        types = [kind(zones=["a", "b"]), kind("m8", cpu=8, price=0.5)]
        plan = planned({"machineTypes": types, "pods": [pods(3, nodeSelector=selector)]})
        [growth] = plan.scale_ups
        assert (plan.scheduled, growth.option.machine_type) == (3, "m4")
        assert growth.option.profile is not None
        assert growth.option.profile.labels == {}

    def test_a_group_that_is_there_grows(self, selector: Json):
        group = {"id": "g", "max": 4, "machineType": "m4", "zone": "a"}
        document = {"machineTypes": [kind()], "nodeGroups": [group], "pods": [pods(1, nodeSelector=selector)]}
        assert planned(document, nap=False).scheduled == 1


@pytest.mark.parametrize("key", [ZONE, OLD_ZONE])
class TestTypesWithoutZones:
    def test_company_in_a_zone(self, key: str):
        affinity = required("podAffinity", key) | required("podAntiAffinity", "kubernetes.io/hostname")
        plan = planned({"machineTypes": [kind()], "pods": [pods(3, affinity=affinity)]})
        assert (plan.scheduled, [(scale_up.option.zone, scale_up.added) for scale_up in plan.scale_ups]) == (
            3,
            [("local-a", 3)],
        )

    def test_spread_over_zones(self, key: str):
        over = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule"}
        spread = [{**over, "labelSelector": {"matchLabels": LABELS}}]
        plan = planned({"machineTypes": [kind()], "pods": [pods(3, topologySpreadConstraints=spread)]})
        assert plan.scheduled == 3


def zones_of(document: Json) -> dict[str, tuple[str, ...]]:
    given = read_plan_input([("story.json", json.dumps(document).encode())])
    return {machine_type.name: machine_type.zones for machine_type in given.snapshot.machine_types}


def test_a_type_without_zones_is_sold_wherever_others_are():
    types = [kind(zones=["a", "b"]), kind("m8", zones=["c"]), kind("m2")]
    assert zones_of({"machineTypes": types}) == {"m4": ("a", "b"), "m8": ("c",), "m2": ("a", "b", "c")}


def test_a_type_without_zones_is_sold_in_the_zones_of_the_nodes():
    nodes = [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {ZONE: zone}}}
        for name, zone in (("n1", "eu-2"), ("n2", "eu-1"), ("n3", "eu-1"))
    ]
    assert zones_of({"machineTypes": [kind()], "objects": nodes}) == {"m4": ("eu-1", "eu-2")}


def test_zones_that_the_file_names_go_before_those_of_the_nodes():
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "labels": {ZONE: "eu-1"}}}
    assert zones_of({"machineTypes": [kind(zones=["eu-2"])], "objects": [node]}) == {"m4": ("eu-2",)}
