"""Ids that clouds take and Kubernetes does not: in options, steps and outcomes they are what the file says."""

from __future__ import annotations

from typing import Any

from plimsoll.simulation.files.scenario_reader import read_scenario
from plimsoll.simulation.runner import run_scenario
from plimsoll.simulation.worlds.group_names import GroupNames

SEED_ID = "nodeautoprovisioning_n1-highmem4_1234129"


def test_ids_that_are_names_stay_as_they_are():
    names = GroupNames(["a", "b-1"])
    assert (names.get_name("a"), names.get_id("b-1"), names.get_name("made-later")) == ("a", "b-1", "made-later")


def test_ids_that_would_be_the_same_name_get_names_of_their_own():
    names = GroupNames(["A", "a", "A_", "a-2"])
    written = [names.get_name(group_id) for group_id in ("A", "a", "A_", "a-2")]
    assert len(set(written)) == 4
    assert [names.get_id(text) for text in written] == ["A", "a", "A_", "a-2"]


def story(**changes: Any) -> dict[str, Any]:
    text = f"""
machineTypes: [{{name: n1-highmem-4, cpu: 4, memory: 26Gi, price: 0.2}}]
options: {{nodes: "0:2:Y", node-autoprovisioning: true, machine-types: none-of-them}}
nodeGroups:
- {{id: Y, max: 10, target: 1, machineType: n1-highmem-4, autoscaled: false}}
- {{id: {SEED_ID}, max: 10, target: 1, machineType: n1-highmem-4, autoprovisioned: true}}
pods:
- name: p
  namespace: default
  count: 3
  template: {{spec: {{containers: [{{name: c, image: i, resources: {{requests: {{cpu: "3", memory: 1Gi}}}}}}]}}}}
steps:
- {{provider: {{failIncrease: {{{SEED_ID}: "no quota"}}}}}}
- {{loop: 1, every: 10s}}
"""
    return run_scenario(read_scenario(text.encode(), source="story")).outcome


def test_a_scenario_names_groups_by_their_ids():
    outcome = story()
    assert set(outcome["nodeGroups"]) == {"Y", SEED_ID}
    assert {node["group"] for node in outcome["nodes"].values()} == {"Y", SEED_ID}
    assert outcome["nodeGroups"]["Y"]["target"] == 2
    (call,) = outcome["providerCalls"]
    assert (call["group"], call["call"], call["arg"], call["ok"]) == ("Y", "IncreaseSize", 1, True)
