"""The status of a PodDisruptionBudget: how many disruptions it allows now. Pure.

Rules are those of the disruption controller 1.34: percentages round up, for `minAvailable` and `maxUnavailable` alike;
an absolute `minAvailable` counts the existing pods, everything else counts the pods there should be (the scale of their
controllers).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.core.durations import add_seconds
from plimsoll.core.values import Value
from plimsoll.objects.api.meta import Condition
from plimsoll.objects.api.pods import is_pod_ready
from plimsoll.objects.api.policy import PodDisruptionBudgetStatus

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from plimsoll.objects.api.meta import IntOrString
    from plimsoll.objects.api.pods import Pod
    from plimsoll.objects.api.policy import PodDisruptionBudget, PodDisruptionBudgetSpec

ALLOWED: Final = "DisruptionAllowed"

_EVICTION_TAKES_AT_MOST_S: Final = 120.0


class DisruptedPods(Value):
    """Evictions that were granted: those still to be seen, until when to wait for the first, and those that failed."""

    pods: dict[str, datetime] = {}
    look_at: datetime | None = None
    overdue: tuple[str, ...] = ()


class DesiredHealthy(Value):
    """Pods there should be, and how many of them must be healthy."""

    expected: int
    healthy: int


def needs_scale(spec: PodDisruptionBudgetSpec) -> bool:
    """Whether the pods' controllers have to be asked how many pods they want."""
    return spec.max_unavailable is not None or isinstance(spec.min_available, str)


def compute_desired_healthy(spec: PodDisruptionBudgetSpec, pods: int, scale: int) -> DesiredHealthy:
    """`scale` is what the controllers want in all; it counts only where `needs_scale`."""
    if spec.max_unavailable is not None:
        return DesiredHealthy(expected=scale, healthy=max(0, scale - round_up(spec.max_unavailable, scale)))
    if isinstance(spec.min_available, str):
        return DesiredHealthy(expected=scale, healthy=round_up(spec.min_available, scale))
    return DesiredHealthy(expected=pods, healthy=spec.min_available or 0)


def round_up(value: IntOrString, total: int) -> int:
    """An amount, or a share of `total`. Anything else counts as zero: the API rejects such a budget."""
    if isinstance(value, int):
        return value
    digits = value.removesuffix("%")
    return -(-total * int(digits) // 100) if digits.isdecimal() and value.endswith("%") else 0


def select_still_disrupted(granted: Mapping[str, datetime], pods: Sequence[Pod], now: datetime) -> DisruptedPods:
    """What became of granted evictions: a pod that is gone or terminating is seen, one that stays too long failed."""
    waiting: dict[str, datetime] = {}
    overdue: list[str] = []
    for pod in pods:
        at = granted.get(pod.metadata.name)
        if at is None or pod.metadata.deletion_timestamp is not None:
            continue
        if add_seconds(at, _EVICTION_TAKES_AT_MOST_S) < now:
            overdue.append(pod.metadata.name)
        else:
            waiting[pod.metadata.name] = at
    look_at = min((add_seconds(at, _EVICTION_TAKES_AT_MOST_S) for at in waiting.values()), default=None)
    return DisruptedPods(pods=waiting, look_at=look_at, overdue=tuple(overdue))


def count_healthy(pods: Sequence[Pod], granted: Mapping[str, datetime]) -> int:
    """The number of ready pods that are not being evicted."""
    return sum(
        is_pod_ready(pod) and pod.metadata.deletion_timestamp is None and pod.metadata.name not in granted
        for pod in pods
    )


def compute_status(
    budget: PodDisruptionBudget, pods: Sequence[Pod], scale: int, now: datetime
) -> tuple[PodDisruptionBudgetStatus, DisruptedPods]:
    """The status as it should be."""
    book = select_still_disrupted(budget.status.disrupted_pods, pods, now)
    want = compute_desired_healthy(budget.spec, len(pods), scale)
    current = count_healthy(pods, book.pods)
    allowed = max(0, current - want.healthy) if want.expected > 0 else 0
    condition = _build_condition(budget, now, status="True" if allowed else "False", reason=_REASONS[allowed > 0])
    status = PodDisruptionBudgetStatus(
        observed_generation=budget.metadata.generation,
        disruptions_allowed=allowed,
        current_healthy=current,
        desired_healthy=want.healthy,
        expected_pods=want.expected,
        disrupted_pods=book.pods,
        conditions=_set_condition(budget, condition),
    )
    return status, book


def build_failed_status(budget: PodDisruptionBudget, why: str, now: datetime) -> PodDisruptionBudgetStatus:
    """What cannot be counted allows nothing; the numbers stay as they were."""
    before = budget.status
    condition = _build_condition(budget, now, status="False", reason="SyncFailed", message=why)
    return PodDisruptionBudgetStatus(
        observed_generation=budget.metadata.generation,
        disruptions_allowed=0,
        current_healthy=before.current_healthy,
        desired_healthy=before.desired_healthy,
        expected_pods=before.expected_pods,
        disrupted_pods=before.disrupted_pods,
        conditions=_set_condition(budget, condition),
    )


_REASONS: Final = {True: "SufficientPods", False: "InsufficientPods"}


def _build_condition(
    budget: PodDisruptionBudget, now: datetime, *, status: str, reason: str, message: str = ""
) -> Condition:
    before = next((condition for condition in budget.status.conditions if condition.type == ALLOWED), None)
    since = before.last_transition_time if before is not None and before.status == status else None
    return Condition(
        type=ALLOWED,
        status=status,
        reason=reason,
        message=message,
        observed_generation=budget.metadata.generation,
        last_transition_time=since or now.replace(microsecond=0),
    )


def _set_condition(budget: PodDisruptionBudget, condition: Condition) -> tuple[Condition, ...]:
    others = tuple(item for item in budget.status.conditions if item.type != ALLOWED)
    return (*others, condition)
