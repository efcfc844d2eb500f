"""The custom resources of the simulated cloud: `Cloud` (what it offers and how it fails), `NodeGroup`, `Machine`.

The cloud's whole state is in these objects, so it can live on any API server, people can change it with kubectl, and a
restart loses nothing. `local.cloud` acts on them; the providers of the node autoscaler and the scenario runner write
them. `CLOUD_RESOURCES` joins them to a client's table: `KINDS.extended(CLOUD_RESOURCES)`.

Absent fields mean what the schemas in `crds/` say.
"""

# ruff: noqa: D101 - a struct means what the schema of the same name says; docstrings only where that surprises

from enum import StrEnum
from typing import Final

from plimsoll.core.formatting import NO_LIMIT
from plimsoll.core.values import Int64, Wire
from plimsoll.objects.api.meta import ResourceList, Time, WireObject
from plimsoll.objects.api.nodes import Taint
from plimsoll.objects.api.resource import Resource

CLOUD_GROUP: Final = "cloud.plimsoll.io"
CLOUD_VERSION: Final = "v1alpha1"
THE_CLOUD: Final = "cloud"
"""There is one cloud; this is its name."""
GROUP_LABEL: Final = "cloud.plimsoll.io/node-group"
GROUP_ID_ANNOTATION: Final = "cloud.plimsoll.io/group-id"
"""Annotation of a NodeGroup whose id in the cloud is not a valid object name."""
"""Label of nodes and machines: their node group."""
CAPACITY_TYPE_LABEL: Final = "cloud.plimsoll.io/capacity-type"
BILLING_FINALIZER: Final = "cloud.plimsoll.io/billing"
"""Finalizer that keeps a deleted machine until its node is gone and its cost is recorded."""


class CapacityType(StrEnum):
    """The billing mode of a machine."""

    ON_DEMAND = "on-demand"
    SPOT = "spot"


class MachineType(Wire):
    """A machine type of the cloud. Prices are per hour, None if unknown. Without zones, every zone has it."""

    name: str = ""
    cpu: str | int | float = "0"
    memory: str | int | float = "0"
    pods: Int64 = 110
    gpu: dict[str, Int64] = {}
    """By resource name: `nvidia.com/gpu: 4`."""
    allocatable: ResourceList = {}
    """The allocatable resources, where they are less than the capacity."""
    price: float | None = None
    currency: str = "USD"
    zones: tuple[str, ...] = ()
    labels: dict[str, str] = {}
    family: str = ""
    arch: str = "amd64"
    capacity_type: str = CapacityType.ON_DEMAND
    source: str = ""
    date: str = ""


# ---- Cloud


class Quota(Wire):
    """At most `limit` of `resource` at the same time, over the selected machines, or over the region."""

    name: str = ""
    resource: str = "machines"
    """`machines`, or a resource of the machine types: `cpu`, `memory`, `nvidia.com/gpu`."""
    limit: str | int | float = 0
    machine_type: str = ""
    family: str = ""


class Stock(Wire):
    """At most `machines` of a type at the same time, in one zone or in all; 0: none is available."""

    name: str = ""
    machine_type: str = ""
    zone: str = ""
    machines: Int64 = 0
    until: Time | None = None


class BootRule(Wire):
    """The boot time of machines. The first rule that matches a machine when it starts applies."""

    name: str = ""
    machine_type: str = ""
    group: str = ""
    zone: str = ""
    every: Int64 = 1
    """Every n-th machine of a group, by the number in its name: 1 matches all, 2 those with even numbers."""
    seconds: float | None = None
    never: bool = False
    """The machine starts and has a cost, but no node ever registers."""
    until: Time | None = None


class FaultKind(StrEnum):
    """The effect of a fault on a call to the cloud."""

    FAIL = "Fail"
    """The call does nothing and fails with `message`."""
    TIME_OUT = "TimeOut"
    """The call takes effect, and times out for the caller after `seconds`."""
    LATE = "Late"
    """The call takes effect, and returns after `seconds`."""


class CallFault(Wire):
    """A fault of calls to the cloud: of the next `times` calls (all if absent), until `until`."""

    name: str = ""
    kind: str = FaultKind.FAIL
    call: str = ""
    """The name in the provider interface (`IncreaseSize`, `DeleteNodes`, …); empty: every call that writes."""
    group: str = ""
    message: str = ""
    seconds: float = 0.0
    times: Int64 | None = None
    until: Time | None = None


class CloudSpec(Wire):
    region: str = "local"
    zones: tuple[str, ...] = ("local-a",)
    catalogues: tuple[str, ...] = ()
    machine_types: tuple[MachineType, ...] = ()
    quotas: tuple[Quota, ...] = ()
    stock: tuple[Stock, ...] = ()
    boot_seconds: float = 30.0
    boots: tuple[BootRule, ...] = ()
    faults: tuple[CallFault, ...] = ()


class Spending(Wire):
    """The cost of a group's deleted machines, `amount` in `currency`; a string, because floats are not exact."""

    group: str = ""
    currency: str = ""
    machine_seconds: str = "0"
    amount: str = "0"


class StruckFault(Wire):
    """The number of calls that a fault has affected."""

    name: str = ""
    times: Int64 = 0


class Bill(Wire):
    """All that was spent up to `time`, by currency, rounded to a millionth for people to read."""

    currency: str = ""
    machine_hours: str = "0"
    amount: str = "0"


class CloudStatus(Wire):
    machines: Int64 = 0
    spent: tuple[Spending, ...] = ()
    settled: tuple[str, ...] = ()
    """Uids of existing machines whose cost is in `spent` already, so that it is not counted twice."""
    bills: tuple[Bill, ...] = ()
    billed_until: Time | None = None
    faults: tuple[StruckFault, ...] = ()
    problems: tuple[str, ...] = ()
    """The invalid parts of the spec, with reasons."""


class Cloud(WireObject):
    spec: CloudSpec = CloudSpec()
    status: CloudStatus = CloudStatus()


# ---- NodeGroup


class NodeTemplate(Wire):
    """The template of a group's nodes, in place of a machine type or in addition to it."""

    capacity: ResourceList = {}
    allocatable: ResourceList = {}
    labels: dict[str, str] = {}
    taints: tuple[Taint, ...] = ()


class NodeGroupSpec(Wire):
    min: Int64 = 0
    max: Int64 = NO_LIMIT
    target: Int64 = 0
    machine_type: str = ""
    template: NodeTemplate = NodeTemplate()
    price: float | None = None
    currency: str = ""
    zones: tuple[str, ...] = ()
    autoprovisioned: bool = False
    atomic: bool = False
    zero_or_max: bool = False
    autoscaled: bool = True
    boot_seconds: float | None = None
    deletions: tuple[str, ...] = ()
    """Machines to delete. Next to `target`, so that one write deletes them without replacing them."""


class NodeGroupStatus(Wire):
    observed_generation: Int64 = 0
    machines: Int64 = 0
    creating: Int64 = 0
    running: Int64 = 0
    deleting: Int64 = 0
    failed: Int64 = 0
    next_number: Int64 = 0
    """The number of the next machine: names are never reused."""
    message: str = ""


class NodeGroup(WireObject):
    spec: NodeGroupSpec = NodeGroupSpec()
    status: NodeGroupStatus = NodeGroupStatus()


# ---- Machine


class MachineState(StrEnum):
    """The phase of a machine. `failed` is Cluster Autoscaler's `creating` with an error."""

    CREATING = "creating"
    RUNNING = "running"
    DELETING = "deleting"
    FAILED = "failed"


class ErrorClass(StrEnum):
    """The classes of Cluster Autoscaler: another group may help, or the cause is unknown."""

    OUT_OF_RESOURCES = "OutOfResourcesErrorClass"
    OTHER = "OtherErrorClass"


class MachineError(Wire):
    class_: str = ""
    code: str = ""
    message: str = ""


class MachineSpec(Wire):
    """The properties of a machine, fixed at its creation: later changes of its group or machine type have no effect."""

    provider_id: str = ""
    group: str = ""
    machine_type: str = ""
    zone: str = ""
    price: float | None = None
    currency: str = "USD"
    capacity_type: str = CapacityType.ON_DEMAND
    boot_seconds: float = 0.0
    never_boots: bool = False


class MachineStatus(Wire):
    state: str = MachineState.CREATING
    error: MachineError | None = None
    started_time: Time | None = None
    """Since when it costs; absent while the cloud refuses it."""
    booted_time: Time | None = None
    deleted_time: Time | None = None


class Machine(WireObject):
    """An instance. Its node has the same name."""

    spec: MachineSpec = MachineSpec()
    status: MachineStatus = MachineStatus()


def _build_resource(struct: type[WireObject], plural: str, *short_names: str) -> Resource:
    kind = struct.get_kind_name()
    return Resource(
        group=CLOUD_GROUP,
        version=CLOUD_VERSION,
        kind=kind,
        plural=plural,
        singular=kind.lower(),
        namespaced=False,
        struct=struct,
        short_names=short_names,
        categories=("plimsoll",),  # Not "cloud": kubectl would resolve the kind's own name to all three.
    )


CLOUD_RESOURCES: Final = (
    _build_resource(Cloud, "clouds"),
    _build_resource(NodeGroup, "nodegroups", "ng"),
    _build_resource(Machine, "machines"),
)
