"""The life of a CustomResourceDefinition: what a stored one makes the server serve, and what it is told about itself.

`follow` is called after every write; it settles a definition that was written (names, conditions, serving) and finishes
one that is being deleted, object by object. `restore` does the same for everything the store holds at the start.
Deterministic: there is no controller beside it and no delay. The definition itself is written under the server's name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.local.apiserver import refusals
from plimsoll.local.apiserver.apply.field_management import FieldManagement
from plimsoll.local.apiserver.apply.resets import reset_fields
from plimsoll.local.apiserver.apply.schemas import TypeSchema
from plimsoll.local.apiserver.catalogue import ALL_VERBS, ServedResource, Subresource
from plimsoll.local.apiserver.definition_names import settled_status
from plimsoll.local.apiserver.exchange import Request
from plimsoll.local.apiserver.handlers.context import Call
from plimsoll.local.apiserver.handlers.deleting import delete_object
from plimsoll.local.apiserver.identities import User
from plimsoll.local.apiserver.routing import ResourceRoute
from plimsoll.local.apiserver.storage import Decision, Delete, Keep, Key, ListQuery, Put, Stored
from plimsoll.local.apiserver.strategies.definitions_deletion import CLEANUP, TERMINATING, with_condition
from plimsoll.local.apiserver.strategies.field_labels import reader, selectable
from plimsoll.local.apiserver.strategies.written_form import written_time
from plimsoll.objects.schema.definitions import compile_definition
from plimsoll.objects.schema.version_priority import priority

if TYPE_CHECKING:
    from collections.abc import Callable

    from plimsoll.local.apiserver.server import Server

Json = dict[str, Any]

DEFINITIONS: Final = "apiextensions.k8s.io/customresourcedefinitions"
_API_VERSION: Final = "apiextensions.k8s.io/v1"
_KIND: Final = "CustomResourceDefinition"
_MANAGER: Final = "kube-apiserver"
_ITSELF: Final = User(name="system:apiserver", groups=("system:masters",))
_OWN_REQUEST: Final = Request("DELETE", "/")
_DELETED_AT_ONCE: Final = 500


def restore(server: Server) -> None:
    """Serve what the stored definitions define."""
    for stored in server.store.list(DEFINITIONS).items:
        _serve(server, stored.body())


async def resume(server: Server) -> None:
    """Go on with what a server that ended at the wrong moment had begun: names to settle, objects to delete."""
    leaving = {one.full_name for one in server.catalogue if one.is_custom and _is_terminating(one)}
    for name in [*_waiting(server), *sorted(leaving)]:
        await _settle(server, name)


async def follow(server: Server, call: Call) -> None:
    """After a write: settle the definition that was written, or the one whose object was."""
    if call.resource.stored_as == DEFINITIONS:
        names = _written(server, call)
    elif call.resource.is_custom and _is_terminating(call.resource):
        names = [call.resource.full_name]
    else:
        return
    for name in names:
        await _settle(server, name)
    if any(server.store.get(Key(DEFINITIONS, "", name)) is None for name in names):
        # Names that became free may be taken by definitions that wait for them.
        for name in _waiting(server):
            await _settle(server, name)


def _written(server: Server, call: Call) -> list[str]:
    if call.name:
        return [call.name]
    if call.verb == "deletecollection":
        return [one.name for one in server.store.list(DEFINITIONS).items]
    return _waiting(server)  # a create does not say the name; what it made is not served yet


def _waiting(server: Server) -> list[str]:
    """Definitions that are stored and not served."""
    served = {one.full_name for one in server.catalogue if one.is_custom}
    return [one.name for one in server.store.list(DEFINITIONS).items if one.name not in served]


async def _settle(server: Server, name: str) -> None:
    stored = server.store.get(Key(DEFINITIONS, "", name))
    if stored is None:
        server.catalogue.serve(name, ())
        return
    body = stored.body()
    if body["metadata"].get("deletionTimestamp"):
        _serve(server, body)
        await _finish(server, name, body)
        return
    group = body["spec"]["group"]
    others = [
        one.body()
        for one in server.store.list(DEFINITIONS).items
        if one.name != name and one.name.partition(".")[2] == group
    ]
    now = written_time(server.clock.now())
    settled = await _write_status(server, name, lambda current: settled_status(current, others, now=now))
    if settled is not None:
        _serve(server, settled)


def refuse_if_terminating(server: Server, call: Call) -> None:  # noqa: ARG001 - the shape of every step
    """Nothing is created under a definition that is on its way out."""
    if call.verb != "create" or call.subresource or not call.resource.is_custom:
        return
    if _is_terminating(call.resource):
        name = _name_in(call)
        why = "create not allowed while custom resource definition is terminating"
        details = refusals.named(name, group=call.resource.group, kind=call.resource.plural)
        raise refusals.forbidden(f'{call.resource.full_name} "{name}" is forbidden: {why}', details=details)


def _name_in(call: Call) -> str:
    from plimsoll.local.apiserver.handlers.bodies import read_object  # noqa: PLC0415 - only for this sentence

    metadata = read_object(call.request, kind=call.resource.kind).value.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return name if isinstance(name, str) else ""


def _is_terminating(resource: ServedResource) -> bool:
    assert resource.definition is not None
    return bool(resource.definition["metadata"].get("deletionTimestamp"))


# ---- serving


def _serve(server: Server, definition: Json) -> None:
    """Put the versions of an established definition into the catalogue; take those of any other out."""
    name = definition["metadata"]["name"]
    conditions = (definition.get("status") or {}).get("conditions") or []
    established = any(one["type"] == "Established" and one["status"] == "True" for one in conditions)
    resources = _served_versions(definition) if established else []
    server.catalogue.serve(name, resources)
    if resources:
        fields = {path: absent for one in resources for path, absent in selectable(one).items()}
        server.store.select_fields(resources[0].stored_as, reader(fields.items()))


def _served_versions(definition: Json) -> list[ServedResource]:
    spec, names = definition["spec"], definition["status"]["acceptedNames"]
    compiled = compile_definition(definition)
    storage = next(version["name"] for version in spec["versions"] if version.get("storage"))
    served = [version for version in spec["versions"] if version.get("served")]
    served.sort(key=lambda version: priority(version["name"]), reverse=True)
    return [
        ServedResource(
            group=spec["group"],
            version=version["name"],
            kind=names["kind"],
            plural=names["plural"],
            singular=names.get("singular", ""),
            namespaced=spec["scope"] == "Namespaced",
            stored_as=f"{spec['group']}/{names['plural']}",
            storage_version=f"{spec['group']}/{storage}",
            list_kind=names.get("listKind") or f"{names['kind']}List",
            verbs=ALL_VERBS,
            short_names=tuple(names.get("shortNames") or ()),
            categories=tuple(names.get("categories") or ()),
            subresources=_subresources(version, names["kind"]),
            definition=definition,
            compiled=compiled,
        )
        for version in served
    ]


def _subresources(version: Json, kind: str) -> tuple[Subresource, ...]:
    declared = version.get("subresources") or {}
    parts = []
    verbs = ("get", "patch", "update")
    if declared.get("status") is not None:
        parts.append(Subresource(name="status", verbs=verbs, kind=kind))
    if declared.get("scale") is not None:
        parts.append(Subresource(name="scale", verbs=verbs, kind="Scale", group="autoscaling", version="v1"))
    return tuple(parts)


# ---- writing


async def _write_status(server: Server, name: str, status_of: Callable[[Json], Json]) -> Json | None:
    """Give the definition the status that `status_of` makes of its newest state; the definition afterwards."""
    now = server.clock.now()

    def decide(current: Stored | None) -> Decision:
        if current is None:
            return Keep()
        before = current.body()
        status = status_of(before)
        if status == before.get("status"):
            return Keep()
        return Put(_ownership().update(before, {**before, "status": status}, manager=_MANAGER, now=now))

    result = await server.store.update(Key(DEFINITIONS, "", name), decide)
    return None if result is None else result.body()


def _ownership() -> FieldManagement:
    schema = TypeSchema.of_builtin(_API_VERSION, _KIND)
    assert schema is not None
    reset = reset_fields(_KIND, "status", has_status=True)
    return FieldManagement(
        {_API_VERSION: schema}, api_version=_API_VERSION, kind=_KIND, subresource="status", reset=reset
    )


# ---- ending


async def _finish(server: Server, name: str, body: Json) -> None:
    """Delete the objects of a definition that is being deleted; without any left, let the definition go."""
    if CLEANUP not in (body["metadata"].get("finalizers") or []):
        return
    in_progress = {
        "type": TERMINATING,
        "status": "True",
        "lastTransitionTime": written_time(server.clock.now()),
        "reason": "InstanceDeletionInProgress",
        "message": "CustomResource deletion is in progress",
    }
    await _write_status(server, name, lambda current: with_condition(current.get("status") or {}, in_progress))
    stored_as = f"{body['spec']['group']}/{body['spec']['names']['plural']}"
    resource = next((one for one in server.catalogue if one.stored_as == stored_as), None)
    if resource is not None:
        await _delete_all(server, resource)
    if server.store.count(stored_as):
        return

    def decide(current: Stored | None) -> Decision:
        if current is None:
            return Keep()
        definition = current.body()
        left = [one for one in definition["metadata"].get("finalizers") or [] if one != CLEANUP]
        if not left:
            return Delete()
        return Put({**definition, "metadata": {**definition["metadata"], "finalizers": left}})

    await server.store.update(Key(DEFINITIONS, "", name), decide)
    if server.store.get(Key(DEFINITIONS, "", name)) is None:
        server.catalogue.serve(name, ())


async def _delete_all(server: Server, resource: ServedResource) -> None:
    start = ""
    while True:
        page = server.store.list(resource.stored_as, ListQuery(start=start, limit=_DELETED_AT_ONCE))
        for one in page.items:
            route = ResourceRoute(resource, one.namespace, one.name, "", "delete")
            call = Call(
                _OWN_REQUEST,
                route,
                _ITSELF,
                dry_run=False,
                field_manager=_MANAGER,
                field_validation="Warn",
                warnings=[],
            )
            if not one.body()["metadata"].get("deletionTimestamp"):
                await delete_object(server, call, {})
        if page.next is None:
            return
        start = page.next
