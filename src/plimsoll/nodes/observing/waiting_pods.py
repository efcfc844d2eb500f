"""Which pods wait for a node, which of them a turn plans for, and why not for the others. Pure.

specs/nodes.md 4.1, 6.1, 6.4. What runs, has ended or is leaving waits for nothing. A pod that the scheduler has not
looked at yet may find its place by itself, so it is not planned for, unless its scheduler is one that is bypassed.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from msgspec import structs

from plimsoll.core.plans import Reason
from plimsoll.nodes.flags import read_duration_s
from plimsoll.nodes.planning.drains import has_mirror, is_daemon_pod
from plimsoll.nodes.turns import PodState, SetAside
from plimsoll.scheduling.gates import is_gated
from plimsoll.scheduling.priorities import is_expendable

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from plimsoll.nodes.policy import PodRules
    from plimsoll.objects.pods import Pod

CONSUME: Final = (
    "autoscaling.x-k8s.io/consume-provisioning-request",
    "cluster-autoscaler.kubernetes.io/consume-provisioning-request",
)
SCALE_UP_DELAY: Final = "cluster-autoscaler.kubernetes.io/pod-scale-up-delay"
CONSUMING: Final = "ConsumesProvisioningRequest"
TOO_NEW: Final = "PodTooNew"
_ENDED: Final = ("Succeeded", "Failed")
_DEFAULT_SCHEDULER: Final = "default-scheduler"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sorted:
    """All pods, each in at most one place; what has ended is in none."""

    placed: tuple[Pod, ...]
    """On a node, or promised one; without expendable pods."""
    pending: tuple[Pod, ...]
    unprocessed: int
    """Waiting pods that the scheduler has not looked at yet."""
    set_aside: tuple[SetAside, ...]

    @property
    def by_state(self) -> dict[PodState, int]:
        return {
            PodState.UNSCHEDULABLE: len(self.pending) + len(self.set_aside),
            PodState.UNPROCESSED: self.unprocessed,
        }


def sorted_pods(pods: Iterable[Pod], rules: PodRules, *, now: datetime, waits_for_scheduler: bool = True) -> Sorted:
    """`waits_for_scheduler` is False in a world where none runs by itself: every waiting pod counts then."""
    placed: list[Pod] = []
    pending: list[Pod] = []
    set_aside: list[SetAside] = []
    unprocessed = 0
    for pod in pods:
        if pod.status.phase in _ENDED:
            continue
        if is_expendable(pod, below=rules.expendable_below):
            if not pod.spec.node_name:
                set_aside.append(SetAside(pod=pod, reason=_expendable(rules)))
            continue
        if pod.spec.node_name or pod.status.nominated_node_name:
            placed.append(_on_its_node(pod))
        elif pod.metadata.deletion_timestamp is not None or is_gated(pod):
            continue
        elif (reason := _why_not(pod, rules, now)) is not None:
            set_aside.append(SetAside(pod=pod, reason=reason))
        elif waits_for_scheduler and not was_refused(pod) and not _is_bypassed(pod, rules):
            unprocessed += 1
        else:
            pending.append(pod)
    return Sorted(placed=tuple(placed), pending=tuple(pending), unprocessed=unprocessed, set_aside=tuple(set_aside))


def _on_its_node(pod: Pod) -> Pod:
    if pod.spec.node_name:
        return pod
    return structs.replace(pod, spec=structs.replace(pod.spec, node_name=pod.status.nominated_node_name))


def _why_not(pod: Pod, rules: PodRules, now: datetime) -> Reason | None:
    """Of a waiting pod; None: it is planned for."""
    if has_mirror(pod) or is_daemon_pod(pod):
        return Reason(code="DaemonPod", message="it belongs to a daemon set, for which no node is added")
    if any(pod.metadata.annotations.get(key) for key in CONSUME):
        return Reason(code=CONSUMING, message="it is covered by a ProvisioningRequest")
    scheduler = pod.spec.scheduler_name or _DEFAULT_SCHEDULER
    if rules.allowed_schedulers and scheduler not in rules.allowed_schedulers:
        return Reason(code="SchedulerNotAllowed", message=f"its scheduler {scheduler} is not an allowed one")
    created = pod.metadata.creation_timestamp
    delay_s = scale_up_delay_s(pod, rules)
    if created is not None and delay_s > 0 and created + timedelta(seconds=delay_s) > now:
        return Reason(code=TOO_NEW, message=f"it is younger than its scale-up delay of {delay_s:g} s")
    return None


def scale_up_delay_s(pod: Pod, rules: PodRules) -> float:
    """The flag's, or what the pod's annotation makes it: longer, never shorter."""
    written_s = read_duration_s(pod.metadata.annotations.get(SCALE_UP_DELAY, ""))
    return rules.new_pod_delay_s if written_s is None else max(rules.new_pod_delay_s, written_s)


def _expendable(rules: PodRules) -> Reason:
    return Reason(code="Expendable", message=f"its priority is below {rules.expendable_below}: it is expendable")


def was_refused(pod: Pod) -> bool:
    """Whether the scheduler found no place for it."""
    return any(
        one.type == "PodScheduled" and one.status == "False" and one.reason == "Unschedulable"
        for one in pod.status.conditions
    )


def _is_bypassed(pod: Pod, rules: PodRules) -> bool:
    return (pod.spec.scheduler_name or _DEFAULT_SCHEDULER) in rules.bypassed_schedulers
