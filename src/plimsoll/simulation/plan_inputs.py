"""Files as the snapshot of one plan: a scenario without its steps, or what `kubectl get -o json` printed, or both.

Pure. No API server is asked, so a request for half a million pods costs as much as one for a single pod; what a server
would have added and planning looks at (priorities, default namespaces, a node's missing status) is completed here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from plimsoll.core.errors import InvalidInput, InvalidQuantity, UnreadableDocument
from plimsoll.core.resources import ResourceVector
from plimsoll.local.cloud.catalogue import Catalogue, read_catalogue, shipped_catalogue, shipped_names
from plimsoll.local.cloud.node_bodies import node_body
from plimsoll.local.cloud.shapes import NoShape, shape_of
from plimsoll.nodes.planning.group_priorities import CONFIG_MAP, KEY, read_priorities
from plimsoll.nodes.planning.world import CapacityType, Group, MachineType, Pending, Snapshot
from plimsoll.objects.cloud import GROUP_LABEL, CloudSpec, NodeGroup
from plimsoll.objects.cloud import MachineType as SoldType
from plimsoll.objects.configuration import ConfigMap, Namespace
from plimsoll.objects.decoding import convert_object
from plimsoll.objects.manifests import read_documents
from plimsoll.objects.meta import ObjectMeta, WireObject, written_time
from plimsoll.objects.nodes import Node
from plimsoll.objects.pods import Pod, PodTemplate
from plimsoll.objects.policy import PodDisruptionBudget, PriorityClass
from plimsoll.objects.problems import BadObject
from plimsoll.objects.requests import ATOMIC_CLASSES, ProvisioningRequest
from plimsoll.objects.volumes import CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass
from plimsoll.objects.workloads import DaemonSet
from plimsoll.scheduling import ClusterView, Storage
from plimsoll.scheduling.gates import is_gated
from plimsoll.scheduling.priorities import EXPENDABLE_BELOW, is_expendable, resolved_priority
from plimsoll.simulation.cloud_entries import cloud_manifests, initial_nodes, with_groups
from plimsoll.simulation.completing import completed_status
from plimsoll.simulation.scenario_files import scenario_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from plimsoll.simulation.scenarios import Json, PodEntry, Scenario

T = TypeVar("T", bound=WireObject)

_DEFAULT_NAMESPACE: Final = "default"
_LISTS: Final = ("machineTypes", "nodeGroups", "pods", "objects")
_ENDED: Final = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanInput:
    """What is planned for. `requests` are in the order in which they are served."""

    snapshot: Snapshot
    options: dict[str, Any]
    requests: tuple[ProvisioningRequest, ...] = ()
    priorities: dict[int, tuple[str, ...]] = field(default_factory=dict)
    """Of the priority expander."""
    problems: tuple[str, ...] = ()
    """Objects that could not be read: they count as present, and nothing is placed beside them."""


def read_plan_input(files: Sequence[tuple[str, bytes]], *, catalogue: str = "") -> PlanInput:
    """From the files of the command line, taken together; raises `InvalidInput` with the place of what is wrong."""
    merged: Json = {}
    for source, data in files:
        for _, document in read_documents(data, source=source):
            _merge(merged, document, source=source)
    if catalogue:
        merged.setdefault("machineTypes", []).extend(_types_of(catalogue))
    merged.pop("steps", None)
    return plan_input(scenario_of(merged))


def plan_input(scenario: Scenario) -> PlanInput:
    """What the first loop of a scenario would see."""
    return _Reading(scenario).input()


# ---- files


def _merge(merged: Json, document: Any, *, source: str) -> None:
    if not isinstance(document, dict):
        raise UnreadableDocument("neither a scenario nor an object of Kubernetes", path=source)
    if "kind" in document:
        listed = document.get("items")
        kind = str(document["kind"])
        objects = listed if kind.endswith("List") and isinstance(listed, list) else [document]
        typed = kind.removesuffix("List")
        for one in objects:
            if isinstance(one, dict) and typed and "kind" not in one:
                one.update(kind=typed, apiVersion=document.get("apiVersion", "v1"))
        merged.setdefault("objects", []).extend(objects)
        return
    for name, value in document.items():
        if name in _LISTS and isinstance(value, list):
            merged.setdefault(name, []).extend(value)
        elif name == "options" and isinstance(value, dict):
            merged.setdefault(name, {}).update(value)
        elif name in merged and merged[name] != value:
            raise InvalidInput(f"{name} is {merged[name]!r} in another file and {value!r} here", path=source)
        else:
            merged[name] = value


def _types_of(catalogue: str) -> list[Json]:
    """A shipped catalogue by its name, or a file of one."""
    return [_written(one) for one in _catalogue(catalogue).machine_types]


def _catalogue(name: str) -> Catalogue:
    if name in shipped_names():
        return shipped_catalogue(name)
    from pathlib import Path  # noqa: PLC0415 -- only here is a file opened

    try:
        data = Path(name).read_bytes()
    except OSError as error:
        shipped = ", ".join(shipped_names())
        raise InvalidInput(
            f"is no file ({error.strerror}) and no shipped catalogue; those are {shipped}", path=name
        ) from error
    return read_catalogue(data, source=name)


def _written(one: SoldType) -> Json:
    body: Json = msgspec.to_builtins(one)
    return body


# ---- one scenario


class _Reading:
    """The objects of a scenario, by kind, and what follows from them."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._now = written_time(scenario.start)
        bodies = [*with_groups(scenario.objects, scenario.node_groups), *initial_nodes(scenario)]
        self._bodies = [_completed(one, now=self._now) for one in bodies]
        self._bad: list[BadObject] = []
        self._priorities = {one.metadata.name: one.value for one in self._all(PriorityClass)}
        self._default_priority = next((one.value for one in self._all(PriorityClass) if one.global_default), 0)

    def input(self) -> PlanInput:
        pods = [self._with_priority(one) for one in self._all(Pod)]
        nodes = self._all(Node)
        requests = tuple(
            sorted(self._requests(), key=lambda one: (_created(one.metadata, self._scenario.start), _key(one)))
        )
        cutoff = _cutoff(self._scenario.options)
        snapshot = Snapshot(
            number=0,
            at=self._scenario.start,
            view=self._view(nodes, [one for one in pods if not is_expendable(one, below=cutoff)]),
            pending=(*self._bundles(requests), *self._entries(), *self._waiting(pods, cutoff)),
            groups=tuple(self._groups()),
            machine_types=tuple(_machine_type(one) for one in self._scenario.machine_types),
            daemon_sets=tuple(self._all(DaemonSet)),
            budgets=tuple(self._all(PodDisruptionBudget)),
            group_of={one.metadata.name: group for one in nodes if (group := one.metadata.labels.get(GROUP_LABEL, ""))},
        )
        problems = tuple(f"{bad.kind} {bad.namespace}/{bad.name}: {bad.problem}" for bad in self._bad)
        return PlanInput(
            snapshot=snapshot,
            options=dict(self._scenario.options),
            requests=requests,
            priorities=self._group_priorities(),
            problems=problems,
        )

    def _group_priorities(self) -> dict[int, tuple[str, ...]]:
        texts = [one.data[KEY] for one in self._all(ConfigMap) if one.metadata.name == CONFIG_MAP and KEY in one.data]
        documents = [document for _, document in read_documents(texts[0].encode(), source=CONFIG_MAP)] if texts else []
        return read_priorities(documents[0]) if documents else {}

    def _all(self, struct: type[T]) -> list[T]:
        found: list[T] = []
        for body in self._bodies:
            if body.get("kind") != struct.kind_name():
                continue
            one = convert_object(struct, body)
            if isinstance(one, BadObject):
                if one not in self._bad:
                    self._bad.append(one)
            else:
                found.append(one)
        return found

    def _view(self, nodes: Iterable[Node], pods: Iterable[Pod]) -> ClusterView:
        storage = Storage(
            claims=self._all(PersistentVolumeClaim),
            volumes=self._all(PersistentVolume),
            classes=self._all(StorageClass),
            csi_nodes=self._all(CSINode),
        )
        namespaces = {one.metadata.name: one.metadata.labels for one in self._all(Namespace)}
        placed = [_on_its_node(one) for one in pods]
        bad_pods = [one for one in self._bad if one.kind == Pod.kind_name()]
        return ClusterView.of(nodes, placed, namespaces=namespaces, storage=storage, bad_pods=bad_pods)

    def _with_priority(self, pod: Pod) -> Pod:
        priority = resolved_priority(pod, self._priorities, default=self._default_priority)
        if priority is None or priority == pod.spec.priority:
            return pod
        return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, priority=priority))

    # ---- who waits

    def _waiting(self, pods: Iterable[Pod], cutoff: int) -> Iterator[Pending]:
        for pod in pods:
            waits = not _node_of(pod) and pod.status.phase not in _ENDED and pod.metadata.deletion_timestamp is None
            if waits and not is_gated(pod) and not is_expendable(pod, below=cutoff):
                yield Pending(
                    key=_key(pod), pod=pod, count=1, created=pod.metadata.creation_timestamp, names=(pod.metadata.name,)
                )

    def _entries(self) -> Iterator[Pending]:
        for index, entry in enumerate(self._scenario.pods):
            pod = self._with_priority(_pod_of(entry, path=f"pods[{index}].template"))
            yield Pending(key=f"{entry.namespace}/{entry.name}", pod=pod, count=entry.count)

    def _requests(self) -> Iterator[ProvisioningRequest]:
        """Those this loop would serve: of a class that grows the cluster, and not answered yet."""
        for one in self._all(ProvisioningRequest):
            answered = any(condition.status == "True" for condition in one.status.conditions)
            if one.spec.provisioning_class_name in ATOMIC_CLASSES and not answered:
                yield _in_namespace(one)

    def _bundles(self, requests: Iterable[ProvisioningRequest]) -> Iterator[Pending]:
        templates = {_key(_in_namespace(one)): one for one in self._all(PodTemplate)}
        for request in requests:
            for index, pod_set in enumerate(request.spec.pod_sets):
                name = f"{request.metadata.namespace}/{pod_set.pod_template_ref.name}"
                if name not in templates:
                    raise InvalidInput(
                        f"refers to PodTemplate {name}, which is not there",
                        path=f"provisioningrequest/{_key(request)}.spec.podSets[{index}].podTemplateRef.name",
                    )
                pod = _templated(templates[name], request.metadata.namespace, f"{request.metadata.name}-{index}")
                yield Pending(
                    key=f"{_key(request)}/{index}",
                    pod=self._with_priority(pod),
                    count=pod_set.count,
                    created=request.metadata.creation_timestamp,
                    bundle=_key(request),
                )

    # ---- groups

    def _groups(self) -> Iterator[Group]:
        manifests = {
            body["metadata"]["name"]: body for _, body in cloud_manifests(self._scenario) if body["kind"] == "NodeGroup"
        }
        spec = next(msgspec.convert(body["spec"], CloudSpec) for _, body in cloud_manifests(self._scenario))
        types = {one["name"]: msgspec.convert(one, SoldType) for one in self._scenario.machine_types}
        for entry in self._scenario.node_groups:
            if not entry.exists:
                continue
            group = msgspec.convert(manifests[entry.id], NodeGroup)
            shape = shape_of(group, spec, types)
            if isinstance(shape, NoShape):
                raise InvalidInput(shape.problem, path=f"nodeGroups.{entry.id}")
            zone = shape.zones[0] if len(shape.zones) == 1 and group.spec.zones else ""
            body = node_body(
                shape, f"{entry.id}-template", zone=shape.zones[0], provider_id="", ready=True, now=self._scenario.start
            )
            yield Group(
                id=entry.id,
                min_size=group.spec.min,
                max_size=group.spec.max,
                target_size=group.spec.target,
                template=_readable(Node, body, path=f"nodeGroups.{entry.id}"),
                price_per_hour=shape.price,
                machine_type=shape.machine_type,
                zone=zone,
                autoprovisioned=group.spec.autoprovisioned,
                autoscaled=group.spec.autoscaled,
                zero_or_max=group.spec.zero_or_max,
                atomic_resize=group.spec.atomic,
                capacity_type=CapacityType(shape.capacity_type or CapacityType.ON_DEMAND),
            )


def _machine_type(body: Json) -> MachineType:
    one = msgspec.convert(body, SoldType)
    whole = {"cpu": one.cpu, "memory": one.memory, "pods": one.pods, **one.gpu}
    try:
        capacity = ResourceVector.from_quantities(whole)
        allocatable = ResourceVector.from_quantities({**whole, **one.allocatable})
    except InvalidQuantity as error:
        raise error.under(f"machineTypes.{one.name}") from error
    return MachineType(
        name=one.name,
        capacity=capacity,
        allocatable=allocatable,
        price_per_hour=one.price,
        zones=one.zones,
        labels=one.labels,
        architecture=one.arch,
        capacity_type=CapacityType(one.capacity_type or CapacityType.ON_DEMAND),
    )


# ---- objects


def _completed(body: Json, *, now: str) -> Json:
    """A copy with what a running cluster would have put there."""
    copy = {**body, "metadata": {**body["metadata"]}}
    if copy["kind"] == "Node":
        copy["status"] = {**(body.get("status") or {})}
        completed_status(copy, {}, is_new=True, now=now)
    elif "namespace" not in copy["metadata"] and copy["kind"] in _NAMESPACED:
        copy["metadata"]["namespace"] = _DEFAULT_NAMESPACE
    return copy


_NAMESPACED: Final = (
    "Pod",
    "PodTemplate",
    "ProvisioningRequest",
    "DaemonSet",
    "PersistentVolumeClaim",
    "PodDisruptionBudget",
)


def _readable(struct: type[T], body: Json, *, path: str) -> T:
    one = convert_object(struct, body)
    if isinstance(one, BadObject):
        raise InvalidInput(one.problem, path=path)
    return one


def _pod_of(entry: PodEntry, *, path: str) -> Pod:
    given = entry.template.get("metadata") or {}
    metadata = {**given, "name": f"{entry.name}-0", "namespace": entry.namespace}
    metadata.setdefault("ownerReferences", [_owner(entry.name)])
    return _readable(Pod, {"kind": "Pod", "metadata": metadata, "spec": entry.template.get("spec", {})}, path=path)


def _owner(name: str) -> Json:
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": f"of-{name}", "controller": True}


def _templated(template: PodTemplate, namespace: str, name: str) -> Pod:
    metadata = ObjectMeta(
        name=name,
        namespace=namespace,
        labels=template.template.metadata.labels,
        annotations=template.template.metadata.annotations,
    )
    return Pod(metadata=metadata, spec=template.template.spec)


def _in_namespace(one: T) -> T:
    if one.metadata.namespace:
        return one
    return msgspec.structs.replace(one, metadata=msgspec.structs.replace(one.metadata, namespace=_DEFAULT_NAMESPACE))


def _key(one: WireObject) -> str:
    return f"{one.metadata.namespace or _DEFAULT_NAMESPACE}/{one.metadata.name}"


def _created(metadata: ObjectMeta, otherwise: datetime) -> datetime:
    return metadata.creation_timestamp or otherwise


def _node_of(pod: Pod) -> str:
    """A pod for which room is being made counts as there already."""
    return pod.spec.node_name or pod.status.nominated_node_name


def _on_its_node(pod: Pod) -> Pod:
    if pod.spec.node_name or not pod.status.nominated_node_name:
        return pod
    spec = msgspec.structs.replace(pod.spec, node_name=pod.status.nominated_node_name)
    return msgspec.structs.replace(pod, spec=spec)


def _cutoff(options: Json) -> int:
    """Pods below it are expendable; whether the option is a number, `read_options` says."""
    given = options.get("expendable-pods-priority-cutoff", EXPENDABLE_BELOW)
    try:
        return int(given)
    except (TypeError, ValueError):
        return EXPENDABLE_BELOW
