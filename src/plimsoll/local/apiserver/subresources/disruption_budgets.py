"""Whether a PodDisruptionBudget allows one more eviction: pure arithmetic on its status.

It runs inside one atomic write, so that of many concurrent evictions only the allowed number passes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.errors import InvalidSelector
from plimsoll.core.selectors import NOTHING, LabelSelector, parse_requirement
from plimsoll.local.apiserver import status_errors
from plimsoll.objects.api.meta import format_time

if TYPE_CHECKING:
    from datetime import datetime

Json = dict[str, Any]

_MOST_DISRUPTED: Final = 2000
_RETRY_AFTER_S: Final = 10
_VIOLATED: Final = "Cannot evict pod as it would violate the pod's disruption budget."


def covers(budget: Json, labels: Json) -> bool:
    """Whether the budget is about a pod with these labels; one without labels has no budget."""
    return bool(labels) and _parse_selector((budget.get("spec") or {}).get("selector")).matches(labels)


def _parse_selector(selector: Json | None) -> LabelSelector:
    if selector is None:
        return NOTHING
    try:
        expressions = [
            parse_requirement(expression.get("key", ""), expression.get("operator", ""), expression.get("values") or ())
            for expression in selector.get("matchExpressions") or ()
        ]
        return LabelSelector.from_parts(selector.get("matchLabels") or {}, expressions)
    except InvalidSelector:
        return NOTHING


def allows_unready_eviction(budget: Json) -> bool:
    """Whether a pod that is not ready may go without being counted: it carries nothing of what the budget protects."""
    if (budget.get("spec") or {}).get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = budget.get("status") or {}
    desired = status.get("desiredHealthy", 0)
    return bool(desired > 0 and status.get("currentHealthy", 0) >= desired)


def charge(budget: Json, pod_name: str, *, now: datetime) -> Json:
    """The budget's status with one more pod disrupted; raises the 429 if no disruption is allowed."""
    metadata, status = budget["metadata"], dict(budget.get("status") or {})
    name = metadata["name"]
    if status.get("observedGeneration", 0) < metadata.get("generation", 0):
        raise build_unsettled_error(name)
    allowed, disrupted = status.get("disruptionsAllowed", 0), status.get("disruptedPods") or {}
    if allowed < 0:
        raise _forbidden(name, "pdb disruptions allowed is negative")
    if len(disrupted) > _MOST_DISRUPTED:
        raise _forbidden(name, "DisruptedPods map too big - too many evictions not confirmed by PDB controller")
    if allowed == 0:
        raise _too_many(_explain_refusal(name, status))
    status["disruptionsAllowed"] = allowed - 1
    status["disruptedPods"] = {**disrupted, pod_name: format_time(now)}
    if allowed == 1:
        status["conditions"] = _find_exhausted(status, now)
    return status


def build_unsettled_error(name: str) -> status_errors.StatusError:
    """The controller has not looked at the budget yet, or the pod has just changed: try again soon."""
    return _too_many(f"The disruption budget {name} is still being processed by the server.", retry=_RETRY_AFTER_S)


def _too_many(message: str, *, retry: int = 0) -> status_errors.StatusError:
    details: Json = {"causes": [{"reason": "DisruptionBudget", "message": message}]}
    if retry:
        details["retryAfterSeconds"] = retry
    headers = (("Retry-After", str(retry)),) if retry else ()
    return status_errors.failure(429, "TooManyRequests", _VIOLATED, details=details, headers=headers)


def _forbidden(name: str, why: str) -> status_errors.StatusError:
    details = status_errors.build_details(name, group="policy", kind="poddisruptionbudget")
    return status_errors.forbidden(f'poddisruptionbudget.policy "{name}" is forbidden: {why}', details=details)


def _explain_refusal(name: str, status: Json) -> str:
    healthy, desired = status.get("currentHealthy", 0), status.get("desiredHealthy", 0)
    conditions = status.get("conditions") or ()
    found: Json = next((condition for condition in conditions if condition.get("type") == "DisruptionAllowed"), {})
    detail = found.get("message") if found.get("status") == "False" else None
    refused = f"The disruption budget {name} does not allow evicting pods currently"
    # The numbers are not to be trusted when the controller could not make them.
    if detail and found.get("reason") == "SyncFailed":
        return f"{refused} because it failed sync: {detail}"
    if healthy <= desired:
        return f"The disruption budget {name} needs {desired} healthy pods and has {healthy} currently"
    return f"{refused} ({found.get('reason')}): {detail}" if detail else refused


def _find_exhausted(status: Json, now: datetime) -> list[Json]:
    conditions = list(status.get("conditions") or ())
    condition = {
        "type": "DisruptionAllowed",
        "status": "False",
        "observedGeneration": status.get("observedGeneration", 0),
        "lastTransitionTime": format_time(now),
        "reason": "InsufficientPods",
        "message": "",
    }
    for index, present in enumerate(conditions):
        if present.get("type") == "DisruptionAllowed":
            if present.get("status") == "False":
                condition["lastTransitionTime"] = present.get("lastTransitionTime")
            conditions[index] = condition
            return conditions
    return [*conditions, condition]
