"""Pods that run on capacity that a ProvisioningRequest was given: whose they are, and what is left to come. Pure.

A pod says by annotation which request of its namespace it consumes (specs/nodes.md 2.4). Where it is like the pods of
one pod set in everything that decides where it may run, it counts for that set, else for any (4.3). What runs needs no
booking: it takes its room by itself.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from msgspec import structs

from plimsoll.nodes.observing.waiting_pods import CONSUME
from plimsoll.nodes.planning.lumps import is_booked
from plimsoll.nodes.planning.scheduling_keys import Forms
from plimsoll.objects.pods import PodStatus

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from plimsoll.nodes.requests.seen import Seen
    from plimsoll.objects.placement import Toleration
    from plimsoll.objects.pods import Pod
    from plimsoll.scheduling.view import ClusterView

CLASS_NAME: Final = (
    "autoscaling.x-k8s.io/provisioning-class-name",
    "cluster-autoscaler.kubernetes.io/provisioning-class-name",
)
_DEFAULT_SCHEDULER: Final = "default-scheduler"
_ADDED_TO_EVERY_POD: Final = frozenset({"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"})

Sets = tuple[int, ...]


def consumed_request(pod: Pod) -> str:
    """NAMESPACE/NAME of the request that it says it consumes; empty: none."""
    name = _said(pod, CONSUME)
    return f"{pod.metadata.namespace}/{name}" if name else ""


def class_said(pod: Pod) -> str:
    """The class that a consuming pod says its request has."""
    return _said(pod, CLASS_NAME)


def _said(pod: Pod, keys: tuple[str, ...]) -> str:
    notes = pod.metadata.annotations
    return next(filter(None, map(notes.get, keys)), "") if notes else ""


# ---- which pod set


class Matches:
    """Pod sets that pods are of. Kept from turn to turn: what a pod asks for does not change while it lives."""

    def __init__(self) -> None:
        self._forms = Forms()
        self._known: dict[str, tuple[tuple[Pod, ...], dict[str, Sets]]] = {}
        """By the uid of a request: what its pods were compared with, and what came of it by the uid of the pod."""
        self._used: dict[str, tuple[tuple[Pod, ...], dict[str, Sets]]] = {}

    def of(self, pod: Pod, seen: Seen) -> Sets:
        """Numbers of the pod sets it may be of, the likeliest first; empty where it is like none of them."""
        request, one = seen.request.metadata.uid or seen.name, pod.metadata.uid or pod.metadata.name
        templates, known = self._known.get(request, ((), {}))
        found = known.get(one) if templates == seen.templates else None
        if found is None:
            found = self._found(pod, seen)
        self._used.setdefault(request, (seen.templates, {}))[1][one] = found
        return found

    def forget(self) -> None:
        """Keep only who was asked for since the last time."""
        self._known, self._used = self._used, {}
        self._forms = Forms()

    def _found(self, pod: Pod, seen: Seen) -> Sets:
        form = self._form(pod)
        alike = [number for number, one in enumerate(seen.templates) if self._form(one) is form]
        labels = pod.metadata.labels.items()
        named = {number for number in alike if seen.templates[number].metadata.labels.items() <= labels}
        return tuple(sorted(alike, key=lambda number: (number not in named, number)))

    def _form(self, pod: Pod) -> object:
        return self._forms.of(_as_made(pod))


def _as_made(pod: Pod) -> Pod:
    """As its maker wrote it: without what admission, the scheduler and the kubelet add."""
    spec = pod.spec
    return structs.replace(
        pod,
        metadata=structs.replace(pod.metadata, uid=""),
        spec=structs.replace(
            spec,
            node_name="",
            tolerations=tuple(one for one in spec.tolerations if not _is_added(one)),
            scheduling_gates=(),
            overhead={},
            scheduler_name=spec.scheduler_name or _DEFAULT_SCHEDULER,
            priority=spec.priority or 0,
        ),
        status=PodStatus(),
    )


def _is_added(one: Toleration) -> bool:
    return one.key in _ADDED_TO_EVERY_POD and one.operator == "Exists" and one.effect == "NoExecute"


# ---- how many


@dataclass(frozen=True, slots=True, kw_only=True)
class Consumption:
    """Of one request."""

    running: int = 0
    """Pods on nodes that say they consume it."""
    remaining: tuple[int, ...] = ()
    """By pod set: pods that are still to come."""

    @property
    def is_complete(self) -> bool:
        return not any(self.remaining)


def consumption(view: ClusterView, requests: Iterable[Seen], matches: Matches) -> dict[str, Consumption]:
    """What runs of these requests on the nodes of a view, by name."""
    by_name = {one.name: one for one in requests}
    running: dict[str, Counter[Sets]] = {name: Counter() for name in by_name}
    for name, pod in _consuming(view, by_name):
        running[name][matches.of(pod, by_name[name])] += 1
    matches.forget()
    return {name: _consumed(one, running[name]) for name, one in by_name.items()}


def _consuming(view: ClusterView, requests: Mapping[str, Seen]) -> Iterator[tuple[str, Pod]]:
    for state in view.nodes.values():
        for placed in state.pods.values():
            pod = placed.pod
            if pod.metadata.annotations and (name := consumed_request(pod)) in requests and not is_booked(pod):
                yield name, pod


def _consumed(seen: Seen, running: Counter[Sets]) -> Consumption:
    """Each pod takes a place of a set it is like; who is like none takes any that is left after that.

    Who is like one set only goes before who is like several, and a set that has all its pods is owed nothing more.
    """
    left = [one.count for one in seen.request.spec.pod_sets]
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
