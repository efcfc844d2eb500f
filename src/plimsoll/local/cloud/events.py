"""The Events of the cloud: what it rejected and why, and when it had capacity again; on the machine and on its group.

A group gets one Event per reconcile and cause, however many machines it affects. Nothing depends on them: states and
errors are in the objects.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from plimsoll.kube.recorder import EventType, build_reference
from plimsoll.local.cloud.availability import NOT_SOLD, QUOTA_EXCEEDED, STOCKOUT

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.local.cloud.planner import Plan
    from plimsoll.local.components import Component
    from plimsoll.objects.api.simulated_cloud import Machine, NodeGroup

_REASONS: Final = {STOCKOUT: "OutOfStock", QUOTA_EXCEEDED: "QuotaExceeded", NOT_SOLD: "NotSold"}


class CloudEvents:
    """Records Events through the component's recorder, which neither waits nor fails."""

    def __init__(self, component: Component) -> None:
        self._recorder = component.recorder
        self._client = component.client

    def report_plan(self, planned: Plan, groups: Iterable[NodeGroup], machines: Iterable[Machine]) -> None:
        """Machines were made, refused, or started after all."""
        refused = [(new_machine, new_machine.error) for new_machine in planned.new if new_machine.error is not None]
        if not (refused or planned.retries):
            return
        machine_of = {machine.metadata.name: machine for machine in machines}
        group_of = {node_group.metadata.name: node_group for node_group in groups}
        struck: Counter[tuple[str, str, str]] = Counter()
        for new, error in refused:
            reason = _REASONS.get(error.code, "Refused")
            self._record(machine_of.get(new.name), EventType.WARNING, reason, error.message)
            struck[new.spec.group, reason, error.message] += 1
        for (group, reason, message), count in struck.items():
            self._record(group_of.get(group), EventType.WARNING, reason, f"{_format_count(count)} refused: {message}")
        started = Counter(item.spec.group for item in planned.retries)
        for retry in planned.retries:
            found = machine_of.get(retry.machine.metadata.name)
            self._record(found, EventType.NORMAL, "RoomAgain", "the cloud has room again: the machine starts")
        for group, count in started.items():
            message = f"the cloud has room again: {_format_count(count)} started"
            self._record(group_of.get(group), EventType.NORMAL, "RoomAgain", message)

    def report_boot(self, machine: Machine) -> None:
        """Its node was made, or could not be."""
        if machine.status.error is not None:
            self._record(machine, EventType.WARNING, "NodeRefused", machine.status.error.message)

    def _record(self, about: Machine | NodeGroup | None, kind: EventType, reason: str, message: str) -> None:
        if about is not None:
            resource = self._client.calls.get_resource(type(about))
            self._recorder.record(build_reference(resource, about), kind, reason=reason, message=message)


def _format_count(machines: int) -> str:
    return "1 machine" if machines == 1 else f"{machines} machines"
