"""Which resources are accelerators, and of which type a node's are. For prices, limits and candidates."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.core.resources import ResourceVector

GPU_LABELS: Final = (
    "cloud.plimsoll.io/accelerator",
    "cloud.google.com/gke-accelerator",
    "k8s.amazonaws.com/accelerator",
    "accelerator",
    "nvidia.com/gpu.product",
)
"""Labels that name the type of a node's accelerators, by cloud."""
_KNOWN: Final = frozenset({"google.com/tpu", "gpu.intel.com/i915", "gpu.intel.com/xe", "habana.ai/gaudi"})


@lru_cache(maxsize=1024)
def is_gpu(resource: str) -> bool:
    """nvidia.com/gpu and its kin, shared and partitioned ones too."""
    vendor, _, device = resource.rpartition("/")
    return bool(vendor) and (resource in _KNOWN or device == "gpu" or device.startswith(("gpu.", "gpu-", "mig-")))


def gpu_count(resources: ResourceVector) -> int:
    return sum(amount for name, amount in resources.items() if is_gpu(name))


def gpus_of_type(kind: str, labels: Mapping[str, str], capacity: ResourceVector) -> int:
    """How many accelerators of `kind` a node has: a resource name, or the type its labels tell."""
    if kind in capacity:
        return capacity[kind]
    return gpu_count(capacity) if any(labels.get(label) == kind for label in GPU_LABELS) else 0
