"""Objects a real Kubernetes answered, and the schemas it published."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from plimsoll.objects.registry import KINDS

FIXTURES = Path(__file__).parents[2] / "fixtures" / "kubernetes"


@cache
def answers(*groups: str) -> dict[str, Any]:
    """The responses of the golden files, by the id of the recording."""
    found: dict[str, Any] = {}
    for group in groups:
        lines = (FIXTURES / "golden" / f"{group}.jsonl").read_text().splitlines()
        found |= {entry["id"]: entry["response"] for entry in map(json.loads, lines)}
    return found


def objects() -> dict[str, dict[str, Any]]:
    """Every recorded object of a kind we have a struct for, items of lists under `<id>[<index>]`."""
    found: dict[str, dict[str, Any]] = {}
    for name, answer in answers("create", "scheduler", "crd").items():
        if not isinstance(answer, dict):
            continue
        api_version, kind = answer.get("apiVersion", ""), answer.get("kind", "")
        if KINDS.find_by_kind(api_version, kind):
            found[name] = answer
        elif KINDS.find_by_kind(api_version, kind.removesuffix("List")):
            kinds = {"apiVersion": api_version, "kind": kind.removesuffix("List")}
            found |= {f"{name}[{index}]": {**kinds, **item} for index, item in enumerate(answer["items"])}
    return found


@cache
def schemas() -> dict[str, dict[str, Any]]:
    """All components of the shipped OpenAPI files, by name."""
    found: dict[str, dict[str, Any]] = {}
    for file in resources.files("plimsoll.objects.openapi").iterdir():
        if file.name.endswith(".json"):
            found |= json.loads(file.read_text())["components"]["schemas"]
    return found


@cache
def discovery() -> dict[tuple[str, str], dict[str, Any]]:
    """What the server serves, by apiVersion and plural."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for file in sorted((FIXTURES / "discovery").glob("*_v1.json")):
        answer = json.loads(file.read_text())["response"]
        found |= {(answer["groupVersion"], resource["name"]): resource for resource in answer["resources"]}
    return found
