"""ProvisioningRequests of a file: which of them one loop would answer, in which order, and what their pods would be.

Pure. Only `plan_inputs` reads with it; `nodes.request_answers` says what came of them. Requests that were answered
before are not answered again, but room they were promised stays theirs (specs/nodes.md 3.1, 3.6, 3.9, 4.2, 4.3).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from plimsoll.nodes.observing.waiting_pods import CONSUME
from plimsoll.nodes.planning.world import Pending
from plimsoll.objects.requests import ATOMIC_CLASSES, CHECK_CLASSES, ProvisioningRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from plimsoll.objects.pods import Pod
    from plimsoll.simulation.scenarios import Json

    PodOf = Callable[[Json, str, str], Pod]
    """From the template of a PodTemplate, its namespace and its path."""

FAILED_TO_CREATE_PODS: Final = "FailedToCreatePods"
CLASS_NOT_ALLOWED: Final = "ClassNotAllowed"
_MIRRORING: Final = "check-capacity.kubernetes.io"
"""The name of the first design: such requests get a condition CapacityAvailable too."""
_BOOKED_S: Final = 600
_LONGEST_S: Final = 86_400
_OVER: Final = ("Failed", "BookingExpired", "CapacityRevoked")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRequest:
    """One request that this loop answers."""

    name: str
    """NAMESPACE/NAME."""
    grows: bool
    """Whether nodes may be added for it; otherwise it only asks."""
    pods: tuple[Pending, ...] = ()
    keeps: bool = True
    """Whether a check keeps the room it finds."""
    retries: bool = True
    mirrors: bool = False
    booked_s: int = _BOOKED_S
    failure: tuple[str, str] | None = None
    """Reason and message where it fails before anything is planned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """What requests are read beside."""

    templates: Mapping[str, Json]
    """By NAMESPACE/NAME of the PodTemplate."""
    classes: Mapping[str, Mapping[str, str]]
    """ProvisioningClasses with their parameters; none: every class is allowed."""
    pods: Sequence[Pod]
    pod_of: PodOf
    now: datetime
    instance: str = ""


@dataclass(slots=True, kw_only=True)
class Requests:
    """What a file asks for."""

    line: tuple[PlanRequest, ...] = ()
    """Who is served first stands first: by priority, by age, by name."""
    promised: tuple[Pending, ...] = ()
    """Pods that requests were promised room for and that do not run yet."""
    warnings: list[str] = field(default_factory=list)


def read_requests(requests: Iterable[ProvisioningRequest], cluster: Cluster) -> Requests:
    found = Requests()
    line: list[tuple[tuple[int, datetime, str], PlanRequest]] = []
    for one in requests:
        name, kind = _name(one), one.spec.provisioning_class_name
        if kind not in (*ATOMIC_CLASSES, *CHECK_CLASSES):
            found.warnings.append(f"ProvisioningRequest {name} is of class {kind or 'none'}, which nobody here answers")
        elif not _is_for(one, cluster.instance):
            found.warnings.append(f"ProvisioningRequest {name} is for another instance and not answered")
        elif _is_answered(one):
            found.warnings.append(f"ProvisioningRequest {name} is answered already and not planned for")
            found.promised += _promised(one, cluster)
        else:
            read = _read(one, cluster, found.warnings)
            line.append((_rank(one, read, cluster.now), read))
    found.line = tuple(read for _, read in sorted(line, key=lambda pair: pair[0]))
    return found


def _rank(one: ProvisioningRequest, read: PlanRequest, now: datetime) -> tuple[int, datetime, str]:
    priority = max((each.pod.spec.priority or 0 for each in read.pods), default=0)
    return -priority, one.metadata.creation_timestamp or now, read.name


# ---- whose, and whether it waits


def _is_for(one: ProvisioningRequest, instance: str) -> bool:
    """Of several that answer checks, each has a name; the one without a name answers who names nobody."""
    wanted, kind = one.spec.parameters.get("processorInstance", ""), one.spec.provisioning_class_name
    return wanted == instance and (not instance or kind in CHECK_CLASSES)


def _is_answered(one: ProvisioningRequest) -> bool:
    conditions = {each.type: each for each in one.status.conditions}
    if any(kind in conditions and conditions[kind].status == "True" for kind in _OVER):
        return True
    provisioned = conditions.get("Provisioned")
    return provisioned is not None and (provisioned.status != "False" or provisioned.reason == "WaitingForNodes")


def _promised(one: ProvisioningRequest, cluster: Cluster) -> tuple[Pending, ...]:
    """Its pods that are still to come, as long as its booking lasts."""
    conditions = {each.type: each for each in one.status.conditions}
    if any(kind in conditions and conditions[kind].status == "True" for kind in _OVER):
        return ()
    parameters = _parameters(one, cluster)
    since = conditions["Provisioned"].last_transition_time
    over = since is not None and since + timedelta(seconds=_booked_s(parameters)) <= cluster.now
    if over or parameters.get("reserve") == "false" or _missing(one, cluster):
        return ()
    running = sum(_consumes(pod, one) for pod in cluster.pods)
    left: list[Pending] = []
    for each in _pods(one, cluster):
        done = min(running, each.count)
        running -= done
        if each.count > done:
            left.append(Pending(key=f"booked/{each.key}", pod=each.pod, count=each.count - done))
    return tuple(left)


def _consumes(pod: Pod, one: ProvisioningRequest) -> bool:
    named = {pod.metadata.annotations.get(key) for key in CONSUME}
    return bool(pod.spec.node_name) and pod.metadata.namespace == one.metadata.namespace and one.metadata.name in named


# ---- what it asks for


def _read(one: ProvisioningRequest, cluster: Cluster, warnings: list[str]) -> PlanRequest:
    name, kind = _name(one), one.spec.provisioning_class_name
    grows = kind in ATOMIC_CLASSES
    if cluster.classes and kind not in cluster.classes:
        told = f"class {kind} is not among the ProvisioningClasses of the cluster: {', '.join(sorted(cluster.classes))}"
        return PlanRequest(name=name, grows=grows, failure=(CLASS_NOT_ALLOWED, told))
    if missing := _missing(one, cluster):
        total = len(one.spec.pod_sets)
        told = (
            f"of {total} PodTemplate{'s' * (total != 1)} it refers to, {len(missing)} not found: {', '.join(missing)}"
        )
        return PlanRequest(name=name, grows=grows, failure=(FAILED_TO_CREATE_PODS, told))
    parameters = _parameters(one, cluster)
    retry = parameters.get("noRetry", "false")
    if not grows and retry not in {"true", "false"}:
        warnings.append(f"ProvisioningRequest {name}: parameter noRetry is {retry!r}, not true or false, and ignored")
    return PlanRequest(
        name=name,
        grows=grows,
        pods=_pods(one, cluster),
        keeps=grows or parameters.get("reserve") != "false",
        retries=grows or retry != "true",
        mirrors=kind == _MIRRORING,
        booked_s=_booked_s(parameters),
    )


def _parameters(one: ProvisioningRequest, cluster: Cluster) -> dict[str, str]:
    """Its own, before those of its class."""
    return {**cluster.classes.get(one.spec.provisioning_class_name, {}), **one.spec.parameters}


def _booked_s(parameters: Mapping[str, str]) -> int:
    text = parameters.get("BookingDurationSeconds", "")
    return int(text) if text.isascii() and text.isdigit() and 1 <= int(text) <= _LONGEST_S else _BOOKED_S


def _missing(one: ProvisioningRequest, cluster: Cluster) -> list[str]:
    names = (f"{one.metadata.namespace}/{each.pod_template_ref.name}" for each in one.spec.pod_sets)
    return [name for name in dict.fromkeys(names) if name not in cluster.templates]


def _pods(one: ProvisioningRequest, cluster: Cluster) -> tuple[Pending, ...]:
    namespace = one.metadata.namespace
    found: list[Pending] = []
    for index, pod_set in enumerate(one.spec.pod_sets):
        name = f"{namespace}/{pod_set.pod_template_ref.name}"
        template = cluster.templates[name]
        named: dict[str, Any] = {"name": f"{one.metadata.name}-{index}", "namespace": namespace}
        body = {**template, "kind": "Pod", "metadata": {**(template.get("metadata") or {}), **named}}
        found.append(
            Pending(
                key=f"{_name(one)}/{index}",
                pod=cluster.pod_of(body, namespace, f"podtemplate/{name}.template"),
                count=pod_set.count,
                created=one.metadata.creation_timestamp,
                bundle=_name(one),
            )
        )
    return tuple(found)


def _name(one: ProvisioningRequest) -> str:
    return f"{one.metadata.namespace}/{one.metadata.name}"
