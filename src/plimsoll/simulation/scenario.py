"""A scenario as data: the world at the start, and the steps. It cannot be invalid. Names are those of the file."""

# ruff: noqa: D101 - a step is what docs/scenarios.md says under its name; docstrings only where that surprises

from __future__ import annotations

from datetime import datetime  # noqa: TC003 -- msgspec resolves the annotations of Values at run time
from enum import StrEnum
from typing import Any

from plimsoll.core.values import Value
from plimsoll.fleet.model.clusters import Cluster  # noqa: TC001 -- msgspec resolves it at run time
from plimsoll.fleet.model.kafkas import KafkaRequest  # noqa: TC001 -- likewise
from plimsoll.fleet.model.policy import FleetPolicy  # noqa: TC001 -- likewise
from plimsoll.kube.informer.events import Key
from plimsoll.local.kafka.topic_seeds import TopicSeed  # noqa: TC001 -- msgspec resolves it at run time
from plimsoll.local.ocm.settings import OcmSettings  # noqa: TC001 -- likewise
from plimsoll.local.ocm.simulated_agents import AgentSettings  # noqa: TC001 -- likewise

Json = dict[str, Any]


class WorldKind(StrEnum):
    """What drives the world: the steps of the file, or all controllers with their own timers."""

    STEPPED = "stepped"
    LIVE = "live"


class GroupEntry(Value, frozen=True):
    """An entry of `nodeGroups`. `spec` is the spec of its NodeGroup object."""

    id: str
    spec: Json
    exists: bool = True


class PodEntry(Value, frozen=True):
    """An entry of `pods`: a number of equal pending pods."""

    name: str
    namespace: str
    count: int
    template: Json


class KafkaEntry(Value, frozen=True):
    """An entry of `kafka`: a Kafka object by its name, and the topics that its simulated cluster begins with."""

    name: str
    namespace: str
    topics: tuple[TopicSeed, ...]

    @property
    def key(self) -> Key:
        return Key(self.namespace, self.name)


class FleetEntry(Value, frozen=True):
    """`fleet` of a file. `has_clusters` false: only simulated agents are behind the OCM.

    `clusters` are rows at the start. Those with an id at their provider exist there, too.
    """

    policy: FleetPolicy
    clusters: tuple[Cluster, ...]
    kafkas: tuple[KafkaRequest, ...]
    ocm: OcmSettings
    agents: AgentSettings
    period_s: float
    machine_boot_s: float
    has_clusters: bool = True


# ---- steps


class LoopStep(Value, frozen=True):
    times: int
    every_s: float


class AdvanceStep(Value, frozen=True):
    seconds: float


class AtStep(Value, frozen=True):
    """Advance to a time: seconds after the start, or a date."""

    moment: float | datetime


class ApplyStep(Value, frozen=True):
    """`cluster` is a cluster of a fleet, as in the other steps; empty: there is one cluster."""

    manifests: tuple[Json, ...]
    cluster: str = ""


class DeleteStep(Value, frozen=True):
    """Without `api_version`, the kind is one that is known by its name alone."""

    kind: str
    name: str
    namespace: str = "default"
    api_version: str = ""
    cluster: str = ""


class ScheduleStep(Value, frozen=True):
    pass


class FailIncrease(Value, frozen=True):
    group: str
    message: str
    until: datetime | None = None


class GroupLimits(Value, frozen=True):
    group: str
    min: int | None = None
    max: int | None = None


class ProviderCall(Value, frozen=True):
    """A call to the cloud, as an autoscaler makes it. `arg` is a delta or names of nodes."""

    call: str
    group: str
    arg: int | tuple[str, ...] | None = None


class ProviderStep(Value, frozen=True):
    fail_increases: tuple[FailIncrease, ...] = ()
    stockouts: tuple[tuple[str, int], ...] = ()
    limits: tuple[GroupLimits, ...] = ()
    calls: tuple[ProviderCall, ...] = ()


class SetStep(Value, frozen=True):
    options: Json


class CrashStep(Value, frozen=True):
    component: str
    after_calls: int


class ReconcileStep(Value, frozen=True):
    kind: str
    name: str
    namespace: str = "default"
    times: int = 1


class Expectation(Value, frozen=True):
    """A path of the outcome, and operators with operands that must hold there."""

    path: str
    operators: tuple[tuple[str, Any], ...]


class ExpectStep(Value, frozen=True):
    """With a cluster of a fleet, paths begin in its part of the outcome."""

    expectations: tuple[Expectation, ...]
    cluster: str = ""


class RequestStep(Value, frozen=True):
    """A request to the fleet API. `{name}` in the path is the id of the Kafka with this name."""

    method: str
    path: str
    query: str = ""
    body: Any = None
    is_admin: bool = False
    user: str = "user"
    organisation: str = "organisation"


class OcmStep(Value, frozen=True):
    """What happens at the OCM: the next creations end in `error`."""

    fail_creations: int = 0
    message: str = ""


Step = (
    LoopStep
    | AdvanceStep
    | AtStep
    | ApplyStep
    | DeleteStep
    | ScheduleStep
    | ProviderStep
    | SetStep
    | CrashStep
    | ReconcileStep
    | ExpectStep
    | RequestStep
    | OcmStep
)


class Scenario(Value, frozen=True):
    start: datetime
    seed: int | str = 0
    world: WorldKind = WorldKind.STEPPED
    options: Json = {}
    machine_types: tuple[Json, ...] = ()
    node_groups: tuple[GroupEntry, ...] = ()
    pods: tuple[PodEntry, ...] = ()
    objects: tuple[Json, ...] = ()
    kafka: tuple[KafkaEntry, ...] = ()
    fleet: FleetEntry | None = None
    """None: there is one cluster."""
    steps: tuple[Step, ...] = ()
