"""A ProvisioningRequest of ours as one turn sees it. Data only: made by `reading`, read by everybody else here."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from plimsoll.nodes.requests.conditions import Conditions
from plimsoll.nodes.requests.details import Details

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from plimsoll.nodes.planning.world import Pending
    from plimsoll.nodes.requests.parameters import Parameters
    from plimsoll.objects.pods import Pod
    from plimsoll.objects.requests import ProvisioningRequest


class Nature(StrEnum):
    """What its class does."""

    CHECK = "check"
    ATOMIC = "atomic"
    REGISTERED = "registered"
    """A class of somebody else, made known through the entry point `plimsoll.provisioning_classes`."""


class Phase(StrEnum):
    """Where it stands (specs/nodes.md 3.6), by what is stored."""

    DUE = "due"
    """To be tried in this turn."""
    WAITING = "waiting"
    """Tried before; its back-off is not over."""
    INTENDED = "intended"
    """Growth was begun and nobody wrote how it ended: finish it, or take it back."""
    ARRIVING = "arriving"
    """Growth was asked for, its nodes are not all there (`--provreq-provisioned-when=registered`)."""
    HELD = "held"
    """It has its capacity, and its booking lasts."""
    OVER = "over"
    """Failed, revoked, or its booking has ended."""
    UNKNOWN = "unknown"
    """Somebody says that nobody knows (`Provisioned=Unknown`): it is left alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One request of a class that is handled here, and for this instance."""

    request: ProvisioningRequest
    nature: Nature
    parameters: Parameters
    phase: Phase
    conditions: Conditions = field(default_factory=Conditions)
    details: Details = field(default_factory=Details)
    pods: tuple[Pending, ...] = ()
    """One for each pod set, with the request as bundle; empty where there is a problem."""
    templates: tuple[Pod, ...] = ()
    """What a pod of each pod set would be: consuming pods are compared with it."""
    problem: tuple[str, str] | None = None
    """Reason and message of a request that fails before anything is planned."""

    @property
    def name(self) -> str:
        """NAMESPACE/NAME."""
        return f"{self.request.metadata.namespace}/{self.request.metadata.name}"

    @property
    def total(self) -> int:
        return sum(one.count for one in self.request.spec.pod_sets)

    @property
    def created(self) -> datetime | None:
        return self.request.metadata.creation_timestamp


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestsSeen:
    """All of them, and what else a turn wants to know of requests."""

    line: tuple[Seen, ...] = ()
    """DUE and INTENDED, in the order in which they are served (4.2): begun ones first, then priority, age, name."""
    held: tuple[Seen, ...] = ()
    """HELD and ARRIVING: their capacity is booked, where they reserve it; the oldest answer first."""
    others: tuple[Seen, ...] = ()
    """WAITING, OVER, UNKNOWN."""
    known: frozenset[str] = frozenset()
    """NAMESPACE/NAME of every request there is, of any class."""
    priorities: Mapping[str, int] = field(default_factory=dict)

    @property
    def all(self) -> tuple[Seen, ...]:
        return (*self.line, *self.held, *self.others)
