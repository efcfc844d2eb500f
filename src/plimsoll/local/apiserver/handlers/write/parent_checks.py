"""What a new object lies in must still be there at the moment of writing: its namespace and its definition.

Admission and routing asked before, but both may have gone since. `write_inside` asks again where the write is decided,
and waits for a namespace or definition that is just being changed: so whatever is created is either older than the
deletion, and found by whoever empties the namespace, or refused. Used by `writing` for creations.
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.errors import PlimsollError
from plimsoll.local.apiserver import status_errors
from plimsoll.local.apiserver.admission.attributes import forbidden
from plimsoll.local.apiserver.admission.namespace_lifecycle import NamespaceLifecycle
from plimsoll.local.apiserver.handlers.write.key_lock import is_changing, turn
from plimsoll.local.apiserver.storage import Decision, Key, Stored

if TYPE_CHECKING:
    from collections.abc import Callable

    from plimsoll.local.apiserver.admission import Attributes
    from plimsoll.local.apiserver.server import Server

Json = dict[str, Any]

_DEFINITIONS: Final = "apiextensions.k8s.io/customresourcedefinitions"


class _Unsettled(PlimsollError):
    """What the object lies in is being changed; never leaves this module."""


async def write_inside(
    server: Server, key: Key, decide: Callable[[Stored | None], Decision], *, attempt: Attributes
) -> Stored | None:
    """`Store.update` for a creation; raises the refusals of a namespace or definition that is gone or going."""
    around = _around(attempt)

    def decide_inside(found: Stored | None) -> Decision:
        _check(server, attempt)
        return decide(found)

    def decide_undisturbed(found: Stored | None) -> Decision:
        if any(is_changing(server, key) for key in around):
            raise _Unsettled
        return decide_inside(found)

    try:
        return await server.store.update(key, decide_undisturbed)
    except _Unsettled:
        async with AsyncExitStack() as turns:
            for one in around:
                await turns.enter_async_context(turn(server, one))
            return await server.store.update(key, decide_inside)


def _around(attempt: Attributes) -> list[Key]:
    """In an order that is the same for everybody."""
    keys = []
    if attempt.resource.is_custom:
        keys.append(Key(_DEFINITIONS, "", attempt.resource.full_name))
    if attempt.resource.namespaced:
        keys.append(Key("namespaces", "", attempt.namespace))
    return keys


def _check(server: Server, attempt: Attributes) -> None:
    NamespaceLifecycle(server.store).mutate(attempt)
    if attempt.resource.is_custom:
        _check_definition(server, attempt)


def _check_definition(server: Server, attempt: Attributes) -> None:
    resource = attempt.resource
    stored = server.store.get(Key(_DEFINITIONS, "", resource.full_name))
    if stored is None:
        raise status_errors.unknown_resource()
    assert resource.definition is not None, "a custom resource comes from a definition"
    if str(stored.revision) == resource.definition["metadata"].get("resourceVersion"):
        return  # nothing has changed: spares reading a document that may be large
    now: Json = stored.body()
    if now["metadata"].get("deletionTimestamp"):
        raise forbidden(attempt, "create not allowed while custom resource definition is terminating")
    if not any(one["name"] == resource.version and one.get("served") for one in now["spec"]["versions"]):
        raise status_errors.unknown_resource()
