"""Users without permission are refused on every published route: anonymous, a wrong token, a reader, a stranger.

The deprecated `/watch/` paths are not published and served all the same, so they are asked for too.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.runtime.virtual_run import VirtualRun
from tests.conformance.exchanges import ClientRequests, Reply
from tests.conformance.fuzz_runs import published_operations
from tests.conformance.servers import ADMIN_TOKEN, RECORDED_DAY, embedded_server

if TYPE_CHECKING:
    from tests.conformance.fuzzing import Operation

_JSON = {"Content-Type": "application/json"}
_RBAC = "/apis/rbac.authorization.k8s.io/v1"

# Every authenticated user may ask about themselves.
_ABOUT_ONESELF = ("selfsubjectaccessreviews", "selfsubjectrulesreviews", "selfsubjectreviews")
_KNOWN = ("stranger", "reader of another namespace")
_DOCUMENTS = (
    "/api",
    "/api/v1",
    "/apis",
    "/apis/apps",
    "/apis/apps/v1",
    "/openapi/v3",
    "/openapi/v3/api/v1",
    "/metrics",
)


def _service_account(client: ClientRequests, namespace: str, name: str) -> str:
    client.send(
        "POST",
        "/api/v1/namespaces",
        headers=_JSON,
        body={"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}},
    )
    base = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    body: dict[str, Any] = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}
    client.send("POST", base, headers=_JSON, body=body)
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token: str = client.send("POST", f"{base}/{name}/token", headers=_JSON, body=asked).body["status"]["token"]
    return token


@cache
def _answers() -> dict[str, list[tuple[Operation, Reply]]]:
    """By caller: every published operation on an object in the namespace `other`, and what came of it."""
    with VirtualRun(start=RECORDED_DAY) as run:
        server = run.run_until(embedded_server(run.clock))
        admin = ClientRequests(run, server.transport, headers={"Authorization": f"Bearer {ADMIN_TOKEN}"})
        stranger = _service_account(admin, "home", "sa")
        reader = _service_account(admin, "readers", "reader")
        neighbour = _service_account(admin, "next-door", "reader")
        _bind_everywhere(admin, "view", "readers/reader")
        _bind_in(admin, "next-door", "view", "next-door/reader")
        credentials = {
            "nobody": {},
            "wrong token": {"Authorization": "Bearer wrong"},
            "reader": {"Authorization": f"Bearer {reader}"},
            "stranger": {"Authorization": f"Bearer {stranger}"},
            "reader of another namespace": {"Authorization": f"Bearer {neighbour}"},
        }
        published = published_operations(admin)
        asked = (*published, *_watch_paths(published))
        return {
            who: [
                (operation, _ask(ClientRequests(run, server.transport, headers=headers), operation))
                for operation in asked
            ]
            for who, headers in credentials.items()
        }


def _watch_paths(published: tuple[Operation, ...]) -> list[Operation]:
    """The deprecated way to watch everything that is read: `/api/v1/watch/pods` for `/api/v1/pods`."""
    return [
        operation._replace(path=_below(operation.path, "watch"))
        for operation in published
        if operation.method == "GET" and _is_resource(operation)
    ]


def _below(path: str, prefix: str) -> str:
    """The path with a prefix before its resource."""
    return re.sub(r"^(/api/v1|/apis/[^/]+/[^/]+)/", rf"\1/{prefix}/", path)


def _bind_everywhere(admin: ClientRequests, role: str, account: str) -> None:
    body = _binding("ClusterRoleBinding", role, account)
    assert admin.send("POST", f"{_RBAC}/clusterrolebindings", headers=_JSON, body=body).status == 201


def _bind_in(admin: ClientRequests, namespace: str, role: str, account: str) -> None:
    body = _binding("RoleBinding", role, account)
    path = f"{_RBAC}/namespaces/{namespace}/rolebindings"
    assert admin.send("POST", path, headers=_JSON, body=body).status == 201


def _binding(kind: str, role: str, account: str) -> dict[str, Any]:
    namespace, _, name = account.partition("/")
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": f"{name}-{role}"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
    }


def _ask(client: ClientRequests, operation: Operation) -> Reply:
    path = re.sub(r"\{(\w+)\}", lambda part: "other" if part[1] == "namespace" else "x", operation.path)
    content_type = "application/merge-patch+json" if operation.method == "PATCH" else "application/json"
    # A watch that is allowed takes its time, and tokens end after an hour.
    query = {"timeoutSeconds": "1"} if "/watch/" in path else None
    return client.send(operation.method, path, query=query, headers={"Content-Type": content_type}, body={})


def _is_about_oneself(operation: Operation) -> bool:
    return operation.path.rsplit("/", 1)[-1] in _ABOUT_ONESELF


def _is_resource(operation: Operation) -> bool:
    return len(operation.path.strip("/").split("/")) > 2 and bool(operation.kind)


@pytest.mark.parametrize("who", ["nobody", "wrong token", "stranger", "reader of another namespace"])
def test_every_published_route_refuses(who: str):
    code = 401 if who == "wrong token" else 403
    asked = [
        (f"{operation.method} {operation.path}", reply.status)
        for operation, reply in _answers()[who]
        if _is_resource(operation) and not (who in _KNOWN and _is_about_oneself(operation))
    ]
    assert len(asked) > 100
    assert any("/watch/" in item for item, _ in asked)
    assert [item for item in asked if item[1] != code] == []


def test_a_reader_may_not_write_anything():
    writes = [
        (f"{item.method} {item.path}", reply.status)
        for item, reply in _answers()["reader"]
        if item.method != "GET" and _is_resource(item) and not _is_about_oneself(item)
    ]
    assert len(writes) > 100
    assert [write for write in writes if write[1] != 403] == []


def test_a_reader_reads_pods_but_neither_secrets_nor_roles():
    reads = {item.path: reply.status for item, reply in _answers()["reader"] if item.method == "GET"}
    assert reads["/api/v1/namespaces/{namespace}/pods"] == 200
    closed = ("secrets", "roles", "rolebindings", "clusterroles", "clusterrolebindings")
    refused = {path: status for path, status in reads.items() if any(f"/{part}" in path for part in closed)}
    assert len(refused) > len(closed)
    assert set(refused.values()) == {403}


class _TenantClient:
    """A user that may do everything in the namespace `mine`, where `theirs` is another."""

    def __init__(self, run: VirtualRun) -> None:
        server = run.run_until(embedded_server(run.clock))
        self.admin = ClientRequests(run, server.transport, headers={"Authorization": f"Bearer {ADMIN_TOKEN}"})
        token = _service_account(self.admin, "mine", "tenant")
        _service_account(self.admin, "theirs", "tenant")
        _bind_in(self.admin, "mine", "cluster-admin", "mine/tenant")
        self._client = ClientRequests(run, server.transport, headers={"Authorization": f"Bearer {token}"})

    def status(self, method: str, path: str, **sent: Any) -> int:
        content_type = "application/merge-patch+json" if method == "PATCH" else "application/json"
        return self._client.send(method, path, headers={"Content-Type": content_type}, **sent).status

    def namespaces(self) -> list[str]:
        return [item["metadata"]["name"] for item in self.admin.send("GET", "/api/v1/namespaces").body["items"]]


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/namespaces/mine",
        "/api/v1/namespaces/mine/status",
        "/api/v1/namespaces/mine/pods",
        "/api/v1/watch/namespaces/mine",
        "/api/v1/watch/namespaces/mine/pods",
    ],
)
def test_a_tenant_reads_a_namespace_and_what_is_in_it(path: str):
    with VirtualRun(start=RECORDED_DAY) as run:
        assert _TenantClient(run).status("GET", path, query={"timeoutSeconds": "1"}) == 200


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/namespaces",
        "/api/v1/namespaces/theirs",
        "/api/v1/namespaces/theirs/namespaces",
        "/api/v1/namespaces/theirs/namespaces/mine",
        "/api/v1/namespaces/theirs/pods",
        "/api/v1/watch/namespaces",
        "/api/v1/watch/namespaces/theirs",
        "/api/v1/watch/namespaces/theirs/pods",
        "/api/v1/watch/pods",
    ],
)
def test_a_tenant_reads_nothing_beyond_the_namespace(path: str):
    with VirtualRun(start=RECORDED_DAY) as run:
        assert _TenantClient(run).status("GET", path, query={"timeoutSeconds": "1"}) == 403


@pytest.mark.parametrize("name", ["", "/mine", "/theirs", "/theirs/status", "/theirs/finalize"])
@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE"])
def test_below_a_namespace_there_are_no_namespaces(method: str, name: str):
    with VirtualRun(start=RECORDED_DAY) as run:
        tenant = _TenantClient(run)
        before = tenant.namespaces()
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name.split("/")[1] if name else "new"}}
        path = f"/api/v1/namespaces/mine/namespaces{name}"
        assert tenant.status(method, path, body=None if method in {"GET", "DELETE"} else body) == 404
        assert tenant.namespaces() == before


def test_below_a_namespace_there_is_nothing_of_the_cluster():
    with VirtualRun(start=RECORDED_DAY) as run:
        tenant = _TenantClient(run)
        published = [
            published_operation
            for published_operation in published_operations(tenant.admin)
            if _is_resource(published_operation)
        ]
        paths = {item.path for item in published}
        nested = [
            (item.method, _below(item.path, "namespaces/mine").replace("{name}", "x"))
            for item in published
            if "{namespace}" not in item.path and _below(item.path, "namespaces/{namespace}") not in paths
        ]
        assert len(nested) > 20
        answered = [(method, path, tenant.status(method, path, body={})) for method, path in nested]
        assert [item for item in answered if item[2] != 404] == []


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("path", ["namespaces", "namespaces/theirs", "namespaces/theirs/configmaps"])
def test_nothing_is_written_below_watch(method: str, path: str):
    with VirtualRun(start=RECORDED_DAY) as run:
        tenant = _TenantClient(run)
        before = tenant.namespaces()
        assert tenant.status(method, f"/api/v1/watch/{path}", body={"metadata": {"name": "new"}}) == 403
        assert tenant.admin.send(method, f"/api/v1/watch/{path}", headers=_JSON, body={}).status == 405
        assert tenant.namespaces() == before


@pytest.mark.parametrize("path", _DOCUMENTS)
def test_documents_need_authentication(path: str):
    with VirtualRun(start=RECORDED_DAY) as run:
        server = run.run_until(embedded_server(run.clock))
        assert ClientRequests(run, server.transport, headers={}).send("GET", path).status == 403


@pytest.mark.parametrize("path", ["/version", "/healthz", "/livez", "/readyz"])
def test_what_is_public_is_public_without_a_token_and_closed_with_a_wrong_one(path: str):
    with VirtualRun(start=RECORDED_DAY) as run:
        server = run.run_until(embedded_server(run.clock))
        assert ClientRequests(run, server.transport, headers={}).send("GET", path).status == 200
        wrong = {"Authorization": "Bearer wrong"}
        assert ClientRequests(run, server.transport, headers=wrong).send("GET", path).status == 401
