"""Controller references: a controller adopts orphans that its selector matches and releases what no longer matches.

An object has at most one controller; it is never taken from another.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from enum import StrEnum
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from plimsoll.core.errors import InvalidInput
from plimsoll.kube.controlled_objects.pod_control import build_controller_reference
from plimsoll.kube.errors import Conflict, Invalid, NotFound
from plimsoll.objects.owners import find_controller

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.core.selectors import LabelSelector
    from plimsoll.kube.client import Client
    from plimsoll.kube.informer import Informer
    from plimsoll.kube.informer.events import V
    from plimsoll.objects.api.meta import ObjectMeta, WireObject
    from plimsoll.objects.api.resource import Resource

_BY_CONTROLLER: Final = "workloads/by-controller"
_AGE: Final = attrgetter("metadata.creation_timestamp", "metadata.name")
_LONG_AGO: Final = datetime.fromtimestamp(0, UTC)


class _Orphans(NamedTuple):
    """The index key of objects without a controller."""

    namespace: str


class ObjectClaim(StrEnum):
    """What an object is to an owner, and what has to be done about it."""

    OURS = "ours"
    ADOPT = "adopt"
    RELEASE = "release"
    NOT_OURS = "not ours"


def classify_claim(candidate: ObjectMeta, owner: ObjectMeta, *, matches: bool) -> ObjectClaim:
    """How `owner` stands to an object its selector matches or not. One that is being deleted changes nothing."""
    controller = find_controller(candidate)
    if controller is not None:
        if controller.uid != owner.uid:
            return ObjectClaim.NOT_OURS
        if matches:
            return ObjectClaim.OURS
        return ObjectClaim.NOT_OURS if owner.deletion_timestamp is not None else ObjectClaim.RELEASE
    if not matches or owner.deletion_timestamp is not None or candidate.deletion_timestamp is not None:
        return ObjectClaim.NOT_OURS
    return ObjectClaim.ADOPT


def index_by_controller(informer: Informer[Any]) -> None:
    """Let `list_candidates` find objects; every controller that looks for them asks for it, the first one adds it."""
    with suppress(InvalidInput):
        informer.add_index(_BY_CONTROLLER, _index_controller_or_namespace)


def list_candidates(informer: Informer[V], owner: ObjectMeta) -> list[V]:
    """What `owner` manages, and the orphans of its namespace, the oldest first."""
    return sort_oldest_first(list_candidates_in_any_order(informer, owner))


def list_candidates_in_any_order(informer: Informer[V], owner: ObjectMeta) -> list[V]:
    """The same without sorting, for callers that first check for changes: unchanged candidates have a stable order."""
    cache = informer.cache
    return [
        *cache.list_by_index(_BY_CONTROLLER, owner.uid),
        *cache.list_by_index(_BY_CONTROLLER, _Orphans(owner.namespace)),
    ]


def list_managed_by(informer: Informer[V], uid: str) -> list[V]:
    """What the owner with this uid manages, the oldest first."""
    return sort_oldest_first(informer.cache.list_by_index(_BY_CONTROLLER, uid))


class ControllerRefManager:
    """Carries claims out, for owners of the kind `owners` on objects of the kind `of`."""

    def __init__(self, client: Client, of: type[WireObject], owners: Resource) -> None:
        self._client = client
        self._of = of
        self._owners = owners

    async def claim(self, owner: ObjectMeta, selector: LabelSelector, found: Iterable[V]) -> list[V]:
        """Those of `found` that are the owner's after taking over and letting go."""
        ours: list[V] = []
        uid = owner.uid
        may_adopt: bool | None = None
        labels, matches = None, False
        for item in found:
            metadata = item.metadata
            if metadata.labels != labels:
                # Pods of one template have the same labels: one look is enough for all of them.
                labels, matches = metadata.labels, selector.matches(metadata.labels)
            if matches:
                match metadata.owner_references:
                    case (reference,) if reference.controller and reference.uid == uid:
                        # So are nearly all of them, in every turn: `classify_claim` would say the same.
                        ours.append(item)
                        continue
            match classify_claim(metadata, owner, matches=matches):
                case ObjectClaim.OURS:
                    ours.append(item)
                case ObjectClaim.RELEASE:
                    await self._release(metadata, owner)
                case ObjectClaim.ADOPT:
                    if may_adopt is None:
                        may_adopt = await self._may_adopt(owner)
                    if may_adopt and await self._adopt(metadata, owner):
                        ours.append(item)
                case ObjectClaim.NOT_OURS:
                    pass
        return ours

    async def _may_adopt(self, owner: ObjectMeta) -> bool:
        """Asked of the server, not of the cache: an owner deleted meanwhile would orphan what it adopts for good."""
        try:
            live: WireObject = await self._client.get(self._owners, owner.name, namespace=owner.namespace)
        except NotFound:
            return False
        return live.metadata.uid == owner.uid and live.metadata.deletion_timestamp is None

    async def _adopt(self, metadata: ObjectMeta, owner: ObjectMeta) -> bool:
        reference = build_controller_reference(self._owners, owner)
        body = {"metadata": {"uid": metadata.uid, "ownerReferences": [reference]}}
        try:
            await self._client.patch_strategic(self._of, metadata.name, body, namespace=metadata.namespace)
        except (NotFound, Conflict, Invalid):
            # Gone, another object of its name, or owned by another controller by now.
            return False
        return True

    async def _release(self, metadata: ObjectMeta, owner: ObjectMeta) -> None:
        gone = {"$patch": "delete", "uid": owner.uid}
        body = {"metadata": {"uid": metadata.uid, "ownerReferences": [gone]}}
        with suppress(NotFound, Conflict, Invalid):
            await self._client.patch_strategic(self._of, metadata.name, body, namespace=metadata.namespace)


def _index_controller_or_namespace(value: Any) -> list[str | _Orphans]:
    metadata = value.metadata
    controller = find_controller(metadata)
    return [_Orphans(metadata.namespace) if controller is None else controller.uid]


def sort_oldest_first(found: Iterable[V]) -> list[V]:
    """Sorted by creation; every reconciliation of a set sorts all its pods, so this avoids calls per pod."""
    values = list(found)
    try:
        return sorted(values, key=_AGE)
    except (AttributeError, TypeError):
        # Objects with their bytes, or one that no server has seen.
        return sorted(values, key=_get_age_key)


def _get_age_key(value: Any) -> tuple[datetime, str]:
    metadata = value.metadata
    return (metadata.creation_timestamp or _LONG_AGO, metadata.name)
