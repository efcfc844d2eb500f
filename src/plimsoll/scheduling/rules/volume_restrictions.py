"""Volumes that two pods must not share (kube-scheduler's VolumeRestrictions).

A ReadWriteOncePod claim belongs to one pod in the whole cluster. Four old in-tree disks can be mounted on a node once,
or by several pods if all read only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.scheduling.verdicts import Refusal, Rule

if TYPE_CHECKING:
    from plimsoll.objects.api.pods import Pod
    from plimsoll.objects.api.storage import Volume
    from plimsoll.scheduling.cluster_view import ClusterView, NodeState

VOLUME_RESTRICTIONS: Final = "VolumeRestrictions"

_ONE_POD_ONLY: Final = "ReadWriteOncePod"
_DISK_TAKEN: Final = Refusal(plugin=VOLUME_RESTRICTIONS, messages=("node(s) had no available disk",), resolvable=True)
_CLAIM_TAKEN: Final = Refusal(
    plugin=VOLUME_RESTRICTIONS,
    messages=("node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode",),
    resolvable=True,
)


# What a disk is known by; two volumes with a mark in common are the same disk.
_Mark = tuple[str, ...]


class _Conflicts:
    """No claim of the pod is another pod's alone, and no disk of it is mounted on the node."""

    def __init__(self, read_only: dict[_Mark, bool], *, claim_taken: bool) -> None:
        self._read_only = read_only
        self._claim_taken = claim_taken

    def refuse(self, place: NodeState) -> Refusal | None:
        if self._read_only and any(self._conflicts_with(placed.pod) for placed in place.pods.values()):
            return _DISK_TAKEN
        return _CLAIM_TAKEN if self._claim_taken else None

    def _conflicts_with(self, other: Pod) -> bool:
        for mark, shared in _list_disks(other).items():
            mine = self._read_only.get(mark)
            if mine is not None and not (mine and shared):
                return True
        return False


def prepare_conflicts(pod: Pod, view: ClusterView) -> Rule | Refusal | None:
    if not pod.spec.volumes:
        return None
    namespace = pod.metadata.namespace
    exclusive: set[str] = set()
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is None:
            continue
        name = volume.persistent_volume_claim.claim_name
        claim = view.storage.find_claim(namespace, name)
        if claim is None:
            return Refusal(plugin=VOLUME_RESTRICTIONS, messages=(f'persistentvolumeclaim "{name}" not found',))
        if _ONE_POD_ONLY in claim.spec.access_modes:
            exclusive.add(name)
    disks = _list_disks(pod)
    taken = bool(exclusive) and _is_used(namespace, exclusive, view)
    return _Conflicts(disks, claim_taken=taken) if disks or taken else None


def _is_used(namespace: str, claims: set[str], view: ClusterView) -> bool:
    return any(
        placed.namespace == namespace and not claims.isdisjoint(placed.claims)
        for place in view.nodes.values()
        for placed in place.pods.values()
        if placed.claims
    )


def _list_disks(pod: Pod) -> dict[_Mark, bool]:
    """Marks of the pod's disks, and whether it mounts each of them only to read."""
    found: dict[_Mark, bool] = {}
    for volume in pod.spec.volumes:
        for mark, read_only in _build_marks(volume):
            found[mark] = found.get(mark, True) and read_only
    return found


def _build_marks(volume: Volume) -> list[tuple[_Mark, bool]]:
    """An EBS volume is never shared, not even to read; an RBD image is the same through any common monitor."""
    if volume.gce_persistent_disk is not None:
        return [(("gce", volume.gce_persistent_disk.pd_name), volume.gce_persistent_disk.read_only)]
    if volume.aws_elastic_block_store is not None:
        return [(("ebs", volume.aws_elastic_block_store.volume_id), False)]
    if volume.iscsi is not None:
        return [(("iscsi", volume.iscsi.iqn), volume.iscsi.read_only)]
    if volume.rbd is not None:
        rbd = volume.rbd
        return [(("rbd", monitor, rbd.pool, rbd.image), rbd.read_only) for monitor in rbd.monitors]
    return []
