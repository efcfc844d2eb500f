"""The leases of the workers of one process. A lease is a row in the database; its expiry is the database's affair.

A holder trusts only its own monotonic clock, counted from the moment before it asked: it stops acting a third of the
duration before the lease can end. A process that was stopped and continued therefore finds its time over and does
nothing more, whatever it believed before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import structlog

from plimsoll.core.errors import InvalidInput, PlimsollError
from plimsoll.core.values import Value
from plimsoll.fleet.ports import LeaseLost, LeaseTerm

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from plimsoll.core.clock import Clock
    from plimsoll.fleet.model.workers import Worker
    from plimsoll.fleet.ports import LeaseStore

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

_MARGIN: Final = 1 / 3
"""The part of a lease in which its holder no longer acts: 20 s of 60 s."""
_NEVER_S: Final = float("-inf")


class LeaseTimes(Value):
    """How long a lease lasts, and how often it is renewed."""

    duration_s: float = 60.0
    period_s: float = 15.0

    def __post_init__(self) -> None:
        if not 0 < self.period_s <= self.duration_s * _MARGIN:
            problem = f"must be at most a third of the lease's {self.duration_s:g} s, is {self.period_s:g} s"
            raise InvalidInput(problem, path="period_s")

    @property
    def acting_s(self) -> float:
        """How long a holder may act after it asked for the lease."""
        return self.duration_s * (1 - _MARGIN)

    @property
    def margin_s(self) -> float:
        """How long the lease lasts after that: for calls that are under way then."""
        return self.duration_s * _MARGIN


class GrantedLeases:
    """Grants every lease: for a dry run, which writes nothing and takes no lease from another.

    The database is asked who holds them all the same, so that a dry run notices when it does not answer.
    """

    def __init__(self, store: LeaseStore) -> None:
        self._store = store

    async def acquire_lease(self, worker: str, holder: str, *, duration_s: float) -> LeaseTerm:
        await self._store.list_holders()
        return LeaseTerm(worker=worker, holder=holder, duration_s=duration_s)

    async def release_lease(self, worker: str, holder: str) -> None:
        """There is nothing to release."""

    async def list_holders(self) -> dict[str, str]:
        return {}


class WorkerLease:
    """Whether this process may act as one worker."""

    def __init__(self, store: LeaseStore, worker: Worker, *, holder: str, times: LeaseTimes, clock: Clock) -> None:
        self._store = store
        self.worker = worker
        self.holder = holder
        self._times = times
        self._clock = clock
        self._acts_until_s = _NEVER_S
        self._is_reported = False
        """Whether the log says that this process leads."""
        self.has_answer = True
        """Whether the database answered the last request."""

    @property
    def is_leading(self) -> bool:
        return self._clock.monotonic_s() < self._acts_until_s

    def compute_left_s(self) -> float:
        """How long no other process can have this lease; negative: its term may be over."""
        return self._acts_until_s + self._times.margin_s - self._clock.monotonic_s()

    def check(self) -> None:
        """Raises `LeaseLost` unless this process may act."""
        if not self.is_leading:
            raise LeaseLost(f"the lease of {self.worker} has ended, or ends soon: nothing is written")

    async def renew(self) -> bool:
        """Takes or renews the lease. A database that does not answer makes this process no leader."""
        requested_s = self._clock.monotonic_s()
        self._report()  # The time of the holder may have ended since the last renewal.
        try:
            term = await self._store.acquire_lease(self.worker, self.holder, duration_s=self._times.duration_s)
        except PlimsollError as error:
            log.warning("lease.not_renewed", worker=self.worker, problem=str(error))
            term, self.has_answer = None, False
        else:
            self.has_answer = True
        self._acts_until_s = _NEVER_S if term is None else requested_s + self._times.acting_s
        self._report()
        return self.is_leading

    def _report(self) -> None:
        if self.is_leading != self._is_reported:
            self._is_reported = self.is_leading
            log.info("lease.taken" if self.is_leading else "lease.lost", worker=self.worker, holder=self.holder)

    async def release(self) -> None:
        """Gives the lease up, so that another process need not wait for its end."""
        may_hold = self._acts_until_s != _NEVER_S
        self._acts_until_s = _NEVER_S
        if not may_hold:
            return
        try:
            await self._store.release_lease(self.worker, self.holder)
        except PlimsollError as error:
            log.warning("lease.not_released", worker=self.worker, problem=str(error))


class WorkerLeases:
    """The leases of all workers of a process, renewed together."""

    def __init__(
        self, store: LeaseStore, workers: Iterable[Worker], *, holder: str, times: LeaseTimes, clock: Clock
    ) -> None:
        self._times = times
        self._clock = clock
        self._leases = {
            worker: WorkerLease(store, worker, holder=holder, times=times, clock=clock) for worker in workers
        }

    def get_lease(self, worker: Worker) -> WorkerLease:
        return self._leases[worker]

    @property
    def is_connected(self) -> bool:
        """Whether the database answered the last renewals."""
        return all(lease.has_answer for lease in self._leases.values())

    def list_leading(self) -> tuple[Worker, ...]:
        """The workers that this process may run now."""
        return tuple(worker for worker, lease in self._leases.items() if lease.is_leading)

    async def renew(self) -> tuple[Worker, ...]:
        """Renews every lease once. Returns the workers that this process leads from now on and did not lead before."""
        gained = []
        for worker, lease in self._leases.items():
            was_leading = lease.is_leading
            if await lease.renew() and not was_leading:
                gained.append(worker)
        return tuple(gained)

    async def run(self, on_gained: Callable[[tuple[Worker, ...]], None]) -> None:
        """Renews until cancelled, then releases what it holds. `on_gained` gets the workers of a round together."""
        try:
            while True:
                if gained := await self.renew():
                    on_gained(gained)
                await self._clock.sleep(self._times.period_s)
        finally:
            await self.release()

    async def release(self) -> None:
        for lease in self._leases.values():
            await lease.release()
