"""OpenAPI v3 of built-in kinds: what kubectl and generators of clients read."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.local.apiserver.discovery.builders import ask, document, recorded, server_with

Json = dict[str, Any]

SERVER = server_with()
INDEX = document(SERVER, "/openapi/v3")["paths"]
PROTOBUF = "application/vnd.kubernetes.protobuf"


def without_protobuf(value: Any) -> Any:
    """Answers are never protobuf, so it is not promised."""
    if isinstance(value, dict):
        return {key: without_protobuf(item) for key, item in value.items() if not key.startswith(PROTOBUF)}
    return [without_protobuf(item) for item in value] if isinstance(value, list) else value


RECORDED_PATHS = without_protobuf(recorded("openapi_v3_apps_v1_deployment")["response"]["paths"])


@pytest.mark.parametrize("path", sorted(RECORDED_PATHS))
def test_recorded_path(path: str):
    assert document(SERVER, "/openapi/v3/apis/apps/v1")["paths"][path] == RECORDED_PATHS[path]


def test_the_index_is_called_text_as_recorded():
    line = recorded("openapi_v3_index")
    found = ask(SERVER, "/openapi/v3")
    assert found.content_type == line["response_headers"]["Content-Type"]
    assert set(INDEX) >= {name for name in line["response"]["paths"] if name.endswith("/v1")}


def test_an_unknown_group_version_is_an_empty_404():
    line = recorded("openapi_v3_apps_v1_not_found")
    found = ask(SERVER, line["path"])
    assert (found.status, found.body) == (404, b"")


def test_there_is_no_version_2():
    protobuf = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
    assert ask(SERVER, "/openapi/v2", accept=protobuf).status == 404


@pytest.mark.parametrize("name", sorted(INDEX))
def test_a_document_is_closed_and_kept_by_its_hash(name: str):
    url = INDEX[name]["serverRelativeURL"]
    found = ask(SERVER, f"{url}&timeout=32s")
    assert isinstance(found.body, bytes)
    headers = dict(found.headers)
    assert headers["Cache-Control"] == "public, immutable"
    assert headers["Etag"].strip('"') == url.rpartition("=")[2]
    assert headers["Expires"] == "Mon, 15 Nov 2027 04:30:00 GMT"
    schemas = json.loads(found.body)["components"]["schemas"]
    named = {part.split('"')[0] for part in found.body.decode().split("#/components/schemas/")[1:]}
    assert named == set(schemas)


def test_operations_have_ids_of_their_own():
    ids = [
        operation["operationId"]
        for name in INDEX
        for item in document(SERVER, f"/openapi/v3/{name}")["paths"].values()
        for method, operation in item.items()
        if method != "parameters"
    ]
    assert len(ids) == len(set(ids))


def test_an_old_hash_leads_to_the_new_document():
    found = ask(SERVER, "/openapi/v3/apis/apps/v1?hash=OLD")
    assert found.status == 301
    assert dict(found.headers)["Location"] == INDEX["apis/apps/v1"]["serverRelativeURL"]


def test_a_client_that_has_the_document_is_reported():
    tag = dict(ask(SERVER, "/openapi/v3/api/v1").headers)["Etag"]
    assert ask(SERVER, "/openapi/v3/api/v1", If_None_Match=tag).status == 304


def test_openapi_comes_in_json_only():
    protobuf = "application/com.github.proto-openapi.spec.v3@v1.0+protobuf"
    assert ask(SERVER, "/openapi/v3/api/v1", accept=protobuf).status == 406


def test_kubectl_finds_every_kind_that_can_be_patched():
    """By its group, version and kind, at a PATCH operation that knows fieldValidation."""
    for element in SERVER.registry:
        if "patch" not in element.verbs:
            continue
        base = f"apis/{element.group}/{element.version}" if element.group else f"api/{element.version}"
        paths = document(SERVER, f"/openapi/v3/{base}")["paths"].values()
        identity = {"group": element.group, "version": element.version, "kind": element.kind}
        patches = [item["patch"] for item in paths if "patch" in item]
        found = [patch for patch in patches if patch["x-kubernetes-group-version-kind"] == identity]
        assert any("fieldValidation" in {given["name"] for given in patch["parameters"]} for patch in found), (
            element.full_name
        )
