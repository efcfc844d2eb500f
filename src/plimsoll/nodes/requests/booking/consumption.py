"""Consumption: which pods run on the capacity of a ProvisioningRequest, and what is wrong with those that wait. Pure.

A pod names the request it consumes by annotation (docs/design/nodes.md 2.4). If it equals the pods of one pod set in
everything that affects scheduling, it counts for that set, otherwise for any (docs/design/nodes.md 4.3). A running pod
needs no booking.

No node is added for a waiting pod that consumes a request, so its owner must learn why it waits (docs/design/nodes.md
2.4, 4.6): its request is missing, has another class, asks for other pods, or has lost its capacity. Warnings are
repeated in every loop; reporting emits each once per five minutes.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from msgspec import structs

from plimsoll.core.plans import Reason
from plimsoll.nodes.model.pod_traits import find_consumed_request
from plimsoll.nodes.observing.pod_filters import is_unschedulable
from plimsoll.nodes.planning.equivalence.scheduling_keys import SchedulingKeys
from plimsoll.nodes.planning.state.placeholder_pods import is_placeholder
from plimsoll.nodes.requests.classes import find_class_kind, is_same_class
from plimsoll.nodes.requests.model import ClassKind, ConsumerWarning, Phase
from plimsoll.nodes.requests.status import ConditionType, RequestState, find_state
from plimsoll.objects.api.pods import PodStatus
from plimsoll.objects.api.provisioning_requests import CLASS_NAME_ANNOTATIONS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from plimsoll.nodes.requests.model import ObservedRequests, RequestView
    from plimsoll.objects.api.affinity import Toleration
    from plimsoll.objects.api.pods import Pod
    from plimsoll.objects.api.provisioning_requests import ProvisioningRequest
    from plimsoll.scheduling.cluster_view import ClusterView


_DEFAULT_SCHEDULER: Final = "default-scheduler"
_ADDED_TO_EVERY_POD: Final = frozenset({"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"})

Sets = tuple[int, ...]


def read_class_annotation(pod: Pod) -> str:
    """The class that a consuming pod names."""
    return _read_annotation(pod, CLASS_NAME_ANNOTATIONS)


def _read_annotation(pod: Pod, keys: tuple[str, ...]) -> str:
    notes = pod.metadata.annotations
    return next(filter(None, map(notes.get, keys)), "") if notes else ""


# ---- which pod set


class PodSetMatcher:
    """Matches pods to pod sets. Results are cached across loops: the relevant fields of a pod do not change."""

    def __init__(self) -> None:
        self._forms = SchedulingKeys()
        self._known: dict[str, tuple[tuple[Pod, ...], dict[str, Sets]]] = {}
        """By request uid: the templates compared with, and the result by pod uid."""
        self._used: dict[str, tuple[tuple[Pod, ...], dict[str, Sets]]] = {}

    def match(self, pod: Pod, view: RequestView) -> Sets:
        """Indexes of the pod sets the pod may belong to, the likeliest first; empty: none."""
        request, uid = view.request.metadata.uid or view.name, pod.metadata.uid or pod.metadata.name
        templates, known = self._known.get(request, ((), {}))
        found = known.get(uid) if templates == view.templates else None
        if found is None:
            found = self._find_sets(pod, view)
        self._used.setdefault(request, (view.templates, {}))[1][uid] = found
        return found

    def forget(self) -> None:
        """Drop results that were not used since the last call."""
        self._known, self._used = self._used, {}
        self._forms = SchedulingKeys()

    def _find_sets(self, pod: Pod, view: RequestView) -> Sets:
        form = self._get_scheduling_key(pod)
        equal = [number for number, template in enumerate(view.templates) if self._get_scheduling_key(template) is form]
        labels = pod.metadata.labels.items()
        named = {number for number in equal if view.templates[number].metadata.labels.items() <= labels}
        return tuple(sorted(equal, key=lambda number: (number not in named, number)))

    def _get_scheduling_key(self, pod: Pod) -> object:
        return self._forms.get_key(_as_written(pod))


def _as_written(pod: Pod) -> Pod:
    """The pod as its owner wrote it: without what admission, the scheduler and the kubelet add."""
    spec = pod.spec
    return structs.replace(
        pod,
        metadata=structs.replace(pod.metadata, uid=""),
        spec=structs.replace(
            spec,
            node_name="",
            tolerations=tuple(toleration for toleration in spec.tolerations if not _is_added(toleration)),
            scheduling_gates=(),
            overhead={},
            scheduler_name=spec.scheduler_name or _DEFAULT_SCHEDULER,
            priority=spec.priority or 0,
        ),
        status=PodStatus(),
    )


def _is_added(toleration: Toleration) -> bool:
    return (
        toleration.key in _ADDED_TO_EVERY_POD and toleration.operator == "Exists" and toleration.effect == "NoExecute"
    )


# ---- how many


@dataclass(frozen=True, slots=True, kw_only=True)
class Consumption:
    """The consumption of one request."""

    running: int = 0
    """Running pods that consume it."""
    remaining: tuple[int, ...] = ()
    """By pod set: pods still to come."""

    @property
    def is_complete(self) -> bool:
        return not any(self.remaining)


def count_consumption(
    view: ClusterView, requests: Iterable[RequestView], matcher: PodSetMatcher
) -> dict[str, Consumption]:
    """The consumption of these requests on the nodes of a view, by name."""
    by_name = {request.name: request for request in requests}
    running: dict[str, Counter[Sets]] = {name: Counter() for name in by_name}
    for name, pod in _list_consumers(view, by_name):
        running[name][matcher.match(pod, by_name[name])] += 1
    matcher.forget()
    return {name: _build_consumption(request, running[name]) for name, request in by_name.items()}


def has_served_pods(request: ProvisioningRequest, *, instance: str = "", registered: Collection[str] = ()) -> bool:
    """Whether pods that name the request are served like any pending pods, because its booking has ended.

    Its capacity was used once, and replacement pods must not wait for it for ever. The exception is a check whose
    booking ended unused: it never adds nodes.
    """
    kind = find_class_kind(request.spec.provisioning_class_name, instance=instance, registered=registered)
    if kind is None:
        return False
    state, _ = find_state(request.status.conditions)
    if state is RequestState.BOOKING_EXPIRED:
        return kind is not ClassKind.CHECK
    return state is RequestState.CONSUMED


def _list_consumers(view: ClusterView, requests: Mapping[str, RequestView]) -> Iterator[tuple[str, Pod]]:
    for state in view.nodes.values():
        for placed in state.pods.values():
            pod = placed.pod
            if (
                pod.metadata.annotations
                and (name := find_consumed_request(pod)) in requests
                and not is_placeholder(pod)
            ):
                yield name, pod


def _build_consumption(view: RequestView, running: Counter[Sets]) -> Consumption:
    """Each pod counts for a pod set it matches; pods without a match fill what is left.

    Pods that match one set count before pods that match several; a set never counts more than its size.
    """
    left = [pod_set.count for pod_set in view.request.spec.pod_sets]
    unlike = running.get((), 0)
    for sets in sorted(running, key=lambda sets: (len(sets), sets)):
        _take(left, sets, running[sets])
    _take(left, range(len(left)), unlike)
    return Consumption(running=running.total(), remaining=tuple(left))


def _take(left: list[int], sets: Iterable[int], pods: int) -> None:
    for number in sets:
        taken = min(left[number], pods)
        left[number] -= taken
        pods -= taken


CLASS_MISSING: Final = "ProvisioningClassAnnotationMissing"
CLASS_DIFFERS: Final = "ProvisioningClassMismatch"
POD_DIFFERS: Final = "ProvisioningRequestPodMismatch"
REQUEST_MISSING: Final = "ProvisioningRequestMissing"
UNSCHEDULABLE: Final = "ConsumingPodsUnschedulable"
_MOST_PODS: Final = 50
"""The number of pods checked per request: they mostly come from one owner."""
_ENDINGS: Final = (ConditionType.FAILED, ConditionType.CAPACITY_REVOKED, ConditionType.BOOKING_EXPIRED)


def find_consumer_warnings(
    waiting: Iterable[Pod],
    requests: ObservedRequests,
    *,
    unbookable: Mapping[str, int] | None = None,
    matcher: PodSetMatcher | None = None,
) -> tuple[ConsumerWarning, ...]:
    """Warnings about pods without a node; pods that consume no request are ignored.

    `unbookable`: by request, pods for which its booking finds no room.
    """
    by_request: dict[str, list[Pod]] = {}
    for pod in waiting:
        if not pod.spec.node_name and (name := find_consumed_request(pod)):
            by_request.setdefault(name, []).append(pod)
    if not by_request:
        return ()
    view = {request.name: request for request in requests.all}
    known = matcher or PodSetMatcher()
    found: list[ConsumerWarning] = []
    for name in sorted(by_request):
        pods = sorted(by_request[name], key=lambda pod: pod.metadata.name)
        if name not in requests.known:
            found.append(_warn_of_missing_request(name, pods))
            found += _warn_of_missing_class(name, pods[:_MOST_PODS])
        elif name in view:
            found += _warn_of_pods(view[name], pods[:_MOST_PODS], known)
            found += _warn_of_request(view[name], pods, (unbookable or {}).get(name, 0))
    return tuple(found)


def _warn_of_missing_request(name: str, pods: Sequence[Pod]) -> ConsumerWarning:
    many = f"{len(pods)} pod{'s' * (len(pods) != 1)}"
    message = f"there is no ProvisioningRequest {name}, which {many} wait{'s' * (len(pods) == 1)} to consume"
    reason = Reason(code=REQUEST_MISSING, message=message, facts={"request": name, "pods": len(pods)})
    return ConsumerWarning(reason=reason, request=name, pod=pods[0])


def _warn_of_missing_class(name: str, pods: Iterable[Pod]) -> list[ConsumerWarning]:
    message = f"it consumes ProvisioningRequest {name} but does not name its class"
    reason = Reason(code=CLASS_MISSING, message=message)
    return [ConsumerWarning(reason=reason, request=name, pod=pod) for pod in pods if not read_class_annotation(pod)]


def _warn_of_pods(view: RequestView, pods: Iterable[Pod], matches: PodSetMatcher) -> list[ConsumerWarning]:
    found: list[ConsumerWarning] = []
    wanted = view.request.spec.provisioning_class_name
    for pod in pods:
        annotated = read_class_annotation(pod)
        if not annotated:
            message = f"it consumes ProvisioningRequest {view.name} but does not name its class, {wanted}"
            found.append(_warn_of_pod(view, pod, CLASS_MISSING, message))
        elif not is_same_class(annotated, wanted):
            message = f"it names class {annotated}, but ProvisioningRequest {view.name} is of class {wanted}"
            found.append(_warn_of_pod(view, pod, CLASS_DIFFERS, message))
        if view.templates and not matches.match(pod, view):
            message = (
                f"none of the pod sets of ProvisioningRequest {view.name} asks for such a pod: "
                "it may need other room than was given"
            )
            found.append(_warn_of_pod(view, pod, POD_DIFFERS, message))
    return found


def _warn_of_pod(view: RequestView, pod: Pod, code: str, message: str) -> ConsumerWarning:
    return ConsumerWarning(reason=Reason(code=code, message=message), request=view.name, pod=pod, view=view)


def _warn_of_request(view: RequestView, pods: Sequence[Pod], unbookable: int) -> list[ConsumerWarning]:
    """A warning while its pods wait and no capacity is reserved for them."""
    why = _explain_lost_capacity(view, pods, unbookable)
    if not why:
        return []
    many = f"{len(pods)} pod{'s that consume' if len(pods) != 1 else ' that consumes'} it"
    message = f"{many} wait{'s' * (len(pods) == 1)} for a node, and none is added: {why}"
    reason = Reason(code=UNSCHEDULABLE, message=message, facts={"pods": len(pods)})
    return [ConsumerWarning(reason=reason, request=view.name, view=view)]


def _explain_lost_capacity(view: RequestView, pods: Sequence[Pod], unbookable: int) -> str:
    """Why the capacity is gone; empty if it is there or still to come."""
    if view.phase is Phase.OVER:
        ended = next(
            (condition for kind in _ENDINGS if (condition := view.conditions.get(kind)) and condition.status == "True"),
            None,
        )
        return "its capacity is not kept any more" if ended is None else f"{ended.type} ({ended.reason})"
    if view.phase is not Phase.HELD:
        return ""
    if unbookable:
        return f"there is no room for {unbookable} of the {view.total} pods that capacity was found for"
    if not view.parameters.reserves and any(map(is_unschedulable, pods)):
        return "its capacity was found but, as it asked, not kept for it"
    return ""
