"""The next step of the binder for a claim or a volume: the rules of Kubernetes' persistent volume controller. Pure.

A claim that was bound once (`bind-completed`) keeps its volume or loses it. Any other is bound, provisioned for, or
waits, and reports why. A volume follows its claim: when the claim is gone it is released, when the claim took another
volume it is available again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from plimsoll.core.values import Value
from plimsoll.kube.recorder import EventType
from plimsoll.local.volumes.annotations import (
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    PROVISIONED_BY,
    SELECTED_NODE,
)
from plimsoll.local.volumes.matching import choose_best_volume, find_mismatch, is_reserved_for
from plimsoll.objects.api.storage import PersistentVolume, PersistentVolumeClaim, StorageClass  # noqa: TC001
from plimsoll.scheduling.storage import get_class_name

if TYPE_CHECKING:
    from collections.abc import Sequence

_INTERNAL: Final = "kubernetes.io/"
_WAITS: Final = "WaitForFirstConsumer"


class ClaimEvent(Value, frozen=True):
    """An Event about a claim."""

    type: EventType
    reason: str
    message: str


class BindClaim(Value, frozen=True):
    """Bind the claim to this volume, or finish doing so."""

    volume: str


class ClaimWaits(Value, frozen=True):
    """Nothing can be done now. `phase` is the claim's phase."""

    phase: str = "Pending"
    notice: ClaimEvent | None = None


class ProvisionVolume(Value, frozen=True):
    """Have a volume made by this provisioner."""

    provisioner: str


class AssignClass(Value, frozen=True):
    """The claim was made before there was a default class: it gets it now."""

    class_name: str


ClaimPlan: TypeAlias = BindClaim | ClaimWaits | ProvisionVolume | AssignClass


class ClaimView(Value):
    """A claim and what decides about it. `named` is the volume it names, if there is such a volume."""

    claim: PersistentVolumeClaim
    named: PersistentVolume | None = None
    volumes: tuple[PersistentVolume, ...] = ()
    """The volumes of its class, and those reserved for it."""
    storage_class: StorageClass | None = None
    default_class: str = ""
    unscheduled_pods: tuple[str, ...] = ()
    """Names of pods that use it and have no node."""


def plan_claim(view: ClaimView) -> ClaimPlan:
    claim = view.claim
    if BIND_COMPLETED in claim.metadata.annotations:
        return _plan_prebound(claim, view.named)
    if claim.metadata.deletion_timestamp is not None:
        return ClaimWaits()
    if claim.spec.volume_name:
        return _plan_named_volume(claim, view.named)
    return _plan_volume_search(view)


def _plan_prebound(claim: PersistentVolumeClaim, volume: PersistentVolume | None) -> ClaimPlan:
    if not claim.spec.volume_name:
        return _mark_lost(
            "ClaimLost", "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!"
        )
    if volume is None:
        return _mark_lost("ClaimLost", "Bound claim has lost its PersistentVolume. Data on the volume is lost!")
    reference = volume.spec.claim_ref
    # By name as well: a volume whose reference got another name is released, and both would be written for ever.
    if reference is None or (reference.uid and is_reserved_for(volume, claim)):
        return BindClaim(volume=volume.metadata.name)
    return _mark_lost("ClaimMisbound", "Two claims are bound to the same volume, this one is bound incorrectly")


def _plan_named_volume(claim: PersistentVolumeClaim, volume: PersistentVolume | None) -> ClaimPlan:
    if volume is None:
        return ClaimWaits()
    name = volume.metadata.name
    if volume.spec.claim_ref is None:
        problem = find_mismatch(volume, claim)
        return (
            _refuse("VolumeMismatch", f'Cannot bind to requested volume "{name}": {problem}') if problem else _to(name)
        )
    if is_reserved_for(volume, claim):
        return _to(name)
    return _refuse("FailedBinding", f'volume "{name}" already bound to a different claim.')


def _plan_volume_search(view: ClaimView) -> ClaimPlan:
    claim = view.claim
    known = view.storage_class
    waits = known is not None and known.volume_binding_mode == _WAITS
    found = choose_best_volume(claim, view.volumes, only_kept=waits)
    if found is not None:
        return _to(found.metadata.name)
    wanted_class = get_class_name(claim)
    if claim.spec.storage_class_name is None and not wanted_class and view.default_class:
        return AssignClass(class_name=view.default_class)
    if waits and not claim.metadata.annotations.get(SELECTED_NODE):
        return ClaimWaits(notice=_build_waiting_event(view.unscheduled_pods))
    if wanted_class:
        return _plan_provisioning(wanted_class, known)
    why = "no persistent volumes available for this claim and no storage class is set"
    return ClaimWaits(notice=ClaimEvent(type=EventType.NORMAL, reason="FailedBinding", message=why))


def _build_waiting_event(pods: Sequence[str]) -> ClaimEvent:
    if not pods:
        why = "waiting for first consumer to be created before binding"
        return ClaimEvent(type=EventType.NORMAL, reason=_WAITS, message=why)
    several = "s" if len(pods) > 1 else ""
    why = f"waiting for pod{several} {','.join(pods)} to be scheduled"
    return ClaimEvent(type=EventType.NORMAL, reason="WaitForPodScheduled", message=why)


def _plan_provisioning(wanted_class: str, known: StorageClass | None) -> ClaimPlan:
    if known is None:
        return _refuse("ProvisioningFailed", f'storageclass.storage.k8s.io "{wanted_class}" not found')
    if known.provisioner.startswith(_INTERNAL):
        return _refuse("ProvisioningFailed", f"no volume plugin matched name: {known.provisioner}")
    return ProvisionVolume(provisioner=known.provisioner)


def _to(volume: str) -> BindClaim:
    return BindClaim(volume=volume)


def _refuse(reason: str, message: str) -> ClaimWaits:
    return ClaimWaits(notice=ClaimEvent(type=EventType.WARNING, reason=reason, message=message))


def _mark_lost(reason: str, message: str) -> ClaimWaits:
    return ClaimWaits(phase="Lost", notice=ClaimEvent(type=EventType.WARNING, reason=reason, message=message))


# ---- volumes


class VolumePlan(Value, frozen=True):
    """The status of a volume, and further actions."""

    phase: str
    message: str = ""
    unbind: bool = False
    """Forget the claim, as far as the binder has chosen it: see `binding_writes.unbinding`."""
    looks_at_claim: bool = False
    """The claim is next: it does not name the volume yet."""
    notice: ClaimEvent | None = None


def plan_volume(volume: PersistentVolume, claim: PersistentVolumeClaim | None) -> VolumePlan:
    """`claim` is the one of the name that the volume has, if there is one; it may be a later one."""
    reference = volume.spec.claim_ref
    if reference is None:
        return VolumePlan(phase="Available")
    if not reference.uid:
        # Kept for a claim by a person: it is the claim that binds them.
        return VolumePlan(phase="Available", looks_at_claim=claim is not None)
    if claim is None or claim.metadata.uid != reference.uid:
        return _release(volume)
    if not claim.spec.volume_name:
        return VolumePlan(phase=volume.status.phase, looks_at_claim=True)
    if claim.spec.volume_name == volume.metadata.name:
        return VolumePlan(phase="Bound")
    if _is_disposable(volume):
        return _release(volume)
    return VolumePlan(phase="Available", unbind=True)


def _is_disposable(volume: PersistentVolume) -> bool:
    """Provisioned for a claim that now has another volume."""
    policy = volume.spec.persistent_volume_reclaim_policy
    return PROVISIONED_BY in volume.metadata.annotations and policy == "Delete"


def _release(volume: PersistentVolume) -> VolumePlan:
    """The provisioner deletes a released volume with the Delete policy. Without a provisioner the deletion fails."""
    policy = volume.spec.persistent_volume_reclaim_policy
    if policy == "Retain" or PROVISIONED_BY in volume.metadata.annotations:
        return VolumePlan(phase="Failed" if volume.status.phase == "Failed" else "Released")
    name = volume.metadata.name
    if policy == "Recycle":
        return _fail(volume, "VolumeFailedRecycle", "No recycler plugin found for the volume!")
    why = f'error getting deleter volume plugin for volume "{name}": no deletable volume plugin matched'
    return _fail(volume, "VolumeFailedDelete", why)


def _fail(volume: PersistentVolume, reason: str, message: str) -> VolumePlan:
    notice = ClaimEvent(type=EventType.WARNING, reason=reason, message=message)
    is_news = volume.status.phase != "Failed"
    return VolumePlan(phase="Failed", message=message, notice=notice if is_news else None)


def is_chosen_by_binder(volume: PersistentVolume) -> bool:
    return BOUND_BY_CONTROLLER in volume.metadata.annotations
