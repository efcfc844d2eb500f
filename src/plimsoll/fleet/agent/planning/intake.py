"""What a list of the control plane changes here (docs/design/fleet.md 17.1).

The rules protect data. A deleted instance does not come back. Nothing with data is removed because a list lacks it: the
list may be empty, short, or of a restored database. An instance is made only where the last one is gone.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

from plimsoll.core.plans import Reason
from plimsoll.core.values import Value
from plimsoll.fleet.agent.model.instances import ListedKafka  # noqa: TC001 - msgspec reads annotations at run time

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from plimsoll.fleet.agent.model.claims import ClaimsList
    from plimsoll.fleet.agent.model.instances import KafkaList, LocalInstance

LISTS_IN_A_ROW: Final = 3
"""So many lists in a row must lack an instance without data before it is removed: one list may be short or empty."""


class IntakeVerb(StrEnum):
    """What is done with an instance."""

    CREATE = "create"
    UPDATE = "update"
    MARK_DELETED = "mark deleted"
    REMOVE = "remove"


class IntakeAction(Value):
    """An action about one instance. `item` None: it is removed without being in the list."""

    verb: IntakeVerb
    namespace: str
    name: str
    reason: Reason
    item: ListedKafka | None = None
    earlier_placement: str = ""
    """The placement that a removal ends. It does not come back."""


class KeptInstance(Value):
    """An instance about which nothing is changed, though the list differs."""

    namespace: str
    name: str
    reason: Reason


class IntakePlan(Value):
    """Actions, what is kept, and ids of the list that are gone from here."""

    actions: tuple[IntakeAction, ...] = ()
    kept: tuple[KeptInstance, ...] = ()
    gone: tuple[str, ...] = ()
    """Instances that were deleted, by the list or here, and do not exist here: they are reported as Deleted."""


def plan_intake(
    listed: KafkaList, local: Mapping[str, LocalInstance], claims: ClaimsList, *, lists_without: Mapping[str, int]
) -> IntakePlan:
    """`local` by namespace. `lists_without`: how many lists in a row lacked a namespace, with this one."""
    decisions = [_decide_item(item, local.get(item.namespace), claims) for item in listed.items]
    decisions += _decide_missing(listed, local, lists_without)
    unreadable = [
        KeptInstance(
            namespace=item.namespace,
            name=item.id,
            reason=Reason(code="UnreadableItem", message=f"the list has an item that cannot be used: {item.problem}"),
        )
        for item in listed.unreadable
    ]
    return IntakePlan(
        actions=tuple(found for found in decisions if isinstance(found, IntakeAction)),
        kept=(*(found for found in decisions if isinstance(found, KeptInstance)), *unreadable),
        gone=tuple(
            item.id
            for item in listed.items
            if item.namespace not in local and (item.deleted or _was_removed(item, claims))
        ),
    )


def _was_removed(item: ListedKafka, claims: ClaimsList) -> bool:
    """Whether this placement existed here and was removed."""
    claim = claims.claims.get(item.namespace)
    return claim is not None and item.placement_id in claim.earlier


def _decide_item(
    item: ListedKafka, local: LocalInstance | None, claims: ClaimsList
) -> IntakeAction | KeptInstance | None:
    if local is None:
        return _decide_new(item, claims)
    if local.is_unreadable:
        return _keep(item, "UnreadableObject", "the object of the instance cannot be read; it stays as it is")
    if local.is_terminating:
        return _keep(item, "BeingRemoved", "the last placement is being removed") if not item.deleted else None
    if not local.name:
        return _decide_half_made(item, local)
    if (local.id, local.name) != (item.id, item.name):
        message = f"namespace {item.namespace} belongs to {local.name} with id {local.id}; nothing is changed"
        return _keep(item, "NamespaceTaken", message)
    if item.placement_id != local.placement_id:
        return _decide_other_placement(item, local, claims)
    return _decide_same_placement(item, local)


def _decide_new(item: ListedKafka, claims: ClaimsList) -> IntakeAction | KeptInstance | None:
    if item.deleted:
        return None
    if _was_removed(item, claims):
        return _keep(item, "DeletedIsFinal", "the placement was removed here with its data; it does not come back")
    if item.is_paused:
        return _keep(item, "Paused", "the control plane paused it; it is not made")
    return _act(IntakeVerb.CREATE, item, "Placed", "the control plane placed it here")


def _decide_half_made(item: ListedKafka, local: LocalInstance) -> IntakeAction | KeptInstance | None:
    """The namespace is there without its object: an agent ended in between, or a user deleted the object."""
    if local.id != item.id:
        message = f"namespace {item.namespace} is not one of the agent; nothing is made in it"
        return _keep(item, "NamespaceTaken", message)
    if item.deleted:
        return _remove(item.namespace, item.name, "Deleted", "the control plane deletes it", item=item)
    if item.is_paused:
        return _keep(item, "Paused", "the control plane paused it; it is not made")
    return _act(IntakeVerb.CREATE, item, "Placed", "the control plane placed it here")


def _decide_other_placement(
    item: ListedKafka, local: LocalInstance, claims: ClaimsList
) -> IntakeAction | KeptInstance | None:
    if _was_removed(item, claims):
        message = (
            f"the list has placement {item.placement_id}, which was removed here; the list is older than the instance, "
            "which stays"
        )
        return _keep(item, "EarlierPlacement", message)
    if item.is_paused and not item.deleted:
        return _keep(item, "Paused", "the control plane paused it; the last placement stays")
    doubt = _find_doubt(item, local, claims)
    if doubt is not None:
        return doubt
    message = f"the control plane placed it anew: {local.placement_id} goes, then {item.placement_id} is made"
    return IntakeAction(
        verb=IntakeVerb.REMOVE,
        namespace=item.namespace,
        name=item.name,
        reason=Reason(code="PlacedAnew", message=message),
        item=item,
        earlier_placement=local.placement_id,
    )


def _find_doubt(item: ListedKafka, local: LocalInstance, claims: ClaimsList) -> IntakeAction | KeptInstance | None:
    """None: object and claim agree that another placement runs here. One annotation alone removes no data."""
    if local.is_reserved or local.is_rejected:
        return None
    claim = claims.claims.get(item.namespace)
    if claim is not None and claim.units and claim.placement_id == item.placement_id:
        if item.deleted:
            return _act(IntakeVerb.MARK_DELETED, item, "Deleted", "the control plane deletes it")
        message = "its claim is of the placement in the list; the annotation of the object was changed and is set again"
        return _act(IntakeVerb.UPDATE, item, "PlacementRestored", message)
    is_claimed_otherwise = claim is not None and claim.units > 0 and claim.placement_id != local.placement_id
    if local.placement_id and not is_claimed_otherwise and item.namespace not in claims.unreadable:
        return None
    message = f"whether {item.placement_id} or another placement runs here is not known: object and claim disagree"
    return _keep(item, "PlacementUnknown", message)


def _decide_same_placement(item: ListedKafka, local: LocalInstance) -> IntakeAction | KeptInstance | None:
    if local.deleted:
        if item.deleted:
            return None
        return _keep(item, "DeletedIsFinal", "the list no longer has it as deleted; a deleted instance does not return")
    if item.deleted:
        return _act(IntakeVerb.MARK_DELETED, item, "Deleted", "the control plane deletes it")
    if item.is_paused:
        if item.hash == local.hash:
            return None
        return _keep(item, "Paused", "the control plane paused it; its changes wait")
    if item.hash == local.hash:
        return None
    return _act(IntakeVerb.UPDATE, item, "Changed", "the control plane changed it")


def _decide_missing(
    listed: KafkaList, local: Mapping[str, LocalInstance], lists_without: Mapping[str, int]
) -> Iterator[IntakeAction | KeptInstance]:
    """Instances that the list does not have."""
    named = {item.namespace for item in listed.items} | {item.namespace for item in listed.unreadable}
    ids = {item.id for item in listed.items} | {item.id for item in listed.unreadable}
    missing = [
        instance for namespace, instance in sorted(local.items()) if namespace not in named and instance.id not in ids
    ]
    is_doubtful = any(item.is_anonymous for item in listed.unreadable)
    for instance in missing:
        if instance.is_terminating or instance.deleted:
            continue
        if instance.is_unreadable:
            yield _keep_missing(instance, "it is not in the list, and its object cannot be read")
        elif is_doubtful:
            yield _keep_missing(instance, "it is not in the list; an item of the list cannot be assigned")
        elif not instance.is_reserved and not instance.is_rejected:
            yield _keep_missing(instance, "it is not in the list; it was not deleted, so it runs on")
        elif (number := lists_without.get(instance.namespace, 0)) < LISTS_IN_A_ROW:
            message = f"{number} of {LISTS_IN_A_ROW} lists in a row lack it, after which it is removed"
            yield _keep_missing(instance, message)
        elif instance.is_reserved:
            yield _remove(instance.namespace, instance.name, "ReserveFell", "the control plane reserves fewer")
        else:
            yield _remove(instance.namespace, instance.name, "NotPlacedHere", "it was rejected and has no data")


def _act(verb: IntakeVerb, item: ListedKafka, code: str, message: str) -> IntakeAction:
    reason = Reason(code=code, message=message)
    return IntakeAction(verb=verb, namespace=item.namespace, name=item.name, reason=reason, item=item)


def _remove(namespace: str, name: str, code: str, message: str, *, item: ListedKafka | None = None) -> IntakeAction:
    reason = Reason(code=code, message=message)
    return IntakeAction(verb=IntakeVerb.REMOVE, namespace=namespace, name=name, reason=reason, item=item)


def _keep(item: ListedKafka, code: str, message: str) -> KeptInstance:
    return KeptInstance(namespace=item.namespace, name=item.name, reason=Reason(code=code, message=message))


def _keep_missing(instance: LocalInstance, message: str) -> KeptInstance:
    reason = Reason(code="NotInList", message=message)
    return KeptInstance(namespace=instance.namespace, name=instance.name, reason=reason)
