"""What a creation needs besides its own request: the right to create, and a namespace and definition still there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.local.apiserver.storage import Delete, Key, Put
from tests.local.apiserver.builders import APPLY, GUEST, ApiServerHarness, config_map, definition

if TYPE_CHECKING:
    from collections.abc import Callable

RBAC = "/apis/rbac.authorization.k8s.io/v1/namespaces/here"
MAPS = "/api/v1/namespaces/here/configmaps"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/here/leases/l"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/ex.com/v1/namespaces/here/widgets"
NO_NEW_CONTENT = "unable to create new content in namespace here because it is being terminated"
DEFINITION = Key("apiextensions.k8s.io/customresourcedefinitions", "", "widgets.ex.com")


@pytest.fixture
def world():
    with ApiServerHarness() as made:
        made.namespace()
        yield made


def allow_guest(world: ApiServerHarness, *verbs: str) -> None:
    rule = {"apiGroups": ["", "coordination.k8s.io"], "resources": ["configmaps", "leases"], "verbs": list(verbs)}
    world.made(f"{RBAC}/roles", {"metadata": {"name": "r"}, "rules": [rule]})
    group = "rbac.authorization.k8s.io"
    subjects = [{"kind": "User", "name": "guest", "apiGroup": group}]
    reference = {"apiGroup": group, "kind": "Role", "name": "r"}
    world.made(f"{RBAC}/rolebindings", {"metadata": {"name": "r"}, "roleRef": reference, "subjects": subjects})


def applied(world: ApiServerHarness) -> Any:
    return world.ask("PATCH", f"{MAPS}/a?fieldManager=m", config_map(data={"x": "1"}), content=APPLY, token=GUEST)


def put(world: ApiServerHarness) -> Any:
    return world.ask("PUT", LEASE, {"metadata": {"name": "l"}, "spec": {"holderIdentity": "x"}}, token=GUEST)


@pytest.mark.parametrize(
    ("send", "whom", "plural", "group"),
    [
        (applied, 'configmaps "a"', "configmaps", ""),
        (put, 'leases.coordination.k8s.io "l"', "leases", "coordination.k8s.io"),
    ],
)
def test_creating_by_apply_or_put_needs_the_right_to_create(
    world: ApiServerHarness, send: Callable[[ApiServerHarness], Any], whom: str, plural: str, group: str
):
    allow_guest(world, "get", "patch", "update")
    reply = send(world)
    asked = f'create resource "{plural}" in API group "{group}" in the namespace "here"'
    assert (reply.status, reply.body["reason"]) == (403, "Forbidden")
    assert reply.message == f'{whom} is forbidden: User "guest" cannot {asked}'


@pytest.mark.parametrize("send", [applied, put])
def test_with_the_right_to_create_both_do(world: ApiServerHarness, send: Callable[[ApiServerHarness], Any]):
    allow_guest(world, "create", "patch", "update")
    assert send(world).status == 201


def test_changing_by_apply_needs_no_right_to_create(world: ApiServerHarness):
    allow_guest(world, "patch")
    world.made(MAPS, config_map())
    assert applied(world).status == 200


# ---- between admission and the write


def just_before_the_write(world: ApiServerHarness, key: Key, change: Callable[[dict[str, Any]], Any]) -> None:
    """Let another client change what is stored at `key` after admission has let a request in."""
    real = world.server.admission.validate

    async def validate(attempt: Any) -> None:
        await real(attempt)

        def decide(current: Any) -> Any:
            return change(current.decode_body())

        await world.server.store.update(key, decide)

    world.server.admission.validate = validate  # type: ignore[method-assign]


def gone(_body: dict[str, Any]) -> Any:
    return Delete()


def terminating(body: dict[str, Any]) -> Any:
    return Put({**body, "status": {"phase": "Terminating"}})


def being_deleted(body: dict[str, Any]) -> Any:
    return Put({**body, "metadata": {**body["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}})


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        (gone, 404, 'namespaces "here" not found'),
        (terminating, 403, f'configmaps "a" is forbidden: {NO_NEW_CONTENT}'),
    ],
)
def test_a_namespace_that_goes_meanwhile_takes_nothing_in(
    world: ApiServerHarness, change: Any, code: int, message: str
):
    just_before_the_write(world, Key("namespaces", "", "here"), change)
    reply = world.ask("POST", MAPS, config_map())
    assert (reply.status, reply.message) == (code, message)
    assert world.server.store.count("configmaps", "here") == 0


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        (gone, 404, "the server could not find the requested resource"),
        (
            being_deleted,
            403,
            'widgets.ex.com "w" is forbidden: create not allowed while custom resource definition is terminating',
        ),
    ],
)
def test_a_definition_that_goes_meanwhile_gets_no_more_objects(
    world: ApiServerHarness, change: Any, code: int, message: str
):
    world.made(CRDS, definition())
    just_before_the_write(world, DEFINITION, change)
    reply = world.ask("POST", WIDGETS, {"apiVersion": "ex.com/v1", "kind": "Widget", "metadata": {"name": "w"}})
    assert (reply.status, reply.message) == (code, message)
    assert world.server.store.count("ex.com/widgets") == 0


def test_a_definition_that_is_only_changed_meanwhile_does_not_matter(world: ApiServerHarness):
    world.made(CRDS, definition())
    labelled = {"labels": {"a": "b"}}
    just_before_the_write(world, DEFINITION, lambda body: Put({**body, "metadata": {**body["metadata"], **labelled}}))
    world.made(WIDGETS, {"apiVersion": "ex.com/v1", "kind": "Widget", "metadata": {"name": "w"}})
