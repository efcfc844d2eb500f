"""Filters pods for planning: on a node, pending, or left out with a reason (docs/design/nodes.md 4.1, 6.1, 6.4). Pure.

Pods that run, have ended or are being deleted are not pending. A pod that the scheduler has not seen yet may find a
node by itself, so it is not planned for, unless its scheduler is bypassed. `PodFilter` follows the pod store and
filters a pod again only when the pod or the rules change, or when its waiting time ends; the result equals filtering
all pods.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from itertools import chain
from typing import TYPE_CHECKING, Final, TypeGuard, Union

from msgspec import structs

from plimsoll.core.durations import add_seconds
from plimsoll.core.plans import Reason, Ref
from plimsoll.core.value_parsing import find_problem, parse_duration_s, read_duration_s
from plimsoll.kube.informer.store.changed_keys import ChangedKeys
from plimsoll.nodes.model.pod_traits import find_consumed_request, is_daemon_pod, is_mirror_pod
from plimsoll.nodes.model.reasons import CONSUMING
from plimsoll.nodes.model.results import FilteredPod, IgnoredField, PodState, list_unknown_fields
from plimsoll.scheduling.priorities import is_expendable
from plimsoll.scheduling.rules.scheduling_gates import is_gated

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from datetime import datetime

    from plimsoll.kube.informer.events import KeyTuple
    from plimsoll.nodes.config.policy import PodRules
    from plimsoll.nodes.observing.pod_store import PodStore
    from plimsoll.objects.api.pods import Pod


@dataclass(frozen=True, slots=True, kw_only=True)
class FilteredPods:
    """All pods that have not ended, each in at most one of these fields."""

    counted: Mapping[KeyTuple, Pod]
    """Pods for planning: on a node, nominated to one, or pending. No expendable pods. Valid until the next call."""
    changed_keys: ChangedKeys
    """Keys of `counted` that changed; snapshots are updated from them."""
    extra_pods: tuple[Pod, ...] = ()
    """Counted pods that the cluster does not show in this form; they replace pods of the same name."""
    pending: int
    """The number of pending pods in `counted` and `extra_pods`."""
    unprocessed: int
    """The number of pending pods that the scheduler has not tried yet."""
    filtered_out: tuple[FilteredPod, ...]
    """In the order of their names; `extra_pods` last."""
    ignored_fields: tuple[IgnoredField, ...] = ()
    """In the order of the pods' names."""

    @property
    def by_state(self) -> dict[PodState, int]:
        return {
            PodState.UNSCHEDULABLE: self.pending + len(self.filtered_out),
            PodState.UNPROCESSED: self.unprocessed,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class PodFilterContext:
    """The input of the filter. `waits_for_scheduler` is False in a scenario without a running scheduler."""

    rules: PodRules
    now: datetime
    waits_for_scheduler: bool = True
    served_requests: frozenset[str] = frozenset()
    """NAMESPACE/NAME of ProvisioningRequests whose pods are served like any others."""

    def filter_pod(self, pod: Pod) -> FilterResult:
        return filter_pod(
            pod,
            self.rules,
            now=self.now,
            waits_for_scheduler=self.waits_for_scheduler,
            served_requests=self.served_requests,
        )

    def has_same_filters(self, before: PodFilterContext | None) -> bool:
        """Whether earlier results are still valid, except for pods that are left out for a time."""
        if before is None or self.now < before.now:
            return False
        return self.waits_for_scheduler == before.waits_for_scheduler and self.rules == before.rules


class PodFilter:
    """Filters the pods of one autoscaler; only changed pods are filtered again."""

    def __init__(self) -> None:
        self._store: PodStore | None = None
        self._followed = ChangedKeys()
        self._changed_keys = ChangedKeys()
        self._last_context: PodFilterContext | None = None
        self._counted: dict[KeyTuple, Pod] = {}
        self._pending: dict[KeyTuple, None] = {}
        self._unprocessed: dict[KeyTuple, None] = {}
        self._filtered_out: dict[KeyTuple, FilteredPod] = {}
        self._ignored_fields: dict[KeyTuple, tuple[IgnoredField, ...]] = {}

    def filter(self, store: PodStore, context: PodFilterContext, *, extra_pods: Iterable[Pod] = ()) -> FilteredPods:
        """Filter all pods. `extra_pods` are a few pods that the cluster does not show, or shows in another form."""
        if store is not self._store:
            self._store, self._followed = store, store.follow()
        for place in self._find_changed(store, context):
            pod = store.get(place)
            self._put(place, None if pod is None else context.filter_pod(pod))
            self._note_ignored_fields(place, pod)
        self._last_context = context
        self._followed.clear()
        results = [context.filter_pod(pod) for pod in extra_pods]
        filtered_out = [self._filtered_out[place] for place in sorted(self._filtered_out)]
        return FilteredPods(
            counted=self._counted,
            changed_keys=self._changed_keys,
            extra_pods=tuple([result for result in results if _is_counted(result)]),
            pending=len(self._pending) + sum(_is_counted(result) and not result.spec.node_name for result in results),
            unprocessed=len(self._unprocessed) + results.count(UNPROCESSED),
            filtered_out=(*filtered_out, *(result for result in results if isinstance(result, FilteredPod))),
            ignored_fields=tuple(
                chain.from_iterable(self._ignored_fields[place] for place in sorted(self._ignored_fields))
            ),
        )

    def _find_changed(self, store: PodStore, context: PodFilterContext) -> list[KeyTuple]:
        changed = self._followed.changed if context.has_same_filters(self._last_context) else None
        if changed is None:
            known = (*self._counted, *self._unprocessed, *self._filtered_out)
            return [*dict.fromkeys((*known, *store.list_keys()))]
        too_new = [place for place, filtered in self._filtered_out.items() if filtered.reason.code == TOO_NEW]
        return [*changed, *too_new, *self._list_consumers(context)]

    def _list_consumers(self, context: PodFilterContext) -> list[KeyTuple]:
        """Pods that consume requests, if it changed which requests still cover their pods."""
        assert self._last_context is not None, "asked only about what changed since"
        if context.served_requests == self._last_context.served_requests:
            return []
        covered = [place for place, filtered in self._filtered_out.items() if filtered.reason.code == CONSUMING]
        pods = ((place, self._store.get(place)) for place in (*self._pending, *self._unprocessed) if self._store)
        return [*covered, *(place for place, pod in pods if pod is not None and find_consumed_request(pod))]

    def _note_ignored_fields(self, place: KeyTuple, pod: Pod | None) -> None:
        self._ignored_fields.pop(place, None)
        if pod is not None and (ignored := (*_list_unknown_fields(pod), *_find_bad_delay(pod))):
            self._ignored_fields[place] = ignored

    def _put(self, place: KeyTuple, result: FilterResult) -> None:
        for elsewhere in (self._pending, self._unprocessed, self._filtered_out):
            elsewhere.pop(place, None)
        if isinstance(result, FilteredPod):
            self._filtered_out[place] = result
        elif result is UNPROCESSED:
            self._unprocessed[place] = None
        counted = result if _is_counted(result) else None
        if counted is not None and not counted.spec.node_name:
            self._pending[place] = None
        before = self._counted.pop(place, None)
        if counted is not None:
            self._counted[place] = counted
        if counted is not before:
            self._changed_keys.add(place)


def _list_unknown_fields(pod: Pod) -> Iterable[IgnoredField]:
    return list_unknown_fields(_build_ref(pod), pod.metadata) if pod.metadata.unknown_fields else ()


def _find_bad_delay(pod: Pod) -> Iterator[IgnoredField]:
    written = pod.metadata.annotations.get(SCALE_UP_DELAY)
    if written is None or not is_pending(pod):
        return
    if (problem := find_problem(parse_duration_s, written)) is not None:
        field = f"metadata.annotations[{SCALE_UP_DELAY}]"
        yield IgnoredField(ref=_build_ref(pod), field=field, problem=problem)


def _build_ref(pod: Pod) -> Ref:
    return Ref(kind="pod", namespace=pod.metadata.namespace, name=pod.metadata.name)


def _is_counted(result: FilterResult) -> TypeGuard[Pod]:
    return result is not None and result is not UNPROCESSED and not isinstance(result, FilteredPod)


SCALE_UP_DELAY: Final = "cluster-autoscaler.kubernetes.io/pod-scale-up-delay"
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
"""The result for a pending pod that the scheduler has not tried yet."""

FilterResult = Union["Pod", FilteredPod, _Unprocessed, None]
"""The pod for planning, on a node or pending; or why it is left out; None if it needs no reason."""


def filter_pod(
    pod: Pod,
    rules: PodRules,
    *,
    now: datetime,
    waits_for_scheduler: bool,
    served_requests: Collection[str] = (),
) -> FilterResult:
    """The result for one pod. Without `waits_for_scheduler`, pods that the scheduler has not tried count as pending."""
    if pod.status.phase in _ENDED:
        return None
    if is_expendable(pod, below=rules.expendable_below):
        return None if pod.spec.node_name else FilteredPod(pod=pod, reason=_build_expendable_reason(rules))
    if pod.spec.node_name or pod.status.nominated_node_name:
        return _place_on_node(pod)
    if pod.metadata.deletion_timestamp is not None or is_gated(pod):
        return None
    reason = _find_exclusion_reason(pod, rules, served_requests) or _find_delay_reason(pod, rules, now)
    if reason is not None:
        return FilteredPod(pod=pod, reason=reason)
    if waits_for_scheduler and not is_unschedulable(pod) and not _is_bypassed(pod, rules):
        return UNPROCESSED
    return pod


def is_pending(pod: Pod) -> bool:
    """Whether a pod has no node and is still to run."""
    return not pod.spec.node_name and pod.status.phase not in _ENDED and pod.metadata.deletion_timestamp is None


def find_filter_reason(pod: Pod, rules: PodRules) -> Reason | None:
    """Why no node is added for a pending pod, whatever its scheduler; None if one may be."""
    if pod.status.nominated_node_name:
        return Reason(code=NOMINATED, message=f"it is nominated to node {pod.status.nominated_node_name}")
    if is_gated(pod):
        return Reason(code=GATED, message="it is held back by scheduling gates")
    if is_expendable(pod, below=rules.expendable_below):
        return _build_expendable_reason(rules)
    return _find_exclusion_reason(pod, rules)


def _place_on_node(pod: Pod) -> Pod:
    if pod.spec.node_name:
        return pod
    return structs.replace(pod, spec=structs.replace(pod.spec, node_name=pod.status.nominated_node_name))


def _find_exclusion_reason(pod: Pod, rules: PodRules, served_requests: Collection[str] = ()) -> Reason | None:
    if is_mirror_pod(pod) or is_daemon_pod(pod):
        return Reason(code=DAEMON, message="it belongs to a daemon set, for which no node is added")
    if (request := find_consumed_request(pod)) and request not in served_requests:
        return Reason(code=CONSUMING, message="it is covered by a ProvisioningRequest")
    scheduler = pod.spec.scheduler_name or _DEFAULT_SCHEDULER
    if rules.allowed_schedulers and scheduler not in rules.allowed_schedulers:
        return Reason(code="SchedulerNotAllowed", message=f"its scheduler {scheduler} is not an allowed one")
    return None


def _find_delay_reason(pod: Pod, rules: PodRules, now: datetime) -> Reason | None:
    created = pod.metadata.creation_timestamp
    delay_s = get_scale_up_delay_s(pod, rules)
    if created is not None and delay_s > 0 and add_seconds(created, delay_s) > now:
        return Reason(code=TOO_NEW, message=f"it is younger than its scale-up delay of {delay_s:g} s")
    return None


def get_scale_up_delay_s(pod: Pod, rules: PodRules) -> float:
    """The delay of the flag, or a longer one of the pod's annotation."""
    written = pod.metadata.annotations.get(SCALE_UP_DELAY, "")
    written_s = read_duration_s(written) if written else None
    return rules.new_pod_delay_s if written_s is None else max(rules.new_pod_delay_s, written_s)


def _build_expendable_reason(rules: PodRules) -> Reason:
    return Reason(code=EXPENDABLE, message=f"its priority is below {rules.expendable_below}: it is expendable")


def is_unschedulable(pod: Pod) -> bool:
    """Whether the scheduler found no node for the pod."""
    return any(
        condition.type == "PodScheduled" and condition.status == "False" and condition.reason == "Unschedulable"
        for condition in pod.status.conditions
    )


def _is_bypassed(pod: Pod, rules: PodRules) -> bool:
    return (pod.spec.scheduler_name or _DEFAULT_SCHEDULER) in rules.bypassed_schedulers
