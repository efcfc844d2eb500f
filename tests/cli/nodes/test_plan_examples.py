"""Every example plan does what its first lines promise."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.runner import REPOSITORY, plimsoll

EXAMPLES = REPOSITORY / "examples" / "plans"


def answer(name: str) -> dict[str, Any]:
    ended = plimsoll("plan", "-f", EXAMPLES / name, "-o", "json")
    assert ended.returncode == 0, ended.stderr
    found: dict[str, Any] = json.loads(ended.stdout)
    return found


def left(found: dict[str, Any]) -> int:
    return sum(remaining["pods"] for remaining in found["scaleUp"]["remaining"])


def test_every_example_is_reported_about_here():
    assert {example.name for example in EXAMPLES.glob("*.yaml")} == {
        "mixed.yaml",
        "gpu.yaml",
        "zones.yaml",
        "request.yaml",
    }


def test_mixed_machines_are_cheaper_than_any_one_type():
    found = answer("mixed.yaml")["scaleUp"]
    assert len({scale_up["machineType"] for scale_up in found["plan"]}) > 1
    assert found["helped"] == 460
    assert found["costPerHour"] <= 1.05 * found["lowerBoundPerHour"]
    assert found["remaining"] == [
        {
            "pods": 2,
            "reasons": ["Insufficient cpu (4 machine types): cpu 24 requested, the largest is general-16 with 16"],
        }
    ]


def test_gpu_pods_stop_at_the_limit_of_accelerators():
    found = answer("gpu.yaml")["scaleUp"]
    assert {scale_up["machineType"]: scale_up["to"] for scale_up in found["plan"]} == {"t4-16": 2, "plain-8": 1}
    assert found["remaining"][0]["reasons"] == ["max cluster nvidia-tesla-t4 limit reached (8 of 8 in use)"]


def test_zones_get_the_same_number_of_replicas():
    found = answer("zones.yaml")["scaleUp"]
    zone_of = {"pool-a": "a", "pool-b": "b", "pool-c": "c"}
    pods = dict.fromkeys("abc", 0)
    for scale_up in found["plan"]:
        assert scale_up["zone"] == zone_of[scale_up["group"]]
        pods[scale_up["zone"]] += sum(
            pattern["nodes"] * sum(pattern["pods"].values()) for pattern in scale_up["patterns"]
        )
    for node in found["existing"]:
        pods[zone_of[node["node"].rpartition("-")[0]]] += sum(node["pods"].values())
    assert pods == {"a": 3, "b": 3, "c": 3}


@pytest.mark.parametrize(("most", "helped"), [(6, 21), (5, 0)])
def test_a_request_gets_all_or_nothing(most: int, helped: int):
    text = (EXAMPLES / "request.yaml").read_text().replace("max: 6", f"max: {most}")
    ended = plimsoll("plan", "-f", "-", "-o", "json", stdin=text)
    found = json.loads(ended.stdout)
    assert (found["scaleUp"]["helped"], left(found)) == (helped, 21 - helped)
    provisioned = found["requests"]["ml/nightly"]["conditions"][1]
    assert provisioned["status"] == ("True" if helped else "False")
