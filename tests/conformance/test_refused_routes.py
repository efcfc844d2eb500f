"""Whoever may not is refused, on every published route: nobody, a wrong token, a reader, a stranger."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.runtime.virtual_runs import VirtualRun
from tests.conformance.exchanges import Conversation, Reply
from tests.conformance.fuzz_runs import published_operations
from tests.conformance.servers import ADMIN_TOKEN, RECORDED_DAY, embedded_server

if TYPE_CHECKING:
    from tests.conformance.fuzzing import Operation

_JSON = {"Content-Type": "application/json"}
_RBAC = "/apis/rbac.authorization.k8s.io/v1"

# Every authenticated user may ask about themselves.
_ABOUT_ONESELF = ("selfsubjectaccessreviews", "selfsubjectrulesreviews", "selfsubjectreviews")
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


def _service_account(client: Conversation, namespace: str, name: str) -> str:
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
        server = run.until(embedded_server(run.clock))
        admin = Conversation(run, server.transport, headers={"Authorization": f"Bearer {ADMIN_TOKEN}"})
        stranger = _service_account(admin, "home", "sa")
        reader = _service_account(admin, "readers", "reader")
        _bind_to_view(admin)
        credentials = {
            "nobody": {},
            "wrong token": {"Authorization": "Bearer wrong"},
            "reader": {"Authorization": f"Bearer {reader}"},
            "stranger": {"Authorization": f"Bearer {stranger}"},
        }
        published = published_operations(admin)
        return {
            who: [(one, _ask(Conversation(run, server.transport, headers=headers), one)) for one in published]
            for who, headers in credentials.items()
        }


def _bind_to_view(admin: Conversation) -> None:
    body = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "readers"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": "readers"}],
    }
    assert admin.send("POST", f"{_RBAC}/clusterrolebindings", headers=_JSON, body=body).status == 201


def _ask(client: Conversation, operation: Operation) -> Reply:
    path = re.sub(r"\{(\w+)\}", lambda part: "other" if part[1] == "namespace" else "x", operation.path)
    content_type = "application/merge-patch+json" if operation.method == "PATCH" else "application/json"
    return client.send(operation.method, path, headers={"Content-Type": content_type}, body={})


def _is_about_oneself(operation: Operation) -> bool:
    return operation.path.rsplit("/", 1)[-1] in _ABOUT_ONESELF


def _is_resource(operation: Operation) -> bool:
    return len(operation.path.strip("/").split("/")) > 2 and bool(operation.kind)


@pytest.mark.parametrize("who", ["nobody", "wrong token", "stranger"])
def test_every_published_route_refuses(who: str):
    code = 401 if who == "wrong token" else 403
    asked = [
        (f"{one.method} {one.path}", reply.status)
        for one, reply in _answers()[who]
        if _is_resource(one) and not (who == "stranger" and _is_about_oneself(one))
    ]
    assert len(asked) > 100
    assert [one for one in asked if one[1] != code] == []


def test_a_reader_may_not_write_anything():
    writes = [
        (f"{one.method} {one.path}", reply.status)
        for one, reply in _answers()["reader"]
        if one.method != "GET" and _is_resource(one) and not _is_about_oneself(one)
    ]
    assert len(writes) > 100
    assert [one for one in writes if one[1] != 403] == []


def test_a_reader_reads_pods_and_no_secrets_nor_who_may_do_what():
    reads = {one.path: reply.status for one, reply in _answers()["reader"] if one.method == "GET"}
    assert reads["/api/v1/namespaces/{namespace}/pods"] == 200
    closed = ("secrets", "roles", "rolebindings", "clusterroles", "clusterrolebindings")
    refused = {path: status for path, status in reads.items() if any(f"/{part}" in path for part in closed)}
    assert len(refused) > len(closed)
    assert set(refused.values()) == {403}


@pytest.mark.parametrize("path", _DOCUMENTS)
def test_documents_are_not_for_everybody(path: str):
    with VirtualRun(start=RECORDED_DAY) as run:
        server = run.until(embedded_server(run.clock))
        assert Conversation(run, server.transport, headers={}).send("GET", path).status == 403


@pytest.mark.parametrize("path", ["/version", "/healthz", "/livez", "/readyz"])
def test_what_is_public_is_public_without_a_token_and_closed_with_a_wrong_one(path: str):
    with VirtualRun(start=RECORDED_DAY) as run:
        server = run.until(embedded_server(run.clock))
        assert Conversation(run, server.transport, headers={}).send("GET", path).status == 200
        wrong = {"Authorization": "Bearer wrong"}
        assert Conversation(run, server.transport, headers=wrong).send("GET", path).status == 401
