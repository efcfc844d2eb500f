"""The admission of pods to a node: a kubelet rejects a pod that its node has no room for.

The scheduler counts the same way, so this rejects only pods bound by hand, by a stale scheduler, or to a node that
shrank. The demand of the admitted pods of a node is a running sum, because ten thousand pods that start at once must
not each add up all others. It can be rebuilt at any time from the pods.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.core.errors import InvalidQuantity
from plimsoll.core.resources import ZERO, ResourceVector
from plimsoll.core.values import Value
from plimsoll.scheduling.pod_requests import compute_pod_demand

if TYPE_CHECKING:
    from plimsoll.objects.api.nodes import Node
    from plimsoll.objects.api.pods import Pod, PodSpec


class AdmissionFailure(Value, frozen=True):
    """The reason and message of the pod's end."""

    reason: str
    message: str


class AdmittedPods:
    """What pods take on the nodes that admitted them."""

    def __init__(self) -> None:
        self._used: dict[str, ResourceVector] = {}
        self._taken: dict[str, tuple[PodSpec, ResourceVector]] = {}

    def has_node(self, node_name: str) -> bool:
        return node_name in self._used

    def add_node(self, node_name: str) -> None:
        self._used.setdefault(node_name, ZERO)

    def has(self, pod: Pod) -> bool:
        """Whether the pod was admitted by us."""
        return pod.metadata.uid in self._taken

    def add(self, pod: Pod) -> None:
        """The pod is on its node. Entered again, it counts once, with what it takes now."""
        known = self._taken.get(pod.metadata.uid)
        if known is not None and known[0] == pod.spec and pod.spec.node_name in self._used:
            return
        self.remove(pod.metadata.uid)
        name, demand = pod.spec.node_name, _compute_demand(pod)
        self._taken[pod.metadata.uid] = (pod.spec, demand)
        self._used[name] = self._used.get(name, ZERO) + demand

    def remove(self, uid: str) -> None:
        spec, demand = self._taken.pop(uid, (None, ZERO))
        if spec is not None and spec.node_name in self._used:
            self._used[spec.node_name] -= demand

    def remove_node(self, node_name: str) -> None:
        """The node is gone. Its pods leave by themselves."""
        self._used.pop(node_name, None)

    def check(self, pod: Pod, node: Node) -> AdmissionFailure | None:
        """None: the node has room for the pod in addition to those admitted."""
        return find_admission_failure(_compute_demand(pod), self._used.get(node.metadata.name, ZERO), node)


def find_admission_failure(requested: ResourceVector, used: ResourceVector, node: Node) -> AdmissionFailure | None:
    """The first resource that is insufficient. Only the resources in the node's allocatable count."""
    try:
        capacity = ResourceVector.from_quantities(node.status.allocatable)
    except InvalidQuantity:
        return None  # an unreadable size does not refuse the pod
    for name in requested:
        if name in node.status.allocatable and requested[name] > capacity[name] - used[name]:
            return AdmissionFailure(
                reason=f"OutOf{name}",
                message=(
                    f"Node didn't have enough resource: {name}, requested: {requested[name]}, "
                    f"used: {used[name]}, capacity: {capacity[name]}"
                ),
            )
    return None


def _compute_demand(pod: Pod) -> ResourceVector:
    try:
        return compute_pod_demand(pod)
    except InvalidQuantity:
        return ZERO
