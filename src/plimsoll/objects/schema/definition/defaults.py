"""A CustomResourceDefinition as the API server stores it: with default names, conversion and status.

The definition must have been taken over, but may have any shape, because validation comes later.
"""

from __future__ import annotations

from typing import Any

from plimsoll.objects.schema.json_values import copy


def prepare(crd: dict[str, Any], old: dict[str, Any] | None) -> dict[str, Any]:
    """A copy with defaults and the server's status: empty on create, the old one on update."""
    made: dict[str, Any] = copy(crd)
    spec = made.get("spec")
    if isinstance(spec, dict):
        _default_names(spec)
        _default_conversion(spec)
    status: dict[str, Any] = {"conditions": None, "acceptedNames": {"plural": "", "kind": ""}}
    if old is not None:
        status = copy(old.get("status") or {})
    status["storedVersions"] = _list_stored_versions(
        spec if isinstance(spec, dict) else {}, status.get("storedVersions")
    )
    made["status"] = status
    return made


def _default_names(spec: dict[str, Any]) -> None:
    names = spec.get("names")
    if not isinstance(names, dict):
        return
    kind = names.get("kind")
    if not isinstance(kind, str) or not kind:
        return
    if not names.get("singular"):
        names["singular"] = kind.lower()
    if not names.get("listKind"):
        names["listKind"] = f"{kind}List"


def _default_conversion(spec: dict[str, Any]) -> None:
    conversion = spec.get("conversion")
    if conversion is None:
        spec["conversion"] = {"strategy": "None"}
        return
    webhook = conversion.get("webhook") if isinstance(conversion, dict) else None
    client = webhook.get("clientConfig") if isinstance(webhook, dict) else None
    service = client.get("service") if isinstance(client, dict) else None
    if isinstance(service, dict) and service.get("port") is None:
        service["port"] = 443


def _list_stored_versions(spec: dict[str, Any], stored: Any) -> list[str] | None:
    """All versions that were ever stored, including the current storage version."""
    names = list(stored) if isinstance(stored, list) else []
    versions = spec.get("versions")
    for version in versions if isinstance(versions, list) else ():
        if isinstance(version, dict) and version.get("storage") is True and version.get("name") not in names:
            names.append(version.get("name"))
    return names or None
