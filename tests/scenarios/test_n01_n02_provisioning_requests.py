"""Scenarios N01 (schema limits) and N02 (immutability) of ProvisioningRequests, through `plimsoll validate`."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli.runner import plimsoll

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


def in_version(version: str, body: Json) -> Json:
    return {**body, "apiVersion": f"autoscaling.x-k8s.io/{version}"}


BOTH_VERSIONS = pytest.mark.parametrize("version", ["v1", "v1beta1"])


@BOTH_VERSIONS
@pytest.mark.parametrize(
    "accepted",
    [
        request(sets=1),
        request(sets=32),
        request(count=1),
        request(count=16384),
        request(parameters={"k": "v" * 255}),
        request(parameters={f"k{i}": "v" for i in range(100)}),
        request(provisioningClassName="a" * 253),
    ],
    ids=["one set", "32 sets", "count 1", "count 16384", "parameter of 255", "100 parameters", "class of 253"],
)
def test_n01_requests_within_the_limits_are_accepted(accepted: Json, version: str):
    ended = plimsoll("validate", "-f", "-", stdin=json.dumps(in_version(version, accepted)))
    assert (ended.returncode, ended.stdout) == (0, "ProvisioningRequest/ml/r valid\n")


@BOTH_VERSIONS
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
        (request(podSets=[{"count": 1, "podTemplateRef": {"name": "T_1"}}]), "spec.podSets[0].podTemplateRef.name"),
        (request(podSets=[{"count": 1, "podTemplateRef": {}}]), "spec.podSets[0].podTemplateRef.name"),
        (request(podSets=[{"count": 1}]), "spec.podSets[0].podTemplateRef"),
    ],
    ids=[
        "no set",
        "33 sets",
        "count 0",
        "count 16385",
        "class",
        "long class",
        "101 parameters",
        "long parameter",
        "template",
        "no name of a template",
        "no template",
    ],
)
def test_n01_requests_beyond_a_limit_are_refused_with_the_path(refused: Json, path: str, version: str):
    ended = plimsoll("validate", "-f", "-", stdin=json.dumps(in_version(version, refused)))
    assert ended.returncode == 1
    assert ended.stdout.startswith(f"{path}: ")


def test_n01_only_the_older_version_is_warned_of():
    stated = {
        version: plimsoll("validate", "-f", "-", stdin=json.dumps(in_version(version, request()))).stderr
        for version in ("v1", "v1beta1")
    }
    assert stated["v1"] == ""
    assert (
        "autoscaling.x-k8s.io/v1beta1 ProvisioningRequest is deprecated; use autoscaling.x-k8s.io/v1"
        in stated["v1beta1"]
    )


def updated(stored: Json, tmp_path: Path, version: str, **change: Any) -> Any:
    """Validates an update of the stored request: `spec` members replaced, anything else replaced at the top."""
    stored = in_version(version, stored)
    new = copy.deepcopy(stored)
    for key, value in change.items():
        target = new if key in {"metadata", "status"} else new["spec"]
        target[key] = value
    old_file, new_file = tmp_path / "old.json", tmp_path / "new.json"
    old_file.write_text(json.dumps(stored))
    new_file.write_text(json.dumps(new))
    return plimsoll("validate", "-f", new_file, "--old", old_file)


@BOTH_VERSIONS
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
def test_n02_a_change_of_the_spec_is_refused(change: Json, version: str, tmp_path: Path):
    ended = updated(request(count=5), tmp_path, version, **change)
    assert ended.returncode == 1
    assert ended.stdout.startswith("spec: ")
    assert "immutable" in ended.stdout


@BOTH_VERSIONS
@pytest.mark.parametrize(
    "change",
    [
        {"metadata": {"name": "r", "namespace": "ml", "labels": {"team": "red"}}},
        {"status": {"provisioningClassDetails": {"attempts": "2"}}},
    ],
    ids=["labels", "status"],
)
def test_n02_labels_and_status_may_change(change: Json, version: str, tmp_path: Path):
    ended = updated(request(count=5), tmp_path, version, **change)
    assert (ended.returncode, ended.stdout) == (0, "ProvisioningRequest/ml/r valid\n")


def test_n02_an_update_from_one_version_to_the_other_changes_nothing(tmp_path: Path):
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    old.write_text(json.dumps(in_version("v1beta1", request(count=5))))
    new.write_text(json.dumps(in_version("v1", request(count=5))))
    assert plimsoll("validate", "-f", new, "--old", old).returncode == 0


def test_fields_as_the_first_design_spells_them_are_read():
    body = request()
    spec = body["spec"]
    spec["provisioningClass"] = spec.pop("provisioningClassName")
    spec["Parameters"] = {"ValidUntilSeconds": "60"}
    ended = plimsoll("validate", "-f", "-", stdin=json.dumps(body))
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "ProvisioningRequest/ml/r valid\n", "")


class TestClasses:
    """ProvisioningClasses (docs/design/nodes.md 3.9)."""

    def validated(self, **body: Any) -> Any:
        head = {"apiVersion": "autoscaling.x-k8s.io/v1alpha1", "kind": "ProvisioningClass"}
        named = {"name": "atomic-scale-up.kubernetes.io"}
        return plimsoll("validate", "-f", "-", stdin=json.dumps({**head, "metadata": named, **body}))

    @pytest.mark.parametrize("spelled", ["parameters", "Parameters"])
    def test_parameters_stand_at_the_top(self, spelled: str):
        ended = self.validated(**{spelled: {"ValidUntilSeconds": "7200"}})
        reported = "ProvisioningClass/atomic-scale-up.kubernetes.io valid\n"
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, reported, "")

    def test_a_name_is_enough(self):
        assert self.validated().returncode == 0

    def test_parameters_are_texts(self):
        ended = self.validated(parameters={"ValidUntilSeconds": 7200})
        assert (ended.returncode, ended.stdout.startswith("parameters.ValidUntilSeconds: ")) == (1, True)
