"""The leadership of this process. Everything that acts reads it; only the elector writes it.

`LeaseHolder` is the guard of a client: checked before each call that changes something, from any thread, it answers
from one tuple and its clock. It does not need the elector to be alive: a process that was stopped
for an hour finds by the clock that its time is over, before any message could reach it.

Between a guard's answer and the bytes on the wire lie some instructions; a process that is stopped right there sends
late. The call's own timeout, which the guard has cut to the lease, does not help against that, nor against a network
that delivers late. Where this matters an actuation carries its own precondition (a resourceVersion, a uid).

A lease that was taken by force is noticed at the next renewal only, and until then the clock says that it is ours. So
it is read again before something is removed (`confirm`).
"""

from __future__ import annotations

import math
import threading
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from plimsoll.core.values import Value
from plimsoll.kube.errors import NotAllowed, NotFound
from plimsoll.kube.leases.lease_record import read_lease_record
from plimsoll.kube.leases.thread_event import ThreadEvent
from plimsoll.objects.api.coordination import Lease
from plimsoll.objects.registry import KINDS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any

    from plimsoll.core.clock import Clock
    from plimsoll.kube.leases.lease_record import LeaseRecord
    from plimsoll.kube.leases.settings import LeaseSettings


_CONFIRMED_FOR_S: Final = 0.25
"""Removals that follow each other within this time share a read of the Lease."""


class NotLeading(NotAllowed):
    """The lease is not ours, or not for long enough."""


class Phase(StrEnum):
    """Where a holder is in its one life; it only goes forward."""

    CONTENDING = "contending"
    LEADING = "leading"
    LOST = "lost"
    """others may lead by now; everything that acts must stop"""
    STOOD_DOWN = "stood-down"
    """nothing acts any more, by our own will or after a loss"""


class LeaseStatus(Value):
    """One moment, for metrics, logs and `doctor`."""

    lease: str
    identity: str
    phase: Phase
    valid_for_s: float
    renewals: int
    failures: int
    observed_holder: str
    last_error: str


class _Validity(NamedTuple):
    until_s: float = -math.inf
    promised_until_s: float = -math.inf
    """No call that was ever allowed lasts longer; `until_s` may be taken back, this may not."""


class LeaseHolder:
    """One candidacy of this process, from contending to the end. After a loss a new one is made."""

    def __init__(
        self,
        settings: LeaseSettings,
        *,
        identity: str,
        clock: Clock,
        get_json: Callable[[str], Awaitable[Any]] | None = None,
    ) -> None:
        """`get_json` reads the JSON at a path of the API server that has the Lease. Without it nothing is removed."""
        self.settings = settings
        self.identity = identity
        self.clock = clock
        self.loss_reason = ""
        self.observed_record: LeaseRecord | None = None
        """The Lease as it was read or written last; None: there is none, or it was not read yet."""
        self.last_error = ""
        self.renewals = 0
        self.failures = 0
        self._lock = threading.Lock()
        self._get_json = get_json
        self._validity = _Validity()
        self._confirmed_at_s = -math.inf
        self._has_led, self._is_lost, self._has_stood_down = ThreadEvent(), ThreadEvent(), ThreadEvent()

    # -- read by everything that acts

    def limit_duration_s(self, wanted_s: float) -> float:
        """How long a call may last so that the lease outlives it. Raises `NotLeading` if that is not worth it."""
        left_s = self._validity.until_s - self.clock.monotonic_s()
        if left_s <= 0:
            raise NotLeading(f"{self._lease}: not held by {self.identity}")
        if left_s < min(wanted_s, self.settings.shortest_call_s):
            raise NotLeading(f"{self._lease}: held for another {left_s:.3f} s only")
        return min(wanted_s, left_s)

    async def confirm(self) -> None:
        """Read the Lease again. Raises `NotLeading` if another process holds it, or none does."""
        requested_at_s = self.clock.monotonic_s()
        if requested_at_s < self._confirmed_at_s + _CONFIRMED_FOR_S:
            return
        if self._get_json is None:
            raise NotLeading(f"{self._lease}: nothing reads it again")
        resource = KINDS.find_by_struct(Lease)
        assert resource is not None
        try:
            lease = await self._get_json(resource.build_path(self.settings.namespace, self.settings.name))
        except NotFound as error:
            raise NotLeading(f"{self._lease}: it is gone") from error
        holder = read_lease_record(lease, self.settings).holder
        if holder != self.identity:
            raise NotLeading(f"{self._lease}: its holder is {holder or 'no process'}")
        self._confirmed_at_s = requested_at_s

    @property
    def observed_holder(self) -> str:
        """The process that holds the Lease, perhaps this one; empty: none, as far as is known."""
        return "" if self.observed_record is None else self.observed_record.holder

    @property
    def is_leading(self) -> bool:
        return self.phase is Phase.LEADING and self.clock.monotonic_s() < self._validity.until_s

    @property
    def promised_until_s(self) -> float:
        """When the last call that was ever allowed is over; never, before the first."""
        return self._validity.promised_until_s

    @property
    def phase(self) -> Phase:
        if self._has_stood_down.is_set():
            return Phase.STOOD_DOWN
        if self._is_lost.is_set():
            return Phase.LOST
        return Phase.LEADING if self._has_led.is_set() else Phase.CONTENDING

    async def wait_until_acquired(self) -> None:
        """Wait until this process leads. This may take for ever: also wait for `wait_until_lost` and for a stop."""
        await self._has_led.wait()

    async def wait_until_lost(self) -> None:
        """Wait until it leads no longer, or never will, without having wanted so."""
        await self._is_lost.wait()

    def stand_down(self) -> None:
        """Nothing acts any more, and nothing will: the lease may be given back. For good."""
        with self._lock:
            self._validity = self._validity._replace(until_s=-math.inf)
            self._has_stood_down.set()

    async def wait_until_released(self) -> None:
        await self._has_stood_down.wait()

    @property
    def has_led(self) -> bool:
        return self._has_led.is_set()

    @property
    def has_stood_down(self) -> bool:
        return self._has_stood_down.is_set()

    def get_status(self) -> LeaseStatus:
        return LeaseStatus(
            lease=self._lease,
            identity=self.identity,
            phase=self.phase,
            valid_for_s=max(0.0, self._validity.until_s - self.clock.monotonic_s()),
            renewals=self.renewals,
            failures=self.failures,
            observed_holder=self.observed_holder,
            last_error=self.last_error,
        )

    # -- for the elector

    def grant(self, until_s: float) -> None:
        """May act until then. After a loss or a stand-down this is too late and changes nothing."""
        with self._lock:
            if self._is_lost.is_set() or self._has_stood_down.is_set():
                return
            promised_until_s = max(self._validity.promised_until_s, until_s)
            self._validity = _Validity(until_s=until_s, promised_until_s=promised_until_s)
            self._has_led.set()

    def suspend(self) -> None:
        """May not act for now."""
        with self._lock:
            self._validity = self._validity._replace(until_s=-math.inf)

    def lose(self, reason: str, *, is_certain: bool = False) -> None:
        """End leadership. The granted time remains for a clean end, unless `is_certain` that another process leads."""
        with self._lock:
            if self._is_lost.is_set() or self._has_stood_down.is_set():
                return
            if is_certain:
                self._validity = self._validity._replace(until_s=-math.inf)
            self.loss_reason = reason
            self._is_lost.set()

    @property
    def _lease(self) -> str:
        return f"lease {self.settings.namespace}/{self.settings.name}"
