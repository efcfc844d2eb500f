"""A definition shows in discovery and OpenAPI as soon as it is served, and no longer than that."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.local.apiserver.discovery.builders import ALL_AGGREGATED, ask, definition, document, serve, server_with

Json = dict[str, Any]

SCHEMA = {
    "openAPIV3Schema": {
        "type": "object",
        "description": "A thing of some size.",
        "properties": {
            "spec": {
                "type": "object",
                "required": ["size"],
                "properties": {"size": {"type": "integer", "description": "How large.", "minimum": 1}},
            }
        },
    }
}
THINGS = definition("things", schema=SCHEMA, subresources={"status": {}, "scale": {}})


def aggregated(server: Any, group: str) -> list[Json]:
    items = document(server, "/apis", accept=ALL_AGGREGATED)["items"]
    return [item for item in items if item["metadata"].get("name") == group]


def test_aggregated_discovery_names_group_and_version_of_custom_kinds():
    (group,) = aggregated(server_with(THINGS), "kc.com")
    (version,) = group["versions"]
    (things,) = version["resources"]
    assert things["responseKind"] == {"group": "kc.com", "version": "v1", "kind": "Thing"}
    assert [(thing["subresource"], thing["responseKind"]["kind"]) for thing in things["subresources"]] == [
        ("status", "Thing"),
        ("scale", "Scale"),
    ]


def test_a_definition_is_discovered_when_it_comes_and_forgotten_when_it_goes():
    server = server_with()
    assert aggregated(server, "kc.com") == []
    serve(server.registry, THINGS)
    assert len(aggregated(server, "kc.com")) == 1
    server.registry.serve("things.kc.com", ())
    assert aggregated(server, "kc.com") == []
    assert ask(server, "/openapi/v3/apis/kc.com/v1").status == 404


def test_custom_groups_come_after_built_in_ones_by_name():
    server = server_with(definition("bs", group="z.io"), definition("as", group="a.io"))
    names = [group["name"] for group in document(server, "/apis")["groups"]]
    assert names[-2:] == ["a.io", "z.io"]


def test_two_definitions_share_a_group():
    server = server_with(THINGS, definition("others", "v1beta1", group="kc.com"))
    assert [version["version"] for version in document(server, "/apis/kc.com")["versions"]] == ["v1", "v1beta1"]


def test_an_unknown_version_of_a_custom_group_is_plain_text():
    found = ask(server_with(THINGS), "/apis/kc.com/v9")
    assert (found.status, found.body) == (404, b"404 page not found\n")


class TestOpenApi:
    """The document of a custom group version."""

    DOCUMENT = document(server_with(THINGS), "/openapi/v3/apis/kc.com/v1")
    SCHEMAS = DOCUMENT["components"]["schemas"]

    def test_the_index_names_it(self):
        paths = document(server_with(THINGS), "/openapi/v3")["paths"]
        assert paths["apis/kc.com/v1"]["serverRelativeURL"].startswith("/openapi/v3/apis/kc.com/v1?hash=")

    def test_the_schema_is_the_definitions_with_metadata(self):
        thing = self.SCHEMAS["com.kc.v1.Thing"]
        assert thing["description"] == "A thing of some size."
        assert thing["properties"]["spec"] == SCHEMA["openAPIV3Schema"]["properties"]["spec"]  # type: ignore[index]
        assert set(thing["properties"]) == {"apiVersion", "kind", "metadata", "spec"}
        assert thing["x-kubernetes-group-version-kind"] == [{"group": "kc.com", "kind": "Thing", "version": "v1"}]

    def test_the_list_has_a_schema(self):
        items = self.SCHEMAS["com.kc.v1.ThingList"]["properties"]["items"]
        assert items["items"] == {"$ref": "#/components/schemas/com.kc.v1.Thing"}

    def test_every_reference_is_defined(self):
        text = json.dumps(self.DOCUMENT)
        named = {part.split('"')[0] for part in text.split("#/components/schemas/")[1:]}
        assert named == set(self.SCHEMAS)

    def test_status_and_scale_have_paths(self):
        base = "/apis/kc.com/v1/namespaces/{namespace}/things/{name}"
        assert self.DOCUMENT["paths"][f"{base}/scale"]["put"]["x-kubernetes-group-version-kind"]["kind"] == "Scale"
        assert self.DOCUMENT["paths"][f"{base}/status"]["patch"]["x-kubernetes-group-version-kind"]["kind"] == "Thing"

    def test_patches_can_be_validated_and_are_not_strategic(self):
        patch = self.DOCUMENT["paths"]["/apis/kc.com/v1/namespaces/{namespace}/things/{name}"]["patch"]
        assert {parameter["name"] for parameter in patch["parameters"]} >= {
            "fieldValidation",
            "dryRun",
            "fieldManager",
            "force",
        }
        assert "application/strategic-merge-patch+json" not in patch["requestBody"]["content"]


@pytest.mark.parametrize("schema", [{}, {"openAPIV3Schema": {"x-kubernetes-preserve-unknown-fields": True}}])
def test_a_definition_without_properties_is_published(schema: Json):
    server = server_with(definition("things", schema=schema))
    shown = document(server, "/openapi/v3/apis/kc.com/v1")
    assert "metadata" in shown["components"]["schemas"]["com.kc.v1.Thing"]["properties"]


def test_a_default_that_looks_like_a_reference_is_none():
    odd = {"openAPIV3Schema": {"type": "object", "default": {"$ref": "#/components/schemas/nosuch"}}}
    shown = document(server_with(definition("things", schema=odd)), "/openapi/v3/apis/kc.com/v1")
    assert "nosuch" not in shown["components"]["schemas"]


def test_a_new_definition_leaves_the_documents_of_others_alone():
    server = server_with()
    before = document(server, "/openapi/v3")["paths"]
    serve(server.registry, THINGS)
    after = document(server, "/openapi/v3")["paths"]
    assert {name: url for name, url in after.items() if name in before} == before


def test_a_changed_definition_changes_the_hash():
    server = server_with(THINGS)
    before = document(server, "/openapi/v3")["paths"]["apis/kc.com/v1"]
    serve(server.registry, definition("things"))
    assert document(server, "/openapi/v3")["paths"]["apis/kc.com/v1"] != before
