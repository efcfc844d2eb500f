"""The namespace and the CustomResourceDefinition of a new object must still exist when the object is written.

Admission and routing checked both earlier, but either may have been deleted since. `create_in_parents` checks again
where the write is decided, and waits for a namespace or definition that is being changed at that moment. So a created
object is either older than the deletion, and found by the namespace controller, or rejected.
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.errors import PlimsollError
from plimsoll.local.apiserver import status_errors
from plimsoll.local.apiserver.admission.attributes import forbidden
from plimsoll.local.apiserver.admission.namespace_lifecycle import NamespaceLifecycle
from plimsoll.local.apiserver.storage import Decision, Key, Stored

if TYPE_CHECKING:
    from collections.abc import Callable

    from plimsoll.local.apiserver.admission import AdmissionAttributes
    from plimsoll.local.apiserver.server import Server

Json = dict[str, Any]

_DEFINITIONS: Final = "apiextensions.k8s.io/customresourcedefinitions"


class _Unsettled(PlimsollError):
    """A parent of the object is being changed; never leaves this module."""


async def create_in_parents(
    server: Server, key: Key, decide: Callable[[Stored | None], Decision], *, attempt: AdmissionAttributes
) -> Stored | None:
    """`Store.update` for a creation. Raises a StatusError if the namespace or definition is gone or terminating."""
    parents = _list_parent_keys(attempt)

    def decide_in_parents(found: Stored | None) -> Decision:
        _check(server, attempt)
        return decide(found)

    def decide_undisturbed(found: Stored | None) -> Decision:
        if any(server.locks.is_held(parent) for parent in parents):
            raise _Unsettled
        return decide_in_parents(found)

    try:
        return await server.store.update(key, decide_undisturbed)
    except _Unsettled:
        async with AsyncExitStack() as locks:
            for parent in parents:
                await locks.enter_async_context(server.locks.hold(parent))
            return await server.store.update(key, decide_in_parents)


def _list_parent_keys(attempt: AdmissionAttributes) -> list[Key]:
    """The same order for all requests, so that there is no deadlock."""
    keys = []
    if attempt.resource.is_custom:
        keys.append(Key(_DEFINITIONS, "", attempt.resource.full_name))
    if attempt.resource.namespaced:
        keys.append(Key("namespaces", "", attempt.namespace))
    return keys


def _check(server: Server, attempt: AdmissionAttributes) -> None:
    NamespaceLifecycle(server.store).mutate(attempt)
    if attempt.resource.is_custom:
        _check_definition(server, attempt)


def _check_definition(server: Server, attempt: AdmissionAttributes) -> None:
    resource = attempt.resource
    stored = server.store.get(Key(_DEFINITIONS, "", resource.full_name))
    if stored is None:
        raise status_errors.unknown_resource()
    assert resource.definition is not None, "a custom resource comes from a definition"
    if str(stored.revision) == resource.definition["metadata"].get("resourceVersion"):
        return  # nothing has changed: spares reading a document that may be large
    now: Json = stored.decode_body()
    if now["metadata"].get("deletionTimestamp"):
        raise forbidden(attempt, "create not allowed while custom resource definition is terminating")
    if not any(version["name"] == resource.version and version.get("served") for version in now["spec"]["versions"]):
        raise status_errors.unknown_resource()
