"""Which resources are accelerators, how many a node has, and of which type. Pure."""

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
"""Labels that name the accelerator type of a node, by cloud."""
ACCELERATOR_PRESENT: Final = "present"
"""The value of the customary taint of a node with accelerators; its key is the name of the resource (GKE)."""
_KNOWN: Final = frozenset({"google.com/tpu", "gpu.intel.com/i915", "gpu.intel.com/xe", "habana.ai/gaudi"})


@lru_cache(maxsize=1024)
def is_gpu(resource: str) -> bool:
    """Whether the resource is an accelerator: nvidia.com/gpu and similar, including shared and partitioned ones."""
    vendor, _, device = resource.rpartition("/")
    return bool(vendor) and (resource in _KNOWN or device == "gpu" or device.startswith(("gpu.", "gpu-", "mig-")))


def count_gpus(resources: ResourceVector) -> int:
    return sum(amount for name, amount in resources.items() if is_gpu(name))


def count_gpus_of_type(gpu_type: str, labels: Mapping[str, str], capacity: ResourceVector) -> int:
    """The number of accelerators of a type on a node. The type is a resource name or the value of a GPU label."""
    if gpu_type in capacity:
        return capacity[gpu_type]
    return count_gpus(capacity) if any(labels.get(label) == gpu_type for label in GPU_LABELS) else 0
