"""Deletion of one object: at once, gracefully, or as soon as its finalizers are gone.

What a deletion leaves to others (dependents, a namespace's content, a kubelet's work) is marked here with a finalizer
or a deletionTimestamp, as in kube-apiserver; controllers finish it.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from plimsoll.core.durations import LATEST, add_seconds
from plimsoll.core.errors import PlimsollError
from plimsoll.local.apiserver import status_errors
from plimsoll.local.apiserver.admission import AdmissionAttributes
from plimsoll.local.apiserver.registry.guaranteed_update import present_stored
from plimsoll.local.apiserver.registry.identity import build_key
from plimsoll.local.apiserver.request.options import DeleteOptions, read_delete_options
from plimsoll.local.apiserver.storage import Decision, Delete, Keep, Put, Stored
from plimsoll.local.apiserver.strategies import crd_deletion
from plimsoll.local.apiserver.strategies.lookup import find_strategy
from plimsoll.objects.api.meta import format_time

if TYPE_CHECKING:
    from plimsoll.local.apiserver.request.context import RequestContext
    from plimsoll.local.apiserver.server import Server


Json = dict[str, Any]

_ORPHAN: Final = "orphan"
_FOREGROUND: Final = "foregroundDeletion"
_DEFAULT_GRACE_S: Final = 30
# Resources whose deletion returns the object instead of a Status.
_RETURNED: Final = frozenset(
    {
        "pods",
        "services",
        "persistentvolumes",
        "persistentvolumeclaims",
        "podtemplates",
        "resourcequotas",
        "serviceaccounts",
    }
)


class _Moved(PlimsollError):
    """Another writer changed the object in between."""


class _Old(NamedTuple):
    """The object to delete, as it is stored and in the version of the request."""

    stored: Stored
    shown: Json


class _Plan(NamedTuple):
    """The result of a deletion: the new state of the object, and whether it is removed from the store."""

    marked: Json
    vanishes: bool


async def delete_object(server: Server, call: RequestContext, options: Json) -> tuple[Json, int]:
    """Delete the object by its DeleteOptions; returns the body and the status code of the response."""
    wanted = read_delete_options(options, dry_run=call.dry_run)
    async with server.locks.hold(build_key(call)):
        return await _delete(server, call, wanted)


async def _delete(server: Server, call: RequestContext, wanted: DeleteOptions) -> tuple[Json, int]:
    """Repeat until no other writer was faster; `_check_preconditions` rejects a client that named an old state."""
    strategy = find_strategy(call.resource)
    while (stored := server.store.get(build_key(call))) is not None:
        old = await present_stored(server, strategy, stored)
        _check_preconditions(call, wanted, old)
        attempt = _build_attributes(call, old, dry_run=wanted.dry_run)
        await server.admission.mutate(attempt)
        await server.admission.validate(attempt)
        plan = plan_deletion(old, wanted, now=server.clock.now())
        try:
            obj = old if wanted.dry_run else await _apply_plan(server, call, plan, old=_Old(stored, old))
        except _Moved:
            continue
        if not plan.vanishes:
            is_cascading = wanted.orphan_dependents is False
            return (plan.marked if wanted.dry_run else obj), 202 if is_cascading else 200
        if call.resource.stored_as in _RETURNED:
            return plan.marked, 200
        return _build_success(call, old), 200
    raise status_errors.not_found(call.name, group=call.resource.group, resource=call.resource.plural)


async def _apply_plan(server: Server, call: RequestContext, plan: _Plan, *, old: _Old) -> Json:
    """The object after the write; the old object if it was removed."""
    strategy = find_strategy(call.resource)
    stored = old.stored
    body = strategy.to_storage(plan.marked)
    is_marked = plan.marked == old.shown if strategy.is_stored_as_presented else body == stored.decode_body()

    def decide(found: Stored | None) -> Decision:
        if plan.vanishes:
            return _decide_if_unchanged(found, stored, Delete())
        return _decide_if_unchanged(found, stored, Keep() if is_marked else Put(body))

    if plan.vanishes and not is_marked:
        # A pod without grace period is marked first, as in kube-apiserver: watchers see it terminating, then deleted.
        marked = await server.store.update(
            build_key(call), lambda found: _decide_if_unchanged(found, stored, Put(body))
        )
        assert marked is not None
        stored = marked
    result = await server.store.update(build_key(call), decide)
    assert result is not None
    if plan.vanishes or is_marked:
        return old.shown
    return await present_stored(server, strategy, result)


def _decide_if_unchanged(found: Stored | None, stored: Stored, decision: Decision) -> Decision:
    if found is None or found.revision != stored.revision:
        raise _Moved
    return decision


def _build_attributes(call: RequestContext, old: Json, *, dry_run: bool) -> AdmissionAttributes:
    return AdmissionAttributes(
        operation="DELETE",
        resource=call.resource,
        user=call.user,
        namespace=call.namespace,
        name=call.name,
        old=old,
        dry_run=dry_run,
    )


def _check_preconditions(call: RequestContext, wanted: DeleteOptions, old: Json) -> None:
    uid, revision = old["metadata"]["uid"], old["metadata"]["resourceVersion"]
    if wanted.uid and wanted.uid != uid:
        why = (
            f"the UID in the precondition ({wanted.uid}) does not match the UID in record ({uid}). "
            "The object might have been deleted and then recreated"
        )
    elif wanted.resource_version and wanted.resource_version != revision:
        why = (
            f"the ResourceVersion in the precondition ({wanted.resource_version}) does not match the ResourceVersion "
            f"in record ({revision}). The object might have been modified"
        )
    else:
        return
    raise status_errors.conflict(call.name, group=call.resource.group, resource=call.resource.kind, why=why)


def plan_deletion(old: Json, wanted: DeleteOptions, *, now: datetime) -> _Plan:
    """The effect of a deletion at this time (pure)."""
    kind = old.get("kind")
    if (old.get("apiVersion"), kind) == ("v1", "Namespace"):
        return _plan_namespace(old, now=now)
    if crd_deletion.is_definition(old):
        return _Plan(crd_deletion.mark(old, now=now), vanishes=False)
    finalizers = _choose_finalizers(old["metadata"].get("finalizers") or [], wanted)
    if (old.get("apiVersion"), kind) == ("v1", "Pod"):
        marked = _mark_deleted(old, _compute_pod_grace_s(old, wanted.grace_period_s), now=now)
    else:
        marked = _mark_deleted(old, 0, now=now) if finalizers else old
    marked = _set_finalizers(marked, finalizers)
    vanishes = not finalizers and not marked["metadata"].get("deletionGracePeriodSeconds")
    return _Plan(marked, vanishes)


def _compute_pod_grace_s(pod: Json, requested: int | None) -> int:
    spec, status = pod.get("spec", {}), pod.get("status", {})
    grace = requested if requested is not None else spec.get("terminationGracePeriodSeconds", _DEFAULT_GRACE_S)
    if not spec.get("nodeName") or status.get("phase") in {"Succeeded", "Failed"}:
        return 0
    return 1 if grace < 0 else int(grace)


def _mark_deleted(old: Json, grace_s: int, *, now: datetime) -> Json:
    """Mark for deletion. A second deletion can shorten the grace period, never extend it."""
    metadata = dict(old["metadata"])
    if metadata.get("deletionTimestamp"):
        before_s = metadata.get("deletionGracePeriodSeconds", 0)
        if grace_s >= before_s:
            return old
        began = _compute_start(metadata, before_s, now=now)
        metadata["deletionTimestamp"] = format_time(add_seconds(began, grace_s))
    else:
        metadata["deletionTimestamp"] = format_time(add_seconds(now, grace_s))
        if metadata.get("generation"):
            metadata["generation"] += 1
    metadata["deletionGracePeriodSeconds"] = grace_s
    return {**old, "metadata": metadata}


def _compute_start(metadata: Json, grace_s: int, *, now: datetime) -> datetime:
    """When the deletion was asked for; now, if the end of its grace period was beyond the end of time."""
    ends = datetime.fromisoformat(metadata["deletionTimestamp"])
    return now if ends.year == LATEST.year else add_seconds(ends, -grace_s)


def _set_finalizers(obj: Json, finalizers: list[str]) -> Json:
    if finalizers == (obj["metadata"].get("finalizers") or []):
        return obj
    metadata = {name: value for name, value in obj["metadata"].items() if name != "finalizers"}
    if finalizers:
        metadata["finalizers"] = finalizers
    return {**obj, "metadata": metadata}


def _choose_finalizers(present: list[str], wanted: DeleteOptions) -> list[str]:
    """The finalizers with those of the garbage collector as the propagation policy asks for them."""
    policy = wanted.propagation
    if wanted.orphan_dependents is not None:
        policy = "Orphan" if wanted.orphan_dependents else "Background"
    if not policy:
        return present
    others = [name for name in present if name not in {_ORPHAN, _FOREGROUND}]
    own = {"Orphan": [_ORPHAN], "Foreground": [_FOREGROUND]}.get(policy, [])
    return present if own and own[0] in present and len(present) == len(others) + 1 else [*others, *own]


def _plan_namespace(old: Json, *, now: datetime) -> _Plan:
    metadata = dict(old["metadata"])
    if not metadata.get("deletionTimestamp"):
        metadata["deletionTimestamp"] = format_time(now)
    marked = {**old, "metadata": metadata, "status": {**old.get("status", {}), "phase": "Terminating"}}
    held = old.get("spec", {}).get("finalizers") or metadata.get("finalizers")
    return _Plan(marked, vanishes=not held)


def _build_success(call: RequestContext, old: Json) -> Json:
    details = status_errors.build_details(
        call.name, group=call.resource.group, kind=call.resource.plural, uid=old["metadata"]["uid"]
    )
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
