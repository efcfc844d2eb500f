"""The disruption controller: keeps the status of every PodDisruptionBudget, which decides evictions.

A budget is counted when it changes, when a pod it covers does, and when a granted eviction should have happened. The
eviction handler of the API server writes the same status; each write carries the version it was planned from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.kube.controller.controller import Again, Controller, Done
from plimsoll.kube.controller.enqueue import enqueue_on, get_own_key, list_states
from plimsoll.kube.errors import NotFound
from plimsoll.kube.informer.events import Key, Updated, get_key
from plimsoll.kube.recorder import EventType, build_reference
from plimsoll.local.controller_manager.disruption.allowed_disruptions import (
    DisruptedPods,
    build_failed_status,
    compute_status,
    needs_scale,
)
from plimsoll.local.controller_manager.disruption.scales import NoScale, PodScales, Scale
from plimsoll.local.controller_manager.pod_indexes import index_pods_by_label, list_matching_pods
from plimsoll.objects.api.meta import format_time
from plimsoll.objects.api.pods import Pod, is_pod_ready
from plimsoll.objects.api.policy import PodDisruptionBudget
from plimsoll.objects.owners import find_controller
from plimsoll.scheduling.selectors import parse_label_selector

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from plimsoll.kube.informer.events import Change
    from plimsoll.local.components import Component
    from plimsoll.objects.api.policy import PodDisruptionBudgetStatus

NAME: Final = "controllermanager"
"""What the real controller signs its events with."""


class DisruptionController:
    """Reconciles through `controller`, whose keys are budgets."""

    def __init__(self, component: Component) -> None:
        self._client = component.client
        self._clock = component.clock
        self._recorder = component.recorder
        self._budgets = component.informers.get_informer(PodDisruptionBudget)
        self._pods = component.informers.get_informer(Pod)
        self._resource = component.client.calls.get_resource(PodDisruptionBudget)
        self._pod_resource = component.client.calls.get_resource(Pod)
        self._scales = PodScales(component)
        index_pods_by_label(self._pods)
        self.controller: Controller[Key] = Controller(
            "disruption-controller",
            self.reconcile,
            clock=component.clock,
            entropy=component.entropy,
            all_keys=lambda: [get_key(budget) for budget in self._budgets.cache],
        )
        enqueue_on(self._budgets, self.controller, get_own_key)
        enqueue_on(self._pods, self.controller, self._find_covering_budgets)
        for source in self._scales.sources:
            self.controller.add_source(source)

    async def reconcile(self, key: Key) -> Done | Again:
        budget = self._budgets.cache.get(key.name, key.namespace)
        if budget is None:
            return Done()
        pods = list_matching_pods(self._pods, key.namespace, parse_label_selector(budget.spec.selector))
        scale = await self._scale(budget, pods)
        now = self._clock.now()
        if isinstance(scale, NoScale):
            self._record(budget, EventType.WARNING, "CalculateExpectedPodCountFailed", _describe_uncounted(scale))
            await self._write(budget, build_failed_status(budget, scale.why, now))
            return Done(summary=f"allows nothing: {scale.why}")
        status, book = compute_status(budget, pods, scale.wanted, now)
        self._update_status(budget, pods, scale, book)
        await self._write(budget, status)
        if book.look_at is None:
            return Done()
        # A moment later than that: at the very moment the eviction is still in time.
        return Again(after_s=max(0.0, (book.look_at - now).total_seconds()) + 1)

    async def _scale(self, budget: PodDisruptionBudget, pods: Sequence[Pod]) -> Scale | NoScale:
        if not needs_scale(budget.spec):
            return Scale(wanted=0)
        return await self._scales.find_scale(pods)

    def _update_status(
        self, budget: PodDisruptionBudget, pods: Sequence[Pod], scale: Scale, book: DisruptedPods
    ) -> None:
        if not pods:
            self._record(budget, EventType.NORMAL, "NoPods", "No matching pods found")
        if scale.unmanaged:
            self._record(
                budget, EventType.WARNING, "UnmanagedPods", _UNMANAGED % parse_label_selector(budget.spec.selector)
            )
        by_name = {pod.metadata.name: pod for pod in pods}
        for name in book.overdue:
            about = build_reference(self._pod_resource, by_name[name])
            why = f"Pod was expected by PDB {get_key(budget)} to be deleted but it wasn't"
            self._recorder.record(about, EventType.WARNING, reason="NotDeleted", message=why)

    async def _write(self, budget: PodDisruptionBudget, status: PodDisruptionBudgetStatus) -> None:
        if status == budget.status:
            return
        metadata = budget.metadata
        identity = {"uid": metadata.uid, "resourceVersion": metadata.resource_version}
        body = {"metadata": identity, "status": _build_body(status, budget.status)}
        try:
            await self._client.merge_patch(
                PodDisruptionBudget, metadata.name, body, namespace=metadata.namespace, subresource="status"
            )
        except NotFound:
            # It was deleted meanwhile.
            return

    def _record(self, budget: PodDisruptionBudget, event_type: EventType, reason: str, message: str) -> None:
        self._recorder.record(build_reference(self._resource, budget), event_type, reason=reason, message=message)

    def _find_covering_budgets(self, change: Change[Any]) -> Iterable[Key]:
        """The budgets that cover the pod, or covered it; of a change that no budget counts, none."""
        budgets = self._budgets.cache.list(change.key.namespace)
        if not budgets:
            return ()
        states: list[Any] = list_states(change)
        if isinstance(change, Updated) and _extract_counted_fields(states[0]) == _extract_counted_fields(states[1]):
            return ()
        return [
            get_key(budget)
            for budget in budgets
            if any(parse_label_selector(budget.spec.selector).matches(state.metadata.labels) for state in states)
        ]


def _extract_counted_fields(pod: Pod) -> tuple[Any, ...]:
    metadata = pod.metadata
    return metadata.labels, is_pod_ready(pod), metadata.deletion_timestamp, find_controller(metadata)


def _build_body(status: PodDisruptionBudgetStatus, before: PodDisruptionBudgetStatus) -> dict[str, Any]:
    written = {name: format_time(at) for name, at in status.disrupted_pods.items()}
    dropped = {name: None for name in before.disrupted_pods if name not in written}
    return {
        "observedGeneration": status.observed_generation,
        "disruptionsAllowed": status.disruptions_allowed,
        "currentHealthy": status.current_healthy,
        "desiredHealthy": status.desired_healthy,
        "expectedPods": status.expected_pods,
        "disruptedPods": {**dropped, **written} if written else None,
        "conditions": [
            {
                "type": condition.type,
                "status": condition.status,
                "observedGeneration": condition.observed_generation,
                "lastTransitionTime": format_time(condition.last_transition_time)
                if condition.last_transition_time
                else None,
                "reason": condition.reason,
                "message": condition.message,
            }
            for condition in status.conditions
        ],
    }


def _describe_uncounted(scale: NoScale) -> str:
    return f"Failed to calculate the number of expected pods: {scale.why}"


_UNMANAGED: Final = (
    "Pods selected by this PodDisruptionBudget (selector: %s) were found to be unmanaged. As a result, the status of "
    "the PDB cannot be calculated correctly, which may result in undefined behavior. To account for these pods please "
    'set ".spec.minAvailable" field of the PDB to an integer value.'
)
