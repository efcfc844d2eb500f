"""Annotations, labels and prefixes that people and Cluster API write on objects for an autoscaler. Pure.

They say whether an object is a node group, its size limits and options, and whether auto-provisioning created it. Names
under the API group of Cluster API change with `CAPI_GROUP`; the others are fixed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import structs

from plimsoll.core.value_parsing import (
    find_problem,
    parse_duration_s,
    parse_number,
    parse_switch,
    quote,
    read_whole_number,
)
from plimsoll.core.values import Value
from plimsoll.nodes.model.node_templates import AUTOPROVISIONED_LABEL
from plimsoll.objects.api.cluster_api import MAX_SIZE, MIN_SIZE, MachineDeployment

if TYPE_CHECKING:
    from plimsoll.nodes.providers.values import GroupOptions
    from plimsoll.objects.api.cluster_api import Scalable


_OWNED_BY: Final = "MachineDeployment"


class SizeLimits(Value):
    """The size limits of a group. Groups of auto-provisioning have no annotations for autoscaling."""

    least: int
    most: int
    autoprovisioned: bool = False


class NotAGroup(Value):
    """An object that is not a node group; `problem` is set if it has annotations that cannot be used."""

    problem: str = ""


_NOT_MEANT: Final = NotAGroup()


def get_group_id(found: Scalable) -> str:
    return f"{found.get_kind_name()}/{found.metadata.namespace}/{found.metadata.name}"


def is_nap_template(found: Scalable) -> bool:
    return isinstance(found, MachineDeployment) and found.metadata.annotations.get(NAP_TEMPLATE) == "true"


def read_sizes(found: Scalable, keys: Keys) -> SizeLimits | NotAGroup:
    """The size limits of the group, or why the object is not a group."""
    written = found.metadata.annotations
    is_owned = any(owner.kind == _OWNED_BY for owner in found.metadata.owner_references)
    if is_owned or keys.paused in written or is_nap_template(found) or found.metadata.deletion_timestamp is not None:
        return _NOT_MEANT
    made = written.get(AUTOPROVISIONED_LABEL) == "true" and NAP_MAX_SIZE in written
    least, most = ("0", written[NAP_MAX_SIZE]) if made else (written.get(keys.min_size), written.get(keys.max_size))
    if least is None or most is None:
        return _NOT_MEANT
    for name, text in ((keys.min_size, least), (keys.max_size, most)):
        if read_whole_number(text) is None:
            return NotAGroup(problem=f"{name}: {quote(text)} is not a whole number of at most {2**31 - 1}")
    if int(most) < int(least):
        return NotAGroup(problem=f"its greatest size {most} is below its least, {least}")
    if int(most) == 0:
        return _NOT_MEANT
    if found.spec.replicas is None:
        return NotAGroup(problem="spec.replicas is not set")
    return SizeLimits(least=int(least), most=int(most), autoprovisioned=made)


# ---- options of one group


def _parse_ratio(value: object) -> float:
    return parse_number(value, most=1.0)


_OPTIONS: Final = (
    ("scaledownutilizationthreshold", "utilization_threshold", _parse_ratio),
    ("scaledowngpuutilizationthreshold", "gpu_utilization_threshold", _parse_ratio),
    ("scaledownunneededtime", "unneeded_s", parse_duration_s),
    ("scaledownunreadytime", "unready_s", parse_duration_s),
    ("maxnodeprovisiontime", "provision_s", parse_duration_s),
    ("maxnodestartuptime", "startup_s", parse_duration_s),
    ("ignoredaemonsetsutilization", "ignore_daemon_sets", parse_switch),
)


def read_options(found: Scalable, defaults: GroupOptions, keys: Keys) -> tuple[GroupOptions, tuple[str, ...]]:
    """The options as the annotations change them, and the problems of annotations that cannot be used."""
    changed: dict[str, float | bool] = {}
    problems: list[str] = []
    for name, field, parse in _OPTIONS:
        text = found.metadata.annotations.get(f"{keys.options}{name}")
        if text is None:
            continue
        problem = find_problem(parse, text)
        if problem is None:
            changed[field] = parse(text)
        else:
            problems.append(f"{keys.options}{name}: {problem}")
    return (structs.replace(defaults, **changed) if changed else defaults), tuple(problems)


CAPACITY_PREFIX: Final = "capacity.cluster-autoscaler.kubernetes.io/"
NAP_TEMPLATE: Final = "autoscaling.x-k8s.io/nap-template"
"""On a MachineDeployment with no replicas: it is a machine type that groups are made of."""
NAP_SYNCED_LABELS: Final = "autoscaling.x-k8s.io/nap-synced-labels"
"""Beside it: further labels that this Cluster API brings from machines to nodes; keys or domains, or `*`."""
NAP_MADE_OF: Final = "autoscaling.x-k8s.io/nap-made-of"
"""On what was made: the template's name."""
NAP_MAX_SIZE: Final = "autoscaling.x-k8s.io/nap-max-size"
MARK_VALUE: Final = "plimsoll"
"""The value of our deletion annotations, which distinguishes them from those of others."""

FAILED_PREFIX: Final = "failed-machine-"
PENDING_PREFIX: Final = "pending-machine-"
# What Cluster API brings from the labels of a Machine to its Node by itself.
_PROPAGATED: Final = ("node-restriction.kubernetes.io", "node.cluster.x-k8s.io")
_ROLE: Final = "node-role.kubernetes.io"


class Keys(Value):
    """Names under the API group of Cluster API."""

    group: str

    @property
    def min_size(self) -> str:
        return f"{self.group}/{MIN_SIZE}"

    @property
    def max_size(self) -> str:
        return f"{self.group}/{MAX_SIZE}"

    @property
    def delete_machine(self) -> str:
        return f"{self.group}/delete-machine"

    @property
    def paused(self) -> str:
        return f"{self.group}/paused"

    @property
    def options(self) -> str:
        return f"{self.group}/autoscaling-options-"

    @property
    def machine(self) -> str:
        """On nodes: the name of their Machine."""
        return f"{self.group}/machine"

    @property
    def cluster_namespace(self) -> str:
        """On nodes: where their Machine is."""
        return f"{self.group}/cluster-namespace"

    @property
    def cluster_name(self) -> str:
        return f"{self.group}/cluster-name"

    @property
    def deployment_name(self) -> str:
        return f"{self.group}/deployment-name"


def is_propagated(key: str) -> bool:
    """Whether Cluster API copies a label of a Machine to its Node."""
    domain, slash, _ = key.partition("/")
    if not slash:
        return False
    return domain == _ROLE or any(domain == suffix or domain.endswith(f".{suffix}") for suffix in _PROPAGATED)


def is_synced(key: str, declared: str) -> bool:
    """The same, including labels that this Cluster API is configured to copy (`--additional-sync-machine-labels`)."""
    words = [word.strip() for word in declared.split(",") if word.strip()]
    domain, slash, _ = key.partition("/")
    return is_propagated(key) or "*" in words or key in words or (bool(slash) and domain in words)
