"""Which pods of a dump no node is added for, and why. Pure.

What runs, has ended or is leaving waits for nothing. Of the rest, some must not make a cluster grow (specs/nodes.md
2.4, 6.4): people who miss them in a plan are told how many there are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.nodes.observing.waiting_pods import CONSUME
from plimsoll.nodes.planning.drains import has_mirror, is_daemon_pod
from plimsoll.scheduling.gates import is_gated
from plimsoll.scheduling.priorities import is_expendable

if TYPE_CHECKING:
    from plimsoll.objects.pods import Pod

_ENDED: Final = ("Succeeded", "Failed")


def is_waiting(pod: Pod) -> bool:
    """Without a node, and still to run."""
    return not pod.spec.node_name and pod.status.phase not in _ENDED and pod.metadata.deletion_timestamp is None


def why_set_aside(pod: Pod, *, cutoff: int) -> str:
    """Of a waiting pod, as the end of "n pods are not planned for: …"; empty: it is planned for."""
    annotations = pod.metadata.annotations
    if pod.status.nominated_node_name:
        return "promised room on a node"
    if is_gated(pod):
        return "held back by scheduling gates"
    if has_mirror(pod) or is_daemon_pod(pod):
        return "of daemon sets, for which no node is added"
    if any(annotations.get(key) for key in CONSUME):
        return "covered by a ProvisioningRequest"
    if is_expendable(pod, below=cutoff):
        return f"expendable (priority below {cutoff})"
    return ""
