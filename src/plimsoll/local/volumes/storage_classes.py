"""The default storage class of a simulated cluster."""

from __future__ import annotations

from typing import Any, Final

from plimsoll.local.volumes.provisioning import SIMULATED

DEFAULT_CLASS: Final = "standard"


def build_default_storage_class(name: str = DEFAULT_CLASS) -> dict[str, Any]:
    """A manifest: volumes are made where the first pod that uses them runs, and go with their claims."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name, "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
        "provisioner": SIMULATED,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
