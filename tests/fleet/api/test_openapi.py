"""The published OpenAPI documents have what the documents of the original service have, as far as it is kept."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.fleet.api.operations import Group
from tests.fleet.api.api_world import ApiWorld
from tests.fleet.api.original_documents import FILES, load_original
from tests.fleet.api.reference_page import build_page

if TYPE_CHECKING:
    from collections.abc import Iterator

REPOSITORY = Path(__file__).parents[3]
METHODS = {"get", "put", "post", "patch", "delete"}


@pytest.fixture(scope="module")
def world() -> Iterator[ApiWorld]:
    world = ApiWorld()
    yield world
    world.close()


def list_operations(document: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    found = {}
    for path, item in document["paths"].items():
        for method in METHODS & set(item):
            parameters = [*item.get("parameters", []), *item[method].get("parameters", [])]
            found[method, path] = item[method] | {"parameters": [resolve(document, entry) for entry in parameters]}
    return found


def resolve(document: dict[str, Any], value: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in value:
        found: Any = document
        for part in value["$ref"].removeprefix("#/").split("/"):
            found = found[part]
        value = found
    return value


def flatten(document: dict[str, Any], schema: dict[str, Any], depth: int = 0) -> set[str]:
    """The paths of all properties with their types."""
    schema = resolve(document, schema)
    found: set[str] = set()
    for part in (*schema.get("allOf", ()), *schema.get("anyOf", ())):
        found |= flatten(document, part, depth)
    for name, inner in schema.get("properties", {}).items():
        resolved = resolve(document, inner)
        kinds = {option.get("type") for option in resolved.get("anyOf", [resolved])} - {"null", None}
        found |= {f"{name}: {kind}" for kind in kinds} or {f"{name}: object"}
        found |= {f"{name}.{path}" for path in flatten(document, inner, depth + 1)}
    if "items" in schema and depth < 10:
        found |= {f"[].{path}" for path in flatten(document, schema["items"], depth + 1)}
    return found


def list_parameters(operation: dict[str, Any]) -> set[tuple[str, str, bool]]:
    return {(entry["in"], entry["name"], entry.get("required", False)) for entry in operation["parameters"]}


@pytest.mark.parametrize("group", list(FILES))
def test_every_kept_operation_is_published(world: ApiWorld, group: Group):
    theirs, ours = load_original(group), world.api.build_openapi(group)
    published = list_operations(ours)
    kept = list_operations(theirs)
    assert len(kept) >= 4
    for key, operation in kept.items():
        assert published[key]["operationId"] == operation["operationId"], key
        assert list_parameters(published[key]) == list_parameters(operation), key
        assert set(operation["responses"]) <= set(published[key]["responses"]) | ALLOWED_MISSING.get(key, set()), key
        assert ("requestBody" in operation) is ("requestBody" in published[key]), key
        assert operation.get("security") == published[key].get("security"), key


ALLOWED_MISSING = {("get", "/api/kafkas_mgmt/v1/sso_providers"): {"401", "500"}}
"""The route is open and reads nothing, so it has neither."""


@pytest.mark.parametrize("group", list(FILES))
def test_answers_have_the_properties_of_the_original(world: ApiWorld, group: Group):
    theirs, ours = load_original(group), world.api.build_openapi(group)
    published = list_operations(ours)
    for key, operation in list_operations(theirs).items():
        for status, response in operation["responses"].items():
            content = response.get("content", {}).get("application/json")
            if content is None or status not in published[key]["responses"] or "sso_providers" in key[1]:
                continue
            answered = published[key]["responses"][status]["content"]["application/json"]["schema"]
            missing = flatten(theirs, content["schema"]) - flatten(ours, answered)
            assert {path for path in missing if not is_in_map(path, group)} == set(), (key, status)


def is_in_map(path: str, group: Group) -> bool:
    """Keys of annotations, labels and limits are those of a map in our documents for agents.

    `observability` is not answered: section 0 leaves its source out.
    """
    maps = ("metadata.annotations.", "metadata.labels.", "capacity.", "spec.observability")
    return group is Group.AGENT and any(part in path for part in maps)


@pytest.mark.parametrize("group", list(FILES))
def test_bodies_have_the_properties_of_the_original(world: ApiWorld, group: Group):
    theirs, ours = load_original(group), world.api.build_openapi(group)
    published = list_operations(ours)
    for key, operation in list_operations(theirs).items():
        if "requestBody" in operation:
            wanted, given = (
                flatten(document, found["requestBody"]["content"]["application/json"]["schema"])
                for document, found in ((theirs, operation), (ours, published[key]))
            )
            names = {path.partition(":")[0] for path in given}
            assert {path.partition(":")[0] for path in wanted if not is_in_map(path, group)} <= names, key


@pytest.mark.parametrize("group", list(FILES))
def test_documents_have_no_loose_ends(world: ApiWorld, group: Group):
    document = world.api.build_openapi(group)
    ids = [operation["operationId"] for operation in list_operations(document).values()]
    assert len(ids) == len(set(ids))
    assert list_references(document) <= {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}
    served = world.call("GET", "/openapi").document
    assert served == world.api.build_openapi(Group.PUBLIC)


def list_references(value: Any) -> set[str]:
    if isinstance(value, list):
        return set().union(*(list_references(inner) for inner in value)) if value else set()
    if not isinstance(value, dict):
        return set()
    own = {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
    return own.union(*(list_references(inner) for inner in value.values()))


def test_the_reference_page_is_up_to_date():
    written = (REPOSITORY / "docs/reference/fleet-api.md").read_text(encoding="utf-8")
    assert written == build_page(), "python -m tests.fleet.api.reference_page > docs/reference/fleet-api.md"
