"""The annotations of Kubernetes by which binder, scheduler and provisioner coordinate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.objects.api.storage import DEFAULT_CLASS_ANNOTATIONS

if TYPE_CHECKING:
    from plimsoll.objects.api.meta import ObjectMeta

BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
"""On a claim: it was bound once. From then on it can only lose its volume, never get another."""
BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"
"""The binder chose the other side, not a person: the choice may be undone."""
PROVISIONED_BY: Final = "pv.kubernetes.io/provisioned-by"
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
STORAGE_PROVISIONER: Final = "volume.kubernetes.io/storage-provisioner"
OLD_STORAGE_PROVISIONER: Final = "volume.beta.kubernetes.io/storage-provisioner"

CLAIM_PROTECTION: Final = "kubernetes.io/pvc-protection"
VOLUME_PROTECTION: Final = "kubernetes.io/pv-protection"

YES: Final = "yes"


def is_default_class(metadata: ObjectMeta) -> bool:
    return any(metadata.annotations.get(name) == "true" for name in DEFAULT_CLASS_ANNOTATIONS)
