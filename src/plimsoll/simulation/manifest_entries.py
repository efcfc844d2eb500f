"""Manifests inside a scenario file: whether they say what they are. Whether they are valid, the API server says."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from plimsoll.simulation.given import Given
    from plimsoll.simulation.scenarios import Json


def manifest_in(given: Given) -> Json:
    """One object with a name."""
    found = given.members()
    for field in ("apiVersion", "kind"):
        if field not in found:
            given.wrong(f"{field} is missing")
        else:
            found[field].text()
    metadata = found["metadata"].members() if "metadata" in found else {}
    if "name" not in metadata:
        given.wrong("metadata.name is missing")
    else:
        metadata["name"].text()
    if "namespace" in metadata and metadata["namespace"].value is not None:
        metadata["namespace"].text()
    body: Json = given.value if isinstance(given.value, dict) else {}
    return body


def manifests_in(given: Given) -> tuple[Json, ...]:
    """One object, several in a list, or a `kind: List`."""
    if isinstance(given.value, list):
        return tuple(manifest_in(one) for one in given.items())
    if isinstance(given.value, dict) and given.value.get("kind") == "List" and "items" in given.value:
        return tuple(manifest_in(one) for one in given.members()["items"].items())
    return (manifest_in(given),)
