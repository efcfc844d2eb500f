"""The guarded read-modify-write behind PUT, PATCH, apply, scale, binding and finalize; and creation.

The steps have kube-apiserver's order: managedFields, mutating admission, the strategy's preparation, validation,
validating admission, and the write on condition that no other writer was faster. A change without effect is not
written.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from plimsoll.core.errors import PlimsollError
from plimsoll.local.apiserver import authorization, status_errors
from plimsoll.local.apiserver.admission import AdmissionAttributes
from plimsoll.local.apiserver.apply.field_manager import restore_unchanged_times
from plimsoll.local.apiserver.long_work import check_size
from plimsoll.local.apiserver.registry.identity import build_key, check_identity, check_revision, set_namespace
from plimsoll.local.apiserver.registry.parent_checks import create_in_parents
from plimsoll.local.apiserver.routing import read_attributes
from plimsoll.local.apiserver.storage import Decision, Delete, Key, Put, Stored
from plimsoll.local.apiserver.storage.objects import decode_json
from plimsoll.local.apiserver.strategies.interface import Undecodable
from plimsoll.local.apiserver.strategies.lookup import find_strategy
from plimsoll.objects.api.meta import format_time
from plimsoll.objects.schema.json_values import copy, is_same

if TYPE_CHECKING:
    from plimsoll.local.apiserver.request.context import RequestContext
    from plimsoll.local.apiserver.server import Server
    from plimsoll.local.apiserver.strategies.interface import Strategy, ValidationResult


Json = dict[str, Any]
Change = Callable[[Json], Json]

_encoder: Final = msgspec.json.Encoder()

# How many generated names are tried before the request fails.
_NAMES_TRIED: Final = 8
# Written by the server itself, so without a field manager; scale tracks its managers itself.
_UNTRACKED: Final = frozenset({"binding", "eviction", "scale"})


class _Moved(PlimsollError):
    """The object is not what it was when the change was made; never leaves this module."""


class _Current(NamedTuple):
    """The object that is to be changed, and as it is shown in the version of the request."""

    stored: Stored
    shown: Json
    size_bytes: int
    """The size of the work on it: of the object and of the request."""


async def change_object(
    server: Server, call: RequestContext, change: Change, *, subresource: str = "", is_tracked: bool = True
) -> Json:
    """Let `change` make the new object from the current one; returns what is stored now (or would be, on a dry run).

    `change` does not modify the object it receives and shares unchanged parts with it. It is called again whenever
    another writer was faster, and may raise a `StatusError`. A missing object is a 404. Preparation, defaulting,
    admission, validation, managedFields and generation follow; `is_tracked` is false where `change` has set
    managedFields itself (apply).
    """
    async with server.locks.hold(build_key(call)):
        changed = await _change_if_present(server, call, change, subresource=subresource, is_tracked=is_tracked)
    if changed is None:
        raise status_errors.not_found(call.name, group=call.resource.group, resource=call.resource.plural)
    return changed


async def change_or_create_object(
    server: Server, call: RequestContext, change: Change, make: Callable[[], Json], *, is_tracked: bool = True
) -> tuple[Json, int]:
    """`change_object` if the object exists, else `create_object` of what `make` returns; with the HTTP status.

    If another writer creates or deletes the object in between, it tries again.
    """
    async with server.locks.hold(build_key(call)):
        while True:
            changed = await _change_if_present(server, call, change, subresource="", is_tracked=is_tracked)
            if changed is not None:
                return changed, 200
            own = partial(_create_missing, server, call, make, is_tracked=is_tracked)
            made = await _create(server, call, await server.long_work.run(call.work_bytes, own))
            if made is not None:
                return made, 201


async def _change_if_present(
    server: Server, call: RequestContext, change: Change, *, subresource: str, is_tracked: bool
) -> Json | None:
    """Repeat until no other writer was faster; `check_revision` rejects a client that named an old version."""
    strategy = find_strategy(call.resource)
    while (stored := server.store.get(build_key(call))) is not None:
        size_bytes = call.work_bytes + len(stored.data)
        shown = await present_stored(server, strategy, stored)
        current = _Current(stored, shown, size_bytes)
        propose = partial(_propose, server, call, change, shown, subresource=subresource, is_tracked=is_tracked)
        new = await server.long_work.run(size_bytes, propose)
        try:
            return await _change(server, call, strategy, current=current, new=new, subresource=subresource)
        except _Moved:
            continue
    return None


def _propose(
    server: Server, call: RequestContext, change: Change, shown: Json, *, subresource: str, is_tracked: bool
) -> Json:
    """What `change` makes of the object, with managedFields. Reads nothing but its arguments and the clock."""
    strategy = find_strategy(call.resource)
    new = _share_unchanged(change(shown), shown)
    check_size(new, call.work_bytes)
    set_namespace(new, call)
    check_identity(new, call)
    check_revision(new, shown, call, allows_unconditional=strategy.allows_unconditional_update)
    if is_tracked and subresource not in _UNTRACKED:
        ownership = strategy.get_field_manager(subresource)
        new = ownership.update(shown, new, manager=call.field_manager, now=server.clock.now())
    return new


def _share_unchanged(new: Json, old: Json) -> Json:
    """The new object with the old one's own fields where they are the same: from here on, comparing them is free."""
    shared = {name: old[name] if name in old and is_same(item, old[name]) else item for name, item in new.items()}
    if isinstance(shared.get("metadata"), dict):
        shared["metadata"] = dict(shared["metadata"])
    return shared


async def _change(
    server: Server, call: RequestContext, strategy: Strategy, *, current: _Current, new: Json, subresource: str
) -> Json:
    old, long_work, size_bytes = current.shown, server.long_work, current.size_bytes
    # Admission changes whole objects in place, and never what is written through a subresource.
    given = new if subresource else await long_work.run(size_bytes, partial(copy, new))
    attempt = _build_attributes(call, "UPDATE", name=call.name, obj=given, old=old, subresource=subresource)
    admitted = await server.admission.mutate(attempt)
    prepare = partial(_prepare, strategy, new, admitted, old=old, subresource=subresource)
    requested = await long_work.run(size_bytes, prepare)
    allocated = strategy.allocate(requested, old, server.store)
    judge = partial(_validate_update, call, strategy, allocated, old=old, subresource=subresource)
    new, is_changed = await long_work.run(size_bytes, judge)
    if not is_changed and not is_ready_for_removal(new):
        return old
    attempt = _build_attributes(call, "UPDATE", name=call.name, obj=new, old=old, subresource=subresource)
    await server.admission.validate(attempt)
    if call.dry_run:
        return new

    def decide(found: Stored | None) -> Decision:
        nonlocal new
        if found is None or found.revision != current.stored.revision:
            raise _Moved
        if is_ready_for_removal(new):
            return Delete()
        new = strategy.reallocate(new, old, server.store, requested=requested)
        return Put(strategy.to_storage(new))

    result = await _write(server, server.store.update(build_key(call), decide), attempt=attempt)
    return _show(server, strategy, new, result)


def _prepare(strategy: Strategy, before: Json, admitted: Json, *, old: Json, subresource: str) -> Json:
    return strategy.prepare_update(_redecode(strategy, before, admitted), old, subresource=subresource)


def _validate_update(
    call: RequestContext, strategy: Strategy, new: Json, *, old: Json, subresource: str
) -> tuple[Json, bool]:
    """The valid object, and whether it differs from the old one. Raises the 422 of an invalid one."""
    _require_valid(call, strategy.validate_update(new, old, subresource=subresource), new)
    new = restore_unchanged_times(old, new)
    new["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
    return new, not is_same(new, old)


async def create_object(server: Server, call: RequestContext, value: Json) -> Json:
    """Create the decoded `value`, which is used up; returns what is stored (or would be, on a dry run)."""
    own = partial(_track_new_fields, server, call, value, is_tracked=True)
    value = await server.long_work.run(call.work_bytes, own)
    generates = not value["metadata"].get("name") and bool(value["metadata"].get("generateName"))
    if not generates:
        made = await _create(server, call, value)
        if made is None:
            raise _exists(server, call, value, generated=False)
        return made
    prefix = value["metadata"]["generateName"][:_LONGEST_PREFIX]
    # As text: what is tried is used up, and hardly ever is a name taken.
    spare = _encoder.encode(value)
    for attempt in range(_NAMES_TRIED):
        name = prefix + server.entropy.generate_suffix()
        made = await _create(server, call, msgspec.json.decode(spare) if attempt else value, generated=name)
        if made is not None:
            return made
    named = {"metadata": {"name": name}}
    raise _exists(server, call, named, generated=True)


# A generated name is at most 63 characters, five of them the suffix.
_LONGEST_PREFIX: Final = 58


def _create_missing(server: Server, call: RequestContext, make: Callable[[], Json], *, is_tracked: bool) -> Json:
    return _track_new_fields(server, call, make(), is_tracked=is_tracked)


def _track_new_fields(server: Server, call: RequestContext, value: Json, *, is_tracked: bool) -> Json:
    check_size(value, call.work_bytes)
    value = _assign_identity(server, call, value)
    if not is_tracked:
        return value
    ownership = find_strategy(call.resource).get_field_manager("")
    return ownership.update(None, value, manager=call.field_manager, now=server.clock.now())


def _assign_identity(server: Server, call: RequestContext, value: Json) -> Json:
    metadata = dict(value.get("metadata") or {})
    metadata["uid"] = server.entropy.generate_uid()
    metadata["creationTimestamp"] = format_time(server.clock.now())
    for name in ("selfLink", "deletionTimestamp", "deletionGracePeriodSeconds"):
        metadata.pop(name, None)
    made = {**value, "metadata": metadata}
    set_namespace(made, call)
    return made


async def _create(server: Server, call: RequestContext, obj: Json, *, generated: str = "") -> Json | None:
    """The object as it is stored now; None if its name is taken.

    A `generated` name is set after mutating admission, whose errors name the object by its prefix.
    """
    strategy = find_strategy(call.resource)
    attempt = _build_attributes(call, "CREATE", name=obj["metadata"].get("name") or "", obj=obj)
    obj = await server.admission.mutate(attempt)
    if generated:
        obj["metadata"]["name"] = generated
    name = obj["metadata"].get("name") or ""
    obj, judgement = await server.long_work.run(call.work_bytes, partial(_prepare_new, strategy, obj))
    requested = obj
    if not judgement.errors:
        obj = strategy.allocate(obj, None, server.store)
    _require_valid(call, judgement, obj)
    _check_may_create(server, call)
    attempt = _build_attributes(call, "CREATE", name=name, obj=obj)
    await server.admission.validate(attempt)
    if obj["metadata"].get("resourceVersion"):
        server.admission.release(attempt)
        raise status_errors.unexpected("resourceVersion should not be set on objects to be created")
    key = Key(call.resource.stored_as, _get_namespace(call), name)
    if call.dry_run:
        return obj if server.store.get(key) is None else None

    def decide(found: Stored | None) -> Decision:
        nonlocal obj
        if found is not None:
            raise _Moved
        obj = strategy.reallocate(obj, None, server.store, requested=requested)
        return Put(strategy.to_storage(obj))

    try:
        result = await _write(server, create_in_parents(server, key, decide, attempt=attempt), attempt=attempt)
    except _Moved:
        return None
    return _show(server, strategy, obj, result)


def _prepare_new(strategy: Strategy, obj: Json) -> tuple[Json, ValidationResult]:
    prepared = strategy.prepare_create(obj)
    return prepared, strategy.validate_create(prepared)


def _check_may_create(server: Server, call: RequestContext) -> None:
    """A creation by PUT or apply was authorised for `update` or `patch` so far, and needs `create` as well."""
    if call.verb == "create":
        return
    attributes = read_attributes(call.user, call.request)
    requested = msgspec.structs.replace(attributes, verb="create")
    decision = server.authorizer.decide(requested)
    if not decision.allowed:
        raise authorization.forbidden(requested, decision)


async def _write(server: Server, writing: Awaitable[Stored | None], *, attempt: AdmissionAttributes) -> Stored:
    """Do the write. If it fails, release what admission has charged for it."""
    done = False
    try:
        result = await writing
        done = True
    finally:
        if not done:
            server.admission.release(attempt)
    assert result is not None, "a decision to put or delete an object that is there leaves one"
    return result


def is_ready_for_removal(obj: Json) -> bool:
    """Whether an object that is being deleted waits for nothing any more."""
    metadata = obj["metadata"]
    if not metadata.get("deletionTimestamp") or metadata.get("finalizers"):
        return False
    if obj.get("kind") == "Namespace" and obj.get("apiVersion") == "v1":
        return not obj.get("spec", {}).get("finalizers")
    return not metadata.get("deletionGracePeriodSeconds")


def _get_namespace(call: RequestContext) -> str:
    return call.namespace if call.resource.namespaced else ""


def _build_attributes(
    call: RequestContext,
    operation: Any,
    *,
    name: str,
    obj: Json | None = None,
    old: Json | None = None,
    subresource: str = "",
) -> AdmissionAttributes:
    return AdmissionAttributes(
        operation=operation,
        resource=call.resource,
        user=call.user,
        subresource=subresource,
        namespace=call.namespace,
        name=name,
        obj=obj,
        old=old,
        dry_run=call.dry_run,
    )


def _redecode(strategy: Strategy, before: Json, after: Json) -> Json:
    """Apply defaults to what admission added."""
    if is_same(before, after):
        return before
    decoded = strategy.decode(after)
    return after if isinstance(decoded, Undecodable) else decoded.value


def _require_valid(call: RequestContext, judgement: ValidationResult, obj: Json) -> None:
    if judgement.errors:
        resource = call.resource
        # Events are validated by the core group whatever the request's group is.
        group = "" if resource.stored_as == "events" else resource.group
        name = obj["metadata"].get("name") or ""
        raise status_errors.invalid(name, group=group, kind=obj.get("kind") or resource.kind, errors=judgement.errors)
    call.warnings.extend(judgement.warnings)


def _show(server: Server, strategy: Strategy, obj: Json, result: Stored) -> Json:
    """The object with the revision of its write: the stored dict itself, if that is the form of the response."""
    if strategy.is_stored_as_presented and not is_ready_for_removal(obj):
        return server.store.get_shared_body(result)
    return {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(result.revision)}}


def _exists(server: Server, call: RequestContext, obj: Json, *, generated: bool) -> status_errors.StatusError:
    name = obj["metadata"].get("name") or ""
    refusal = status_errors.already_exists(name, group=call.resource.group, resource=call.resource.plural)
    found = server.store.get(Key(call.resource.stored_as, _get_namespace(call), name))
    if generated:
        refusal.status["message"] += ", the server was not able to generate a unique name for the object"
    elif found is not None and found.decode_body()["metadata"].get("deletionTimestamp"):
        refusal.status["message"] = f"object is being deleted: {refusal.status['message']}"
    return refusal


async def present_stored(server: Server, strategy: Strategy, stored: Stored) -> Json:
    """A stored object in the version of the request. Read-only: readers may share one dict."""
    if strategy.is_stored_as_presented:
        return server.store.get_shared_body(stored)
    size_bytes = len(stored.data) + strategy.resource.schema_bytes
    return await server.long_work.run(size_bytes, lambda: decode_json(server.presented.encode(strategy, stored)))
