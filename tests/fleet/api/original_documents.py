"""The OpenAPI documents of the original service, as far as docs/design/fleet.md 0 keeps them."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import yaml

from plimsoll.fleet.api.operations import Group, is_out_of_scope

FOLDER = Path(__file__).parents[2] / "fixtures" / "fleet-openapi"
FILES = {
    Group.PUBLIC: "kas-fleet-manager.yaml",
    Group.AGENT: "kas-fleet-manager-private.yaml",
    Group.ADMIN: "kas-fleet-manager-private-admin.yaml",
}
STATUS_PATH = "/api/kafkas_mgmt/v1/agent-clusters/{id}/status"


@cache
def _read(group: Group) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load((FOLDER / FILES[group]).read_text(encoding="utf-8"))
    return document


def load_original(group: Group) -> dict[str, Any]:
    """The document with all references inside it, and without what is out of scope."""
    document = _repair(_read(group))
    shared = _repair(_read(Group.PUBLIC))["components"]
    for kind in ("schemas", "parameters"):
        document["components"][kind] = shared[kind] | document["components"].get(kind, {})
    # A schema of this name that refers to the one of the shared file would refer to itself.
    document["components"]["schemas"]["SupportedKafkaSizeBytesValueItem"] = shared["schemas"][
        "SupportedKafkaSizeBytesValueItem"
    ]
    document["paths"] = {path: item for path, item in document["paths"].items() if not is_out_of_scope(path)}
    if STATUS_PATH in document["paths"]:  # D-10
        responses = document["paths"][STATUS_PATH]["put"]["responses"]
        responses["204"] = responses.pop("200")
    return document


def _repair(value: Any) -> Any:
    """References into the shared file point into this one, and `long` is no type of JSON schema."""
    if isinstance(value, dict):
        repaired = {name: _repair(inner) for name, inner in value.items()}
        if isinstance(repaired.get("$ref"), str):
            repaired["$ref"] = "#" + repaired["$ref"].partition("#")[2]
        if repaired.get("type") == "long":
            repaired["type"] = "integer"
        if repaired.get("format") == "int":
            del repaired["format"]
        return repaired
    return [_repair(inner) for inner in value] if isinstance(value, list) else value
