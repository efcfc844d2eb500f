"""The input of the node planners: the cluster, the pending pods, the groups, and what may be changed. Data only.

A snapshot is immutable and numbered: the same one gives the same plan, byte for byte.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from plimsoll.core.resources import ResourceVector
    from plimsoll.nodes.model.planner_cache import PlannerCache
    from plimsoll.objects.api.nodes import Node, Taint
    from plimsoll.objects.api.pods import Pod
    from plimsoll.objects.api.policy import PodDisruptionBudget
    from plimsoll.objects.api.workloads import DaemonSet
    from plimsoll.scheduling import ClusterView


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingPods:
    """Pending pods that are equal except for their names: pods of one owner, or of one pod set."""

    key: str
    """Their name in outputs: NAMESPACE/NAME, for a pod set NAMESPACE/REQUEST/INDEX."""
    pod: Pod
    """One of them, or their template."""
    count: int
    created: datetime | None = None
    """The creation time of the oldest; it is served first if limits bind."""
    bundle: str = ""
    """NAMESPACE/NAME of their ProvisioningRequest; its pods get a place all together or not at all."""
    names: tuple[str, ...] = ()
    """The names of pods that exist as objects; empty for pods of a request."""
    rank: int = 0
    """The lowest rank is served first, whatever its priority and age; below 0 if an earlier loop began to serve it."""


class CapacityType(StrEnum):
    """Whether the cloud may reclaim a machine."""

    ON_DEMAND = "on-demand"
    SPOT = "spot"


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineType:
    """What auto-provisioning may make groups of."""

    name: str
    capacity: ResourceVector
    allocatable: ResourceVector
    price_per_hour: float | None = None
    zones: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    architecture: str = "amd64"
    capacity_type: CapacityType = CapacityType.ON_DEMAND


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupScaleDownOptions:
    """When nodes of one group may go, where the provider says otherwise than the operator's options."""

    utilization_threshold: float
    gpu_utilization_threshold: float
    unneeded_time_s: float
    unready_time_s: float
    ignore_daemon_sets: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeGroup:
    """A node group of the provider, as the cluster state knows it."""

    id: str
    min_size: int
    max_size: int
    target_size: int
    template: Node
    """What its next node would be; its name and hostname are replaced for every node planned."""
    daemons: tuple[Pod, ...] = ()
    """Pods that such a node brings with it: daemon sets and mirror pods."""
    daemons_are_known: bool = False
    """True when `daemons` came from a real node; otherwise every daemon set that would run there is added."""
    price_per_hour: float | None = None
    machine_type: str = ""
    zone: str = ""
    """The zone of its next machine."""
    zones: tuple[str, ...] = ()
    """All zones of a group over several zones."""
    autoprovisioned: bool = False
    autoscaled: bool = True
    """False: its nodes count and are used, but it is never scaled."""
    zero_or_max: bool = False
    not_usable: str = ""
    """Why it cannot grow now: "in backoff until 02:10", "not ready"; empty when it can."""
    capacity_type: CapacityType = CapacityType.ON_DEMAND
    shrinking: GroupScaleDownOptions | None = None
    """None: as the options say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Everything one plan rests on."""

    number: int
    at: datetime
    view: ClusterView
    """Existing nodes (upcoming ones too) with the pods that hold them; expendable pods are left out."""
    pending: tuple[PendingPods, ...] = ()
    groups: tuple[NodeGroup, ...] = ()
    machine_types: tuple[MachineType, ...] = ()
    daemon_sets: tuple[DaemonSet, ...] = ()
    budgets: tuple[PodDisruptionBudget, ...] = ()
    group_of: Mapping[str, str] = field(default_factory=dict)
    """Node name to group id; nodes of no group are missing."""
    creation_backoffs: Mapping[tuple[str, str, str], str] = field(default_factory=dict)
    """(machine type, zone, profile hash) to why no such group can be made now; "" as profile means any."""
    nominations: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Node name to pods by key: places that an earlier plan keeps for them, checked against this cluster."""
    cache: PlannerCache | None = field(default=None, compare=False, repr=False)
    """What planners may remember from the snapshots before; no plan depends on it, only how long it takes."""
