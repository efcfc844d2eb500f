"""Policies are compared on the same pods: each is planned as `plimsoll plan` would with its flags."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.core.errors import InvalidInput
from plimsoll.simulation.whatif import read_policy
from tests.cli.runner import plimsoll

if TYPE_CHECKING:
    from pathlib import Path

PLAN = "examples/plans/mixed.yaml"
COST = "examples/plans/policies/cost.yaml"
FEW = "examples/plans/policies/few-nodes.yaml"
DUMP = {
    "options": {"node-autoprovisioning": True},
    "machineTypes": [{"name": "small", "cpu": 4, "memory": "16Gi", "price": 0.2}],
    "objects": [
        *(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": f"n{number}"},
                "status": {"allocatable": {"cpu": "16", "memory": "64Gi", "pods": "110"}},
            }
            for number in range(2)
        ),
        *(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": f"p{number}", "namespace": "default", "ownerReferences": [owner]},
                "spec": {
                    "nodeName": f"n{number % 2}",
                    "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "3"}}}],
                },
                "status": {"phase": phase},
            }
            for number, (kind, phase) in enumerate(
                [*[("ReplicaSet", "Running")] * 3, ("DaemonSet", "Running"), ("Job", "Succeeded")]
            )
            for owner in [{"apiVersion": "v1", "kind": kind, "name": "o", "uid": "u", "controller": True}]
        ),
    ],
}


def compare(*arguments: str | Path) -> list[dict[str, Any]]:
    done = plimsoll("whatif", *arguments, "-o", "json")
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)["policies"]
    return found


def test_each_policy_adds_what_a_plan_with_its_flags_adds():
    cheap, few = compare("-f", PLAN, "--policy", COST, "--policy", FEW)
    assert cheap["costPerHour"] < few["costPerHour"]
    assert cheap["nodesAdded"] > few["nodesAdded"]
    plan = json.loads(plimsoll("plan", "-f", PLAN, "-o", "json", "--expander", "cost").stdout)["scaleUp"]
    assert cheap["costPerHour"] == pytest.approx(plan["costPerHour"])
    assert cheap["podsUnschedulable"] == 2
    assert plimsoll("whatif", "-f", PLAN, "--policy", COST, "--policy", FEW).stdout.count("unschedulable: ") == 2


def test_repack_places_what_runs_anew_without_ended_pods_and_daemons(tmp_path: Path):
    dump, policy = tmp_path / "dump.json", tmp_path / "policy.yaml"
    dump.write_text(json.dumps(DUMP))
    policy.write_text("options: {expander: cost}\n")
    (as_it_is,) = compare("-f", dump, "--policy", policy)
    assert (as_it_is["nodesAdded"], as_it_is["podsPlaced"]) == (0, 0)
    (repacked,) = compare("-f", dump, "--policy", policy, "--repack")
    assert repacked["machineTypes"] == {"small": 3}
    assert (repacked["podsPlaced"], repacked["podsUnschedulable"]) == (3, 0)


@pytest.mark.parametrize("text", ["", "[]", "a: 1\n---\nb: 2\n", "options: 3", "no-such-flag: 1", "expander: dear"])
def test_a_policy_that_cannot_be_used_is_refused_with_its_name(text: str):
    with pytest.raises(InvalidInput) as refused:
        read_policy("a.yaml", text.encode())
    assert "a.yaml" in f"{refused.value.path} {refused.value}"
