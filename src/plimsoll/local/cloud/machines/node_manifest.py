"""The Node object of a booted machine.

Pure. A node has what a kubelet registers: capacity, labels and taints, and it is not ready, for the virtual kubelet to
take over. Where no kubelet runs (a stepped scenario, a boot time of 0) it is ready. The server taints every new node as
not ready; the actuator removes that taint.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from plimsoll.local.cloud.machines.templates import HOSTNAME, ZONE
from plimsoll.objects.api.deprecated_labels import add_old_labels
from plimsoll.objects.api.meta import format_time

if TYPE_CHECKING:
    from datetime import datetime

    from plimsoll.local.cloud.machines.templates import MachineTemplate

NOT_READY: Final = "node.kubernetes.io/not-ready"
# What a kubelet says of itself when nothing is wrong, in its order.
_PRESSURES: Final = (
    ("MemoryPressure", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
)


def build_node_manifest(
    template: MachineTemplate, name: str, *, zone: str, provider_id: str, ready: bool, now: datetime
) -> dict[str, Any]:
    taints = [msgspec.to_builtins(taint) for taint in template.taints]
    where = {ZONE: zone} if zone else {}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": add_old_labels({**template.labels, **where, HOSTNAME: name})},
        "spec": {"providerID": provider_id, **({"taints": taints} if taints else {})},
        "status": {
            "capacity": _as_text(template.capacity),
            "allocatable": _as_text(template.allocatable),
            "conditions": _build_conditions(ready=ready, now=format_time(now)),
        },
    }


def _as_text(amounts: dict[str, Any]) -> dict[str, str]:
    return {resource: str(amount) for resource, amount in amounts.items()}


def _build_conditions(*, ready: bool, now: str) -> list[dict[str, str]]:
    times = {"lastHeartbeatTime": now, "lastTransitionTime": now}
    pressures = [
        {"type": kind, "status": "False", **times, "reason": reason, "message": message}
        for kind, reason, message in _PRESSURES
    ]
    if ready:
        last = {"status": "True", "reason": "KubeletReady", "message": "kubelet is posting ready status"}
    else:
        last = {"status": "False", "reason": "KubeletNotReady", "message": "the machine has only just booted"}
    return [*pressures, {"type": "Ready", **times, **last}]
