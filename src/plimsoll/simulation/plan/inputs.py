"""The input of `plimsoll plan`: a snapshot from a scenario without its steps, from `kubectl get -o json`, or both.

No API server is used, so half a million pods cost as much as one. What a server would have added and planning needs
(priorities, default namespaces, the status of nodes) is completed here. Which pods are set aside is decided by
`nodes.observing.pod_filters`, as in the running autoscaler.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from plimsoll.core.errors import InvalidInput
from plimsoll.core.formatting import DEFAULT_CURRENCY
from plimsoll.nodes.config.expander_priorities import CONFIG_MAP, KEY, read_priorities
from plimsoll.nodes.config.policy import PodRules
from plimsoll.nodes.config.scheduler_profiles import load_profiles
from plimsoll.nodes.model.reasons import CONSUMING
from plimsoll.nodes.model.snapshot import PendingPods, Snapshot
from plimsoll.nodes.observing.pod_filters import DAEMON, EXPENDABLE, GATED, NOMINATED, find_filter_reason, is_pending
from plimsoll.nodes.observing.scheduler_profile_pods import SchedulerProfilePods
from plimsoll.nodes.requests.classes import BUILT_IN
from plimsoll.nodes.requests.model import ClassKind
from plimsoll.nodes.requests.reader import ListedRequests
from plimsoll.objects.api.core import ConfigMap, Namespace
from plimsoll.objects.api.meta import WireObject, format_time
from plimsoll.objects.api.nodes import Node
from plimsoll.objects.api.pods import Pod, PodTemplate
from plimsoll.objects.api.policy import LimitRange, PodDisruptionBudget, PriorityClass
from plimsoll.objects.api.provisioning_requests import ProvisioningRequest, use_shipped_names
from plimsoll.objects.api.simulated_cloud import GROUP_LABEL
from plimsoll.objects.api.storage import CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass
from plimsoll.objects.api.workloads import DaemonSet
from plimsoll.objects.codec.decode_problems import BadObject
from plimsoll.objects.codec.decoding import convert_object
from plimsoll.objects.codec.manifests import read_documents
from plimsoll.objects.limit_ranges import as_admitted, strip_nulls
from plimsoll.scheduling import ClusterView, Storage
from plimsoll.scheduling.priorities import EXPENDABLE_BELOW, is_expendable, resolve_priority
from plimsoll.simulation.files.cloud_manifests import build_initial_nodes, label_nodes
from plimsoll.simulation.plan.checks import check_objects, check_requests, check_scenario, join_problem_path
from plimsoll.simulation.plan.files import read_plan_files
from plimsoll.simulation.plan.groups import decode_object, read_groups, read_machine_types
from plimsoll.simulation.plan.requests import PlanRequests, read_classes, read_plan_requests
from plimsoll.simulation.worlds.completion import complete_status

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from plimsoll.nodes.requests.model import RequestView
    from plimsoll.simulation.scenario import Json, PodEntry, Scenario


T = TypeVar("T", bound=WireObject)

_DEFAULT_NAMESPACE: Final = "default"
_MUST_BE_READABLE: Final = ("ProvisioningRequest", "PodTemplate")
"""They are the question; a plan that leaves one out would answer another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanInput:
    """What is planned. `requests` are in queue order."""

    snapshot: Snapshot
    options: dict[str, Any]
    requests: tuple[RequestView, ...] = ()
    held: tuple[RequestView, ...] = ()
    """Requests that have a booking."""
    priorities: dict[int, tuple[str, ...]] = field(default_factory=dict)
    """Priorities of the priority expander."""
    warnings: tuple[str, ...] = ()
    """Unreadable objects and their effect on the plan, and requests that are not answered."""
    set_aside: dict[str, str] = field(default_factory=dict)
    """Pending pods that are not planned, and why."""
    currency: str = DEFAULT_CURRENCY
    """That of the prices."""


def read_plan_input(files: Sequence[tuple[str, bytes]], *, catalogues: Sequence[str] = ()) -> PlanInput:
    """From the files of the command line, taken together; raises `InvalidInput` with the place of what is wrong."""
    return build_plan_input(read_plan_files(files, catalogues=catalogues))


def build_plan_input(scenario: Scenario) -> PlanInput:
    """What the first loop of a scenario would see."""
    check_scenario(scenario)
    return _Reading(scenario).build_input()


# ---- one scenario


def _find_currency(scenario: Scenario) -> str:
    """The currency that the prices name; several are all named, because their amounts are added up."""
    entries = (*scenario.machine_types, *(group.spec for group in scenario.node_groups))
    named = {str(entry["currency"]) for entry in entries if entry.get("currency")}
    return "/".join(sorted(named)) or DEFAULT_CURRENCY


class _Reading:
    """The objects of a scenario, by kind, and what follows from them."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._now = format_time(scenario.start)
        bodies = [*label_nodes(scenario.objects, scenario.node_groups), *build_initial_nodes(scenario)]
        self._bodies = [_complete(body, now=self._now) for body in bodies]
        check_objects(self._bodies)
        self._by_kind: dict[str, list[Json]] = {}
        for body in self._bodies:
            self._by_kind.setdefault(body["kind"], []).append(body)
        self._bad: dict[tuple[str, str, str], BadObject] = {}
        self._set_aside: dict[str, str] = {}
        self._limit_ranges = self._get_limit_ranges()
        self._priorities = {
            priority_class.metadata.name: priority_class.value for priority_class in self._decode_all(PriorityClass)
        }
        self._default_priority = next(
            (
                priority_class.value
                for priority_class in self._decode_all(PriorityClass)
                if priority_class.global_default
            ),
            0,
        )

    def build_input(self) -> PlanInput:
        file = str(self._scenario.options.get("scheduler-config-file") or "")
        as_scheduled = SchedulerProfilePods(load_profiles(file, path="options.scheduler-config-file"))
        pods = [as_scheduled.apply(self._with_priority(pod)) for pod in self._decode_all(Pod)]
        nodes = self._decode_all(Node)
        requests = self._build_requests(as_scheduled)
        cutoff = _get_cutoff(self._scenario.options)
        bundles = [pods for request in requests.line if request.class_kind is ClassKind.ATOMIC for pods in request.pods]
        entries = [
            replace(pending_pods, pod=as_scheduled.apply(pending_pods.pod))
            for pending_pods in self._list_entries(cutoff)
        ]
        pending = (*bundles, *entries, *self._list_pending(pods, cutoff))
        _check_keys(pending)
        snapshot = Snapshot(
            number=0,
            at=self._scenario.start,
            view=self._build_view(nodes, [pod for pod in pods if not is_expendable(pod, below=cutoff)]),
            pending=pending,
            groups=tuple(read_groups(self._scenario, nodes, pods)),
            machine_types=read_machine_types(self._scenario, nodes),
            daemon_sets=tuple(self._decode_all(DaemonSet)),
            budgets=tuple(self._decode_all(PodDisruptionBudget)),
            group_of={
                node.metadata.name: group for node in nodes if (group := node.metadata.labels.get(GROUP_LABEL, ""))
            },
        )
        return PlanInput(
            snapshot=snapshot,
            options=dict(self._scenario.options),
            requests=requests.line,
            held=requests.held,
            priorities=self._read_group_priorities(),
            warnings=(*map(_format_warning, self._bad.values()), *requests.warnings),
            set_aside=self._set_aside,
            currency=_find_currency(self._scenario),
        )

    def _read_group_priorities(self) -> dict[int, tuple[str, ...]]:
        texts = [
            config_map.data[KEY]
            for config_map in self._decode_all(ConfigMap)
            if config_map.metadata.name == CONFIG_MAP and KEY in config_map.data
        ]
        documents = [document for _, document in read_documents(texts[0].encode(), source=CONFIG_MAP)] if texts else []
        return read_priorities(documents[0]) if documents else {}

    def _decode_all(self, struct: type[T]) -> list[T]:
        found: list[T] = []
        for body in self._by_kind.get(struct.get_kind_name(), ()):
            converted = convert_object(struct, body)
            if isinstance(converted, BadObject):
                if converted.kind in _MUST_BE_READABLE:
                    path, message = join_problem_path(
                        f"{converted.kind.lower()}/{converted.namespace}/{converted.name}", converted.problem
                    )
                    raise InvalidInput(message, path=path)
                self._bad[converted.kind, converted.namespace, converted.name] = converted
            else:
                found.append(converted)
        return found

    def _build_view(self, nodes: Iterable[Node], pods: Iterable[Pod]) -> ClusterView:
        storage = Storage(
            claims=self._decode_all(PersistentVolumeClaim),
            volumes=self._decode_all(PersistentVolume),
            classes=self._decode_all(StorageClass),
            csi_nodes=self._decode_all(CSINode),
        )
        namespaces = {namespace.metadata.name: namespace.metadata.labels for namespace in self._decode_all(Namespace)}
        placed = [_on_its_node(pod) for pod in pods]
        bad_pods = [bad_object for bad_object in self._bad.values() if bad_object.kind == Pod.get_kind_name()]
        return ClusterView.from_objects(nodes, placed, namespaces=namespaces, storage=storage, bad_pods=bad_pods)

    def _with_priority(self, pod: Pod) -> Pod:
        priority = resolve_priority(pod, self._priorities, default=self._default_priority)
        if priority is None or priority == pod.spec.priority:
            return pod
        return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, priority=priority))

    # ---- pending pods

    def _list_pending(self, pods: Iterable[Pod], cutoff: int) -> Iterator[PendingPods]:
        for pod in pods:
            if not is_pending(pod):
                continue
            if why := explain_set_aside(pod, cutoff=cutoff):
                self._set_aside[_get_key(pod)] = why
                continue
            yield PendingPods(
                key=_get_key(pod), pod=pod, count=1, created=pod.metadata.creation_timestamp, names=(pod.metadata.name,)
            )

    def _list_entries(self, cutoff: int) -> Iterator[PendingPods]:
        for index, entry in enumerate(self._scenario.pods):
            body = self._fill(_build_pod_body(entry), entry.namespace)
            pod = self._with_priority(decode_object(Pod, body, path=f"pods[{index}].template"))
            if why := explain_set_aside(pod, cutoff=cutoff):
                self._set_aside[f"{entry.namespace}/{entry.name}"] = why
                continue
            yield PendingPods(key=f"{entry.namespace}/{entry.name}", pod=pod, count=entry.count)

    def _build_requests(self, as_scheduled: SchedulerProfilePods) -> PlanRequests:
        found = self._decode_all(ProvisioningRequest)
        check_requests(request for request in found if request.spec.provisioning_class_name in BUILT_IN)
        listed = ListedRequests(
            requests=tuple(found),
            templates=self._get_templates(),
            limit_ranges=self._limit_ranges,
            priority_classes=tuple(self._decode_all(PriorityClass)),
            provisioning_classes=read_classes(self._by_kind.get("ProvisioningClass", ())),
            as_scheduled=as_scheduled.apply,
        )
        return read_plan_requests(listed, self._scenario.options, self._scenario.start)

    # ---- what admission would have filled in

    def _get_limit_ranges(self) -> dict[str, list[Json]]:
        """LimitRanges by namespace."""
        readable = {_get_key(limit_range) for limit_range in self._decode_all(LimitRange)}
        found: dict[str, list[Json]] = {}
        for body in self._by_kind.get(LimitRange.get_kind_name(), ()):
            namespace = body["metadata"]["namespace"]
            if f"{namespace}/{body['metadata']['name']}" in readable:
                found.setdefault(namespace, []).append(strip_nulls(body))
        return found

    def _fill(self, body: Json, namespace: str) -> Json:
        """A pod with the defaults of its namespace; one that cannot be read is left for decoding to complain about."""
        ranges = self._limit_ranges.get(namespace, ())
        return body if not ranges or isinstance(convert_object(Pod, body), BadObject) else as_admitted(body, ranges)

    def _get_templates(self) -> dict[str, Json]:
        """By NAMESPACE/NAME; all are readable."""
        self._decode_all(PodTemplate)
        bodies = self._by_kind.get(PodTemplate.get_kind_name(), ())
        return {f"{body['metadata']['namespace']}/{body['metadata']['name']}": body for body in bodies}


# ---- objects


def _complete(body: Json, *, now: str) -> Json:
    """A copy with what a running cluster would have put there; what cannot be read stays as it is."""
    copy = {**use_shipped_names(body), "metadata": {**body["metadata"]}}
    if not copy["metadata"].get("namespace") and copy["kind"] in _NAMESPACED:
        copy["metadata"]["namespace"] = _DEFAULT_NAMESPACE
    if copy["kind"] == Node.get_kind_name() and not isinstance(convert_object(Node, body), BadObject):
        copy["status"] = strip_nulls(body.get("status") or {})
        complete_status(copy, {}, is_new=True, now=now)
    return copy


_NAMESPACED: Final = (
    "Pod",
    "PodTemplate",
    "ProvisioningRequest",
    "DaemonSet",
    "PersistentVolumeClaim",
    "PodDisruptionBudget",
    "LimitRange",
)


def _build_pod_body(entry: PodEntry) -> Json:
    given = entry.template.get("metadata") or {}
    metadata = {**given, "name": f"{entry.name}-0", "namespace": entry.namespace}
    metadata.setdefault("ownerReferences", [_build_owner(entry.name)])
    return {"kind": "Pod", "metadata": metadata, "spec": entry.template.get("spec", {})}


def _build_owner(name: str) -> Json:
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": f"of-{name}", "controller": True}


def _get_key(obj: WireObject) -> str:
    return f"{obj.metadata.namespace or _DEFAULT_NAMESPACE}/{obj.metadata.name}"


def _check_keys(pending: Sequence[PendingPods]) -> None:
    """Answers name pods by these keys."""
    seen: set[str] = set()
    for pending_pods in pending:
        if pending_pods.key in seen:
            raise InvalidInput(
                f"{pending_pods.key} is an entry of pods and a pod among the objects; rename one", path="pods"
            )
        seen.add(pending_pods.key)


def _format_warning(bad: BadObject) -> str:
    """What could not be read, and what follows."""
    match bad.kind:
        case "Pod" if bad.node_name:
            effect = f"nothing is placed beside it on {bad.node_name}"
        case "Pod":
            effect = "it is not planned for"
        case "Node":
            effect = "it takes no pods"
        case _:
            effect = "it is left out"
    return f"{bad.kind} {'/'.join(filter(None, (bad.namespace, bad.name)))} cannot be read: {bad.problem}; {effect}"


def _on_its_node(pod: Pod) -> Pod:
    if pod.spec.node_name or not pod.status.nominated_node_name:
        return pod
    spec = msgspec.structs.replace(pod.spec, node_name=pod.status.nominated_node_name)
    return msgspec.structs.replace(pod, spec=spec)


def _get_cutoff(options: Json) -> int:
    """Pods below it are expendable; whether the option is a number, `read_options` says."""
    given = options.get("expendable-pods-priority-cutoff", EXPENDABLE_BELOW)
    try:
        return int(given)
    except (TypeError, ValueError):
        return EXPENDABLE_BELOW


_WORDS: Final = {
    NOMINATED: "nominated to a node",
    GATED: "held back by scheduling gates",
    DAEMON: "of daemon sets, for which no node is added",
    CONSUMING: "covered by a ProvisioningRequest",
    EXPENDABLE: "expendable (priority below {cutoff})",
}


def explain_set_aside(pod: Pod, *, cutoff: int) -> str:
    """Why a pending pod is not planned; empty: it is planned."""
    reason = find_filter_reason(pod, PodRules(expendable_below=cutoff))
    return "" if reason is None else _WORDS.get(reason.code, reason.message).format(cutoff=cutoff)
