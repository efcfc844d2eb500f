"""The small plugins that only add something: tolerations, a taint, a storage class, protection finalizers.

Kubernetes' DefaultTolerationSeconds, TaintNodesByCondition, DefaultStorageClass and StorageObjectInUseProtection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.objects.api.storage import DEFAULT_CLASS_ANNOTATIONS

if TYPE_CHECKING:
    from plimsoll.local.apiserver.admission.attributes import AdmissionAttributes
    from plimsoll.local.apiserver.storage import Store

Json = dict[str, Any]

_NOT_READY: Final = "node.kubernetes.io/not-ready"
_UNREACHABLE: Final = "node.kubernetes.io/unreachable"
_TOLERATED_S: Final = 300
_CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"
_PROTECTED: Final = {
    "persistentvolumes": "kubernetes.io/pv-protection",
    "persistentvolumeclaims": "kubernetes.io/pvc-protection",
}


class TolerationSeconds:
    """A pod without tolerations for unreachable nodes stays on one for five minutes."""

    def mutate(self, attempt: AdmissionAttributes) -> None:
        if not attempt.writes("pods"):
            return
        assert attempt.obj is not None
        spec = attempt.obj["spec"]
        given = spec.get("tolerations") or []
        added = [
            {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _TOLERATED_S}
            for key in (_NOT_READY, _UNREACHABLE)
            if not any(_matches_key(toleration, key) for toleration in given)
        ]
        if added:
            spec["tolerations"] = [*given, *added]


def _matches_key(toleration: Json, key: str) -> bool:
    return toleration.get("key", "") in {"", key} and toleration.get("effect", "") in {"", "NoExecute"}


class NewNodeTaints:
    """A new node accepts no pods until it has been ready."""

    def mutate(self, attempt: AdmissionAttributes) -> None:
        if not attempt.creates("nodes"):
            return
        assert attempt.obj is not None
        spec = attempt.obj.setdefault("spec", {})
        taints = spec.get("taints") or []
        if not any((taint.get("key"), taint.get("effect")) == (_NOT_READY, "NoSchedule") for taint in taints):
            spec["taints"] = [*taints, {"key": _NOT_READY, "effect": "NoSchedule"}]


class DefaultStorageClass:
    """A claim that names no class (the empty name is a name) gets the default one: the newest, if there are several."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def mutate(self, attempt: AdmissionAttributes) -> None:
        if not attempt.creates("persistentvolumeclaims"):
            return
        assert attempt.obj is not None
        spec = attempt.obj["spec"]
        annotations = attempt.obj["metadata"].get("annotations") or {}
        if spec.get("storageClassName") is None and _CLASS_ANNOTATION not in annotations:
            name = self._default()
            if name is not None:
                spec["storageClassName"] = name

    def _default(self) -> str | None:
        metadatas = [
            stored.decode_body()["metadata"] for stored in self._store.list("storage.k8s.io/storageclasses").items
        ]
        defaults = [metadata for metadata in metadatas if _is_default(metadata.get("annotations") or {})]
        newest = max((default.get("creationTimestamp", "") for default in defaults), default="")
        names = (default["name"] for default in defaults if default.get("creationTimestamp", "") == newest)
        return min(names, default=None)


def _is_default(annotations: Json) -> bool:
    return any(annotations.get(name) == "true" for name in DEFAULT_CLASS_ANNOTATIONS)


class StorageProtection:
    """Volumes and claims that are in use survive their deletion: a controller takes the finalizer away afterwards."""

    def mutate(self, attempt: AdmissionAttributes) -> None:
        finalizer = _PROTECTED.get(attempt.resource.stored_as)
        if finalizer is None or not attempt.creates(attempt.resource.stored_as):
            return
        assert attempt.obj is not None
        metadata = attempt.obj["metadata"]
        finalizers = metadata.get("finalizers") or []
        if finalizer not in finalizers:
            metadata["finalizers"] = [*finalizers, finalizer]
