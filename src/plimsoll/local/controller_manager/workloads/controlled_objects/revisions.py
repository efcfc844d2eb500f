"""ControllerRevisions: the numbered history of the templates of a stateful or daemon set.

`Revisions.ensure_current` returns the revision of the current template; it creates one where there is none, or gives an
older one the highest number after a rollback. A revision's name follows from its content, so creating it twice finds
the first.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import msgspec

from plimsoll.core.names import encode_safe_string
from plimsoll.core.values import Value
from plimsoll.kube.controlled_objects.controller_refs import (
    index_by_controller,
    list_managed_by,
)
from plimsoll.kube.controlled_objects.pod_control import build_controller_reference
from plimsoll.kube.errors import AlreadyExists, NotFound
from plimsoll.kube.requests.options import DeleteOptions
from plimsoll.local.controller_manager.workloads.controlled_objects.template_hash import strip_nulls
from plimsoll.objects.api.meta import ObjectMeta  # noqa: TC001 -- msgspec resolves the annotations of Values at run time
from plimsoll.objects.api.workloads import ControllerRevision
from plimsoll.objects.fnv import hash_fnv1_32
from plimsoll.objects.owners import find_controller

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from plimsoll.kube.informer import Informer
    from plimsoll.local.components import Component
    from plimsoll.objects.api.resource import Resource

    HashOf = Callable[[Mapping[str, Any], int], str]
    """Computes a hash from a revision's data and the number of names that were already taken."""

REVISION_LABEL: Final = "controller-revision-hash"
_LONGEST_PREFIX: Final = 223

_canonical = msgspec.json.Encoder(order="sorted")


class CurrentRevision(Value):
    """The revision of the present template, and how many of its names were taken by something else."""

    revision: ControllerRevision
    collisions: int = 0


class Owner(Value):
    """A set as far as its revisions are concerned: `template` as it stands in its bytes."""

    metadata: ObjectMeta
    template: dict[str, Any]
    collisions: int = 0


def build_revision_data(template: Mapping[str, Any]) -> dict[str, Any]:
    """The patch that brings a set back to this template."""
    return {"spec": {"template": {**strip_nulls(template), "$patch": "replace"}}}


def get_template(revision: ControllerRevision) -> dict[str, Any]:
    """The template a revision stands for."""
    template = revision.data["spec"]["template"]
    return {name: value for name, value in template.items() if name != "$patch"}


def compute_data_hash(data: Mapping[str, Any], collisions: int) -> str:
    """As Kubernetes has it, to the letter: FNV-1 over the sorted JSON and the count in decimal digits."""
    return encode_safe_string(str(hash_fnv1_32(_canonical.encode(data) + str(collisions).encode())))


def find_equal_revision(history: Sequence[ControllerRevision], data: Mapping[str, Any]) -> ControllerRevision | None:
    """The newest revision that holds the same; `list_history` has the newest last."""
    return next(
        (controller_revision for controller_revision in reversed(history) if controller_revision.data == data), None
    )


def select_superfluous(
    history: Sequence[ControllerRevision], *, live: Collection[str], limit: int
) -> tuple[ControllerRevision, ...]:
    """The oldest of those that nothing refers to by name, as far as there are more than `limit`."""
    unused = [controller_revision for controller_revision in history if controller_revision.metadata.name not in live]
    return tuple(unused[: max(0, len(unused) - limit)])


class Revisions:
    """Keeps the revisions of sets of one kind. `hash_label` is under which they carry their hash."""

    def __init__(self, component: Component, resource: Resource, *, hash_label: str, hash_of: HashOf) -> None:
        self._client = component.client
        self._resource = resource
        self._hash_label = hash_label
        self._hash_of = hash_of
        self.informer: Informer[ControllerRevision] = component.informers.get_informer(ControllerRevision)
        index_by_controller(self.informer)

    def list_history(self, owner: ObjectMeta) -> list[ControllerRevision]:
        """The newest last."""
        return sorted(
            list_managed_by(self.informer, owner.uid),
            key=lambda controller_revision: (controller_revision.revision, controller_revision.metadata.name),
        )

    async def ensure_current(self, owner: Owner) -> CurrentRevision:
        """The revision of the present template, made or brought to the front where that is needed."""
        history = self.list_history(owner.metadata)
        data = build_revision_data(owner.template)
        number = history[-1].revision + 1 if history else 1
        found = find_equal_revision(history, data)
        if found is None:
            return await self._create(owner, data, number)
        if found.revision != history[-1].revision:
            found = await self._renumber(found, number)
        return CurrentRevision(revision=found, collisions=owner.collisions)

    async def trim(self, owner: ObjectMeta, *, live: Collection[str], limit: int) -> None:
        """Delete revisions beyond the history limit."""
        for controller_revision in select_superfluous(self.list_history(owner), live=live, limit=limit):
            options = DeleteOptions(uid=controller_revision.metadata.uid)
            with suppress(NotFound):
                await self._client.delete(
                    ControllerRevision, controller_revision.metadata.name, namespace=owner.namespace, options=options
                )

    async def _create(self, owner: Owner, data: Mapping[str, Any], number: int) -> CurrentRevision:
        collisions = owner.collisions
        while True:
            body = self._build_body(owner, data, number=number, collisions=collisions)
            try:
                made = await self._client.create(ControllerRevision, body, namespace=owner.metadata.namespace)
            except AlreadyExists:
                found = await self._find_existing(owner, body)
                if found is not None:
                    return CurrentRevision(revision=found, collisions=collisions)
                collisions += 1
            else:
                return CurrentRevision(revision=made, collisions=collisions)

    async def _find_existing(self, owner: Owner, body: Mapping[str, Any]) -> ControllerRevision | None:
        """What has the name already, if it is what we were about to make and only the cache does not show it yet."""
        found: ControllerRevision = await self._client.get(
            ControllerRevision, body["metadata"]["name"], namespace=owner.metadata.namespace
        )
        controller = find_controller(found.metadata)
        is_ours = controller is not None and controller.uid == owner.metadata.uid
        return found if is_ours and found.data == body["data"] else None

    async def _renumber(self, found: ControllerRevision, number: int) -> ControllerRevision:
        patch = {"metadata": {"resourceVersion": found.metadata.resource_version}, "revision": number}
        return await self._client.merge_patch(
            ControllerRevision, found.metadata.name, patch, namespace=found.metadata.namespace
        )

    def _build_body(self, owner: Owner, data: Mapping[str, Any], *, number: int, collisions: int) -> dict[str, Any]:
        digest = self._hash_of(data, collisions)
        labels = (owner.template.get("metadata") or {}).get("labels") or {}
        metadata: dict[str, Any] = {
            "name": f"{owner.metadata.name[:_LONGEST_PREFIX]}-{digest}",
            "namespace": owner.metadata.namespace,
            "labels": {**labels, self._hash_label: digest},
            "ownerReferences": [build_controller_reference(self._resource, owner.metadata)],
        }
        if owner.metadata.annotations:
            metadata["annotations"] = dict(owner.metadata.annotations)
        return {"metadata": metadata, "data": data, "revision": number}
