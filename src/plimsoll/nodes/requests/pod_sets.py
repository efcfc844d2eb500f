"""The pods of a ProvisioningRequest: PodTemplates as admission would complete them (docs/design/nodes.md 4.2). Pure.

A pod set is one pod and a count. LimitRange defaults, requests derived from limits and PriorityClass priorities are
applied as the API server does, so that the plan is made for the pods that will exist.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from msgspec import structs

from plimsoll.nodes.model.snapshot import PendingPods
from plimsoll.nodes.requests.promised_nodes import restrict_nodes
from plimsoll.objects.api.meta import OwnerReference
from plimsoll.objects.api.pods import Pod
from plimsoll.objects.api.provisioning_requests import CLASS_NAME_ANNOTATIONS, CONSUME_ANNOTATIONS, REQUEST_GROUP
from plimsoll.objects.codec.decode_problems import BadObject
from plimsoll.objects.codec.decoding import convert_object
from plimsoll.objects.limit_ranges import as_admitted
from plimsoll.scheduling.priorities import get_priority, resolve_priority

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from plimsoll.objects.api.policy import PriorityClass
    from plimsoll.objects.api.provisioning_requests import ProvisioningRequest

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSets:
    """All pod sets of one request; if `problem` is set, the rest is empty."""

    pods: tuple[PendingPods, ...] = ()
    """Kept off nodes that the request must not be promised (`promised_nodes`)."""
    templates: tuple[Pod, ...] = ()
    """The pods as their owner creates them."""
    priority: int = 0
    """The highest priority of its pods."""
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _NamedPod:
    """The pod of a template under the name of a request."""

    template: Pod
    counts_upcoming: bool
    pod: Pod
    planned: Pod
    """Kept off nodes that the request must not be promised."""


@dataclass(slots=True)
class PodCache:
    """Pods built earlier: the same template gives the identical object, so that derived data stays valid.

    It never changes a result.
    """

    made: dict[str, tuple[tuple[Any, ...], Pod | str]] = field(default_factory=dict)
    """By PodTemplate: what the pod was built from, and the pod, or why there is none."""
    named: dict[tuple[str, int], _NamedPod] = field(default_factory=dict)
    """By request and pod set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """What admission does to a pod between its template and the scheduler."""

    limit_ranges: Mapping[str, Sequence[Json]] = field(default_factory=dict)
    """By namespace."""
    priorities: Mapping[str, int] = field(default_factory=dict)
    """By PriorityClass."""
    default_priority: int = 0
    as_scheduled: Callable[[Pod], Pod] | None = None

    @classmethod
    def from_objects(
        cls,
        limit_ranges: Mapping[str, Sequence[Json]],
        priority_classes: Sequence[PriorityClass],
        *,
        as_scheduled: Callable[[Pod], Pod] | None = None,
    ) -> Admission:
        return cls(
            limit_ranges=limit_ranges,
            priorities={priority_class.metadata.name: priority_class.value for priority_class in priority_classes},
            default_priority=next(
                (priority_class.value for priority_class in priority_classes if priority_class.global_default), 0
            ),
            as_scheduled=as_scheduled,
        )

    def resolve_priority(self, pod: Pod) -> int | None:
        """The priority that admission resolves."""
        return resolve_priority(pod, self.priorities, default=self.default_priority)


class PodTemplates:
    """The PodTemplates of all namespaces, with admission applied."""

    def __init__(
        self,
        bodies: Mapping[str, Json],
        *,
        bad: Mapping[str, str],
        admission: Admission,
        memory: PodCache | None = None,
    ) -> None:
        """`bodies`, and `bad` (why PodTemplates cannot be decoded), by NAMESPACE/NAME."""
        self._bodies = bodies
        self._bad = bad
        self._admission = admission
        self._memory = memory or PodCache()
        self._kept = PodCache()

    def build_pod_sets(self, request: ProvisioningRequest, *, counts_upcoming: bool = True) -> PodSets:
        """The pod sets of a request, or why they cannot be built. `counts_upcoming`: it may use upcoming nodes."""
        pods = {name: self._build_pod(name) for name in _list_references(request)}
        if problem := _find_problem(request, pods):
            return PodSets(problem=problem)
        pending: list[PendingPods] = []
        templates: list[Pod] = []
        for index, pod_set in enumerate(request.spec.pod_sets):
            pod = pods[_format_reference(request, pod_set.pod_template_ref.name)]
            assert isinstance(pod, Pod), "what has no pod is a problem"
            named = self._name_pod(pod, request, index, counts_upcoming=counts_upcoming)
            templates.append(named.pod)
            pending.append(
                PendingPods(
                    key=f"{_format_name(request)}/{index}",
                    pod=named.planned,
                    count=pod_set.count,
                    created=request.metadata.creation_timestamp,
                    bundle=_format_name(request),
                )
            )
        return PodSets(pods=tuple(pending), templates=tuple(templates), priority=max(map(get_priority, templates)))

    def drop_unused(self) -> None:
        """Drop cache entries that were not used since this object was created."""
        self._memory.made, self._memory.named = self._kept.made, self._kept.named

    def _build_pod(self, name: str) -> Pod | str | None:
        """The pod of a template; text: why it cannot be read; None: there is no such template."""
        body = self._bodies.get(name)
        if body is None:
            return self._bad.get(name)
        namespace = name.partition("/")[0]
        ranges = self._admission.limit_ranges.get(namespace, ())
        made_of = (body, *ranges)
        before = self._memory.made.get(name)
        if before is not None and len(before[0]) == len(made_of) and all(map(_is, before[0], made_of)):
            made = before[1]
        else:
            made = _read(body, ranges)
        self._kept.made[name] = (made_of, made)
        return made

    def _name_pod(self, pod: Pod, request: ProvisioningRequest, index: int, *, counts_upcoming: bool) -> _NamedPod:
        """The pod under the request's name, with its current priority, which can change while the template does not."""
        priority = self._admission.resolve_priority(pod)
        key = (f"{_format_name(request)}/{request.metadata.uid}", index)
        found = self._memory.named.get(key)
        if (
            found is None
            or found.template is not pod
            or found.pod.spec.priority != priority
            or found.counts_upcoming != counts_upcoming
        ):
            named = _as_of(request, index, pod)
            named = structs.replace(named, spec=structs.replace(named.spec, priority=priority))
            if self._admission.as_scheduled is not None:
                named = self._admission.as_scheduled(named)
            planned = restrict_nodes(named, counts_upcoming=counts_upcoming)
            found = _NamedPod(template=pod, counts_upcoming=counts_upcoming, pod=named, planned=planned)
        self._kept.named[key] = found
        return found


def _is(left: object, right: object) -> bool:
    return left is right


def _read(body: Json, ranges: Sequence[Json]) -> Pod | str:
    template = body.get("template") or {}
    pod = {"kind": "Pod", "metadata": template.get("metadata") or {}, "spec": template.get("spec") or {}}
    if isinstance(read := convert_object(Pod, pod), BadObject):
        return f"template.{read.problem}"
    admitted = convert_object(Pod, as_admitted(pod, ranges))
    return f"template.{admitted.problem}" if isinstance(admitted, BadObject) else admitted


def _as_of(request: ProvisioningRequest, index: int, pod: Pod) -> Pod:
    meta = request.metadata
    owner = OwnerReference(
        api_version=f"{REQUEST_GROUP}/v1", kind=request.get_kind_name(), name=meta.name, uid=meta.uid, controller=True
    )
    annotations = {CONSUME_ANNOTATIONS[0]: meta.name, CLASS_NAME_ANNOTATIONS[0]: request.spec.provisioning_class_name}
    return structs.replace(
        pod,
        metadata=structs.replace(
            pod.metadata,
            name=f"{meta.name}-{index}",
            namespace=meta.namespace,
            annotations={**pod.metadata.annotations, **annotations},
            creation_timestamp=meta.creation_timestamp,
            owner_references=(owner,),
        ),
        # The gates of a template are removed when its pods may run (Kueue's pod groups): capacity is for that moment.
        spec=structs.replace(pod.spec, scheduling_gates=()),
    )


def _find_problem(request: ProvisioningRequest, pods: Mapping[str, Pod | str | None]) -> str:
    sets = request.spec.pod_sets
    if not sets:
        return "it has no pod sets"
    if odd := [str(index) for index, pod_set in enumerate(sets) if pod_set.count < 1]:
        return f"pod sets without pods: {', '.join(odd)}"
    if missing := [name for name, pod in pods.items() if pod is None]:
        total = len(sets)
        many = f"{total} PodTemplate{'s' * (total != 1)}"
        return f"of {many} it refers to, {len(missing)} not found: {', '.join(missing)}"
    bad = [f"PodTemplate {name} cannot be read: {pod}" for name, pod in pods.items() if isinstance(pod, str)]
    return "; ".join(bad)


def _list_references(request: ProvisioningRequest) -> list[str]:
    """NAMESPACE/NAME of each PodTemplate the request refers to, without duplicates."""
    names = (_format_reference(request, pod_set.pod_template_ref.name) for pod_set in request.spec.pod_sets)
    return [*dict.fromkeys(names)]


def _format_reference(request: ProvisioningRequest, template: str) -> str:
    return f"{request.metadata.namespace}/{template}"


def _format_name(request: ProvisioningRequest) -> str:
    return f"{request.metadata.namespace}/{request.metadata.name}"
