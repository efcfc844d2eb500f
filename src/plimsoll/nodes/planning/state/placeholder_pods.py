"""Placeholder pods: the pods that a ProvisioningRequest has booked on a node, as one pod. Pure.

Half a million booked pods are counted, never created. A placeholder requests what all of its pods request, `pods`
included, has their labels, ports and terms, and counts as that many pods (`PlacedPod.count`): rules about nodes and
about other pods see no difference. Its controller is a ProvisioningRequest, which no running pod has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import structs

from plimsoll.core.resources import PODS, ResourceVector
from plimsoll.objects.api.meta import OwnerReference
from plimsoll.objects.api.pods import Container, ResourceRequirements
from plimsoll.objects.owners import find_controller
from plimsoll.scheduling.cluster_view import NodeState, PlacedPod

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from plimsoll.nodes.model.snapshot import PendingPods
    from plimsoll.objects.api.pods import Pod
    from plimsoll.scheduling.cluster_view import ClusterView

REQUEST_KIND: Final = "ProvisioningRequest"


class PlaceholderPods:
    """Puts placeholder pods onto nodes. Reused between loop iterations, it keeps the states of unchanged nodes."""

    def __init__(self) -> None:
        self._pods: dict[str, Pod] = {}
        self._made: dict[tuple[str, int], PlacedPod] = {}
        self._states: dict[str, tuple[NodeState, Mapping[str, int], NodeState]] = {}

    def add_to(
        self, view: ClusterView, places: Mapping[str, Mapping[str, int]], pending: Iterable[PendingPods]
    ) -> ClusterView:
        """The view with such pods on its nodes, as if they ran there. `places`: node to pods by key."""
        kinds = {pending_pods.key: pending_pods for pending_pods in pending}
        pods = {key: pending_pods.pod for key, pending_pods in kinds.items()}
        if any(pods.get(key) != pod for key, pod in self._pods.items()):
            self._made, self._states = {}, {}
        self._pods = pods
        self._states = {name: self._build_state(view.nodes[name], counts, kinds) for name, counts in places.items()}
        return view.with_states([state for _, _, state in self._states.values()]) if places else view

    def _build_state(
        self, place: NodeState, counts: Mapping[str, int], kinds: Mapping[str, PendingPods]
    ) -> tuple[NodeState, Mapping[str, int], NodeState]:
        known = self._states.get(place.name)
        if known is not None and known[0] is place and known[1] == counts:
            return known
        added = [self.make(kinds[key], count, place.name) for key, count in counts.items()]
        return place, counts, place.with_pods(added)

    def make(self, pending: PendingPods, count: int, node: str) -> PlacedPod:
        """A placeholder for `count` pods on a node. Its name has a slash, which no running pod can have."""
        found = self._made.get((pending.key, count))
        if found is None:
            found = PlacedPod(build_placeholder_pod(pending.pod, count, request=pending.bundle or pending.key))
            self._made[pending.key, count] = found
        return found.rename(f"{pending.key}@{node}")


def build_placeholder_pod(pod: Pod, count: int, *, request: str) -> Pod:
    """`request`: NAMESPACE/NAME."""
    demand = PlacedPod(pod).demand
    requested = demand.scale_by(count).replace(ResourceVector({PODS: count - 1}), names=(PODS,))
    ports = tuple(port for container in (*pod.spec.containers, *pod.spec.init_containers) for port in container.ports)
    holder = Container(name="booked", ports=ports, resources=ResourceRequirements(requests={**requested.to_json()}))
    owner = OwnerReference(kind=REQUEST_KIND, name=request.rpartition("/")[2], controller=True)
    return structs.replace(
        pod,
        metadata=structs.replace(pod.metadata, owner_references=(owner,), uid="", resource_version=""),
        spec=structs.replace(
            pod.spec, containers=(holder,), init_containers=(), resources=None, overhead={}, node_name=""
        ),
    )


def is_placeholder(pod: Pod) -> bool:
    """Whether the pod represents booked pods of a ProvisioningRequest."""
    owner = find_controller(pod.metadata)
    return owner is not None and owner.kind == REQUEST_KIND
