"""Which pods wait for a node, which of them a turn plans for, and why not for the others. Pure.

specs/nodes.md 4.1, 6.1, 6.4. What runs, has ended or is leaving waits for nothing. A pod that the scheduler has not
looked at yet may find its place by itself, so it is not planned for, unless its scheduler is one that is bypassed.
"""

from __future__ import annotations

from datetime import timedelta
from enum import Enum
from typing import TYPE_CHECKING, Final, Union

from msgspec import structs

from plimsoll.core.plans import Reason
from plimsoll.nodes.flags import read_duration_s
from plimsoll.nodes.planning.drains import has_mirror, is_daemon_pod
from plimsoll.nodes.turns import SetAside
from plimsoll.scheduling.gates import is_gated
from plimsoll.scheduling.priorities import is_expendable

if TYPE_CHECKING:
    from datetime import datetime

    from plimsoll.nodes.policy import PodRules
    from plimsoll.objects.pods import Pod

CONSUME: Final = (
    "autoscaling.x-k8s.io/consume-provisioning-request",
    "cluster-autoscaler.kubernetes.io/consume-provisioning-request",
)
SCALE_UP_DELAY: Final = "cluster-autoscaler.kubernetes.io/pod-scale-up-delay"
CONSUMING: Final = "ConsumesProvisioningRequest"
DAEMON: Final = "DaemonPod"
EXPENDABLE: Final = "Expendable"
GATED: Final = "SchedulingGated"
NOMINATED: Final = "Nominated"
TOO_NEW: Final = "PodTooNew"
_ENDED: Final = ("Succeeded", "Failed")
_DEFAULT_SCHEDULER: Final = "default-scheduler"


class _Unprocessed(Enum):
    """One value."""

    UNPROCESSED = "unprocessed"


UNPROCESSED: Final = _Unprocessed.UNPROCESSED
"""A waiting pod that the scheduler has not looked at yet."""

Fate = Union["Pod", SetAside, _Unprocessed, None]
"""A pod as planners see it, on a node or waiting for one; or why they do not, which for most is nobody's business."""


def fate_of(pod: Pod, rules: PodRules, *, now: datetime, waits_for_scheduler: bool) -> Fate:
    """`waits_for_scheduler` is False in a world where none runs by itself: every waiting pod counts then."""
    if pod.status.phase in _ENDED:
        return None
    if is_expendable(pod, below=rules.expendable_below):
        return None if pod.spec.node_name else SetAside(pod=pod, reason=_expendable(rules))
    if pod.spec.node_name or pod.status.nominated_node_name:
        return _on_its_node(pod)
    if pod.metadata.deletion_timestamp is not None or is_gated(pod):
        return None
    if (reason := _why_not_planned(pod, rules) or _too_new(pod, rules, now)) is not None:
        return SetAside(pod=pod, reason=reason)
    if waits_for_scheduler and not was_refused(pod) and not _is_bypassed(pod, rules):
        return UNPROCESSED
    return pod


def is_waiting(pod: Pod) -> bool:
    """Without a node, and still to run."""
    return not pod.spec.node_name and pod.status.phase not in _ENDED and pod.metadata.deletion_timestamp is None


def why_set_aside(pod: Pod, rules: PodRules) -> Reason | None:
    """Of a waiting pod, at any time and whoever schedules: why no node is added for it; None: one may be."""
    if pod.status.nominated_node_name:
        return Reason(code=NOMINATED, message=f"it is promised room on node {pod.status.nominated_node_name}")
    if is_gated(pod):
        return Reason(code=GATED, message="it is held back by scheduling gates")
    if is_expendable(pod, below=rules.expendable_below):
        return _expendable(rules)
    return _why_not_planned(pod, rules)


def _on_its_node(pod: Pod) -> Pod:
    if pod.spec.node_name:
        return pod
    return structs.replace(pod, spec=structs.replace(pod.spec, node_name=pod.status.nominated_node_name))


def _why_not_planned(pod: Pod, rules: PodRules) -> Reason | None:
    if has_mirror(pod) or is_daemon_pod(pod):
        return Reason(code=DAEMON, message="it belongs to a daemon set, for which no node is added")
    if any(pod.metadata.annotations.get(key) for key in CONSUME):
        return Reason(code=CONSUMING, message="it is covered by a ProvisioningRequest")
    scheduler = pod.spec.scheduler_name or _DEFAULT_SCHEDULER
    if rules.allowed_schedulers and scheduler not in rules.allowed_schedulers:
        return Reason(code="SchedulerNotAllowed", message=f"its scheduler {scheduler} is not an allowed one")
    return None


def _too_new(pod: Pod, rules: PodRules, now: datetime) -> Reason | None:
    created = pod.metadata.creation_timestamp
    delay_s = scale_up_delay_s(pod, rules)
    if created is not None and delay_s > 0 and created + timedelta(seconds=delay_s) > now:
        return Reason(code=TOO_NEW, message=f"it is younger than its scale-up delay of {delay_s:g} s")
    return None


def scale_up_delay_s(pod: Pod, rules: PodRules) -> float:
    """The flag's, or what the pod's annotation makes it: longer, never shorter."""
    written = pod.metadata.annotations.get(SCALE_UP_DELAY, "")
    written_s = read_duration_s(written) if written else None
    return rules.new_pod_delay_s if written_s is None else max(rules.new_pod_delay_s, written_s)


def _expendable(rules: PodRules) -> Reason:
    return Reason(code=EXPENDABLE, message=f"its priority is below {rules.expendable_below}: it is expendable")


def was_refused(pod: Pod) -> bool:
    """Whether the scheduler found no place for it."""
    return any(
        one.type == "PodScheduled" and one.status == "False" and one.reason == "Unschedulable"
        for one in pod.status.conditions
    )


def _is_bypassed(pod: Pod, rules: PodRules) -> bool:
    return (pod.spec.scheduler_name or _DEFAULT_SCHEDULER) in rules.bypassed_schedulers
