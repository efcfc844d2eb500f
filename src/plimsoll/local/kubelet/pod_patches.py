"""The patch that gives a pod its new status. Pure.

A strategic merge patch, as real kubelets send: conditions are merged by their type, so those of other writers in the
same list (readiness gates, DisruptionTarget) stay. In such a merge a removed field must be named with null.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from plimsoll.local.kubelet.pod_conditions import is_up_to_date
from plimsoll.objects.api.pods import Pod, PodStatus

if TYPE_CHECKING:
    from plimsoll.objects.api.pods import PodCondition

# The fields that are ours as wholes, and the fields of the slim view they are compared by.
_FIELDS: Final = (
    ("phase", "phase"),
    ("startTime", "start_time"),
    ("hostIP", "host_ip"),
    ("podIP", "pod_ip"),
    ("initContainerStatuses", "init_container_statuses"),
    ("containerStatuses", "container_statuses"),
    ("observedGeneration", "observed_generation"),
)
_WITH: Final = {"hostIP": "hostIPs", "podIP": "podIPs"}
_TEXTS: Final = ("reason", "message")


def build_status_patch(pod: Pod, wanted: dict[str, Any]) -> dict[str, Any]:
    """What of `wanted` the pod does not show yet; empty if it shows all of it."""
    shown, view = pod.status, msgspec.convert(wanted, PodStatus)
    patch: dict[str, Any] = {}
    for name, field in _FIELDS:
        if name in wanted and getattr(view, field) != getattr(shown, field):
            patch[name] = wanted[name]
            if name in _WITH:
                patch[_WITH[name]] = wanted[_WITH[name]]
    for name in _TEXTS:
        if getattr(view, name) != getattr(shown, name):
            patch[name] = wanted.get(name)
    known = {condition.type: condition for condition in shown.conditions}
    if not all(is_up_to_date(item, known.get(item["type"])) for item in wanted["conditions"]):
        patch["conditions"] = [_clear_texts(item, known.get(item["type"])) for item in wanted["conditions"]]
    return patch


def _clear_texts(wanted: dict[str, Any], before: PodCondition | None) -> dict[str, Any]:
    """The condition, with null for the texts that it no longer has."""
    gone = {name: None for name in _TEXTS if before is not None and getattr(before, name) and name not in wanted}
    return wanted | gone
