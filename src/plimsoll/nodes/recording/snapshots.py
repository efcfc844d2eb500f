"""A snapshot as JSON and back: everything a plan depends on, without caches. Pure.

Objects are in Kubernetes' form, limited to the fields that Plimsoll decodes: environment, commands and mounts of pods
are never decoded, so they cannot be in a recording. Orders that a plan may depend on (of nodes, of pods on them) are
lists; maps may have their keys in any order.
"""

# ruff: noqa: TC001, TC003 - msgspec reads annotations at run time

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import msgspec

from plimsoll.core.resources import ResourceVector
from plimsoll.core.values import Value
from plimsoll.journal.errors import RecordingTooNew
from plimsoll.nodes.model import snapshot as world
from plimsoll.nodes.recording.wire import Json, read, to_plain
from plimsoll.objects.api.nodes import Node, Taint
from plimsoll.objects.api.pods import Pod
from plimsoll.objects.api.policy import PodDisruptionBudget
from plimsoll.objects.api.storage import CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass
from plimsoll.objects.api.workloads import DaemonSet
from plimsoll.objects.codec.decode_problems import BadObject
from plimsoll.scheduling import ClusterView, Storage
from plimsoll.scheduling.cluster_view import NodeState, PlacedPod

if TYPE_CHECKING:
    from plimsoll.nodes.model.snapshot import Snapshot

VERSION: Final = 1


class _Placed(Value):
    pod: Pod
    known_as: str = ""
    """The name of the pod, if it is a copy of another one."""


class _RecordedNode(Value):
    node: Node
    pods: tuple[_Placed, ...] = ()
    unreadable: tuple[BadObject, ...] = ()


class _Namespace(Value):
    name: str
    labels: dict[str, str] = {}


class _Storage(Value):
    volumes: tuple[PersistentVolume, ...] = ()
    claims: tuple[PersistentVolumeClaim, ...] = ()
    classes: tuple[StorageClass, ...] = ()
    csi_nodes: tuple[CSINode, ...] = ()


class _Pending(Value):
    entry: str
    pod: Pod
    count: int
    created: datetime | None = None
    bundle: str = ""
    names: tuple[str, ...] = ()
    rank: int = 0


class _ShrinkRules(Value):
    utilization_threshold: float
    gpu_utilization_threshold: float
    unneeded_time_s: float
    unready_time_s: float
    ignore_daemon_sets: bool


class _Group(Value):
    id: str
    min_size: int
    max_size: int
    target_size: int
    template: Node
    daemons: tuple[Pod, ...] = ()
    daemons_are_known: bool = False
    price_per_hour: float | None = None
    machine_type: str = ""
    zone: str = ""
    zones: tuple[str, ...] = ()
    autoprovisioned: bool = False
    autoscaled: bool = True
    zero_or_max: bool = False
    not_usable: str = ""
    capacity_type: world.CapacityType = world.CapacityType.ON_DEMAND
    shrinking: _ShrinkRules | None = None


class _MachineType(Value):
    name: str
    capacity: dict[str, int]
    allocatable: dict[str, int]
    price_per_hour: float | None = None
    zones: tuple[str, ...] = ()
    labels: dict[str, str] = {}
    taints: tuple[Taint, ...] = ()
    architecture: str = "amd64"
    capacity_type: world.CapacityType = world.CapacityType.ON_DEMAND


class _Backoff(Value):
    machine_type: str
    zone: str
    profile: str
    why: str


class _Nomination(Value):
    """The number of pods of an entry that are nominated to the node."""

    known_as: str
    entry: str
    pods: int


class _Snapshot(Value):
    version: int
    number: int
    at: datetime
    nodes: tuple[_RecordedNode, ...] = msgspec.field(default=(), name="homes")
    namespaces: tuple[_Namespace, ...] = ()
    storage: _Storage = _Storage()
    pending: tuple[_Pending, ...] = ()
    groups: tuple[_Group, ...] = ()
    machine_types: tuple[_MachineType, ...] = ()
    daemon_sets: tuple[DaemonSet, ...] = ()
    budgets: tuple[PodDisruptionBudget, ...] = ()
    group_of: dict[str, str] = {}
    creation_backoffs: tuple[_Backoff, ...] = ()
    nominations: tuple[_Nomination, ...] = msgspec.field(name="promises", default=())


# ---- writing


def encode_snapshot(snapshot: Snapshot) -> Json:
    view = snapshot.view
    storage = view.storage
    written = _Snapshot(
        version=VERSION,
        number=snapshot.number,
        at=snapshot.at,
        nodes=tuple(_record_node(state) for state in view.nodes.values()),
        namespaces=tuple(_Namespace(name=name, labels=dict(labels)) for name, labels in view.namespaces.items()),
        storage=_Storage(
            volumes=tuple(storage.volumes.values()),
            claims=tuple(storage.claims.values()),
            classes=tuple(storage.classes.values()),
            csi_nodes=tuple(storage.csi_nodes.values()),
        ),
        pending=tuple(_record_pending(pending) for pending in snapshot.pending),
        groups=tuple(_record_group(group) for group in snapshot.groups),
        machine_types=tuple(_record_machine_type(machine_type) for machine_type in snapshot.machine_types),
        daemon_sets=snapshot.daemon_sets,
        budgets=snapshot.budgets,
        group_of=dict(snapshot.group_of),
        creation_backoffs=tuple(
            _Backoff(machine_type=kind, zone=zone, profile=profile, why=why)
            for (kind, zone, profile), why in snapshot.creation_backoffs.items()
        ),
        nominations=tuple(
            _Nomination(known_as=node, entry=key, pods=pods)
            for node, counts in snapshot.nominations.items()
            for key, pods in counts.items()
        ),
    )
    found: Json = to_plain(written)
    return found


def _get_fields(struct: type[Value], value: Any, *, but: str = "") -> Json:
    return {name: getattr(value, name) for name in struct.__struct_fields__ if name != but}


def _record_node(state: NodeState) -> _RecordedNode:
    pods = tuple(_record_placed(placed) for placed in state.pods.values())
    return _RecordedNode(node=state.node, pods=pods, unreadable=state.unreadable_pods)


def _record_placed(placed: PlacedPod) -> _Placed:
    own = placed.pod.metadata.name
    return _Placed(pod=placed.pod, known_as="" if placed.key.name == own else placed.key.name)


def _record_pending(pending: world.PendingPods) -> _Pending:
    return _Pending(entry=pending.key, **_get_fields(_Pending, pending, but="entry"))


def _record_group(group: world.NodeGroup) -> _Group:
    options = group.shrinking
    rules = None if options is None else _ShrinkRules(**_get_fields(_ShrinkRules, options))
    return _Group(**{**_get_fields(_Group, group), "shrinking": rules})


def _record_machine_type(machine_type: world.MachineType) -> _MachineType:
    fields = _get_fields(_MachineType, machine_type)
    amounts = {
        "capacity": dict(machine_type.capacity),
        "allocatable": dict(machine_type.allocatable),
        "labels": dict(machine_type.labels),
    }
    return _MachineType(**{**fields, **amounts})


# ---- reading


def read_snapshot(value: Any) -> Snapshot:
    """Raises `UnreadableRecording` with the path of the problem."""
    version = value.get("version") if isinstance(value, dict) else None
    if isinstance(version, int) and version > VERSION:
        raise RecordingTooNew(f"has version {version}, this Plimsoll reads up to {VERSION}", path="snapshot")
    written = read(_Snapshot, value, path="snapshot")
    return world.Snapshot(
        number=written.number,
        at=written.at,
        view=_read_view(written),
        pending=tuple(_read_pending(pending) for pending in written.pending),
        groups=tuple(_read_group(group) for group in written.groups),
        machine_types=tuple(_read_machine_type(machine_type) for machine_type in written.machine_types),
        daemon_sets=written.daemon_sets,
        budgets=written.budgets,
        group_of=written.group_of,
        creation_backoffs={
            (backoff.machine_type, backoff.zone, backoff.profile): backoff.why for backoff in written.creation_backoffs
        },
        nominations=_read_nominations(written.nominations),
    )


def _read_nominations(written: tuple[_Nomination, ...]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for nomination in written:
        found.setdefault(nomination.known_as, {})[nomination.entry] = nomination.pods
    return found


def _read_view(written: _Snapshot) -> ClusterView:
    storage = written.storage
    empty = ClusterView.from_objects(
        (recorded.node for recorded in written.nodes),
        namespaces={namespace.name: namespace.labels for namespace in written.namespaces},
        storage=Storage(
            volumes=storage.volumes, claims=storage.claims, classes=storage.classes, csi_nodes=storage.csi_nodes
        ),
    )
    return empty.with_states(_read_node(recorded) for recorded in written.nodes)


def _read_node(recorded: _RecordedNode) -> NodeState:
    state = NodeState(recorded.node).with_pods(_read_placed(placed) for placed in recorded.pods)
    for bad in recorded.unreadable:
        state = state.with_unreadable(bad)
    return state


def _read_placed(recorded: _Placed) -> PlacedPod:
    placed = PlacedPod(recorded.pod)
    return placed.rename(recorded.known_as) if recorded.known_as else placed


def _read_pending(recorded: _Pending) -> world.PendingPods:
    return world.PendingPods(key=recorded.entry, **_get_fields(_Pending, recorded, but="entry"))


def _read_group(recorded: _Group) -> world.NodeGroup:
    options = recorded.shrinking
    rules = None if options is None else world.GroupScaleDownOptions(**_get_fields(_ShrinkRules, options))
    return world.NodeGroup(**{**_get_fields(_Group, recorded), "shrinking": rules})


def _read_machine_type(recorded: _MachineType) -> world.MachineType:
    amounts = {"capacity": ResourceVector(recorded.capacity), "allocatable": ResourceVector(recorded.allocatable)}
    return world.MachineType(**{**_get_fields(_MachineType, recorded), **amounts})
