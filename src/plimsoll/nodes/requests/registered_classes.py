"""Provisioning classes of others: made known through the entry point `plimsoll.provisioning_classes` (nodes.md 3.1).

A package names its classes, each with the function that answers their requests:

    [project.entry-points."plimsoll.provisioning_classes"]
    "gang.example.com" = "gangs.capacity:answer"

    def answer(request: Seen, snapshot: Snapshot, now: datetime) -> Handled:
        if request.total > 100:
            return Handled(conditions=(condition("Failed", True, "TooLarge", "at most 100 pods", at=now),))
        return Handled(plan=request.pods)

    answer.condition_types = ("Gathered",)  # of its own, beside Accepted, Provisioned, Failed, BookingExpired

It is asked when a request of its class is due, as for the classes of ours: at once, then by back-off as long as neither
Provisioned nor Failed is True. It must be quick and change nothing. What it raises fails its own request for this turn,
and no other. A class that cannot be loaded is told of and left out; what is ours stays ours.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Final, Protocol

import structlog

from plimsoll.nodes.requests.classes import BUILT_IN
from plimsoll.nodes.requests.conditions import Kind

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from datetime import datetime
    from importlib.metadata import EntryPoint

    from plimsoll.nodes.planning.world import Pending, Snapshot
    from plimsoll.nodes.requests.seen import Seen
    from plimsoll.objects.meta import Condition

GROUP: Final = "plimsoll.provisioning_classes"
SHARED: Final = (Kind.ACCEPTED, Kind.PROVISIONED, Kind.FAILED, Kind.BOOKING_EXPIRED)
"""Conditions of ours that a class of others may set too, where they fit."""

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Handled:
    """What is to become of a request in this turn."""

    plan: tuple[Pending, ...] = ()
    """Pods that nodes are to be found or added for, all or none, as for the atomic class: the plan's outcome is then
    its `Provisioned`. Empty: nothing is added."""
    conditions: tuple[Condition, ...] = ()
    details: Mapping[str, str] = field(default_factory=dict)
    """Its own, beside those that every request has."""


class Handler(Protocol):
    """Answers requests of one class. It may have an attribute `condition_types`: names of conditions of its own."""

    def __call__(self, request: Seen, snapshot: Snapshot, now: datetime, /) -> Handled: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredClass:
    """One that could be loaded."""

    name: str
    handler: Handler
    condition_types: frozenset[str] = frozenset()

    def answer(self, request: Seen, snapshot: Snapshot, now: datetime) -> Handled | str:
        """Its answer; text: what went wrong."""
        try:
            found: Any = self.handler(request, snapshot, now)
        except Exception as error:
            log.warning("requests.class_raised", provisioning_class=self.name, request=request.name, exc_info=error)
            return f"class {self.name} could not answer: {type(error).__name__}: {error}"
        if not isinstance(found, Handled):
            return f"class {self.name} answered with {type(found).__name__}, not with Handled"
        if foreign := self._foreign(found):
            return f"class {self.name} sets conditions that are not its own: {', '.join(foreign)}"
        return found

    def _foreign(self, found: Handled) -> list[str]:
        return sorted({one.type for one in found.conditions} - {*SHARED, *self.condition_types})


@cache
def registered_classes() -> Mapping[str, RegisteredClass]:
    """Those of all packages that are installed, by name; looked for once a process."""
    return loaded(entry_points(group=GROUP))


def condition_types_of(classes: Mapping[str, RegisteredClass]) -> dict[str, Collection[str]]:
    """By class: types of conditions that it may set and that nobody else is to keep or drop."""
    return {name: one.condition_types for name, one in classes.items()}


def loaded(found: Iterable[EntryPoint]) -> dict[str, RegisteredClass]:
    """In the order of their names; of two with one name, the first."""
    classes: dict[str, RegisteredClass] = {}
    for one in sorted(found, key=lambda point: (point.name, point.value)):
        problem = _why_not(one.name, classes)
        made = None if problem else _loaded(one)
        if isinstance(made, RegisteredClass):
            classes[one.name] = made
        else:
            told = problem or str(made)
            log.error("requests.class_left_out", provisioning_class=one.name, entry_point=one.value, problem=told)
    return classes


def _why_not(name: str, classes: Collection[str]) -> str:
    if name in BUILT_IN:
        return "it has the name of a class of ours"
    return "another package has a class of this name" if name in classes else ""


def _loaded(point: EntryPoint) -> RegisteredClass | str:
    """Or why it cannot be."""
    try:
        handler = point.load()
        types = frozenset(map(str, getattr(handler, "condition_types", ())))
    except Exception as error:  # noqa: BLE001 - importing code of others may raise anything
        return f"{type(error).__name__}: {error}"
    if not callable(handler):
        return f"{type(handler).__name__} cannot be called"
    return RegisteredClass(name=point.name, handler=handler, condition_types=types - {*map(str, Kind)})
