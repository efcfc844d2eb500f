"""Which resources are accelerators, and of which type a node's are. For prices, limits and candidates.

What accelerators a node has, by the label of its provider that tells their type, and by its resources. Pure.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from plimsoll.nodes.providers.values import GpuConfig

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.core.resources import ResourceVector
    from plimsoll.objects.api.nodes import Node


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


_USUAL = "nvidia.com/gpu"


def gpu_config_of(node: Node, *, label: str) -> GpuConfig | None:
    """None for a node without; a node whose driver is not up yet has the label and no resource."""
    resources = sorted(name for name in node.status.capacity if is_gpu(name))
    kind = node.metadata.labels.get(label, "")
    if not resources and not kind:
        return None
    return GpuConfig(label=label, type=kind, resource=resources[0] if resources else _USUAL)
