"""Scenarios N01 (schema limits) and N02 (immutability) of ProvisioningRequests, through `plimsoll validate`."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli.commands import plimsoll

if TYPE_CHECKING:
    from pathlib import Path

Json = dict[str, Any]


def request(*, sets: int = 1, count: int = 1, **spec: Any) -> Json:
    return {
        "apiVersion": "autoscaling.x-k8s.io/v1",
        "kind": "ProvisioningRequest",
        "metadata": {"name": "r", "namespace": "ml"},
        "spec": {
            "provisioningClassName": "check-capacity.autoscaling.x-k8s.io",
            "podSets": [{"count": count, "podTemplateRef": {"name": f"t{i}"}} for i in range(sets)],
            **spec,
        },
    }


@pytest.mark.parametrize("api_version", ["autoscaling.x-k8s.io/v1", "autoscaling.x-k8s.io/v1beta1"])
@pytest.mark.parametrize(
    "accepted",
    [request(sets=1), request(sets=32), request(count=1), request(count=16384), request(parameters={"k": "v" * 255})],
    ids=["one set", "32 sets", "count 1", "count 16384", "parameter of 255"],
)
def test_n01_requests_within_the_limits_are_accepted(accepted: Json, api_version: str):
    ended = plimsoll("validate", "-f", "-", stdin=json.dumps({**accepted, "apiVersion": api_version}))
    assert (ended.returncode, ended.stdout) == (0, "ProvisioningRequest/ml/r valid\n")


@pytest.mark.parametrize(
    ("refused", "path"),
    [
        (request(sets=0), "spec.podSets"),
        (request(sets=33), "spec.podSets"),
        (request(count=0), "spec.podSets[0].count"),
        (request(count=16385), "spec.podSets[0].count"),
        (request(provisioningClassName="Check_Capacity"), "spec.provisioningClassName"),
        (request(provisioningClassName="a" * 254), "spec.provisioningClassName"),
        (request(parameters={f"k{i}": "v" for i in range(101)}), "spec.parameters"),
        (request(parameters={"k": "v" * 256}), "spec.parameters.k"),
    ],
    ids=["no set", "33 sets", "count 0", "count 16385", "class", "long class", "101 parameters", "long parameter"],
)
def test_n01_requests_beyond_a_limit_are_refused_with_the_path(refused: Json, path: str):
    ended = plimsoll("validate", "-f", "-", stdin=json.dumps(refused))
    assert ended.returncode == 1
    assert ended.stdout.startswith(f"{path}: ")
    assert ended.stderr == ""


def updated(stored: Json, tmp_path: Path, **change: Any) -> Any:
    """Validates an update of the stored request: `spec` members replaced, anything else replaced at the top."""
    new = copy.deepcopy(stored)
    for key, value in change.items():
        target = new if key in {"metadata", "status"} else new["spec"]
        target[key] = value
    old_file, new_file = tmp_path / "old.json", tmp_path / "new.json"
    old_file.write_text(json.dumps(stored))
    new_file.write_text(json.dumps(new))
    return plimsoll("validate", "-f", new_file, "--old", old_file)


@pytest.mark.parametrize(
    "change",
    [
        {"podSets": [{"count": 6, "podTemplateRef": {"name": "t0"}}]},
        {"provisioningClassName": "best-effort-atomic-scale-up.autoscaling.x-k8s.io"},
        {"podSets": [{"count": 5, "podTemplateRef": {"name": "other"}}]},
        {"parameters": {"ValidUntilSeconds": "60"}},
    ],
    ids=["count", "class", "template", "added parameters"],
)
def test_n02_a_change_of_the_spec_is_refused(change: Json, tmp_path: Path):
    ended = updated(request(count=5), tmp_path, **change)
    assert ended.returncode == 1
    assert ended.stdout.startswith("spec: ")
    assert "immutable" in ended.stdout


@pytest.mark.parametrize(
    "change",
    [
        {"metadata": {"name": "r", "namespace": "ml", "labels": {"team": "red"}}},
        {"status": {"provisioningClassDetails": {"attempts": "2"}}},
    ],
    ids=["labels", "status"],
)
def test_n02_labels_and_status_may_change(change: Json, tmp_path: Path):
    ended = updated(request(count=5), tmp_path, **change)
    assert (ended.returncode, ended.stdout) == (0, "ProvisioningRequest/ml/r valid\n")
