"""How many volumes a node can attach, by driver (kube-scheduler's NodeVolumeLimits).

Limits come from the node's CSINode object: without one, or without a count for the driver, there is none. A volume
that several pods of a node use is attached once.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from plimsoll.scheduling.storage import get_class_name, is_bound, list_claim_names
from plimsoll.scheduling.verdicts import Refusal

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.objects.api.nodes import Node
    from plimsoll.objects.api.pods import Pod
    from plimsoll.scheduling.cluster_view import ClusterView, NodeState
    from plimsoll.scheduling.storage import Storage

VOLUME_LIMITS: Final = "NodeVolumeLimits"

# The driver, and what identifies a volume of it.
_Attachment = tuple[str, str]


def find_attachments(namespace: str, names: Iterable[str], storage: Storage) -> set[_Attachment]:
    """What mounting these claims attaches to a node; claims that are not there, or need no driver, attach nothing."""
    found: set[_Attachment] = set()
    for name in names:
        claim = storage.find_claim(namespace, name)
        if claim is None:
            continue
        if not is_bound(claim):
            storage_class = storage.classes.get(get_class_name(claim))
            if storage_class is not None:
                found.add((storage_class.provisioner, f"{namespace}/{name}"))
            continue
        volume = storage.volumes.get(claim.spec.volume_name)
        if volume is not None and volume.spec.csi is not None:
            found.add((volume.spec.csi.driver, volume.spec.csi.volume_handle))
    return found


class _Limits:
    """The pod's new attachments on top of the node's present ones stay within each driver's limit."""

    def __init__(self, wanted: set[_Attachment], storage: Storage) -> None:
        self._wanted = wanted
        self._storage = storage

    def refuse(self, place: NodeState) -> Refusal | None:
        limits = self._get_limits(place.node)
        if not limits:
            return None
        present: set[_Attachment] = set()
        for placed in place.pods.values():
            if placed.claims:
                present |= find_attachments(placed.namespace, placed.claims, self._storage)
        attached = Counter(driver for driver, _ in present)
        for driver, more in sorted(Counter(driver for driver, _ in self._wanted - present).items()):
            if driver in limits and attached[driver] + more > limits[driver]:
                return Refusal(
                    plugin=VOLUME_LIMITS,
                    messages=("node(s) exceed max volume count",),
                    resolvable=True,
                    detail=f"{driver} attaches at most {limits[driver]}, {attached[driver]} are attached",
                )
        return None

    def _get_limits(self, node: Node) -> dict[str, int]:
        csi_node = self._storage.find_csi_node(node)
        if csi_node is None:
            return {}
        return {
            driver.name: driver.allocatable.count
            for driver in csi_node.spec.drivers
            if driver.allocatable is not None and driver.allocatable.count is not None
        }


def prepare_limits(pod: Pod, view: ClusterView) -> _Limits | None:
    names = list_claim_names(pod)
    wanted = find_attachments(pod.metadata.namespace, names, view.storage) if names else set()
    return _Limits(wanted, view.storage) if wanted else None
