"""Recorded requests and answers, and the served resources they are about."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from plimsoll.local.apiserver.http_types import Request
from plimsoll.local.apiserver.resources.builtin import list_builtin_resources
from plimsoll.local.apiserver.resources.registry import ResourceRegistry, ServedResource, Subresource

Json = dict[str, Any]

FIXTURES = Path(__file__).parents[3] / "fixtures" / "kubernetes"
NOW = datetime(2026, 11, 15, 4, 30, 0, tzinfo=UTC)
CATALOGUE = ResourceRegistry(list_builtin_resources())


def golden(file: str) -> dict[str, Json]:
    """The lines of a golden file by their id."""
    lines = (FIXTURES / "golden" / f"{file}.jsonl").read_text().splitlines()
    return {line["id"]: line for line in map(json.loads, lines)}


def recorded_request(line: Json) -> Request:
    headers = {name.lower(): value for name, value in line["headers"].items()}
    return Request(line["method"], line["path"], tuple((line["query"] or {}).items()), headers)


def served(path: str, registry: ResourceRegistry = CATALOGUE) -> ServedResource:
    """The resource a path is about."""
    steps = path.strip("/").split("/")
    group, version, rest = ("", steps[1], steps[2:]) if steps[0] == "api" else (steps[1], steps[2], steps[3:])
    plural = rest[2] if rest[0] == "namespaces" and len(rest) > 2 else rest[0]
    found = registry.find(group, version, plural)
    assert found is not None, path
    return found


def ago(**span: float) -> str:
    """A timestamp so long before NOW."""
    return (NOW - timedelta(**span)).strftime("%Y-%m-%dT%H:%M:%SZ")


def custom_resources(definition: Json) -> list[ServedResource]:
    """The served versions of a definition, as the server makes them."""
    spec, names = definition["spec"], definition["spec"]["names"]
    return [
        ServedResource(
            group=spec["group"],
            version=version["name"],
            kind=names["kind"],
            plural=names["plural"],
            singular=names.get("singular", names["kind"].lower()),
            namespaced=spec["scope"] == "Namespaced",
            stored_as=f"{spec['group']}/{names['plural']}",
            storage_version=f"{spec['group']}/{next(item['name'] for item in spec['versions'] if item['storage'])}",
            list_kind=names.get("listKind", f"{names['kind']}List"),
            short_names=tuple(names.get("shortNames", ())),
            categories=tuple(names.get("categories", ())),
            subresources=tuple(_part(name, names["kind"]) for name in sorted(version.get("subresources", {}))),
            definition=definition,
        )
        for version in spec["versions"]
        if version["served"]
    ]


def _part(name: str, kind: str) -> Subresource:
    verbs = ("get", "patch", "update")
    if name == "scale":
        return Subresource(name=name, verbs=verbs, kind="Scale", group="autoscaling", version="v1")
    return Subresource(name=name, verbs=verbs, kind=kind)
