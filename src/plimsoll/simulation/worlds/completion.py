"""Completes hand-written manifests with what a running cluster would have added. Pure.

A node without conditions is ready, its allocatable equals its capacity, and it takes 110 pods. A pod with a node has
started there. An owner reference needs no uid. What a manifest says is never changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.objects.registry import KINDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from plimsoll.simulation.scenario import Json

    UidOf = Callable[[str, str, str], str]
    """By kind, namespace and name."""

NOT_READY: Final = "node.kubernetes.io/not-ready"
HOSTNAME: Final = "kubernetes.io/hostname"
_DEFAULT_PODS: Final = "110"
_OF_CLASS: Final = ("priorityClassName", "preemptionPolicy")
# Of a dumped object: the server writes them itself, or refuses them.
_SERVERS_OWN: Final = ("creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid")


def prepare_for_server(manifest: Json, *, namespace: str, uid_of: UidOf) -> Json:
    """The manifest as it can be applied."""
    metadata = {name: value for name, value in manifest["metadata"].items() if name not in _SERVERS_OWN}
    if namespace:
        metadata["namespace"] = namespace
    if owners := metadata.get("ownerReferences"):
        alone = len(owners) == 1
        metadata["ownerReferences"] = [_build_owner(owner, namespace, uid_of, alone=alone) for owner in owners]
    body = {**{name: value for name, value in manifest.items() if name != "status"}, "metadata": metadata}
    if (manifest["apiVersion"], manifest["kind"]) == ("v1", "Node"):
        metadata["labels"] = {HOSTNAME: metadata["name"], **(metadata.get("labels") or {})}
    elif admitted := read_admitted_priority(manifest):
        body["spec"] = {name: value for name, value in manifest["spec"].items() if name not in admitted}
    return body


def read_admitted_priority(manifest: Json) -> Json:
    """The priority of a recorded pod that was admitted elsewhere; empty if admission is still to come."""
    spec = manifest.get("spec")
    if (manifest["apiVersion"], manifest["kind"]) != ("v1", "Pod") or not isinstance(spec, dict):
        return {}
    if type(spec.get("priority")) is not int:
        return {}
    words = {name: spec[name] for name in _OF_CLASS if isinstance(spec.get(name), str)}
    return {"priority": spec["priority"], **words}


def _build_owner(owner: Any, namespace: str, uid_of: UidOf, *, alone: bool) -> Any:
    if not isinstance(owner, dict):
        return owner
    kind, name = str(owner.get("kind", "")), str(owner.get("name", ""))
    known = KINDS.find_by_name(kind)
    completed: Json = {"apiVersion": known.api_version} if known is not None else {}
    completed |= owner
    completed.setdefault("uid", uid_of(kind, namespace, name))
    if alone:
        completed.setdefault("controller", True)
    return completed


def complete_status(body: Json, manifest: Json, *, is_new: bool, now: str) -> None:
    """Give the stored `body` the status of the manifest, and a new node or pod also its usual status."""
    given = manifest.get("status")
    if isinstance(given, dict):
        body["status"] = {**(body.get("status") or {}), **given}
    if not is_new:
        return
    what = (body.get("apiVersion"), body.get("kind"))
    if what == ("v1", "Node"):
        _complete_node(body, now=now)
    elif what == ("v1", "Pod") and body.get("spec", {}).get("nodeName"):
        status = body.setdefault("status", {})
        status.setdefault("startTime", body["metadata"].get("creationTimestamp", now))


def _complete_node(body: Json, *, now: str) -> None:
    status = body.setdefault("status", {})
    capacity = status.setdefault("capacity", dict(status.get("allocatable") or {}))
    capacity.setdefault("pods", _DEFAULT_PODS)
    status["capacity"] = {name: str(amount) for name, amount in capacity.items()}
    allocatable = {**status["capacity"], **(status.get("allocatable") or {})}
    status["allocatable"] = {name: str(amount) for name, amount in allocatable.items()}
    if not status.get("conditions"):
        since = {"lastHeartbeatTime": now, "lastTransitionTime": body["metadata"].get("creationTimestamp", now)}
        ready = {"reason": "KubeletReady", "message": "kubelet is posting ready status"}
        status["conditions"] = [{"type": "Ready", "status": "True", **since, **ready}]


def is_not_ready_taint(taint: Any) -> bool:
    """Whether it is the taint that admission adds to every new node."""
    return isinstance(taint, dict) and taint.get("key") == NOT_READY
