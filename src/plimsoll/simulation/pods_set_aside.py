"""Words for pods of a dump that no node is added for, as the end of "n pods are not planned for: …". Pure.

Which pods those are is decided where the running autoscaler decides it, in `nodes.observing.waiting_pods`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.nodes.observing.waiting_pods import CONSUMING, DAEMON, EXPENDABLE, GATED, NOMINATED, why_set_aside
from plimsoll.nodes.policy import PodRules

if TYPE_CHECKING:
    from plimsoll.objects.pods import Pod

_WORDS: Final = {
    NOMINATED: "promised room on a node",
    GATED: "held back by scheduling gates",
    DAEMON: "of daemon sets, for which no node is added",
    CONSUMING: "covered by a ProvisioningRequest",
    EXPENDABLE: "expendable (priority below {cutoff})",
}


def told_set_aside(pod: Pod, *, cutoff: int) -> str:
    """Of a waiting pod; empty: it is planned for."""
    reason = why_set_aside(pod, PodRules(expendable_below=cutoff))
    return "" if reason is None else _WORDS.get(reason.code, reason.message).format(cutoff=cutoff)
