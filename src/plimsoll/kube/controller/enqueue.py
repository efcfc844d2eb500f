"""Adds keys to controllers when objects change.

    enqueue_on(pods, controller, build_owner_keys(KAFKA))

A `Keys` function returns the keys that a change concerns. It reads the state before and after, because an object that
changed its owner concerns both owners.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from plimsoll.kube.informer.events import Added, BecameUnreadable, Deleted, Key, Updated, get_view
from plimsoll.objects.codec.decoding import RawObject
from plimsoll.objects.owners import find_controller

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

    from plimsoll.kube.controller.controller import Controller
    from plimsoll.kube.informer import Informer
    from plimsoll.kube.informer.events import Change
    from plimsoll.objects.api.meta import OwnerReference, WireObject
    from plimsoll.objects.api.resource import Resource

    Keys = Callable[[Change[Any]], Iterable["H"]]

H = TypeVar("H", bound="Hashable")


def enqueue_on(informer: Informer[Any], controller: Controller[H], keys: Keys[H]) -> None:
    """Have `controller` look at `keys` of every change, and start only when the informer is in sync."""

    def enqueue(change: Change[Any]) -> None:
        for key in keys(change):
            controller.queue.add(key)

    controller.add_source(informer)
    informer.add_handler(enqueue, name=controller.name)


def get_own_key(change: Change[Any]) -> Iterable[Key]:
    """The object's own key, also for an object that cannot be decoded: it exists and must be reconciled."""
    return (change.key,)


def build_owner_keys(resource: Resource) -> Keys[Key]:
    """The keys of the objects of kind `resource` that manage the changed one. Any version of the kind will do."""

    def find_keys(change: Change[Any]) -> Iterable[Key]:
        names: dict[str, None] = {}
        for view in list_states(change):
            owner = find_controller(view.metadata)
            if owner is not None and _is_of(owner, resource):
                names[owner.name] = None
        if not names:
            return ()
        namespace = change.key.namespace if resource.namespaced else ""
        return [Key(namespace, name) for name in names]

    return find_keys


def list_states(change: Change[Any]) -> list[WireObject]:
    """The readable states in a change, the older first."""
    # Runs for every event and controller, so it compares types: see `informer.events`.
    if type(change) is Updated:
        old, new = change.old, change.new
        # Both are with their bytes, or neither is.
        return [old.view, new.view] if type(new) is RawObject else [old, new]
    if type(change) is Added:
        return [get_view(change.new)]
    if type(change) is Deleted or type(change) is BecameUnreadable:
        return [get_view(change.last)] if change.last is not None else []
    return []


def _is_of(owner: OwnerReference, resource: Resource) -> bool:
    return owner.kind == resource.kind and owner.api_version.rpartition("/")[0] == resource.group
