"""Patches that a real API server answered: what became of the object, or the refusal."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from plimsoll.local.apiserver.patches.json_patch import apply_json_patch
from plimsoll.local.apiserver.patches.merge_patch import apply_merge_patch
from plimsoll.local.apiserver.patches.patch_schema import PatchSchema
from plimsoll.local.apiserver.patches.results import Patched, PatchRefused
from plimsoll.local.apiserver.patches.strategic_merge import apply_strategic_merge_patch
from plimsoll.objects.builtin import default

_GOLDEN = Path(__file__).parents[3] / "fixtures/kubernetes/golden"
_KINDS = {"configmaps": ("v1", "ConfigMap"), "deployments": ("apps/v1", "Deployment"), "nodes": ("v1", "Node")}
# What happens before or after the patch itself, in the handlers.
_HANDLERS = {
    "patch-001": "the object before it was not recorded",
    "patch-003": "optimistic locking",
    "patch-004": "no object to patch",
    "patch-005": "text that is not JSON",
    "patch-007": "decoding of the patched object",
    "patch-018": "validation of the patched object",
    "patch-019": "decoding of the patched object",
    "patch-020": "content type",
    "patch-021": "content type",
    "patch-022": "content type",
    "patch-023": "a create",
    "patch-036": "the finalizers before it were not recorded",
    "patch-041": "decoding of the patched object",
    "patch-043": "the object before it was not recorded",
    "patch-044": "a controller wrote in between; the conditions are looked at below",
    "patch-046": "validation of the patched object",
}


@cache
def _recordings() -> dict[str, dict[str, Any]]:
    lines = (_GOLDEN / "patch.jsonl").read_text().splitlines()
    return {entry["id"]: entry for entry in map(json.loads, lines)}


def _objects_before() -> dict[str, Any]:
    """The object each request found, as far as earlier answers show; trimmed answers count with what they show."""
    found: dict[str, Any] = {}
    state: dict[str, Any] = {}
    for name, entry in _recordings().items():
        resource = entry["path"].removesuffix("/status")
        found[name] = state.get(resource)
        if entry["status"] < 300:
            key = resource if entry["method"] == "PATCH" else f"{resource}/{entry['response']['metadata']['name']}"
            state[key] = {**state.get(key, {}), **entry["response"]}
    return found


def _patched(entry: dict[str, Any], before: Any) -> Patched | PatchRefused:
    body = json.loads(entry["body"]) if isinstance(entry["body"], str) else entry["body"]
    content_type = entry["headers"]["Content-Type"]
    if content_type == "application/json-patch+json":
        return apply_json_patch(before, body)
    if content_type == "application/merge-patch+json":
        return apply_merge_patch(before, body)
    api_version, kind = _KINDS[entry["path"].removesuffix("/status").split("/")[-2]]
    schema = PatchSchema.from_kind(api_version, kind)
    assert schema is not None
    return apply_strategic_merge_patch(before, body, schema=schema)


def _content(value: dict[str, Any], *, like: dict[str, Any]) -> dict[str, Any]:
    """What the answer shows of the object, defaulted as the server does, without what it writes itself."""
    full = {"apiVersion": "apps/v1", "kind": "Deployment", **value}
    complete = default(full) if "spec" in like and "template" in like["spec"] else value
    ours: dict[str, Any] = {name: complete.get(name) for name in ("spec", "data") if name in like}
    metadata = {name: value["metadata"].get(name) for name in ("labels", "annotations", "finalizers")}
    theirs = {name: like["metadata"].get(name) for name in metadata}
    if "finalizers" in like["metadata"]:
        ours["finalizers"] = metadata["finalizers"]
    elif "resourceVersion" in like["metadata"]:
        assert metadata == theirs
    return ours


@pytest.mark.parametrize("name", sorted(set(_recordings()) - set(_HANDLERS)))
def test_patch_does_what_the_real_server_did(name: str) -> None:
    entry, before = _recordings()[name], _objects_before()[name]
    outcome = _patched(entry, before)
    answer = entry["response"]
    if entry["status"] >= 300:
        assert isinstance(outcome, PatchRefused)
        assert (outcome.code, outcome.reason, outcome.message) == (
            entry["status"],
            answer.get("reason", ""),
            answer["message"],
        )
        return
    assert isinstance(outcome, Patched)
    expected = {field: answer[field] for field in ("spec", "data") if field in answer}
    if "finalizers" in answer["metadata"]:
        expected["finalizers"] = answer["metadata"]["finalizers"]
    assert _content(outcome.value, like=answer) == expected


def test_conditions_are_merged_by_their_type() -> None:
    before, after = _objects_before()["patch-044"], _recordings()["patch-044"]
    outcome = _patched(after, before)
    assert isinstance(outcome, Patched)
    assert [condition["type"] for condition in outcome.value["status"]["conditions"]] == ["DiskPressure", "Ready"]


def test_new_finalizers_go_first() -> None:
    schema = PatchSchema.from_kind("apps/v1", "Deployment")
    assert schema is not None
    before = {"metadata": {"finalizers": ["ex.com/a", "ex.com/b"]}}
    outcome = apply_strategic_merge_patch(before, _recordings()["patch-036"]["body"], schema=schema)
    assert isinstance(outcome, Patched)
    assert outcome.value["metadata"] == _recordings()["patch-036"]["response"]["metadata"]


def test_unknown_fields_of_an_operation_are_reported() -> None:
    operation = {"op": "add", "path": "/data", "value": {"a": "b"}, "extra": 1}
    outcome = apply_json_patch({}, [operation])
    assert isinstance(outcome, Patched)
    assert outcome.strict_problems == ('json patch unknown field "[0].extra"',)


def test_more_than_ten_thousand_operations_are_refused() -> None:
    recorded = next(
        entry
        for entry in map(json.loads, (_GOLDEN / "errors.jsonl").read_text().splitlines())
        if entry["id"] == "errors-053"
    )
    outcome = apply_json_patch({"data": {}}, [{"op": "test", "path": "/data", "value": {}}] * 10_001)
    assert isinstance(outcome, PatchRefused)
    assert (outcome.code, outcome.reason, outcome.message) == (
        recorded["status"],
        recorded["response"]["reason"],
        recorded["response"]["message"],
    )


def test_ten_thousand_operations_are_carried_out() -> None:
    outcome = apply_json_patch({"data": {}}, [{"op": "test", "path": "/data", "value": {}}] * 10_000)
    assert isinstance(outcome, Patched)
