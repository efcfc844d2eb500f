"""The loop of an election: reads the Lease, does what `election` decides, and updates the `LeaseHolder`.

It runs as a task of its event loop: in a thread of its own when live (`elector_thread`), in the common loop under
virtual time (`elector_task`). One elector is one candidacy: it contends, leads, and ends with a loss or, after a
stand-down, with the release of the lease. It never releases a lease under which something may still act. The end is
bounded: a request in progress is cancelled, and the release has a deadline of its own.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import structlog

from plimsoll.kube.errors import AnswerLost, Conflict, NotFound, ServerTrouble
from plimsoll.kube.leases.election import Election, Step
from plimsoll.kube.leases.lease_record import format_micro_time

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from plimsoll.core.entropy import Entropy
    from plimsoll.kube.leases.election import Write
    from plimsoll.kube.leases.lease_holder import LeaseHolder
    from plimsoll.kube.leases.lease_lock import ResourceLock
    from plimsoll.kube.leases.lease_record import LeaseRecord

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

_WRITING: Final = (Step.CREATE, Step.TAKE, Step.RENEW)
_RELEASE_ATTEMPTS: Final = 3
# A wait until a moment may end a rounding error before it.
_SHORTEST_WAIT_S: Final = 0.001


class LeaderElector:
    """Acquires a lease, renews it and releases it: one replica of a controller in its leader election."""

    def __init__(self, holder: LeaseHolder, port: ResourceLock, *, entropy: Entropy) -> None:
        self.holder = holder
        self._port = port
        self._entropy = entropy
        self._clock = holder.clock
        self._settings = holder.settings
        self._election = Election(identity=holder.identity, settings=holder.settings)
        self._logged_failure = ("", "")
        self._log = log.bind(lease=f"{holder.settings.namespace}/{holder.settings.name}", identity=holder.identity)

    async def run(self) -> None:
        """Returns after a loss (`holder.loss_reason`), or after a stand-down and the release. Cancelled: lost."""
        try:
            await self._run_election()
            await self._lead()
        finally:
            self.holder.lose("this process no longer takes part in the election")
        if self.holder.has_stood_down:
            await self._release()

    # -- contending

    async def _run_election(self) -> None:
        while not self.holder.has_stood_down:
            try:
                await self._await_until_stand_down(self._look_and_claim(self._settings.request_timeout_s))
            except ServerTrouble as error:
                self._record_failure(error)
            if self._start_leading():
                return
            await self._pause(self._get_challenger_wait_s())
            self._election = self._election.mark_stale()

    def _get_challenger_wait_s(self) -> float:
        wait_s = self._settings.draw_look_interval_s(self._entropy)
        decision = self._election.decide(self._clock.monotonic_s())
        if decision.step is Step.WAIT:
            wait_s = min(wait_s, decision.until_s - self._clock.monotonic_s())
        return max(wait_s, _SHORTEST_WAIT_S)

    def _start_leading(self) -> bool:
        own = self._get_current_write()
        if own is None or not self._is_in_time(own) or self.holder.has_stood_down:
            return False
        self.holder.grant(own.sent_at_s + self._settings.validity_s)
        self._log.info("lease.acquired", transitions=own.transitions)
        return True

    def _is_in_time(self, own: Write) -> bool:
        """An acquisition that was answered too late must be renewed before it counts."""
        return self._clock.monotonic_s() < own.sent_at_s + self._settings.renew_deadline_s

    # -- leading

    async def _lead(self) -> None:
        failures, wait_s, renewed_at_s = 0, self._settings.retry_period_s, self._find_renewal_s()
        while not await self._pause(wait_s):
            left_s = renewed_at_s + self._settings.renew_deadline_s - self._clock.monotonic_s()
            if left_s <= 0:
                self._lose(f"it could not be renewed for {self._settings.renew_deadline_s:g} s")
                return
            error = await self._try_to_renew(min(left_s, self._settings.request_timeout_s))
            if self._is_taken():
                self._lose(f"its holder is {self.holder.observed_holder or 'no process'}", is_certain=True)
                return
            failures = 0 if error is None else failures + 1
            renewed_at_s = self._find_renewal_s(or_else=renewed_at_s)
            wait_s = self._get_leader_wait_s(error, failures, renewed_at_s)

    async def _try_to_renew(self, timeout_s: float) -> ServerTrouble | None:
        error: ServerTrouble | None = None
        try:
            await self._await_until_stand_down(self._look_and_claim(timeout_s))
        except ServerTrouble as failure:
            error = failure
            self._record_failure(failure)
        else:
            self.holder.renewals += self._get_current_write() is not None
        return error

    def _get_leader_wait_s(self, error: ServerTrouble | None, failures: int, renewed_at_s: float) -> float:
        """The time until the next renewal; once 0, if a read may show that the last renewal succeeded."""
        period_s, now_s = self._settings.retry_period_s, self._clock.monotonic_s()
        if error is None:
            return max(renewed_at_s + period_s - now_s, period_s / 10)
        if failures == 1 and isinstance(error, Conflict | AnswerLost):
            return _SHORTEST_WAIT_S
        return max(min(period_s, renewed_at_s + self._settings.renew_deadline_s - now_s), _SHORTEST_WAIT_S)

    def _find_renewal_s(self, or_else: float = 0.0) -> float:
        own = self._get_current_write()
        return or_else if own is None else own.sent_at_s

    def _is_taken(self) -> bool:
        seen = self._election.observed
        return seen is not None and seen.is_current and seen.record is not None and self._election.own_write is None

    def _lose(self, reason: str, *, is_certain: bool = False) -> None:
        self._log.error("lease.lost", reason=reason)
        self.holder.lose(reason, is_certain=is_certain)

    # -- releasing

    async def _release(self) -> None:
        if not self._election.writes:
            return
        deadline_s = self._clock.monotonic_s() + self._settings.release_timeout_s
        for _ in range(_RELEASE_ATTEMPTS):
            try:
                await self._try_to_release(deadline_s)
            except ServerTrouble as error:
                self._election = self._election.mark_stale()
                self._record_failure(error)
            else:
                return
            if self._clock.monotonic_s() >= deadline_s:
                break
        self._log.warning("lease.not_released", error=self.holder.last_error)

    async def _try_to_release(self, deadline_s: float) -> None:
        """Do nothing if it is not ours."""
        if self._election.decide(self._clock.monotonic_s()).step is Step.LOOK:
            self._observe(await self._port.read(timeout_s=self._release_call_s(deadline_s)))
        seen = self._election.observed
        if seen is None or seen.record is None or self._election.own_write is None:
            return
        claim = self._election.release(self._get_unused_time())
        timeout_s = self._release_call_s(deadline_s)
        self._observe(await self._port.replace(claim, version=seen.record.version, timeout_s=timeout_s))
        self._log.info("lease.released")

    def _release_call_s(self, deadline_s: float) -> float:
        """Time for two calls: one that is lost, and one that finds out its outcome."""
        left_s = deadline_s - self._clock.monotonic_s()
        return max(min(left_s, self._settings.release_timeout_s / 2), _SHORTEST_WAIT_S)

    # -- one exchange with the server

    async def _await_until_stand_down(self, exchange: Coroutine[Any, Any, None]) -> None:
        """Await the exchange, or cancel it after a stand-down: the server may not answer in time."""
        tasks = (
            asyncio.create_task(exchange, name="an exchange about the lease"),
            asyncio.create_task(self.holder.wait_until_released(), name="waiting for a stand-down"),
        )
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        if not tasks[0].cancelled():
            tasks[0].result()
            self._record_success()

    async def _look_and_claim(self, timeout_s: float) -> None:
        """Read the Lease if necessary, then create, take or renew it if the rules allow."""
        if self._election.decide(self._clock.monotonic_s()).step is Step.LOOK:
            self._observe(await self._port.read(timeout_s=timeout_s))
            own = self._get_current_write()
            if own is not None and not self.holder.has_led and self._is_in_time(own):
                # An acquisition whose answer was lost.
                return
        step = self._election.decide(self._clock.monotonic_s()).step
        # A leader does not take the Lease again: a user who changed the record by hand wants it to step down.
        if step not in _WRITING or (step is Step.TAKE and self.holder.has_led):
            return
        try:
            await self._write(step, timeout_s)
        except NotFound:
            if step is Step.CREATE:
                raise
            self._observe(None)
            if self._election.decide(self._clock.monotonic_s()).step is Step.CREATE:
                await self._write(Step.CREATE, timeout_s)

    async def _write(self, step: Step, timeout_s: float) -> None:
        seen = self._election.observed
        claim = self._election.build_claim(self._get_unused_time())
        self._election = self._election.remember_write(claim, now_s=self._clock.monotonic_s())
        try:
            if step is Step.CREATE or seen is None or seen.record is None:
                record = await self._port.create(claim, timeout_s=timeout_s)
            else:
                record = await self._port.replace(claim, version=seen.record.version, timeout_s=timeout_s)
        except (ServerTrouble, asyncio.CancelledError):
            self._election = self._election.mark_stale()
            raise
        self._observe(record)

    def _observe(self, record: LeaseRecord | None) -> None:
        before = self._election.observed
        self._election = self._election.observe(record, now_s=self._clock.monotonic_s())
        if record is None:
            # It was removed. A leader may not act before it holds the Lease again (see `election`).
            self.holder.suspend()
        own = self._election.own_write
        if own is not None and self.holder.has_led:
            self.holder.grant(own.sent_at_s + self._settings.validity_s)
        if (
            before is not None
            and self._election.observed is not None
            and before.since_s == self._election.observed.since_s
        ):
            return
        if record is not None and record.problems:
            self._log.warning("lease.odd_record", problems=record.problems, holder=record.holder)
        known, self.holder.observed_record = self.holder.observed_holder, record
        if self.holder.observed_holder != known:
            self._log.info("lease.observed", holder=self.holder.observed_holder)

    def _get_current_write(self) -> Write | None:
        """Our write, if the Lease is known to hold it now."""
        seen = self._election.observed
        return self._election.own_write if seen is not None and seen.is_current else None

    def _get_unused_time(self) -> str:
        """The wall clock, or slightly later if the record has that time already: a write must change something."""
        moment = self._clock.now()
        while self._election.is_used(format_micro_time(moment)):
            moment += timedelta(microseconds=1)
        return format_micro_time(moment)

    def _record_failure(self, error: ServerTrouble) -> None:
        self.holder.failures += 1
        self.holder.last_error = f"{type(error).__name__}: {error}"
        # Logged once per failure, however often it is retried: a lasting one would be logged every other second.
        failure = (self.holder.phase, self.holder.last_error)
        if failure != self._logged_failure:
            self._logged_failure = failure
            self._log.warning("lease.attempt_failed", phase=self.holder.phase, error=self.holder.last_error)

    def _record_success(self) -> None:
        if self._logged_failure != ("", ""):
            self._log.info("lease.attempt_succeeded", after=self._logged_failure[1])
            self._logged_failure = ("", "")

    async def _pause(self, seconds: float) -> bool:
        """Wait; True, and at once, after a stand-down."""
        try:
            async with asyncio.timeout(max(seconds, 0.0)):
                await self.holder.wait_until_released()
        except TimeoutError:
            return self.holder.has_stood_down
        return True
