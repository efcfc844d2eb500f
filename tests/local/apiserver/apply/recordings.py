"""Recorded writes, the objects they found, and endpoints to track them with."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from plimsoll.local.apiserver.apply.field_manager import FieldManager
from plimsoll.local.apiserver.apply.reset_fields import reset_fields
from plimsoll.local.apiserver.apply.typed.schemas import TypeSchema

GOLDEN = Path(__file__).parents[3] / "fixtures/kubernetes/golden"
NOW = datetime(2027, 1, 1, tzinfo=UTC)
_SUBRESOURCES = ("status", "scale", "binding", "eviction", "finalize", "token", "resize", "ephemeralcontainers")
_CONTROLLERS = "kube-controller-manager"


@cache
def recordings(group: str) -> dict[str, dict[str, Any]]:
    lines = (GOLDEN / f"{group}.jsonl").read_text().splitlines()
    return {entry["id"]: entry for entry in map(json.loads, lines)}


def object_path(entry: dict[str, Any]) -> tuple[str, str]:
    """The path of the object that a request writes, and the subresource it goes through."""
    path = entry["path"]
    head, _, last = path.rpartition("/")
    if last in _SUBRESOURCES:
        return head, last
    answer = entry["response"]
    if entry["method"] == "POST" and isinstance(answer, dict) and "name" in answer.get("metadata", {}):
        return f"{path}/{answer['metadata']['name']}", ""
    return path, ""


@cache
def objects_before(group: str) -> dict[str, Any]:
    """What each request found, as far as earlier answers of the file show."""
    found: dict[str, Any] = {}
    state: dict[str, Any] = {}
    for name, entry in recordings(group).items():
        path, _ = object_path(entry)
        found[name] = state.get(path)
        answer = entry["response"]
        is_object = isinstance(answer, dict) and "managedFields" in answer.get("metadata", {})
        if entry["status"] < 300 and is_object and "dryRun" not in entry["query"] and entry["method"] != "DELETE":
            state[path] = answer
        elif path in state and (entry["status"] < 300 and entry["method"] != "GET"):
            del state[path]
    return found


@cache
def definitions(group: str) -> dict[tuple[str, str], tuple[TypeSchema, bool]]:
    """The types that the requests of a file define, by apiVersion and kind, and whether status is a subresource."""
    found: dict[tuple[str, str], tuple[TypeSchema, bool]] = {}
    for entry in recordings(group).values():
        answer = entry["response"]
        if not isinstance(answer, dict) or answer.get("kind") != "CustomResourceDefinition":
            continue
        spec = answer["spec"]
        for version in spec["versions"]:
            schema = TypeSchema.from_definition(version.get("schema", {}).get("openAPIV3Schema"))
            has_status = "status" in version.get("subresources", {})
            # Later answers show definitions as they were changed after the writes looked at.
            found.setdefault((f"{spec['group']}/{version['name']}", spec["names"]["kind"]), (schema, has_status))
    return found


def endpoint(
    api_version: str, kind: str, subresource: str = "", *, defined: tuple[TypeSchema, bool] | None = None
) -> FieldManager:
    """Where a kind is written; `defined` comes from `definitions`."""
    builtin = TypeSchema.from_builtin(api_version, kind)
    if defined is None:
        assert builtin is not None
        defined = builtin, "status" in builtin.blank
    schema, has_status = defined
    return FieldManager(
        {api_version: schema},
        api_version=api_version,
        kind=kind,
        subresource=subresource,
        reset=reset_fields(kind, subresource, has_status=has_status),
    )


def as_controllers_left_it(live: dict[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
    """The live object with what controllers wrote between two requests: their entries and the status."""
    entries = [field for field in live["metadata"].get("managedFields", []) if field["manager"] != _CONTROLLERS]
    entries += [item for item in answer["metadata"].get("managedFields", []) if item["manager"] == _CONTROLLERS]
    changed = {**live, "metadata": {**live["metadata"], "managedFields": entries}}
    return {**changed, "status": answer["status"]} if "status" in answer else changed


def entries_of(value: dict[str, Any]) -> list[dict[str, Any]]:
    """managedFields without times and in no order: a written time and the order by it are another test's business."""
    entries = value["metadata"].get("managedFields", [])
    timeless = [{name: item for name, item in entry.items() if name != "time"} for entry in entries]
    return sorted(timeless, key=lambda entry: json.dumps(entry, sort_keys=True))


def untracked(value: dict[str, Any]) -> dict[str, Any]:
    metadata = {name: item for name, item in value["metadata"].items() if name != "managedFields"}
    return {**value, "metadata": metadata}
