"""Every recorded discovery document, as far as it is about what is served here."""

from __future__ import annotations

import json
from typing import Any

import pytest

from plimsoll.local.apiserver.discovery import handle_discovery
from plimsoll.local.apiserver.http_types import Request
from plimsoll.local.apiserver.status_errors import StatusError
from tests.local.apiserver.discovery.builders import ask, document, recorded, server_with
from tests.local.apiserver.presentation.recordings import FIXTURES, golden
from tests.narrowing import instance_of

Json = dict[str, Any]

SERVER = server_with()
SERVED = {(resource.group, resource.version, resource.plural): resource for resource in SERVER.registry}
PARTS = {
    (resource.group, resource.version, f"{resource.plural}/{part.name}")
    for resource in SERVER.registry
    for part in resource.subresources
}
GROUPS = {resource.group for resource in SERVER.registry}
# Listed, always empty, nothing can be written to it: the one resource that offers less than a real server.
READ_ONLY = {"horizontalpodautoscalers", "horizontalpodautoscalers/status"}

NAMES = sorted(path.stem for path in (FIXTURES / "discovery").glob("*.json"))
RESOURCE_LISTS = [
    name for name in NAMES if recorded(name)["path"].count("/") in {2, 3} and name.endswith(("_v1", "_v2"))
]
SINGLE_GROUPS = [name for name in NAMES if name.startswith("apis_") and recorded(name)["path"].count("/") == 2]
HEALTH = ["healthz", "livez", "readyz"]
ELSEWHERE = {
    "api",
    "api.aggregated",
    "apis",
    "apis.aggregated",
    "apis.aggregated.nopeers",
    "apis.aggregated.unsupported_version",
    "openapi_v3_apps_v1_deployment",
    "openapi_v3_apps_v1_not_found",
    "openapi_v3_index",
    "readyz.verbose",
    "root",
    "unknown_group",
    "unknown_path",
    "unknown_version",
    "version",
}


def test_every_recording_is_covered():
    assert set(NAMES) == {*RESOURCE_LISTS, *SINGLE_GROUPS, *HEALTH, *ELSEWHERE}


@pytest.mark.parametrize("name", RESOURCE_LISTS)
def test_resources_of_a_group_version(name: str):
    line = recorded(name)
    group, _, version = line["response"]["groupVersion"].rpartition("/")
    known = {*SERVED, *PARTS}
    expected = [resource for resource in line["response"]["resources"] if (group, version, resource["name"]) in known]
    shown = document(SERVER, line["path"])
    differing = [item for item in shown["resources"] if item["name"] in READ_ONLY]
    assert {**shown, "resources": [item for item in shown["resources"] if item not in differing]} == {
        **line["response"],
        "resources": [item for item in expected if item["name"] not in READ_ONLY],
    }
    assert [item["name"] for item in shown["resources"]] == [item["name"] for item in expected]


@pytest.mark.parametrize("name", SINGLE_GROUPS)
def test_a_group(name: str):
    line = recorded(name)
    assert document(SERVER, line["path"]) == line["response"]


def test_the_core_versions_and_the_address_the_client_came_to():
    line = recorded("api")
    assert document(SERVER, "/api", Host="192.0.2.1:6443") == line["response"]


def test_the_groups_in_the_order_of_their_priority():
    line = recorded("apis")
    expected = [group for group in line["response"]["groups"] if group["name"] in GROUPS]
    assert document(SERVER, "/apis") == {**line["response"], "groups": expected}


def test_a_slash_at_the_end_changes_nothing():
    assert document(SERVER, "/apis/") == document(SERVER, "/apis")


@pytest.mark.parametrize("name", ["api.aggregated", "apis.aggregated"])
def test_aggregated_discovery(name: str):
    line = recorded(name)
    found = ask(SERVER, line["path"], accept=line["accept"])
    shown = json.loads(instance_of(bytes, found.body))
    assert _without_read_only(shown) == _without_read_only(_as_far_as_served(line["response"]))
    assert found.content_type == line["response_headers"]["Content-Type"]
    headers = dict(found.headers)
    assert (headers["Cache-Control"], headers["Vary"]) == ("public", "Accept")
    assert len(headers["Etag"]) == len(line["response_headers"]["Etag"])


def _as_far_as_served(response: Json) -> Json:
    items = []
    for item in response["items"]:
        group = item["metadata"].get("name", "")
        versions = []
        for version in item["versions"]:
            key = (group, version["version"])
            resources = [
                _with_served_parts(resource, key)
                for resource in version["resources"]
                if (*key, resource["resource"]) in SERVED
            ]
            versions.append({**version, "resources": resources})
        if group in GROUPS:
            items.append({**item, "versions": versions})
    return {**response, "items": items}


def _with_served_parts(resource: Json, key: tuple[str, str]) -> Json:
    parts = [
        subresource
        for subresource in resource.get("subresources", ())
        if (*key, f"{resource['resource']}/{subresource['subresource']}") in PARTS
    ]
    bare = {name: value for name, value in resource.items() if name != "subresources"}
    return {**bare, "subresources": parts} if parts else bare


def _without_read_only(response: Json) -> Json:
    text = json.loads(json.dumps(response))
    for item in text["items"]:
        for version in item["versions"]:
            version["resources"] = [
                resource for resource in version["resources"] if resource["resource"] not in READ_ONLY
            ]
    return text


def test_the_older_aggregated_version_is_named_in_the_answer():
    older = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"
    found = ask(SERVER, "/apis", accept=older)
    assert found.content_type == older
    assert b'"apiVersion":"apidiscovery.k8s.io/v2beta1"' in instance_of(bytes, found.body)


def test_a_profile_is_not_echoed():
    line = recorded("apis.aggregated.nopeers")
    assert ask(SERVER, "/apis", accept=line["accept"]).content_type == line["response_headers"]["Content-Type"]


def test_an_aggregated_version_we_do_not_have_is_refused_or_passed_over():
    line = recorded("apis.aggregated.unsupported_version")
    with pytest.raises(StatusError) as refused:
        ask(SERVER, "/apis", accept=line["accept"])
    assert refused.value.status == line["response"]
    assert document(SERVER, "/apis", accept=f"{line['accept']},application/json")["kind"] == "APIGroupList"


def test_only_the_roots_have_an_aggregated_form():
    accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    with pytest.raises(StatusError):
        ask(SERVER, "/apis/apps", accept=accept)
    assert document(SERVER, "/apis/apps", accept=f"{accept},application/json")["kind"] == "APIGroup"


def test_a_client_that_has_the_document_is_not_sent_it_again():
    accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    tag = dict(ask(SERVER, "/apis", accept=accept).headers)["Etag"]
    again = ask(SERVER, "/apis", accept=accept, If_None_Match=tag)
    assert (again.status, again.body) == (304, b"")


def test_version():
    line = recorded("version")
    shown = document(SERVER, "/version")
    ours = ("gitVersion", "gitCommit", "buildDate", "goVersion", "compiler")
    assert list(shown) == list(line["response"])
    assert {key: shown[key] for key in shown if key not in ours} == {
        key: value for key, value in line["response"].items() if key not in ours
    }
    assert shown["gitVersion"].startswith("v1.34.")


def test_the_root_lists_recorded_paths_that_are_served():
    listed = document(SERVER, "/")["paths"]
    assert set(listed) <= set(recorded("root")["response"]["paths"])
    assert listed == sorted(listed)
    for path in listed:
        assert ask(SERVER, path).status == 200


@pytest.mark.parametrize("name", HEALTH)
def test_health(name: str):
    line = recorded(name)
    found = ask(SERVER, line["path"], accept=line["accept"])
    assert (found.body, found.content_type) == (b"ok", line["response_headers"]["Content-Type"])


def test_health_check_by_check():
    found = ask(SERVER, "/readyz?verbose", accept="*/*")
    assert isinstance(found.body, bytes)
    assert found.body.decode() == recorded("readyz.verbose")["response"]


@pytest.mark.parametrize(
    ("path", "status", "shown"),
    [
        ("/readyz", 500, "[-]etcd failed: reason withheld"),
        ("/livez", 500, "livez check failed"),
        ("/livez?exclude=etcd", 200, "ok"),
        ("/readyz/etcd", 500, "reason withheld"),
        ("/readyz/ping", 200, "ok"),
    ],
)
def test_a_store_in_trouble_fails_the_checks_without_saying_why(path: str, status: int, shown: str):
    found = ask(server_with(problem="disk is full"), path)
    assert isinstance(found.body, bytes)
    assert found.status == status
    assert shown in found.body.decode()
    assert "disk is full" not in found.body.decode()


def test_a_single_check_and_an_unknown_one():
    assert ask(SERVER, "/livez/ping").body == b"ok"
    assert ask(SERVER, "/livez/shutdown").status == 404


def test_excluded_checks_are_named_and_unknown_ones_too():
    found = ask(SERVER, "/livez?verbose&exclude=etcd&exclude=nosuch")
    assert isinstance(found.body, bytes)
    lines = found.body.decode().splitlines()
    assert "[+]etcd excluded: ok" in lines
    assert lines[-2] == 'warn: some health checks cannot be excluded: no matches for "nosuch"'


@pytest.mark.parametrize("name", ["unknown_group", "unknown_path"])
def test_unknown_paths_are_plain_text(name: str):
    line = recorded(name)
    found = ask(SERVER, line["path"])
    assert (found.status, found.body, found.content_type) == (
        line["status"],
        line["response"].encode(),
        line["response_headers"]["Content-Type"],
    )


def test_an_unknown_version_of_a_built_in_group_is_a_status():
    line = recorded("unknown_version")
    with pytest.raises(StatusError) as refused:
        ask(SERVER, line["path"])
    assert refused.value.status == line["response"]


@pytest.mark.parametrize("path", ["/api/v1/pods", "/apis/apps/v1/namespaces/n/deployments/d", "/apis/nosuch/v1/things"])
def test_resources_are_left_to_others(path: str):
    assert handle_discovery(SERVER, Request.build("GET", path)) is None


@pytest.mark.parametrize("path", ["/version", "/api", "/apis", "/apis/apps/v1", "/openapi/v3"])
def test_documents_can_only_be_read(path: str):
    with pytest.raises(StatusError) as refused:
        ask(SERVER, path, method="POST")
    assert refused.value.code == 405


def test_discovery_in_yaml():
    found = ask(SERVER, "/apis/policy", accept="application/yaml")
    assert isinstance(found.body, bytes)
    assert found.content_type == "application/yaml"
    assert found.body.startswith(b"apiVersion: v1\nkind: APIGroup\nname: policy\n")


class TestDefinitions:
    """Groups and resources that definitions make."""

    LINES = golden("crd")

    def test_a_group(self):
        server = server_with(self.LINES["crd-001"]["response"])
        assert document(server, "/apis/ex.com") == self.LINES["crd-003"]["response"]

    def test_its_resources_and_their_subresources(self):
        server = server_with(self.LINES["crd-001"]["response"])
        assert document(server, "/apis/ex.com/v1") == self.LINES["crd-004"]["response"]

    def test_versions_stand_in_the_order_of_their_priority(self):
        line = self.LINES["crd-102"]
        names = [version["version"] for version in line["response"]["versions"]]
        widgets = self.LINES["crd-001"]["response"]
        versions = [{"name": name, "served": True, "storage": name == "v1"} for name in reversed(names)]
        server = server_with({**widgets, "spec": {**widgets["spec"], "versions": versions}})
        assert document(server, "/apis/ex.com") == line["response"]
