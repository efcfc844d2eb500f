"""Discovery, OpenAPI, version and health as recorded, on the groups and kinds that are served."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest

from plimsoll.runtime.virtual_run import VirtualRun
from tests.conformance.comparison import differences
from tests.conformance.exchanges import ClientRequests, Reply
from tests.conformance.masks import masked
from tests.conformance.recordings import RecordedExchange, discovery
from tests.conformance.servers import ADMIN_TOKEN, RECORDED_DAY, embedded_server
from tests.conformance.substitutions import Substitutions

Json = dict[str, Any]

# Lists of what is served: compared entry by entry, because the recorded server serves more.
_LISTS = {
    "api.aggregated",
    "api_v1",
    "apis",
    "apis.aggregated",
    "apis_networking.k8s.io_v1",
    "apis_storage.k8s.io_v1",
    "root",
}
_OPENAPI = {"openapi_v3_apps_v1_deployment", "openapi_v3_index"}
_HEALTH = {"readyz.verbose"}
_TRIMMED = {"apis.aggregated.nopeers"}
# Listed and always empty: nothing here scales by metrics, so none is taken in.
_READ_ONLY = {"apis_autoscaling_v1", "apis_autoscaling_v2"}
_BUILD = {"version"}
_COMPARED_WHOLE = [
    recorded
    for recorded in discovery()
    if recorded.id.split("/")[1] not in _LISTS | _OPENAPI | _HEALTH | _TRIMMED | _READ_ONLY | _BUILD
]


@cache
def _answers() -> dict[str, Reply]:
    with VirtualRun(start=RECORDED_DAY) as run:
        server = run.run_until(embedded_server(run.clock))
        headers = {"User-Agent": "golden/1.0", "Authorization": f"Bearer {ADMIN_TOKEN}", "Host": "192.0.2.1:6443"}
        client = ClientRequests(run, server.transport, headers=headers)
        return {
            recorded.id: client.send("GET", recorded.path, query=recorded.query, headers=dict(recorded.headers))
            for recorded in discovery()
        }


def _pair(name: str) -> tuple[RecordedExchange, Reply]:
    recorded = next(item for item in discovery() if item.id == f"discovery/{name}")
    return recorded, _answers()[recorded.id]


def _by_name(entries: list[Json], key: str = "name") -> dict[str, Json]:
    return {str(entry[key]): entry for entry in entries}


@pytest.mark.parametrize("recorded", _COMPARED_WHOLE, ids=lambda item: item.id)
def test_the_document_is_the_recorded_one(recorded: RecordedExchange):
    assert not differences(recorded, _answers()[recorded.id], Substitutions())


@pytest.mark.parametrize("name", ["api_v1", "apis_networking.k8s.io_v1", "apis_storage.k8s.io_v1"])
def test_every_served_resource_is_described_as_recorded(name: str):
    recorded, reply = _pair(name)
    assert reply.status == recorded.status
    assert reply.content_type == recorded.response_headers["Content-Type"]
    theirs, ours = _by_name(recorded.response["resources"]), _by_name(reply.body["resources"])
    assert ours
    assert ours == {key: theirs.get(key) for key in ours}


def test_every_served_group_is_listed_as_recorded():
    recorded, reply = _pair("apis")
    theirs, ours = _by_name(recorded.response["groups"]), _by_name(reply.body["groups"])
    assert ours
    assert ours == {key: theirs.get(key) for key in ours}
    assert list(ours) == [key for key in theirs if key in ours], "groups stand in the recorded order"


@pytest.mark.parametrize("name", ["api.aggregated", "apis.aggregated"])
def test_aggregated_discovery_describes_every_served_resource_as_recorded(name: str):
    recorded, reply = _pair(name)
    assert reply.content_type == recorded.response_headers["Content-Type"]
    theirs, ours = _aggregated(recorded.response), _aggregated(reply.body)
    assert ours
    for key, resource in ours.items():
        assert _without_parts(resource) == _without_parts(theirs[key]), key
        parts, recorded_parts = _parts(resource), _parts(theirs[key])
        assert parts == {part: recorded_parts.get(part) for part in parts}, key


def _parts(resource: Json) -> dict[str, Json]:
    return _by_name(resource.get("subresources") or [], "subresource")


def _without_parts(resource: Json) -> Json:
    """Without the subresources, and without the verbs of what is only listed."""
    hidden = {"subresources", "verbs"} if resource["resource"] == "horizontalpodautoscalers" else {"subresources"}
    return {key: value for key, value in resource.items() if key not in hidden}


@pytest.mark.parametrize("name", sorted(_READ_ONLY))
def test_autoscalers_are_listed_and_cannot_be_made(name: str):
    recorded, reply = _pair(name)
    theirs, (ours,) = _by_name(recorded.response["resources"]), reply.body["resources"]
    assert ours == {**theirs[ours["name"]], "verbs": ["get", "list", "watch"]}


def test_the_version_is_the_recorded_one_with_our_name_in_it():
    recorded, reply = _pair("version")
    ours = reply.body
    assert ours.keys() == recorded.response.keys()
    for key in ("major", "minor", "emulationMajor", "emulationMinor", "minCompatibilityMajor", "minCompatibilityMinor"):
        assert ours[key] == recorded.response[key]
    assert ours["gitVersion"].startswith(recorded.response["gitVersion"])


def _aggregated(document: Json) -> dict[tuple[str, str, str], Json]:
    return {
        (item["metadata"].get("name", ""), version["version"], resource["resource"]): resource
        for item in document["items"]
        for version in item["versions"]
        for resource in version["resources"]
    }


def test_discovery_without_peers_is_answered_in_the_aggregated_form():
    recorded, reply = _pair("apis.aggregated.nopeers")
    assert (reply.status, reply.content_type) == (recorded.status, recorded.response_headers["Content-Type"])
    assert reply.body["kind"] == recorded.response["kind"]


def test_every_path_of_the_root_is_a_recorded_one():
    recorded, reply = _pair("root")
    assert set(reply.body["paths"]) <= set(recorded.response["paths"])


def test_the_openapi_index_names_the_documents_by_their_hash():
    recorded, reply = _pair("openapi_v3_index")
    assert (reply.status, reply.content_type) == (recorded.status, recorded.response_headers["Content-Type"])
    ours = masked(json.loads(reply.raw))["paths"]
    theirs = masked(recorded.response)["paths"]
    assert {key: ours[key] for key in theirs if key in ours} == {key: theirs[key] for key in theirs if key in ours}
    assert "apis/apps/v1" in ours


def test_openapi_publishes_the_operations_of_deployments_as_kubectl_reads_them():
    recorded, reply = _pair("openapi_v3_apps_v1_deployment")
    for path, theirs in recorded.response["paths"].items():
        ours = reply.body["paths"][path]
        for method in ("get", "post", "put", "patch", "delete"):
            assert (method in ours) == (method in theirs), f"{method} {path}"
            if method in theirs:
                assert _essence(ours, method) == _essence(theirs, method), f"{method} {path}"


def _essence(item: Json, method: str) -> Json:
    """What a client looks for: the kind, the query parameters and the body's media types."""
    operation = item[method]
    parameters = [*item.get("parameters", ()), *operation.get("parameters", ())]
    return {
        "kind": operation.get("x-kubernetes-group-version-kind"),
        "action": operation.get("x-kubernetes-action"),
        "parameters": sorted(parameter["name"] for parameter in parameters),
        "body": sorted(operation.get("requestBody", {}).get("content", {})),
    }


def test_verbose_health_ends_as_recorded():
    recorded, reply = _pair("readyz.verbose")
    assert (reply.status, reply.content_type) == (recorded.status, recorded.response_headers["Content-Type"])
    lines = reply.text.splitlines()
    assert lines[-1] == recorded.response.splitlines()[-1]
    assert all(line.startswith("[+]") and line.endswith(" ok") for line in lines[:-1])
