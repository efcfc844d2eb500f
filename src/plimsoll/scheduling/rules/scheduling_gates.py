"""Scheduling gates: a pod that has some is not pending, and nothing may be decided for it.

kube-scheduler keeps such pods out of its queue; the condition it writes is in `GATED_REASON` and `GATED_MESSAGE`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.scheduling.verdicts import Refusal

if TYPE_CHECKING:
    from plimsoll.objects.api.pods import Pod
    from plimsoll.scheduling.cluster_view import ClusterView

SCHEDULING_GATES: Final = "SchedulingGates"
GATED_REASON: Final = "SchedulingGated"
GATED_MESSAGE: Final = "Scheduling is blocked due to non-empty scheduling gates"


def is_gated(pod: Pod) -> bool:
    return bool(pod.spec.scheduling_gates)


def prepare_gates(pod: Pod, _view: ClusterView) -> Refusal | None:
    if not is_gated(pod):
        return None
    names = " ".join(gate.name for gate in pod.spec.scheduling_gates)
    return Refusal(plugin=SCHEDULING_GATES, messages=(f"waiting for scheduling gates: [{names}]",))
