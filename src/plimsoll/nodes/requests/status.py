"""The status of a ProvisioningRequest: conditions and `provisioningClassDetails` (docs/design/nodes.md 2.2). Pure.

Server-side apply removes what an apply does not name, so each write holds all conditions that this controller owns:
`Conditions.from_list` keeps them, `with_condition` builds the next set.

The details are a map of texts (docs/design/nodes.md 2.2, 3.3, 3.7). No other place stores state about a request: a
restarted controller reads the number of attempts, the nodes added and the intents to finish or roll back from here.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

import msgspec

from plimsoll.kube.conditions import to_json
from plimsoll.objects.api.meta import Condition, Time, format_time

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime


_LONGEST_MESSAGE: Final = 32_768


class ConditionType(StrEnum):
    """Condition types that this controller owns."""

    ACCEPTED = "Accepted"
    PROVISIONED = "Provisioned"
    FAILED = "Failed"
    BOOKING_EXPIRED = "BookingExpired"
    CAPACITY_REVOKED = "CapacityRevoked"
    CAPACITY_AVAILABLE = "CapacityAvailable"


class ConditionReason(StrEnum):
    """Reasons of conditions; other programs read them, so they do not change."""

    ACCEPTED = "Accepted"
    FOUND = "CapacityIsFound"
    PROVISIONED = "CapacityIsProvisioned"
    NOT_FOUND = "CapacityIsNotFound"
    CHECK_FAILED = "FailedToCheckCapacity"
    WAITING = "WaitingForNodes"
    NO_PODS = "FailedToCreatePods"
    NOT_BOOKED = "FailedToBookCapacity"
    EXPIRED = "Expired"
    NOT_ALLOWED = "ClassNotAllowed"
    TIME_OVER = "CapacityReservationTimeExpired"
    CONSUMED = "CapacityBookingConsumed"
    NODES_FAILED = "NodesFailed"
    NODES_LOST = "NodesLost"


class RequestState(StrEnum):
    """The state of a request in one word: `plimsoll requests list`, and the column State of `kubectl get`."""

    NEW = "New"
    ACCEPTED = "Accepted"
    WAITING = "Waiting"
    PROVISIONED = "Provisioned"
    CONSUMED = "Consumed"
    BOOKING_EXPIRED = "BookingExpired"
    REVOKED = "Revoked"
    FAILED = "Failed"


def find_state(listed: Iterable[Condition]) -> tuple[RequestState, Condition | None]:
    """The state and the condition it comes from; None: there is no condition yet."""
    conditions = {condition.type: condition for condition in listed}
    ends = ((ConditionType.FAILED, RequestState.FAILED), (ConditionType.CAPACITY_REVOKED, RequestState.REVOKED))
    for kind, state in ends:
        if (found := conditions.get(kind)) is not None and found.status == "True":
            return state, found
    over = conditions.get(ConditionType.BOOKING_EXPIRED)
    if over is not None and over.status == "True":
        is_consumed = over.reason == ConditionReason.CONSUMED
        return (RequestState.CONSUMED if is_consumed else RequestState.BOOKING_EXPIRED), over
    provisioned = conditions.get(ConditionType.PROVISIONED)
    if provisioned is not None:
        is_provisioned = provisioned.status == "True"
        return (RequestState.PROVISIONED if is_provisioned else RequestState.WAITING), provisioned
    accepted = conditions.get(ConditionType.ACCEPTED)
    return (RequestState.NEW if accepted is None else RequestState.ACCEPTED), accepted


@dataclass(frozen=True, slots=True)
class Conditions:
    """Conditions by type, each once, in their original order. Types that this controller does not own are left out."""

    all: tuple[Condition, ...] = ()

    @classmethod
    def from_list(cls, listed: Iterable[Condition], *, own: Iterable[str] = ()) -> Conditions:
        """`own`: additional types, of a registered class."""
        ours = {*map(str, ConditionType), *own}
        return cls(tuple({condition.type: condition for condition in listed if condition.type in ours}.values()))

    def get(self, kind: str) -> Condition | None:
        return next((condition for condition in self.all if condition.type == kind), None)

    def is_true(self, kind: str) -> bool:
        found = self.get(kind)
        return found is not None and found.status == "True"

    def get_since(self, kind: str) -> datetime | None:
        found = self.get(kind)
        return None if found is None else found.last_transition_time

    def with_condition(self, made: Condition) -> Conditions:
        """Replace the condition of the same type.

        Each failed attempt counts as a transition, so the time always changes.
        """
        by_type = {condition.type: condition for condition in self.all}
        by_type[made.type] = made
        return Conditions(tuple(by_type.values()))

    def to_json(self) -> list[dict[str, Any]]:
        return [to_json(condition) for condition in self.all]


def build_condition(
    kind: str, status: bool | str, reason: str, message: str, *, at: datetime, generation: int = 0
) -> Condition:
    """A condition with its transition at `at`."""
    text = status if isinstance(status, str) else str(status)
    return Condition(
        type=str(kind),
        status=text,
        reason=str(reason),
        message=message[:_LONGEST_MESSAGE],
        last_transition_time=at,
        observed_generation=generation,
    )


FIRST_CHECK_CLASS: Final = "check-capacity.kubernetes.io"
"""The class name of the first API design: its requests also get the condition CapacityAvailable."""


def has_capacity_available(kind: str) -> bool:
    """Whether requests of the class get `CapacityAvailable` in addition to `Provisioned`."""
    return kind.endswith(FIRST_CHECK_CLASS)


_OURS: Final = (
    "attempts",
    "lastAttemptTime",
    "nextAttemptTime",
    "planCostPerHour",
    "costLowerBoundPerHour",
    "nodeGroups",
    "bookedUntil",
    "intent",
    "blocking",
    "state",
    "reason",
)
_LONGEST: Final = 32_768


class GroupStep(msgspec.Struct, frozen=True, kw_only=True, rename={"before": "from", "after": "to"}):
    """The size of a group before and after an attempt. `back`: a rollback to this size has begun."""

    before: int
    after: int
    back: int | None = None


class Intent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an attempt is about to do: written before the first call to the cloud provider, removed with the outcome."""

    attempt: int
    groups: dict[str, GroupStep] = {}
    created: tuple[str, ...] = ()
    """Groups that the attempt creates, by the requested id."""

    @property
    def is_rolled_back(self) -> bool:
        """Whether a rollback of the attempt has begun; then it is not completed any more."""
        return any(group_step.back is not None for group_step in self.groups.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Details:
    """The known entries of the map; unknown entries are preserved in `others`.

    `state` and `reason` are not stored here: `describe_state` derives them from the conditions at each write.
    """

    attempts: int = 0
    last_attempt: datetime | None = None
    next_attempt: datetime | None = None
    plan_cost_per_hour: str = ""
    cost_lower_bound_per_hour: str = ""
    node_groups: Mapping[str, int] = field(default_factory=dict)
    """Nodes added for the request, by group; 0 if it uses room on nodes added for others."""
    booked_until: datetime | None = None
    intent: Intent | None = None
    blocking: str = ""
    """Compact JSON: what blocks the request."""
    others: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_texts(cls, texts: Mapping[str, str]) -> Details:
        """Parse the map. Unreadable entries count as absent: other writers can change the map."""
        return cls(
            attempts=_read(texts.get("attempts", ""), int) or 0,
            last_attempt=_parse_time(texts.get("lastAttemptTime", "")),
            next_attempt=_parse_time(texts.get("nextAttemptTime", "")),
            plan_cost_per_hour=texts.get("planCostPerHour", ""),
            cost_lower_bound_per_hour=texts.get("costLowerBoundPerHour", ""),
            node_groups=_read(texts.get("nodeGroups", ""), dict[str, int]) or {},
            booked_until=_parse_time(texts.get("bookedUntil", "")),
            intent=_read(texts.get("intent", ""), Intent),
            blocking=texts.get("blocking", ""),
            others={key: text for key, text in texts.items() if key not in _OURS},
        )

    def replace(self, **changes: Any) -> Details:
        return replace(self, **changes)

    def to_map(self) -> dict[str, str]:
        """The map without empty entries."""
        texts = {
            "attempts": str(self.attempts) if self.attempts else "",
            "lastAttemptTime": _format_time(self.last_attempt),
            "nextAttemptTime": _format_time(self.next_attempt),
            "planCostPerHour": self.plan_cost_per_hour,
            "costLowerBoundPerHour": self.cost_lower_bound_per_hour,
            "nodeGroups": _encode(dict(self.node_groups)) if self.node_groups else "",
            "bookedUntil": _format_time(self.booked_until),
            "intent": _encode(self.intent) if self.intent is not None else "",
            "blocking": self.blocking,
        }
        return {**self.others, **{key: text[:_LONGEST] for key, text in texts.items() if text}}


def describe_state(conditions: Conditions) -> dict[str, str]:
    """The entries that `kubectl get` shows as columns: the state in one word, and the reason of its condition."""
    state, condition = find_state(conditions.all)
    return {"state": str(state), **({"reason": condition.reason} if condition is not None else {})}


def _read(text: str, kind: Any) -> Any:
    if not text:
        return None
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.MsgspecError, RecursionError):
        return None


def _parse_time(text: str) -> datetime | None:
    if not text:
        return None
    try:
        found: datetime = msgspec.convert(text, Time)
    except (msgspec.ValidationError, OverflowError):
        return None
    return found


def _format_time(time: datetime | None) -> str:
    return "" if time is None else format_time(time)


def _encode(value: Any) -> str:
    return msgspec.json.encode(value).decode()
