"""The five conditions of a namespace that is being deleted, in the words of Kubernetes. Pure."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.values import Value
from plimsoll.objects.api.meta import format_time

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from plimsoll.objects.api.core import Namespace

_FINE: Final = {
    "NamespaceDeletionDiscoveryFailure": ("ResourcesDiscovered", "All resources successfully discovered"),
    "NamespaceDeletionGroupVersionParsingFailure": (
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    "NamespaceDeletionContentFailure": (
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    "NamespaceContentRemaining": ("ContentRemoved", "All content successfully removed"),
    "NamespaceFinalizersRemaining": ("ContentHasNoFinalizers", "All content-preserving finalizers finished"),
}


class RemainingContent(Value):
    """What is left in a namespace: objects by kind (`configmaps.`, `deployments.apps`), their finalizers, failures."""

    objects: dict[str, int] = {}
    finalizers: dict[str, int] = {}
    failures: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not self.objects and not self.failures


def build_conditions(namespace: Namespace, remains: RemainingContent, now: datetime) -> list[dict[str, Any]]:
    """All five, whether they hold or not; one keeps its time as long as it keeps its status."""
    troubles = _find_failures(remains)
    before = {condition.type: condition for condition in namespace.status.conditions}
    result: list[dict[str, Any]] = []
    for type_, fine in _FINE.items():
        status = "True" if type_ in troubles else "False"
        reason, message = troubles.get(type_, fine)
        known = before.get(type_)
        since = known.last_transition_time if known is not None and known.status == status else None
        result.append(
            {
                "type": type_,
                "status": status,
                "lastTransitionTime": format_time(since or now),
                "reason": reason,
                "message": message,
            }
        )
    return result


def are_up_to_date(namespace: Namespace, wanted: list[dict[str, Any]]) -> bool:
    present_conditions = [
        (condition.type, condition.status, condition.reason, condition.message)
        for condition in namespace.status.conditions
    ]
    return present_conditions == [(item["type"], item["status"], item["reason"], item["message"]) for item in wanted]


def _find_failures(remains: RemainingContent) -> dict[str, tuple[str, str]]:
    found: dict[str, tuple[str, str]] = {}
    if remains.failures:
        message = (
            f"Failed to delete all resource types, {len(remains.failures)} remaining: {', '.join(remains.failures)}"
        )
        found["NamespaceDeletionContentFailure"] = ("ContentDeletionFailed", message)
    if remains.objects:
        message = f"Some resources are remaining: {_format_counts(remains.objects, 'has')}"
        found["NamespaceContentRemaining"] = ("SomeResourcesRemain", message)
    if remains.finalizers:
        message = f"Some content in the namespace has finalizers remaining: {_format_counts(remains.finalizers, 'in')}"
        found["NamespaceFinalizersRemaining"] = ("SomeFinalizersRemain", message)
    return found


def _format_counts(counts: Mapping[str, int], verb: str) -> str:
    return ", ".join(f"{name} {verb} {count} resource instances" for name, count in sorted(Counter(counts).items()))
