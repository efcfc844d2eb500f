"""Provisioning classes: which ones this instance serves, and the classes that other packages register.

The names of classes are those of docs/design/nodes.md 3.1. Requests of an unknown class are ignored: they are neither
accepted nor failed, booked, expired or deleted. If several instances answer checks, each has a name; the instance
without a name serves requests that name none.

A package registers its classes under the entry point `plimsoll.provisioning_classes`, each with the function that
answers its requests:

    [project.entry-points."plimsoll.provisioning_classes"]
    "gang.example.com" = "gangs.capacity:answer"

    def answer(request: RequestView, snapshot: Snapshot, now: datetime) -> Handled:
        if request.total > 100:
            return Handled(conditions=(build_condition("Failed", True, "TooLarge", "at most 100 pods", at=now),))
        return Handled(plan=request.pods)

    answer.condition_types = ("Gathered",)  # its own, beside Accepted, Provisioned, Failed, BookingExpired

The function is called when a request of its class is due, as for built-in classes: immediately, then with back-off
until Provisioned or Failed is True. It must be fast and have no side effects. An exception fails only its own request,
and only for this loop. A class that cannot be loaded is logged and left out; built-in classes cannot be replaced.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Final, Protocol

import structlog

from plimsoll.nodes.requests.model import ClassKind, Phase
from plimsoll.nodes.requests.status import ConditionType
from plimsoll.objects.api.provisioning_requests import ATOMIC_CLASSES, CHECK_CLASSES

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from datetime import datetime
    from importlib.metadata import EntryPoint

    from plimsoll.nodes.model.snapshot import PendingPods, Snapshot
    from plimsoll.nodes.requests.model import RequestView, StatusUpdate
    from plimsoll.nodes.requests.status_updates import StatusUpdates
    from plimsoll.objects.api.meta import Condition


BUILT_IN: Final = (*ATOMIC_CLASSES, *CHECK_CLASSES)


def find_class_kind(kind: str, *, instance: str = "", registered: Collection[str] = ()) -> ClassKind | None:
    """The kind of the class with this name; None: this instance does not serve it."""
    if kind in ATOMIC_CLASSES:
        return ClassKind.ATOMIC
    if kind in CHECK_CLASSES or is_named_after(kind, instance):
        return ClassKind.CHECK
    return ClassKind.REGISTERED if kind in registered else None


def is_for_instance(kind: str, wanted: str, *, instance: str) -> bool:
    """Whether an instance serves a request that names the instance `wanted`."""
    if not instance:
        return not wanted
    return is_named_after(kind, instance) or (kind in CHECK_CLASSES and wanted == instance)


def is_named_after(kind: str, instance: str) -> bool:
    """Whether the name of a check class begins with the instance name: the old way to select an instance."""
    return bool(instance) and any(kind == f"{instance}{check_pod_class}" for check_pod_class in CHECK_CLASSES)


def is_same_class(kind: str, other: str) -> bool:
    """Whether two names denote the same class: built-in classes have had several names."""
    return kind == other or any(kind in names and other in names for names in (ATOMIC_CLASSES, CHECK_CLASSES))


def explain_not_allowed(kind: str, listed: Collection[str]) -> str:
    """Why the cluster's ProvisioningClasses exclude the class; empty if they do not (docs/design/nodes.md 3.9)."""
    if not listed or kind in listed:
        return ""
    return f"class {kind} is not among the ProvisioningClasses of the cluster: {', '.join(sorted(listed))}"


class ClassAnswers:
    """Answers of registered classes in one loop.

    `updates`: their answers; `remaining`: all other requests and those to plan for, in queue order.
    """

    def __init__(self, classes: Mapping[str, RegisteredClass], status_updates: StatusUpdates) -> None:
        self._classes = classes
        self._status_updates = status_updates
        self.updates: list[StatusUpdate] = []
        self.remaining: list[RequestView] = []

    def ask(self, queue: Iterable[RequestView], snapshot: Snapshot, now: datetime) -> ClassAnswers:
        for request in queue:
            # A scale-up that was begun is finished first; its class is not asked again.
            if request.class_kind is not ClassKind.REGISTERED or request.phase is Phase.INTENDED:
                self.remaining.append(request)
                continue
            answer = self._classes[request.request.spec.provisioning_class_name].answer(request, snapshot, now)
            self._take(request, answer)
        return self

    def _take(self, view: RequestView, answer: Handled | str) -> None:
        if isinstance(answer, str):
            self.updates.append(self._status_updates.mark_check_failed(view, answer))
            return
        answered = _with(view, answer)
        if answer.plan:
            self.remaining.append(answered)
        else:
            self.updates.append(self._status_updates.mark_answered_by_class(answered))


def _with(view: RequestView, answer: Handled) -> RequestView:
    """The request with the conditions, details and pods of its class's answer; its pods are planned all or none."""
    conditions = view.conditions
    for condition in answer.conditions:
        conditions = conditions.with_condition(condition)
    pods = tuple(
        replace(pods, key=f"{view.name}/{index}", bundle=view.name, created=view.created)
        for index, pods in enumerate(answer.plan)
    )
    details = view.details.replace(others={**view.details.others, **answer.details})
    return replace(view, conditions=conditions, details=details, pods=pods)


GROUP: Final = "plimsoll.provisioning_classes"
SHARED: Final = (ConditionType.ACCEPTED, ConditionType.PROVISIONED, ConditionType.FAILED, ConditionType.BOOKING_EXPIRED)
"""Built-in conditions that a registered class may also set."""

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Handled:
    """The answer of a class to one request."""

    plan: tuple[PendingPods, ...] = ()
    """Pods to find or add nodes for, all or none, as for the atomic class; the outcome of the plan sets `Provisioned`.
    Empty: nothing is added.
    """
    conditions: tuple[Condition, ...] = ()
    details: Mapping[str, str] = field(default_factory=dict)
    """Details of the class, in addition to those of every request."""


class Handler(Protocol):
    """Answers the requests of one class. Its optional attribute `condition_types` names its own conditions."""

    def __call__(self, request: RequestView, snapshot: Snapshot, now: datetime, /) -> Handled: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredClass:
    """A class of another package that was loaded."""

    name: str
    handler: Handler
    condition_types: frozenset[str] = frozenset()

    def answer(self, request: RequestView, snapshot: Snapshot, now: datetime) -> Handled | str:
        """The answer of the class; text: what went wrong."""
        try:
            found: Any = self.handler(request, snapshot, now)
        except Exception as error:
            log.warning("requests.class_raised", provisioning_class=self.name, request=request.name, exc_info=error)
            return f"class {self.name} could not answer: {type(error).__name__}: {error}"
        if not isinstance(found, Handled):
            return f"class {self.name} answered with {type(found).__name__}, not with Handled"
        if foreign := self._find_foreign(found):
            return f"class {self.name} sets conditions that are not its own: {', '.join(foreign)}"
        return found

    def _find_foreign(self, found: Handled) -> list[str]:
        return sorted({condition.type for condition in found.conditions} - {*SHARED, *self.condition_types})


@cache
def load_registered_classes() -> Mapping[str, RegisteredClass]:
    """The classes of all installed packages by name, loaded once per process."""
    return load_classes(entry_points(group=GROUP))


def map_condition_types(classes: Mapping[str, RegisteredClass]) -> dict[str, Collection[str]]:
    """By class: condition types that the class owns."""
    return {name: registered_class.condition_types for name, registered_class in classes.items()}


def load_classes(found: Iterable[EntryPoint]) -> dict[str, RegisteredClass]:
    """Classes in the order of their names; the first of two with the same name wins."""
    classes: dict[str, RegisteredClass] = {}
    for entry_point in sorted(found, key=lambda point: (point.name, point.value)):
        problem = _explain_unknown(entry_point.name, classes)
        made = None if problem else _load(entry_point)
        if isinstance(made, RegisteredClass):
            classes[entry_point.name] = made
        else:
            problem = problem or str(made)
            log.error(
                "requests.class_left_out",
                provisioning_class=entry_point.name,
                entry_point=entry_point.value,
                problem=problem,
            )
    return classes


def _explain_unknown(name: str, classes: Collection[str]) -> str:
    if name in BUILT_IN:
        return "it has the name of a class of ours"
    return "another package has a class of this name" if name in classes else ""


def _load(point: EntryPoint) -> RegisteredClass | str:
    """The class, or why it cannot be loaded."""
    try:
        handler = point.load()
        types = frozenset(map(str, getattr(handler, "condition_types", ())))
    except Exception as error:  # noqa: BLE001 - importing code of others may raise anything
        return f"{type(error).__name__}: {error}"
    if not callable(handler):
        return f"{type(handler).__name__} cannot be called"
    return RegisteredClass(name=point.name, handler=handler, condition_types=types - {*map(str, ConditionType)})
