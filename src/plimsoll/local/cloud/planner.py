"""The plan of the cloud: which machines to create, start, boot and remove.

Pure: the observed objects and the time go in, a `Plan` comes out. The controller acts on it; the API uses the same
computation to check whether a size increase would find capacity.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from plimsoll.core.durations import add_seconds
from plimsoll.core.values import Value
from plimsoll.local.cloud.availability import NOT_SOLD, Availability
from plimsoll.local.cloud.catalogue import SoldMachineTypes  # noqa: TC001 -- msgspec resolves the annotations of Values
from plimsoll.local.cloud.machines.templates import InvalidTemplate, MachineTemplate, build_template
from plimsoll.objects.api.meta import ObjectMeta
from plimsoll.objects.api.simulated_cloud import (
    BootRule,
    CloudSpec,
    ErrorClass,
    Machine,
    MachineError,
    MachineSpec,
    MachineState,
    NodeGroup,
    NodeGroupSpec,
)

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

_NUMBERED: Final = re.compile(r"(.+)-(0|[1-9][0-9]*)")


class ObservedNode(Value):
    """A node with the fields that the cloud needs. `group` and `zone` come from its labels."""

    name: str
    group: str
    provider_id: str
    uid: str
    zone: str = ""


class CloudView(Value):
    """The input of the plan."""

    cloud: CloudSpec
    offer: SoldMachineTypes
    groups: tuple[NodeGroup, ...]
    machines: tuple[Machine, ...]
    nodes: tuple[ObservedNode, ...]
    now: datetime


class NewMachine(Value):
    """A Machine object to create: new, adopted with its node, or refused immediately (`error`)."""

    name: str
    spec: MachineSpec
    error: MachineError | None = None
    adopts: ObservedNode | None = None


class Retry(Value):
    """A refused machine that may start now."""

    machine: Machine
    spec: MachineSpec


class Boot(Value):
    """A machine whose Node object is due."""

    machine: Machine
    shape: MachineTemplate


class RaisedTarget(Value):
    """A group that adopts more nodes than it wanted: it wants them from now on, and may have them.

    It is written before they are adopted.
    """

    group: NodeGroup
    target: int


class Plan(Value):
    """The steps, in order. `wake_at`: when the next step is due without a change."""

    raised: tuple[RaisedTarget, ...] = ()
    new: tuple[NewMachine, ...] = ()
    retries: tuple[Retry, ...] = ()
    boots: tuple[Boot, ...] = ()
    removals: tuple[Machine, ...] = ()
    orphans: tuple[Machine, ...] = ()
    """Machines whose group is not there: to be removed if that is really so."""
    wake_at: datetime | None = None

    @property
    def is_empty(self) -> bool:
        """Nothing is certain to be done: whether orphans are deleted is decided by the request about their group."""
        return not (self.new or self.retries or self.boots or self.removals)


def plan(view: CloudView) -> Plan:
    return Planner(view).plan()


@functools.lru_cache(maxsize=65_536)
def parse_number(name: str, group: str) -> int | None:
    """`g-7` of group `g` is 7; an adopted machine may have no number."""
    match = _NUMBERED.fullmatch(name)
    return int(match[2]) if match is not None and match[1] == group else None


def compute_next_number(group: NodeGroup, members: list[Machine]) -> int:
    numbers = [parse_number(machine.metadata.name, group.metadata.name) for machine in members]
    return max([group.status.next_number, *(number + 1 for number in numbers if number is not None)])


def compute_desired_size(group: NodeGroup, staying: Iterable[Machine]) -> int:
    """How many machines a group is to have: `target`, but none is made or started beyond `max`.

    Those that work stay when `max` is lowered beneath them: a limit removes no node.
    """
    working = sum(machine.status.state != MachineState.FAILED for machine in staying)
    return min(group.spec.target, max(group.spec.max, working))


def is_being_removed(machine: Machine) -> bool:
    return machine.status.state == MachineState.DELETING or machine.metadata.deletion_timestamp is not None


class Planner:
    """Computes one plan. After `plan`, `availability` counts existing and planned machines."""

    def __init__(self, view: CloudView) -> None:
        self._view = view
        self.availability = Availability(view.cloud, now=view.now)
        self._groups = {group.metadata.name: group for group in view.groups}
        self._members: dict[str, list[Machine]] = {name: [] for name in self._groups}
        self._shapes: dict[tuple[str, str], MachineTemplate | InvalidTemplate] = {}
        self._orphans: list[Machine] = []
        self._nodes = {node.name: node for node in view.nodes}
        self._names = {machine.metadata.name for machine in view.machines}
        self._raised: list[RaisedTarget] = []
        self._new: list[NewMachine] = []
        self._retries: list[Retry] = []
        self._boots: list[Boot] = []
        self._removals: list[Machine] = []
        self._due: list[datetime] = []

    def plan(self) -> Plan:
        self._count_what_is_there()
        # Groups that grow all or nothing go first: later groups must not take what was promised to them.
        for group in sorted(
            self._view.groups, key=lambda node_group: (not node_group.spec.atomic, node_group.metadata.name)
        ):
            self._plan_group(group)
        if any(machine.status.state == MachineState.FAILED for machine in self._view.machines) or any(
            new_machine.error for new_machine in self._new
        ):
            self._due += (
                stock.until for stock in self._view.cloud.stock if stock.until and stock.until > self._view.now
            )
        return Plan(
            raised=tuple(self._raised),
            new=tuple(self._new),
            retries=tuple(self._retries),
            boots=tuple(self._boots),
            removals=tuple(self._removals),
            orphans=tuple(self._orphans),
            wake_at=min(self._due, default=None),
        )

    def forecast_zones(self, group: NodeGroup) -> tuple[str, ...]:
        """After `plan`: the zones of the group's machines that have no node yet, then the zone of its next machine."""
        shape = self.find_template(group)
        if isinstance(shape, InvalidTemplate):
            return ()
        staying = [machine for machine in self._members[group.metadata.name] if not is_being_removed(machine)]
        coming = [machine.spec.zone for machine in staying if machine.status.state == MachineState.CREATING]
        new = [new_machine.spec.zone for new_machine in self._plan_new_machines(group) if new_machine.error is None]
        following, _ = self._choose_zone(shape, Counter([*(machine.spec.zone for machine in staying), *new]))
        return (*coming, *new, following)

    # ---- what is there

    def _count_what_is_there(self) -> None:
        for machine in sorted(self._view.machines, key=_get_age_key):
            self._members.get(machine.spec.group, self._orphans).append(machine)
            if machine.status.started_time is not None:
                shape = self.find_template_of_machine(machine)
                if shape is not None:
                    self.availability.hold(shape, machine.spec.zone)

    def find_template_of_machine(self, machine: Machine) -> MachineTemplate | None:
        """The template of the type the machine was created with, whatever its group has now."""
        group = self._groups.get(machine.spec.group)
        if group is None or group.spec.machine_type != machine.spec.machine_type:
            name = ObjectMeta(name=machine.spec.group)
            group = NodeGroup(metadata=name, spec=NodeGroupSpec(machine_type=machine.spec.machine_type))
        shape = self.find_template(group)
        return None if isinstance(shape, InvalidTemplate) else shape

    def find_template(self, group: NodeGroup) -> MachineTemplate | InvalidTemplate:
        key = (group.metadata.name, group.spec.machine_type)
        if key not in self._shapes:
            self._shapes[key] = build_template(group, self._view.cloud, self._view.offer.machine_types)
        return self._shapes[key]

    # ---- one group

    def _plan_group(self, group: NodeGroup) -> None:
        shape = self.find_template(group)
        members = self._members[group.metadata.name]
        named = set(group.spec.deletions)
        going = [machine for machine in members if is_being_removed(machine) or machine.metadata.name in named]
        staying = [machine for machine in members if not (is_being_removed(machine) or machine.metadata.name in named)]
        wanted = compute_desired_size(group, staying)
        if adopted := self._adopt(group, shape):
            wanted = max(wanted, len(staying) + adopted)
            self._raised += [] if wanted <= group.spec.target else [RaisedTarget(group=group, target=wanted)]
        surplus = len(staying) + adopted - wanted
        gone = sorted(staying, key=_get_removal_key)[:surplus] if surplus > 0 else []
        gone_names = {machine.metadata.name for machine in gone}
        staying = [machine for machine in staying if machine.metadata.name not in gone_names]
        self._removals += [*going, *gone]
        self._look_after(group, shape, staying)
        self._grow(group, shape, staying, numbered_from=compute_next_number(group, members), missing=-surplus)

    def _plan_new_machines(self, group: NodeGroup) -> list[NewMachine]:
        return [new_machine for new_machine in self._new if new_machine.spec.group == group.metadata.name]

    def _adopt(self, group: NodeGroup, shape: MachineTemplate | InvalidTemplate) -> int:
        """A node that carries the group's label was there before the cloud: it gets a machine."""
        before = len(self._new)
        for node in self._view.nodes:
            if node.group != group.metadata.name or node.name in self._names:
                continue
            zones = () if isinstance(shape, InvalidTemplate) else shape.zones
            zone = node.zone if node.zone in zones else next(iter(zones), "")
            spec = self._build_machine_spec(group, shape, node.name, zone=zone)
            if node.provider_id:
                spec = replace(spec, provider_id=node.provider_id)
            self._new.append(NewMachine(name=node.name, spec=spec, adopts=node))
            self._names.add(node.name)
            if isinstance(shape, MachineTemplate):
                self.availability.hold(shape, zone)
        return len(self._new) - before

    def _look_after(self, group: NodeGroup, shape: MachineTemplate | InvalidTemplate, staying: list[Machine]) -> None:
        if isinstance(shape, InvalidTemplate):
            return
        started = [item.spec.zone for item in staying if item.status.started_time is not None]
        in_zone = {zone: started.count(zone) for zone in shape.zones}
        for machine in staying:
            if machine.status.state == MachineState.FAILED:
                self._retry(group, shape, machine, in_zone)
            elif machine.status.state == MachineState.CREATING:
                self._plan_boot(machine, shape)

    def _retry(self, group: NodeGroup, shape: MachineTemplate, machine: Machine, in_zone: dict[str, int]) -> None:
        """Where there is room now: in the emptiest zone, among equals in the one it was meant for."""
        error = machine.status.error
        if error is None or error.class_ != ErrorClass.OUT_OF_RESOURCES or machine.status.started_time is not None:
            return
        zones = sorted(shape.zones, key=lambda zone: (in_zone[zone], zone != machine.spec.zone))
        zone = self.availability.place(shape, zones)
        if isinstance(zone, str):
            in_zone[zone] += 1
            spec = self._build_machine_spec(group, shape, machine.metadata.name, zone=zone)
            self._retries.append(Retry(machine=machine, spec=spec))

    def _plan_boot(self, machine: Machine, shape: MachineTemplate) -> None:
        started = machine.status.started_time
        if started is None or machine.spec.never_boots:
            return
        due = add_seconds(started, machine.spec.boot_seconds)
        if due <= self._view.now:
            self._boots.append(Boot(machine=machine, shape=shape))
        else:
            self._due.append(due)

    def _grow(
        self,
        group: NodeGroup,
        shape: MachineTemplate | InvalidTemplate,
        staying: list[Machine],
        *,
        numbered_from: int,
        missing: int,
    ) -> None:
        there = [machine.spec.zone for machine in staying] + [
            new_machine.spec.zone for new_machine in self._plan_new_machines(group)
        ]
        in_zone = {zone: there.count(zone) for zone in set(there)}
        number = numbered_from
        for _ in range(max(0, missing)):
            while (name := f"{group.metadata.name}-{number}") in self._names or name in self._nodes:
                number += 1
            self._names.add(name)
            zone, error = self._choose_zone(shape, in_zone)
            in_zone[zone] = in_zone.get(zone, 0) + 1
            spec = self._build_machine_spec(group, shape, name, zone=zone)
            self._new.append(NewMachine(name=name, spec=spec, error=error))

    def _choose_zone(
        self, shape: MachineTemplate | InvalidTemplate, in_zone: dict[str, int]
    ) -> tuple[str, MachineError | None]:
        """The zone with the fewest machines of the group that has room."""
        if isinstance(shape, InvalidTemplate):
            error = MachineError(class_=ErrorClass.OUT_OF_RESOURCES, code=NOT_SOLD, message=shape.problem)
            return self._view.cloud.zones[0], error
        zones = sorted(shape.zones, key=lambda zone: in_zone.get(zone, 0))
        placed = self.availability.place(shape, zones)
        return (placed, None) if isinstance(placed, str) else (zones[0], placed)

    def _build_machine_spec(
        self, group: NodeGroup, shape: MachineTemplate | InvalidTemplate, name: str, *, zone: str
    ) -> MachineSpec:
        provider_id = f"plimsoll://{self._view.cloud.region}/{zone}/{name}"
        if isinstance(shape, InvalidTemplate):
            return MachineSpec(
                provider_id=provider_id,
                group=group.metadata.name,
                machine_type=group.spec.machine_type,
                zone=zone,
            )
        rule = self._find_boot_rule(group, name, zone)
        seconds = rule.seconds if rule is not None else group.spec.boot_seconds
        return MachineSpec(
            provider_id=provider_id,
            group=group.metadata.name,
            machine_type=shape.machine_type,
            zone=zone,
            price=shape.price,
            currency=shape.currency,
            capacity_type=shape.capacity_type,
            boot_seconds=self._view.cloud.boot_seconds if seconds is None else seconds,
            never_boots=rule is not None and rule.never,
        )

    def _find_boot_rule(self, group: NodeGroup, name: str, zone: str) -> BootRule | None:
        """A rule of the cloud goes before the group's own time: it is what went wrong."""
        number = parse_number(name, group.metadata.name) or 0
        for rule in self._view.cloud.boots:
            if (
                rule.machine_type in {"", group.spec.machine_type}
                and rule.group in {"", group.metadata.name}
                and rule.zone in {"", zone}
                and number % rule.every == 0
                and (rule.until is None or self._view.now < rule.until)
            ):
                return rule
        return None


def _get_age_key(machine: Machine) -> tuple[str, int, str]:
    number = parse_number(machine.metadata.name, machine.spec.group)
    return machine.spec.group, -1 if number is None else number, machine.metadata.name


def _get_removal_key(machine: Machine) -> tuple[int, int, str]:
    """When a group has too many: what never worked, then what does not work yet, then the newest."""
    order = {MachineState.FAILED: 0, MachineState.CREATING: 1}
    _, number, name = _get_age_key(machine)
    return order.get(MachineState(machine.status.state), 2), -number, name
