"""Storage objects by name, and the claims of a pod's volumes, bound or still to be bound.

The volume rules share it: which claims a pod uses, to which volume a claim is bound, and whether its class waits for
the first consumer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.core.errors import InvalidQuantity, InvalidSelector
from plimsoll.core.quantity import Quantity
from plimsoll.core.selectors import EVERYTHING
from plimsoll.scheduling.selectors import parse_label_selector, parse_node_selector, parse_topology_selector

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from plimsoll.core.node_selectors import NodeSelector
    from plimsoll.core.selectors import LabelSelector
    from plimsoll.objects.api.nodes import Node
    from plimsoll.objects.api.pods import Pod
    from plimsoll.objects.api.storage import CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass, Volume

NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"
ATTACHES_LIKE: Final = "plimsoll.io/attaches-like"
"""On a node that is only planned: the node whose CSINode says what it will attach."""

_BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
_OLD_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
_STORAGE: Final = "storage"


class Storage:
    """Volumes, claims, classes and attach limits of a cluster, as they were listed. Immutable."""

    def __init__(
        self,
        *,
        volumes: Iterable[PersistentVolume] = (),
        claims: Iterable[PersistentVolumeClaim] = (),
        classes: Iterable[StorageClass] = (),
        csi_nodes: Iterable[CSINode] = (),
    ) -> None:
        self.volumes = {volume.metadata.name: volume for volume in volumes}
        self.claims = {(claim.metadata.namespace, claim.metadata.name): claim for claim in claims}
        self.classes = {storage_class.metadata.name: storage_class for storage_class in classes}
        self.csi_nodes = {csi_node.metadata.name: csi_node for csi_node in csi_nodes}
        self._unbound: dict[str, list[UnboundVolume]] | None = None

    def find_csi_node(self, node: Node) -> CSINode | None:
        """The node's CSINode, or for an upcoming node the CSINode of the node that its template was made from."""
        meta = node.metadata
        return self.csi_nodes.get(meta.name) or self.csi_nodes.get(meta.annotations.get(ATTACHES_LIKE, ""))

    def find_claim(self, namespace: str, name: str) -> PersistentVolumeClaim | None:
        return self.claims.get((namespace, name))

    def find_class(self, claim: PersistentVolumeClaim) -> StorageClass | None:
        return self.classes.get(get_class_name(claim))

    def waits_for_consumer(self, claim: PersistentVolumeClaim) -> bool:
        """Whether the claim is bound only once a pod using it has a node."""
        known = self.find_class(claim)
        return known is not None and known.volume_binding_mode == "WaitForFirstConsumer"

    def list_unbound_volumes(self, name: str) -> list[UnboundVolume]:
        """Volumes of a class that a claim could still get, the smallest first."""
        if self._unbound is None:
            self._unbound = {}
            for volume in self.volumes.values():
                offered = UnboundVolume.from_volume(volume)
                if offered is not None:
                    self._unbound.setdefault(get_volume_class_name(volume), []).append(offered)
            for offers in self._unbound.values():
                offers.sort(key=lambda unbound_volume: (unbound_volume.capacity, unbound_volume.name))
        return self._unbound.get(name, [])


class UnboundVolume:
    """A volume that waits for a claim, with its node affinity compiled."""

    __slots__ = ("_volume", "capacity", "name", "nodes")

    def __init__(self, volume: PersistentVolume, capacity: Quantity, nodes: NodeSelector | None) -> None:
        self._volume = volume
        self.name = volume.metadata.name
        self.capacity = capacity
        self.nodes = nodes

    @classmethod
    def from_volume(cls, volume: PersistentVolume) -> UnboundVolume | None:
        """None for a volume that is taken, on its way out, or cannot be read."""
        if volume.metadata.deletion_timestamp is not None:
            return None
        if volume.spec.claim_ref is None and volume.status.phase not in {"", "Available"}:
            return None
        try:
            capacity = Quantity.parse(volume.spec.capacity.get(_STORAGE, 0))
            return cls(volume, capacity, parse_volume_nodes(volume))
        except (InvalidQuantity, InvalidSelector):
            return None

    def is_reserved_for(self, claim: PersistentVolumeClaim) -> bool:
        reference = self._volume.spec.claim_ref
        if reference is None:
            return False
        meta = claim.metadata
        same = (reference.namespace, reference.name) == (meta.namespace, meta.name)
        return same and reference.uid in {"", meta.uid}

    def has_room_for(self, claim: PersistentVolumeClaim, wanted: Quantity) -> bool:
        """Whether a volume that is reserved for the claim has its size and mode; the node is not checked."""
        mode = self._volume.spec.volume_mode or "Filesystem"
        return self.capacity >= wanted and (claim.spec.volume_mode or "Filesystem") == mode

    def suits(self, claim: PersistentVolumeClaim, wanted: Quantity, selector: LabelSelector) -> bool:
        """Everything but the node: free, large enough, same modes, selected."""
        spec = self._volume.spec
        if spec.claim_ref is not None or not set(claim.spec.access_modes) <= set(spec.access_modes):
            return False
        return self.has_room_for(claim, wanted) and selector.matches(self._volume.metadata.labels)


def get_claim_name(pod: Pod, volume: Volume) -> str | None:
    """The claim behind a volume: the one it names, or the one made for the pod alone."""
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    return f"{pod.metadata.name}-{volume.name}" if volume.ephemeral is not None else None


def list_claim_names(pod: Pod) -> tuple[str, ...]:
    names = (get_claim_name(pod, volume) for volume in pod.spec.volumes)
    return tuple(name for name in names if name is not None)


def get_class_name(claim: PersistentVolumeClaim) -> str:
    """The old annotation wins over the field, as in Kubernetes."""
    return claim.metadata.annotations.get(_OLD_CLASS, claim.spec.storage_class_name or "")


def get_volume_class_name(volume: PersistentVolume) -> str:
    return volume.metadata.annotations.get(_OLD_CLASS, volume.spec.storage_class_name)


def is_bound(claim: PersistentVolumeClaim) -> bool:
    """kube-scheduler goes by the binder's annotation; a claim in phase Bound counts as bound, too (recorded dumps)."""
    complete = _BIND_COMPLETED in claim.metadata.annotations or claim.status.phase == "Bound"
    return bool(claim.spec.volume_name) and complete


def get_requested_storage(claim: PersistentVolumeClaim) -> Quantity:
    try:
        return Quantity.parse(claim.spec.resources.requests.get(_STORAGE, 0))
    except InvalidQuantity as error:
        path = f"persistentvolumeclaim {claim.metadata.name}: spec.resources.requests[{_STORAGE}]"
        raise InvalidQuantity(error.problem, path=path) from None


def parse_claim_selector(claim: PersistentVolumeClaim) -> LabelSelector:
    """Which volumes the claim accepts by their labels; unlike elsewhere, an absent selector accepts all."""
    if claim.spec.selector is None:
        return EVERYTHING
    return parse_label_selector(claim.spec.selector, path=f"persistentvolumeclaim {claim.metadata.name}: spec.selector")


def parse_volume_nodes(volume: PersistentVolume) -> NodeSelector | None:
    """Where the volume can be used; none: anywhere."""
    affinity = volume.spec.node_affinity
    if affinity is None or affinity.required is None:
        return None
    return parse_node_selector(
        affinity.required, path=f"persistentvolume {volume.metadata.name}: spec.nodeAffinity.required"
    )


def parse_class_nodes(storage_class: StorageClass) -> NodeSelector | None:
    """Where the class may provision; none: anywhere."""
    if not storage_class.allowed_topologies:
        return None
    path = f"storageclass {storage_class.metadata.name}: allowedTopologies"
    return parse_topology_selector(storage_class.allowed_topologies, path=path)


def is_owned_by_pod(claim: PersistentVolumeClaim, pod: Pod) -> bool:
    owners: Mapping[str, bool] = {owner.uid: owner.controller for owner in claim.metadata.owner_references}
    return owners.get(pod.metadata.uid, False)
