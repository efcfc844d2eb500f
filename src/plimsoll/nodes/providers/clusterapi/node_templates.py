"""The template of a node group without nodes: from annotations, and from the infrastructure's machine template.

Annotations take precedence over the infrastructure's machine template. Labels are only those that a real node would
get: the ones that Cluster API copies from machines to nodes, and the ones that annotations declare.

`build_template` is pure. `InfrastructureTemplates` reads machine templates and nodes, only when a template is
requested.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import structlog

from plimsoll.core.errors import InvalidInput
from plimsoll.core.names import find_label_value_problems, find_qualified_name_problems
from plimsoll.core.quantity import Quantity
from plimsoll.core.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS
from plimsoll.core.values import Value
from plimsoll.kube.errors import ApiError, UnreadableAnswer
from plimsoll.nodes.model.node_labels import ARCH, HOSTNAME, INSTANCE_TYPE, OS, REGION, ZONE
from plimsoll.nodes.providers.clusterapi.annotations import CAPACITY_PREFIX, is_propagated
from plimsoll.nodes.providers.clusterapi.client import find_preferred_version, read, read_if_there
from plimsoll.nodes.providers.values import ATTACH_LIMITS, ProviderFailed
from plimsoll.objects.api.meta import ObjectMeta, ResourceList
from plimsoll.objects.api.nodes import Node, NodeCondition, NodeSpec, NodeStatus, Taint

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from plimsoll.kube.client import Client
    from plimsoll.objects.api.cluster_api import InfrastructureReference, Scalable


_MAX_PODS: Final = "110"
_QUANTITIES: Final = ((CPU, "cpu"), (MEMORY, "memory"), (EPHEMERAL_STORAGE, "ephemeral-disk"))
# A real node of the group is the best source for these.
_OF_A_NODE: Final = (
    ARCH,
    OS,
    INSTANCE_TYPE,
    "beta.kubernetes.io/instance-type",
    REGION,
    "failure-domain.beta.kubernetes.io/region",
    ZONE,
    "failure-domain.beta.kubernetes.io/zone",
)


class Infrastructure(Value):
    """What the machine template of the infrastructure provider says in its status."""

    capacity: dict[str, str] = {}
    architecture: str = ""
    operating_system: str = ""

    @classmethod
    def from_document(cls, document: object) -> Infrastructure:
        """Fields that do not follow the contract of Cluster API are left out."""
        status = _as_mapping(_as_mapping(document).get("status"))
        capacity = {
            name: str(text)
            for name, text in _as_mapping(status.get("capacity")).items()
            if not _find_problem(str(text))
        }
        system = _as_mapping(status.get("nodeInfo"))
        return cls(
            capacity=capacity,
            architecture=str(system.get("architecture") or ""),
            operating_system=str(system.get("operatingSystem") or ""),
        )


NO_INFRASTRUCTURE: Final = Infrastructure()


class TemplateProblem(Value):
    """Why there is no template."""

    problem: str


def build_template(
    found: Scalable, infrastructure: Infrastructure, *, architecture: str, like: Mapping[str, str] | None = None
) -> Node | TemplateProblem:
    """`like` are the labels of a node of the group; `architecture` is used if nothing else gives it."""
    capacity = read_capacity(found, infrastructure)
    if isinstance(capacity, TemplateProblem):
        return capacity
    # Attach limits are looked up by this name: no other group may have it.
    meta = found.metadata
    name = f"template-node-for-{found.get_kind_name().lower()}-{meta.namespace}-{meta.name}"
    seen = {key: like[key] for key in _OF_A_NODE if like.get(key)} if like else {}
    labels = {
        ARCH: infrastructure.architecture or architecture,
        OS: infrastructure.operating_system or "linux",
        HOSTNAME: name,
        **read_labels(found),
        **seen,
    }
    return Node(
        metadata=ObjectMeta(name=name, labels=labels, annotations=_attach_limits(meta.annotations)),
        spec=NodeSpec(taints=read_taints(found)),
        status=NodeStatus(
            capacity=capacity,
            allocatable=capacity,
            conditions=(NodeCondition(type="Ready", status="True"),),
        ),
    )


def _attach_limits(annotations: Mapping[str, str]) -> dict[str, str]:
    text = annotations.get(f"{CAPACITY_PREFIX}csi-driver", "")
    return {ATTACH_LIMITS: text} if text else {}


def read_capacity(found: Scalable, infrastructure: Infrastructure) -> ResourceList | TemplateProblem:
    """Annotations override the infrastructure's values, resource by resource. Cpu and memory must be known."""
    written = _read_capacity(found.metadata.annotations)
    if isinstance(written, TemplateProblem):
        return written
    capacity: ResourceList = {PODS: _MAX_PODS, **infrastructure.capacity, **written}
    missing = [name for name in (CPU, MEMORY) if name not in capacity]
    if missing:
        return TemplateProblem(
            problem=f"neither annotations nor the machine template give the {' and '.join(missing)} of its nodes"
        )
    return capacity


def read_labels(found: Scalable) -> dict[str, str]:
    """The labels that nodes of the group get in addition to those that kubelets set."""
    template = found.spec.template.metadata.labels
    text = found.metadata.annotations.get(f"{CAPACITY_PREFIX}labels", "")
    pairs = (pair.partition("=") for pair in text.split(","))
    written = {key: value for key, equals, value in pairs if equals}
    return {**{key: value for key, value in template.items() if is_propagated(key)}, **written}


def read_taints(found: Scalable) -> tuple[Taint, ...]:
    """Taints by key and effect; those of annotations override those of the template."""
    taints = {
        (taint.key, taint.effect): Taint(key=taint.key, value=taint.value, effect=taint.effect)
        for taint in found.spec.template.spec.taints
    }
    taints.update(
        {
            (taint.key, taint.effect): taint
            for taint in _parse_taints(found.metadata.annotations.get(f"{CAPACITY_PREFIX}taints"))
        }
    )
    return tuple(taints.values())


def _parse_taints(text: str | None) -> Iterator[Taint]:
    """`k=v:Effect,k:Effect`; anything else is skipped."""
    for entry in (text or "").split(","):
        front, _, effect = entry.strip().partition(":")
        key, _, value = front.partition("=")
        is_sound = not find_qualified_name_problems(key) and not find_label_value_problems(value) and ":" not in effect
        if is_sound and effect in {"NoSchedule", "PreferNoSchedule", "NoExecute"}:
            yield Taint(key=key, value=value, effect=effect)


def _read_capacity(annotations: Mapping[str, str]) -> ResourceList | TemplateProblem:
    found: ResourceList = {}
    texts = {resource: annotations.get(f"{CAPACITY_PREFIX}{name}", "") for resource, name in _QUANTITIES}
    texts[PODS] = annotations.get(f"{CAPACITY_PREFIX}maxPods", "")
    if kind := annotations.get(f"{CAPACITY_PREFIX}gpu-type", ""):
        texts[kind] = annotations.get(f"{CAPACITY_PREFIX}gpu-count", "")
    for resource, text in texts.items():
        if not text:
            continue
        if problem := _find_problem(text):
            return TemplateProblem(problem=f"{resource}: {problem}")
        if Quantity.parse(text):
            found[resource] = text
    return found


def _find_problem(text: str) -> str:
    try:
        quantity = Quantity.parse(text)
    except InvalidInput as error:
        return error.problem
    return f"{text} is negative" if quantity.nano < 0 else ""


def _as_mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


log = structlog.get_logger(__name__)


# The number of refreshes before an object without capacity is read again: there may be dozens, and calls are rationed.
_PATIENCE: Final = 6


class InfrastructureTemplates:
    """Reads infrastructure templates, and nodes of the workload cluster, which are cached until the next refresh.

    Machine templates never change, so their capacity is kept; one without capacity is read again now and then.
    """

    def __init__(self, management: Client, workload: Client) -> None:
        self._management = management
        self._workload = workload
        self._infrastructure: dict[str, Infrastructure] = {}
        self._read_in: dict[str, int] = {}
        self._versions: dict[str, str] = {}
        self._nodes: dict[str, Node | None] = {}
        self._refreshes = 0

    def forget(self) -> None:
        self._refreshes += 1
        self._nodes.clear()

    async def find_infrastructure(self, found: Scalable) -> Infrastructure:
        """Empty if the object does not exist or may not be read: annotations may be enough."""
        reference = found.spec.template.spec.infrastructure_ref
        if reference is None or not reference.kind or not reference.name:
            return NO_INFRASTRUCTURE
        api_version = await self._find_api_version(reference)
        if not api_version:
            return NO_INFRASTRUCTURE
        namespace = found.metadata.namespace
        path = f"/apis/{api_version}/namespaces/{namespace}/{reference.kind.lower()}s/{reference.name}"
        if self._is_worth_reading(path):
            self._infrastructure[path] = await self._read_infrastructure(path)
            self._read_in[path] = self._refreshes
        return self._infrastructure[path]

    async def get_node(self, name: str) -> Node | None:
        if name not in self._nodes:
            self._nodes[name] = await read_if_there(self._workload.get(Node, name))
        return self._nodes[name]

    def _is_worth_reading(self, path: str) -> bool:
        known = self._infrastructure.get(path)
        if known is None:
            return True
        return not known.capacity and self._refreshes - self._read_in[path] >= _PATIENCE

    async def _find_api_version(self, reference: InfrastructureReference) -> str:
        group = reference.api_group
        if not group:
            return reference.api_version if "/" in reference.api_version else ""
        if not self._versions.get(group):
            self._versions[group] = await find_preferred_version(self._management, group)
        version = self._versions[group]
        return f"{group}/{version}" if version else ""

    async def _read_infrastructure(self, path: str) -> Infrastructure:
        try:
            return Infrastructure.from_document(await read(self._management.get_json(path)))
        except ProviderFailed as failed:
            if not isinstance(failed.__cause__, ApiError | UnreadableAnswer):
                raise
            log.info("provider.no_infrastructure_template", path=path, problem=str(failed))
            return NO_INFRASTRUCTURE
