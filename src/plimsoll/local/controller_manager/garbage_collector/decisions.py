"""What the garbage collector does with one object, given the state of its owners. Pure.

An owner is `SOLID` while it stays, `WAITING` when it is being deleted in the foreground and waits for its dependents,
`ABSENT` when there is no such object. An object with a solid owner is kept and loses the references to the others; one
without a solid owner is deleted. An object without owners is not garbage.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

from plimsoll.core.values import Value
from plimsoll.objects.api.meta import OwnerReference

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from plimsoll.objects.api.meta import ObjectMeta

FOREGROUND: Final = "foregroundDeletion"
ORPHAN: Final = "orphan"


class OwnerState(StrEnum):
    """See above. `UNKNOWN`: of a kind that cannot be looked up, so nothing may be concluded."""

    SOLID = "solid"
    WAITING = "waiting"
    ABSENT = "absent"
    UNKNOWN = "unknown"


class KeepObject(Value):
    """Nothing to do."""


class RemoveOwners(Value):
    """Keep the object with these references only."""

    left: tuple[OwnerReference, ...]


class DeleteObject(Value):
    """Delete the object. `unblock`: first release its waiting owners, because it waits for one of them."""

    propagation: str
    unblock: bool = False


class Dependent(Value):
    """What matters of an object that names another as its owner."""

    uid: str
    blocks: bool
    is_waiting: bool


def is_waiting(metadata: ObjectMeta) -> bool:
    """Whether it is being deleted and stays until its dependents are gone."""
    return metadata.deletion_timestamp is not None and FOREGROUND in metadata.finalizers


def is_orphaning(metadata: ObjectMeta) -> bool:
    """Whether it is being deleted and stays until its dependents have forgotten it."""
    return metadata.deletion_timestamp is not None and ORPHAN in metadata.finalizers


def determine_state(owner: ObjectMeta) -> OwnerState:
    return OwnerState.WAITING if is_waiting(owner) else OwnerState.SOLID


def plan(
    item: ObjectMeta, owners: Sequence[OwnerState], dependents: Iterable[Dependent]
) -> KeepObject | RemoveOwners | DeleteObject:
    """`owners` are the states of `item.owner_references`, in their order."""
    if item.deletion_timestamp is not None or not item.owner_references:
        return KeepObject()
    by_state = list(zip(item.owner_references, owners, strict=True))
    if any(state in {OwnerState.SOLID, OwnerState.UNKNOWN} for state in owners):
        left = tuple(owner for owner, state in by_state if state in {OwnerState.SOLID, OwnerState.UNKNOWN})
        is_sure = OwnerState.SOLID in owners
        return RemoveOwners(left=left) if is_sure and len(left) < len(owners) else KeepObject()
    known = list(dependents)
    if OwnerState.WAITING in owners and known:
        return DeleteObject(propagation="Foreground", unblock=any(dependent.is_waiting for dependent in known))
    return DeleteObject(propagation=_find_propagation(item))


def _find_propagation(item: ObjectMeta) -> str:
    if ORPHAN in item.finalizers:
        return "Orphan"
    return "Foreground" if FOREGROUND in item.finalizers else "Background"


def may_finish(dependents: Iterable[Dependent]) -> bool:
    """Whether an object that is deleted in the foreground has nothing left to wait for."""
    return not any(dependent.blocks for dependent in dependents)


def remove_owner(metadata: ObjectMeta, uid: str) -> tuple[OwnerReference, ...]:
    return tuple(owner for owner in metadata.owner_references if owner.uid != uid)


def unblock_owners(metadata: ObjectMeta) -> tuple[OwnerReference, ...]:
    """The same references, none of which holds its owner up."""
    return tuple(
        OwnerReference(
            api_version=owner.api_version, kind=owner.kind, name=owner.name, uid=owner.uid, controller=owner.controller
        )
        for owner in metadata.owner_references
    )
