from __future__ import annotations

import pytest

from plimsoll.local.apiserver.auth_types import User
from plimsoll.local.apiserver.http_types import Request, Response
from plimsoll.local.apiserver.resources.builtin import list_builtin_resources
from plimsoll.local.apiserver.resources.registry import ResourceRegistry, ServedResource
from plimsoll.local.apiserver.routing import ResourceRoute, read_attributes, route
from plimsoll.local.apiserver.status_errors import StatusError

CATALOGUE = ResourceRegistry(list_builtin_resources())


def custom(group: str, plural: str, *, namespaced: bool) -> ServedResource:
    return ServedResource(
        group=group,
        version="v1",
        kind="Custom",
        plural=plural,
        singular="custom",
        namespaced=namespaced,
        stored_as=f"{group}/{plural}",
        storage_version=f"{group}/v1",
        list_kind="CustomList",
        definition={},
    )


def routed(method: str, url: str) -> ResourceRoute:
    found = route(CATALOGUE, Request.build(method, url))
    assert isinstance(found, ResourceRoute), found
    return found


def refused(method: str, url: str) -> int:
    with pytest.raises(StatusError) as refusal:
        route(CATALOGUE, Request.build(method, url))
    return refusal.value.code


@pytest.mark.parametrize(
    ("method", "url", "expected"),
    [
        ("GET", "/api/v1/pods", ("pods", "", "", "", "list")),
        ("GET", "/api/v1/namespaces/x/pods", ("pods", "x", "", "", "list")),
        ("GET", "/api/v1/namespaces/x/pods?watch=1", ("pods", "x", "", "", "watch")),
        ("GET", "/api/v1/namespaces/x/pods?watch=false", ("pods", "x", "", "", "list")),
        ("GET", "/api/v1/namespaces/x/pods/p?watch=1", ("pods", "x", "p", "", "get")),
        ("POST", "/api/v1/namespaces/x/pods", ("pods", "x", "", "", "create")),
        ("PUT", "/apis/apps/v1/namespaces/x/deployments/d", ("deployments", "x", "d", "", "update")),
        ("PATCH", "/apis/apps/v1/namespaces/x/deployments/d/scale", ("deployments", "x", "d", "scale", "patch")),
        ("DELETE", "/api/v1/namespaces/x/pods", ("pods", "x", "", "", "deletecollection")),
        ("DELETE", "/api/v1/nodes/n", ("nodes", "", "n", "", "delete")),
        ("POST", "/api/v1/namespaces/x/pods/p/binding", ("pods", "x", "p", "binding", "create")),
        ("GET", "/api/v1/namespaces/x", ("namespaces", "x", "x", "", "get")),
        ("PUT", "/api/v1/namespaces/x/finalize", ("namespaces", "x", "x", "finalize", "update")),
        ("GET", "/api/v1/namespaces/x/status", ("namespaces", "x", "x", "status", "get")),
        ("GET", "/api/v1/watch/namespaces/x/pods", ("pods", "x", "", "", "watch")),
        ("GET", "/api/v1/watch/namespaces/x/pods/p", ("pods", "x", "p", "", "watch")),
        ("GET", "/api/v1/watch/namespaces", ("namespaces", "", "", "", "watch")),
        ("GET", "/api/v1/watch/namespaces/x", ("namespaces", "x", "x", "", "watch")),
        ("GET", "/api/v1/namespaces/namespaces", ("namespaces", "namespaces", "namespaces", "", "get")),
        ("GET", "/api/v1/namespaces/namespaces/pods", ("pods", "namespaces", "", "", "list")),
    ],
)
def test_a_path_and_a_method_name_a_request(method: str, url: str, expected: tuple[str, ...]):
    found = routed(method, url)
    assert (found.resource.plural, found.namespace, found.name, found.subresource, found.verb) == expected


@pytest.mark.parametrize("path", ["/", "/version", "/api", "/api/v1", "/apis", "/apis/apps", "/apis/apps/v1"])
def test_paths_that_are_no_resource_are_left_to_discovery(path: str):
    assert route(CATALOGUE, Request.build("GET", path)) is None


def test_below_an_unknown_group_there_is_only_a_page():
    found = route(CATALOGUE, Request.build("GET", "/apis/foo.example.com/v1/bars"))
    assert isinstance(found, Response)
    assert found.status == 404


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/namespaces/x/foos",
        "/apis/apps/v2/deployments",
        "/api/v1/namespaces/x/nodes",
        "/api/v1/namespaces/x/nodes/n",
        "/api/v1/namespaces/x/namespaces",
        "/api/v1/namespaces/x/namespaces/y",
        "/api/v1/namespaces/x/namespaces/y/status",
        "/api/v1/namespaces/x/namespaces/x",
        "/api/v1/namespaces/x/namespaces/y/pods",
        "/api/v1/watch/namespaces/x/namespaces",
        "/api/v1/watch/namespaces/x/namespaces/y",
        "/api/v1/watch/namespaces/x/status",
        "/api/v1/watch/namespaces/x/pods/p/log",
        "/api/v1/watch/pods/p",
        "/api/v1/watch",
        "/api/v1/pods/p",
        "/api/v1/namespaces/x/pods/p/nosuch",
        "/api/v1/namespaces/x/configmaps/c/status",
    ],
)
def test_unknown_and_misplaced_resources_are_not_found(path: str):
    assert refused("GET", path) == 404


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/api/v1/configmaps"),
        ("POST", "/api/v1/namespaces/x/configmaps/c"),
        ("PUT", "/api/v1/namespaces/x/configmaps"),
        ("PATCH", "/api/v1/namespaces/x/configmaps"),
        ("DELETE", "/api/v1/namespaces/x/pods/p/status"),
        ("FOO", "/api/v1/namespaces/x/configmaps/c"),
        ("GET", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"),
        ("DELETE", "/api/v1/namespaces"),
        ("DELETE", "/api/v1/pods"),
        ("POST", "/api/v1/watch/namespaces"),
        ("DELETE", "/api/v1/watch/namespaces/x/pods"),
        ("PUT", "/api/v1/watch/namespaces/x/pods/p"),
    ],
)
def test_what_a_resource_cannot_do_is_not_allowed(method: str, path: str):
    assert refused(method, path) == 405


def test_a_list_of_one_object_by_its_name_counts_as_a_request_for_it():
    request = Request.build("GET", "/api/v1/namespaces/x/pods?fieldSelector=metadata.name%3Dp")
    attributes = read_attributes(User(name="u"), request)
    assert (attributes.verb, attributes.resource, attributes.namespace, attributes.name) == ("list", "pods", "x", "p")


@pytest.mark.parametrize(
    ("path", "namespace", "name"),
    [
        ("/api/v1/namespaces", "", ""),
        ("/api/v1/namespaces/a", "a", "a"),
        ("/api/v1/namespaces/a/status", "a", "a"),
        ("/api/v1/namespaces/a/namespaces", "a", ""),
        ("/api/v1/namespaces/a/namespaces/b", "a", "b"),
        ("/api/v1/watch/namespaces/a", "a", "a"),
    ],
)
def test_roles_for_a_namespace_are_looked_up_in_itself_and_below_another_in_that_one(
    path: str, namespace: str, name: str
):
    attributes = read_attributes(User(name="u"), Request.build("GET", path))
    assert (attributes.resource, attributes.namespace, attributes.name) == ("namespaces", namespace, name)


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE"])
@pytest.mark.parametrize("path", ["/api/v1/watch/pods", "/api/v1/watch/namespaces/x/pods/p"])
def test_below_watch_rules_are_asked_about_a_watch_whatever_the_method(method: str, path: str):
    assert read_attributes(User(name="u"), Request.build(method, path)).verb == "watch"


@pytest.mark.parametrize(
    ("namespaced", "path", "is_served"),
    [
        (False, "/apis/example.com/v1/namespaces/x", True),
        (False, "/apis/example.com/v1/namespaces/a/namespaces/x", False),
        (True, "/apis/example.com/v1/namespaces/x", False),
        (True, "/apis/example.com/v1/namespaces/a/namespaces/x", True),
    ],
)
def test_a_custom_resource_may_be_called_namespaces(namespaced: bool, path: str, is_served: bool):
    registry = ResourceRegistry(list_builtin_resources())
    registry.serve("namespaces.example.com", [custom("example.com", "namespaces", namespaced=namespaced)])
    found = route(registry, Request.build("GET", path))
    assert isinstance(found, ResourceRoute) is is_served
    if namespaced and isinstance(found, ResourceRoute):
        assert (found.namespace, found.name) == ("a", "x")


def test_rules_are_asked_about_resources_that_are_not_served():
    attributes = read_attributes(User(name="u"), Request.build("GET", "/apis/foo.example.com/v1/namespaces/x/bars/b"))
    assert (attributes.group, attributes.resource, attributes.name) == ("foo.example.com", "bars", "b")
    assert attributes.is_resource_request
