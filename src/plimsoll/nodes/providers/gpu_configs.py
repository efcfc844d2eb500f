"""What accelerators a node has, by the label of its provider that tells their type, and by its resources. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.nodes.planning.gpus import is_gpu
from plimsoll.nodes.providers.values import GpuConfig

if TYPE_CHECKING:
    from plimsoll.objects.nodes import Node

_USUAL = "nvidia.com/gpu"


def gpu_config_of(node: Node, *, label: str) -> GpuConfig | None:
    """None for a node without; a node whose driver is not up yet has the label and no resource."""
    resources = sorted(name for name in node.status.capacity if is_gpu(name))
    kind = node.metadata.labels.get(label, "")
    if not resources and not kind:
        return None
    return GpuConfig(label=label, type=kind, resource=resources[0] if resources else _USUAL)
