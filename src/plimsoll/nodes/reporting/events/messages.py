"""An Event before it is recorded, and references to the objects it is about. Data only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from plimsoll.kube.recorder import EventType
from plimsoll.objects.api.meta import ObjectReference
from plimsoll.objects.owners import find_controller

if TYPE_CHECKING:
    from plimsoll.nodes.config.policy import Policy
    from plimsoll.nodes.model.snapshot import Snapshot
    from plimsoll.objects.api.pods import Pod
    from plimsoll.scheduling.cluster_view import PodKey


NORMAL: Final = EventType.NORMAL


WARNING: Final = EventType.WARNING


@dataclass(frozen=True, slots=True, kw_only=True)
class EventMessage:
    """The content of one Event."""

    about: ObjectReference
    type: EventType = NORMAL
    reason: str
    message: str


def build_status_map_reference(policy: Policy) -> ObjectReference:
    """The object of cluster-wide Events: the status ConfigMap, as in Cluster Autoscaler."""
    return build_config_map_reference(policy, policy.operation.status_name)


def build_config_map_reference(policy: Policy, name: str) -> ObjectReference:
    return ObjectReference(api_version="v1", kind="ConfigMap", namespace=policy.operation.namespace, name=name)


def build_pod_reference(pod: Pod, name: str = "") -> ObjectReference:
    """A pod, or an equal pod of another name, whose uid is unknown."""
    meta = pod.metadata
    is_itself = not name or name == meta.name
    return ObjectReference(
        api_version="v1",
        kind="Pod",
        namespace=meta.namespace,
        name=name or meta.name,
        uid=meta.uid if is_itself else "",
    )


def build_placed_pod_reference(key: PodKey, node: str, snapshot: Snapshot | None) -> ObjectReference:
    """A pod on a node of the snapshot."""
    state = None if snapshot is None else snapshot.view.find_node(node)
    placed = None if state is None else state.pods.get(key)
    uid = "" if placed is None else placed.pod.metadata.uid
    return ObjectReference(api_version="v1", kind="Pod", namespace=key.namespace, name=key.name, uid=uid)


def build_node_reference(name: str, snapshot: Snapshot | None) -> ObjectReference:
    state = None if snapshot is None else snapshot.view.find_node(name)
    uid = "" if state is None else state.node.metadata.uid
    return ObjectReference(api_version="v1", kind="Node", name=name, uid=uid)


def build_owner_reference(pod: Pod) -> ObjectReference | None:
    """The controller of a pod; None: the pod has none."""
    owner = find_controller(pod.metadata)
    if owner is None:
        return None
    return ObjectReference(
        api_version=owner.api_version,
        kind=owner.kind,
        namespace=pod.metadata.namespace,
        name=owner.name,
        uid=owner.uid,
    )
