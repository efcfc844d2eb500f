"""Where a pod's volumes let it run (kube-scheduler's VolumeBinding and VolumeZone).

A claim that is bound ties the pod to the nodes its volume can be used on. One that waits for its first consumer needs,
on the node, a free volume that suits it, or a class that may provision there. One that should have been bound at once
and is not keeps the pod pending whatever the node. Volumes of older clouds carry zone labels instead of affinity.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.core.errors import InvalidInput
from plimsoll.scheduling.storage import (
    NO_PROVISIONER,
    get_claim_name,
    get_class_name,
    get_requested_storage,
    is_bound,
    is_owned_by_pod,
    parse_claim_selector,
    parse_class_nodes,
    parse_volume_nodes,
)
from plimsoll.scheduling.verdicts import Refusal, refuse_malformed

if TYPE_CHECKING:
    from plimsoll.core.node_selectors import NodeSelector
    from plimsoll.core.quantity import Quantity
    from plimsoll.objects.api.pods import Pod
    from plimsoll.objects.api.storage import PersistentVolume, PersistentVolumeClaim
    from plimsoll.scheduling.cluster_view import ClusterView, NodeState
    from plimsoll.scheduling.storage import Storage, UnboundVolume

VOLUME_BINDING: Final = "VolumeBinding"
VOLUME_ZONE: Final = "VolumeZone"

_SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
_ZONE: Final = "topology.kubernetes.io/zone"
_REGION: Final = "topology.kubernetes.io/region"
# Older spelling first, with the name it has now: a volume labelled the old way is found on nodes labelled the new way.
_TOPOLOGY_LABELS: Final = {
    "failure-domain.beta.kubernetes.io/zone": _ZONE,
    "failure-domain.beta.kubernetes.io/region": _REGION,
    _ZONE: _ZONE,
    _REGION: _REGION,
}
_NOWHERE_TO_BIND: Final = "node(s) didn't find available persistent volumes to bind"
_OUT_OF_REACH: Final = "node(s) didn't match PersistentVolume's node affinity"
_NO_VOLUME: Final = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
_WRONG_ZONE: Final = Refusal(plugin=VOLUME_ZONE, messages=("node(s) had no available volume zone",))


class _PendingClaim:
    """A claim that will be bound when the pod has its node."""

    def __init__(self, claim: PersistentVolumeClaim, storage: Storage) -> None:
        self.wanted: Quantity = get_requested_storage(claim)
        self.name = claim.metadata.name
        self._selected_node = claim.metadata.annotations.get(_SELECTED_NODE)
        offers = storage.list_unbound_volumes(get_class_name(claim))
        reserved = (
            unbound_volume
            for unbound_volume in offers
            if unbound_volume.is_reserved_for(claim) and unbound_volume.has_room_for(claim, self.wanted)
        )
        self._reserved = next(reserved, None)
        selector = parse_claim_selector(claim)
        self._offers = [
            unbound_volume for unbound_volume in offers if unbound_volume.suits(claim, self.wanted, selector)
        ]
        storage_class = storage.find_class(claim)
        self._provisions = storage_class is not None and storage_class.provisioner not in {"", NO_PROVISIONER}
        self._provisioned_on: NodeSelector | None = None if storage_class is None else parse_class_nodes(storage_class)

    def find_volume(self, place: NodeState, taken: set[str]) -> UnboundVolume | None:
        """The volume reserved for the claim, even if it is out of reach; else the smallest that suits there."""
        for offer in (self._reserved,) if self._reserved else self._offers:
            if offer.name not in taken and _reaches(offer.nodes, place):
                return offer
        return None

    @property
    def is_being_provisioned(self) -> bool:
        """A node was chosen for the claim before: existing volumes are ignored."""
        return self._selected_node is not None

    def is_decided_elsewhere(self, place: NodeState) -> bool:
        return self.is_being_provisioned and self._selected_node != place.name

    def can_be_provisioned_on(self, place: NodeState) -> bool:
        return self._provisions and _reaches(self._provisioned_on, place)


class _Binding:
    """Every bound volume can be used on the node, and every waiting claim can get one there."""

    def __init__(
        self, *, reach: tuple[NodeSelector, ...], pending: tuple[_PendingClaim, ...], missing: tuple[str, ...]
    ) -> None:
        self._reach = reach
        # Small claims first, as kube-scheduler matches them, lest a small one take the only large volume.
        self._pending = tuple(sorted(pending, key=lambda pending_claim: (pending_claim.wanted, pending_claim.name)))
        self._missing = missing

    def refuse(self, place: NodeState) -> Refusal | None:
        reasons: list[str] = []
        if not self._can_bind_all_pending(place):
            reasons.append(_NOWHERE_TO_BIND)
        if not all(_reaches(nodes, place) for nodes in self._reach):
            reasons.append(_OUT_OF_REACH)
        if self._missing:
            reasons.append(_NO_VOLUME)
        if not reasons:
            return None
        return Refusal(plugin=VOLUME_BINDING, messages=tuple(reasons), detail=", ".join(self._missing))

    def _can_bind_all_pending(self, place: NodeState) -> bool:
        return self.choose_volumes(place) is not None

    def choose_volumes(self, place: NodeState) -> dict[str, str] | None:
        """The volume each waiting claim would get there, empty if one is to be provisioned; None if one cannot."""
        chosen: dict[str, str] = {}
        taken: set[str] = set()
        for claim in self._pending:
            if claim.is_decided_elsewhere(place):
                return None
            offer = None if claim.is_being_provisioned else claim.find_volume(place, taken)
            if offer is not None:
                taken.add(offer.name)
            elif not claim.can_be_provisioned_on(place):
                return None
            chosen[claim.name] = "" if offer is None else offer.name
        return chosen


def _reaches(nodes: NodeSelector | None, place: NodeState) -> bool:
    return nodes is None or nodes.matches(place.labels, name=place.name)


def prepare_binding(pod: Pod, view: ClusterView) -> _Binding | Refusal | None:
    claims = _find_claims(pod, view.storage)
    if isinstance(claims, Refusal):
        return claims
    if not claims:
        return None
    waiting = [claim for claim in claims if not is_bound(claim)]
    if any(claim.spec.volume_name or not view.storage.waits_for_consumer(claim) for claim in waiting):
        return Refusal(plugin=VOLUME_BINDING, messages=("pod has unbound immediate PersistentVolumeClaims",))
    bound = [view.storage.volumes.get(claim.spec.volume_name) for claim in claims if is_bound(claim)]
    missing = tuple(
        claim.spec.volume_name
        for claim in claims
        if is_bound(claim) and claim.spec.volume_name not in view.storage.volumes
    )
    try:
        reach = [parse_volume_nodes(volume) for volume in bound if volume is not None]
        return _Binding(
            reach=tuple(nodes for nodes in reach if nodes is not None),
            pending=tuple(_PendingClaim(claim, view.storage) for claim in waiting),
            missing=missing,
        )
    except InvalidInput as error:
        return refuse_malformed(VOLUME_BINDING, str(error))


def choose_volumes_for_pod(pod: Pod, place: NodeState, view: ClusterView) -> dict[str, str]:
    """What is to be bound before a pod can run on a node it fits on: each waiting claim, and the volume it would get.

    An empty name means that a volume must be provisioned.
    """
    binding = prepare_binding(pod, view)
    return (binding.choose_volumes(place) or {}) if isinstance(binding, _Binding) else {}


def _find_claims(pod: Pod, storage: Storage) -> list[PersistentVolumeClaim] | Refusal:
    """The pod's claims, or why it cannot have one of them yet."""
    claims: list[PersistentVolumeClaim] = []
    for volume in pod.spec.volumes:
        name = get_claim_name(pod, volume)
        if name is None:
            continue
        claim = storage.find_claim(pod.metadata.namespace, name)
        problem = _find_claim_problem(claim, name, pod, own=volume.ephemeral is not None)
        if problem or claim is None:
            return Refusal(plugin=VOLUME_BINDING, messages=(problem,))
        claims.append(claim)
    return claims


def _find_claim_problem(claim: PersistentVolumeClaim | None, name: str, pod: Pod, *, own: bool) -> str:
    if claim is None:
        if own:
            return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
        return f'persistentvolumeclaim "{name}" not found'
    if claim.status.phase == "Lost":
        gone = claim.spec.volume_name
        return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{gone}"'
    if claim.metadata.deletion_timestamp is not None:
        return f'persistentvolumeclaim "{name}" is being deleted'
    if own and not is_owned_by_pod(claim, pod):
        where = claim.metadata.namespace
        return (
            f"PVC {where}/{name} was not created for pod {pod.metadata.namespace}/{pod.metadata.name}"
            " (pod is not owner)"
        )
    return ""


class _Zones:
    """Zone and region labels of bound volumes against those of the node."""

    def __init__(self, wanted: tuple[tuple[str, frozenset[str]], ...]) -> None:
        self._wanted = wanted

    def refuse(self, place: NodeState) -> Refusal | None:
        labels = place.labels
        if not any(key in labels for key in _TOPOLOGY_LABELS):
            return None  # a cluster of one zone labels nothing
        for key, values in self._wanted:
            value = labels.get(key, labels.get(_TOPOLOGY_LABELS[key]))
            if value not in values:
                return _WRONG_ZONE
        return None


def prepare_zones(pod: Pod, view: ClusterView) -> _Zones | Refusal | None:
    wanted: list[tuple[str, frozenset[str]]] = []
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is None:
            continue
        name = volume.persistent_volume_claim.claim_name
        claim = view.storage.find_claim(pod.metadata.namespace, name)
        if claim is None:
            return Refusal(plugin=VOLUME_ZONE, messages=(f'persistentvolumeclaim "{name}" not found',))
        if not claim.spec.volume_name:
            continue
        bound = view.storage.volumes.get(claim.spec.volume_name)
        if bound is None:
            return Refusal(plugin=VOLUME_ZONE, messages=(f'persistentvolume "{claim.spec.volume_name}" not found',))
        wanted += _read_zone_labels(bound)
    return _Zones(tuple(wanted)) if wanted else None


def _read_zone_labels(volume: PersistentVolume) -> list[tuple[str, frozenset[str]]]:
    """A volume in several zones joins them with two underscores; a label with a gap in it is ignored."""
    found: list[tuple[str, frozenset[str]]] = []
    for key in _TOPOLOGY_LABELS:
        if key in volume.metadata.labels:
            values = frozenset(part.strip() for part in volume.metadata.labels[key].split("__"))
            if "" not in values:
                found.append((key, values))
    return found
