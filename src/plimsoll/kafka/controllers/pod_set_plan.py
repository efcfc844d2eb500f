"""What a pod set needs: pods to create and to delete, and its status. Pure.

Pods are found by their names. A listed pod that has ended is deleted, and made again when it is gone. A pod that is not
listed is deleted, unless something about the list could not be read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.core.plans import Reason
from plimsoll.core.values import Value
from plimsoll.kafka.wire.listed_pods import ListedPod, ListedPods, describe_problems, read_revision
from plimsoll.kube.controlled_objects.pod_readiness import has_ended
from plimsoll.objects.api.kafka import StrimziPodSetStatus
from plimsoll.objects.api.meta import Condition
from plimsoll.objects.api.pods import Pod, is_pod_ready

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from datetime import datetime

    from plimsoll.objects.api.kafka import StrimziPodSet

NOT_READY: Final = "NotReady"
POD_CONFLICT: Final = "PodNameConflict"
POD_UNREADABLE: Final = "PodUnreadable"


class PodSetPlan(Value):
    """`delete` has listed pods that ended, and pods that are not listed; `problems` hold back the latter."""

    create: tuple[ListedPod, ...] = ()
    restart: tuple[Pod, ...] = ()
    """Listed pods that ended."""
    remove: tuple[Pod, ...] = ()
    """Pods that are not listed."""
    problems: tuple[Reason, ...] = ()


def plan_pod_set(
    listed: ListedPods, ours: Iterable[Pod], *, others: Collection[str], unreadable: Collection[str]
) -> PodSetPlan:
    """`others`: names of pods in the namespace that are not ours; `unreadable`: of pods that cannot be decoded."""
    known = {pod.metadata.name: pod for pod in ours}
    problems = list(listed.problems)
    create = []
    for name, entry in listed.pods.items():
        if name in known:
            continue
        if name in unreadable:
            problems.append(Reason(code=POD_UNREADABLE, message=f"pod {name} cannot be decoded", facts={"pod": name}))
        elif name in others:
            message = f"pod {name} exists and is not this pod set's"
            problems.append(Reason(code=POD_CONFLICT, message=message, facts={"pod": name}))
        else:
            create.append(entry)
    live = [pod for pod in known.values() if pod.metadata.deletion_timestamp is None]
    unlisted = tuple(pod for pod in live if pod.metadata.name not in listed.pods)
    return PodSetPlan(
        create=tuple(create),
        restart=tuple(pod for pod in live if pod.metadata.name in listed.pods and has_ended(pod)),
        remove=() if listed.problems else unlisted,
        problems=tuple(problems),
    )


def compute_pod_set_status(
    pod_set: StrimziPodSet, listed: ListedPods, ours: Iterable[Pod], *, problems: tuple[Reason, ...], now: datetime
) -> StrimziPodSetStatus:
    """Strimzi's counts: what is listed, what of it is ready, and what of it has the listed revision."""
    present = [pod for pod in ours if pod.metadata.name in listed.pods and pod.metadata.deletion_timestamp is None]
    current = [
        pod for pod in present if read_revision(pod.metadata.annotations) == listed.pods[pod.metadata.name].revision
    ]
    return StrimziPodSetStatus(
        observed_generation=pod_set.metadata.generation,
        pods=len(pod_set.spec.pods),
        ready_pods=sum(is_pod_ready(pod) for pod in present),
        current_pods=len(current),
        conditions=build_conditions(problems, pod_set.status.conditions, now=now),
    )


def build_conditions(
    problems: tuple[Reason, ...], before: tuple[Condition, ...], *, now: datetime
) -> tuple[Condition, ...]:
    """NotReady with the problems, or nothing. Its time is when it began."""
    if not problems:
        return ()
    known = next((condition for condition in before if condition.type == NOT_READY), None)
    return (
        Condition(
            type=NOT_READY,
            status="True",
            reason=problems[0].code,
            message=describe_problems(problems),
            last_transition_time=now if known is None else known.last_transition_time,
        ),
    )
