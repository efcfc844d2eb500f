"""Traits of a pod: whether it can be evicted (mirror, daemon, annotations, local volumes), what it consumes. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.objects.api.provisioning_requests import CONSUME_ANNOTATIONS
from plimsoll.objects.owners import find_controller

if TYPE_CHECKING:
    from plimsoll.objects.api.pods import Pod
    from plimsoll.objects.api.storage import Volume

MIRROR: Final = "kubernetes.io/config.mirror"
DAEMON_POD: Final = "cluster-autoscaler.kubernetes.io/daemonset-pod"
SAFE_TO_EVICT: Final = "cluster-autoscaler.kubernetes.io/safe-to-evict"
SAFE_LOCAL_VOLUMES: Final = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"
DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
KUBE_SYSTEM: Final = "kube-system"


def is_mirror_pod(pod: Pod) -> bool:
    return MIRROR in pod.metadata.annotations


def is_daemon_pod(pod: Pod) -> bool:
    if pod.metadata.annotations.get(DAEMON_POD) == "true":
        return True
    owner = find_controller(pod.metadata)
    return owner is not None and owner.kind == "DaemonSet"


def find_consumed_request(pod: Pod) -> str:
    """NAMESPACE/NAME of the ProvisioningRequest that the pod consumes; empty: none."""
    notes = pod.metadata.annotations
    name = next(filter(None, map(notes.get, CONSUME_ANNOTATIONS)), "") if notes else ""
    return f"{pod.metadata.namespace}/{name}" if name else ""


def list_local_volumes(pod: Pod) -> tuple[str, ...]:
    """Names of volumes whose content is lost with the node."""
    return tuple(volume.name for volume in pod.spec.volumes if _is_local(volume))


def _is_local(volume: Volume) -> bool:
    if volume.host_path is not None:
        return True
    return volume.empty_dir is not None and volume.empty_dir.medium != "Memory"
