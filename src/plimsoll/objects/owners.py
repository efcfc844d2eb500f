"""The controller among the owners of an object."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from plimsoll.objects.api.meta import ObjectMeta, OwnerReference


def find_controller(metadata: ObjectMeta) -> OwnerReference | None:
    """The owner that manages the object. Kubernetes allows one; the first wins if there are two."""
    # A plain loop: it runs a dozen times per pod event, and a generator costs more than the loop body.
    for owner in metadata.owner_references:
        if owner.controller:
            return owner
    return None
