"""The volume for a claim: the one reserved for it, else the smallest that matches. Pure.

The scheduler makes the same choice for claims that wait for their first consumer, on a given node
(`scheduling.volumes`); here no node is known, and such claims get only what is reserved for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.core.errors import InvalidQuantity, InvalidSelector
from plimsoll.core.quantity import Quantity
from plimsoll.scheduling.storage import (
    get_class_name,
    get_requested_storage,
    get_volume_class_name,
    parse_claim_selector,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.core.selectors import LabelSelector
    from plimsoll.objects.api.storage import PersistentVolume, PersistentVolumeClaim

_FILESYSTEM: Final = "Filesystem"


def is_reserved_for(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether the volume names this claim: by its uid, or by its name alone, as people write it."""
    reference = volume.spec.claim_ref
    if reference is None:
        return False
    meta = claim.metadata
    same = (reference.namespace, reference.name) == (meta.namespace, meta.name)
    return same and reference.uid in {"", meta.uid}


def find_mismatch(volume: PersistentVolume, claim: PersistentVolumeClaim) -> str:
    """Why a volume that the claim asks for by name cannot serve it; empty if it can."""
    if not _is_large_enough(volume, claim):
        return "requested PV is too small"
    if get_class_name(claim) != get_volume_class_name(volume):
        return "storageClassName does not match"
    if not _is_of_mode(volume, claim):
        return "incompatible volumeMode"
    if not _can_be_accessed(volume, claim):
        return "incompatible accessMode"
    return ""


def choose_best_volume(
    claim: PersistentVolumeClaim, volumes: Iterable[PersistentVolume], *, only_kept: bool = False
) -> PersistentVolume | None:
    """The volume to bind; with `only_kept` none but one that was kept for the claim.

    A volume that can do no more than is asked goes before one that can be accessed in more ways, whatever their sizes.
    """
    usable = [volume for volume in volumes if _could_be_used(volume, claim)]
    kept = [volume for volume in usable if is_reserved_for(volume, claim)]
    if kept or only_kept:
        return min(kept, key=_get_name, default=None)
    try:
        selector = parse_claim_selector(claim)
    except InvalidSelector:
        return None
    suiting = [volume for volume in usable if _is_free_and_suits(volume, claim, selector)]
    return min(suiting, key=_from_least_to_most, default=None)


def _could_be_used(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    if volume.metadata.deletion_timestamp is not None:
        return False
    return _is_large_enough(volume, claim) and _is_of_mode(volume, claim)


def _is_free_and_suits(volume: PersistentVolume, claim: PersistentVolumeClaim, selector: LabelSelector) -> bool:
    return (
        volume.spec.claim_ref is None
        # A volume that was not processed yet, or that was bound to another claim, is not available.
        and volume.status.phase == "Available"
        and get_volume_class_name(volume) == get_class_name(claim)
        and _can_be_accessed(volume, claim)
        and selector.matches(volume.metadata.labels)
    )


def _is_large_enough(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    try:
        return get_capacity(volume) >= get_requested_storage(claim)
    except InvalidQuantity:
        return False


def _is_of_mode(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    return (volume.spec.volume_mode or _FILESYSTEM) == (claim.spec.volume_mode or _FILESYSTEM)


def _can_be_accessed(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    return set(claim.spec.access_modes) <= set(volume.spec.access_modes)


def get_capacity(volume: PersistentVolume) -> Quantity:
    return Quantity.parse(volume.spec.capacity.get("storage", 0))


def _from_least_to_most(volume: PersistentVolume) -> tuple[int, Quantity, str]:
    return len(set(volume.spec.access_modes)), get_capacity(volume), volume.metadata.name


def _get_name(volume: PersistentVolume) -> str:
    return volume.metadata.name
