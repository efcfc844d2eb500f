"""Who made an object: the controller among its owners, and the chain of controllers up to the one people know.

Pods belong to replica sets that belong to deployments; custom controllers add more links. The chain comes from objects
anybody may write, so it may be cut, endless or a ring: all three are answers here, never a hang.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.core.values import Value

if TYPE_CHECKING:
    from collections.abc import Callable

    from plimsoll.objects.api.meta import ObjectMeta, OwnerReference

# Real chains have two or three links (CronJob, Job, Pod); operators of operators add a few.
LONGEST_CHAIN: Final = 32


class OwnerChain(Value):
    """Controllers from the nearest to the topmost. `problem` says why it stops early, and is empty if it does not."""

    links: tuple[OwnerReference, ...] = ()
    problem: str = ""

    @property
    def topmost(self) -> OwnerReference | None:
        return self.links[-1] if self.links else None


def controller_of(metadata: ObjectMeta) -> OwnerReference | None:
    """The owner that manages the object. Kubernetes allows one; the first wins if there are two."""
    # A plain loop: asked a dozen times for every event of a pod, and a generator costs more than the answer.
    for owner in metadata.owner_references:
        if owner.controller:
            return owner
    return None


def owner_chain(metadata: ObjectMeta, lookup: Callable[[OwnerReference, str], ObjectMeta | None]) -> OwnerChain:
    """Follows controllers upwards. `lookup(owner, namespace)` finds an owner's metadata, or None if it is gone."""
    links: list[OwnerReference] = []
    seen = {metadata.uid} if metadata.uid else set()
    current = metadata
    while (owner := controller_of(current)) is not None:
        if _identity(owner) in seen:
            ring = " -> ".join(f"{link.kind}/{link.name}" for link in (*links, owner))
            return OwnerChain(links=tuple(links), problem=f"owner references form a ring: {ring}")
        if len(links) == LONGEST_CHAIN:
            return OwnerChain(links=tuple(links), problem=f"more than {LONGEST_CHAIN} owners, one above the other")
        links.append(owner)
        seen.add(_identity(owner))
        found = lookup(owner, metadata.namespace)
        if found is None or _is_another(found, owner):
            return OwnerChain(links=tuple(links), problem=f"{owner.kind}/{owner.name} does not exist")
        current = found
    return OwnerChain(links=tuple(links))


def _identity(owner: OwnerReference) -> str:
    """The uid; in files people leave it out, and the name has to do."""
    return owner.uid or f"{owner.api_version}/{owner.kind}/{owner.name}"


def _is_another(found: ObjectMeta, owner: OwnerReference) -> bool:
    """An object of the same name that was made later is not the owner."""
    return bool(owner.uid and found.uid and owner.uid != found.uid)
