"""Manifests of add-ons: read from folders, checked at start, filled per cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from plimsoll.core.errors import InvalidInput
from plimsoll.fleet.model.provided import AddonKind, AddonOrder
from plimsoll.fleet.providers.data_planes.manifests import read_addon_manifests

if TYPE_CHECKING:
    from pathlib import Path

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: agent, namespace: plimsoll-agent}
spec: {template: {spec: {containers: [{name: c, args: ["--cluster=${cluster-name}", "$(POD)", "${other}"]}]}}}
---
apiVersion: v1
kind: Namespace
metadata: {name: plimsoll-agent}
"""


def write(folder: Path, name: str, text: str) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)


def test_namespaces_go_first_and_places_are_filled(tmp_path: Path):
    write(tmp_path, "agent/all.yaml", DEPLOYMENT)
    manifests = read_addon_manifests(tmp_path)
    objects = manifests.build(
        AddonOrder(kind=AddonKind.AGENT, parameters={"sso-secret": "x"}), {"cluster-name": "mk-1"}
    )
    assert [item["kind"] for item in objects] == ["Secret", "Namespace", "Deployment"]
    [container] = objects[-1]["spec"]["template"]["spec"]["containers"]
    assert container["args"] == ["--cluster=mk-1", "$(POD)", "${other}"]
    assert manifests.list_deployments(AddonKind.AGENT) == (("plimsoll-agent", "agent"),)


def test_an_add_on_without_manifests_names_the_folder(tmp_path: Path):
    with pytest.raises(InvalidInput, match="name a folder with kafka_operator in it"):
        read_addon_manifests(tmp_path).build(AddonOrder(kind=AddonKind.KAFKA_OPERATOR), {})


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("{", "all.yaml"),
        ("kind: Secret", "apiVersion, kind and metadata.name must be given"),
        ("just text", "an object was expected"),
    ],
)
def test_a_file_that_holds_no_manifests_is_refused_at_start(tmp_path: Path, text: str, stated: str):
    write(tmp_path, "logging/all.yaml", text)
    with pytest.raises(InvalidInput, match=stated):
        read_addon_manifests(tmp_path)


def test_a_folder_that_is_missing_is_refused(tmp_path: Path):
    with pytest.raises(InvalidInput, match="no such folder"):
        read_addon_manifests(tmp_path / "away")
