"""The rules of leader election, as a pure function of observations and times: no clock, no network, no task.

`elector` passes in what the API server answers and does what these rules decide. The rules, and why no two processes
act at the same time:

* **A leader's time counts from before its request.** A renewal that was sent at t and succeeded is valid until
  t + duration - margin on the leader's own clock, whenever the response arrived.
* **A challenger's wait counts from after its observation.** It may take a record over only when the same version of it
  was there for the whole duration that the record names, on the challenger's own clock. What it observed was written
  after t, so its wait ends after t + duration. Clocks are never compared; only their speed must agree, within margin.
* **Every write names the version it replaces**, so a takeover fails if the leader renewed since it was last observed,
  and a renewal fails if another process took over. "The same" means the same resourceVersion: it changes with every
  write, whatever times a holder writes. For that a write must change something (a real server keeps the version
  otherwise), so we never write a renewTime that the record already holds or that we wrote before.
* **A lost response decides nothing.** The leader's time is not extended; the next step is to read. If the record then
  is one of our remembered writes, it counts from when *that* write was sent: such a write may arrive late, but it
  cannot make us valid for longer than its observers respect it.
* **A name proves nothing.** Only a record that this process wrote is its own. A record with our name that we did not
  write (an earlier process with the same name, a copied configuration) is waited for like any other.
* **A record that is gone.** These rules never remove one. A process that has never observed a record creates it at
  once: this is how a new cluster starts. A process that has observed a held record waits for the duration of that
  record from the moment it found it gone, because the holder has not noticed yet. The holder, when it notices, stops
  acting at once (a new process or client-go may have created the Lease in the gap), creates it, and continues only if
  its creation wins.

If a user empties, shortens or deletes a held Lease by hand and another process takes it at once, two processes can act
until the holder's next renewal. No elector can prevent that.
"""

from __future__ import annotations

import enum

import msgspec

from plimsoll.core.values import Value
from plimsoll.kube.leases.lease_record import Claim, LeaseRecord
from plimsoll.kube.leases.settings import INT32_MAX, LeaseSettings


class ObservedRecord(Value):
    """An observed record (None: no Lease), since when it is known, and from when on it may be taken if unchanged.

    Not `is_current`: a write of ours failed since then, so the Lease must be read again.
    """

    record: LeaseRecord | None
    since_s: float
    free_at_s: float
    is_current: bool = True


class Write(Value):
    """A write that was sent, and the moment before it was sent."""

    stamp: tuple[str, str, str]
    acquire_time: str
    transitions: int
    sent_at_s: float


class Step(enum.StrEnum):
    """What to do next."""

    LOOK = "look"
    """read the Lease: the known state is not sufficient"""
    CREATE = "create"
    TAKE = "take"
    """take it: it is free, or its holder's time is over"""
    RENEW = "renew"
    """it is ours"""
    WAIT = "wait"
    """wait until `until_s`, and read in between"""


class Decision(Value):
    """The step, and for a wait its end."""

    step: Step
    until_s: float = 0.0


class Election(Value):
    """The view of one process on the election. Every method returns a new value."""

    identity: str
    settings: LeaseSettings
    observed: ObservedRecord | None = None
    writes: tuple[Write, ...] = ()

    # -- what happens

    def observe(self, record: LeaseRecord | None, *, now_s: float) -> Election:
        """The Lease of a response (None: there is none), and the time after the response."""
        last = self.observed
        if last is not None and _is_same(last.record, record):
            return self._with(observed=msgspec.structs.replace(last, is_current=True))
        # Of a record that is gone, the one that was there last counts; unless it was ours and is still good.
        respected = record
        if record is None and last is not None and not self._is_good(now_s):
            respected = last.record
        respected_s = respected.duration_s if respected is not None and respected.holder else 0.0
        return self._with(observed=ObservedRecord(record=record, since_s=now_s, free_at_s=now_s + respected_s))

    def remember_write(self, claim: Claim, *, now_s: float) -> Election:
        """A write is about to be sent: remembered before its outcome is known.

        Of the earlier writes, the observed one and those that could still count are kept: a record older than its
        duration is worthless, whichever process wrote it.
        """
        write = Write(
            stamp=claim.stamp, acquire_time=claim.acquire_time, transitions=claim.transitions, sent_at_s=now_s
        )
        own, since_s = self.own_write, now_s - self.settings.duration_s
        return self._with(
            writes=(*(earlier for earlier in self.writes if earlier is own or earlier.sent_at_s > since_s), write)
        )

    def mark_stale(self) -> Election:
        """A write was refused or not answered. The current record is unknown; the last known one is kept."""
        return (
            self
            if self.observed is None
            else self._with(observed=msgspec.structs.replace(self.observed, is_current=False))
        )

    # -- what follows

    @property
    def own_write(self) -> Write | None:
        """Our write, if the observed record is one of ours."""
        if self.observed is None or self.observed.record is None:
            return None
        stamp = self.observed.record.stamp
        return next((write for write in reversed(self.writes) if write.stamp == stamp), None)

    def _is_good(self, now_s: float) -> bool:
        own = self.own_write
        return own is not None and now_s < own.sent_at_s + self.settings.validity_s

    def decide(self, now_s: float) -> Decision:
        observed = self.observed
        if observed is None or not observed.is_current:
            return Decision(step=Step.LOOK)
        if self.own_write is not None:
            return Decision(step=Step.RENEW)
        if now_s < observed.free_at_s:
            return Decision(step=Step.WAIT, until_s=observed.free_at_s)
        return Decision(step=Step.CREATE if observed.record is None else Step.TAKE)

    def build_claim(self, renew_time: str) -> Claim:
        """What to write for the decision to create, take or renew."""
        record, own = (self.observed.record if self.observed else None), self.own_write
        if own is not None:
            acquire_time, transitions = own.acquire_time, own.transitions
        else:
            acquire_time, transitions = renew_time, min(record.transitions + 1, INT32_MAX) if record else 0
        return Claim(
            holder=self.identity,
            duration_s=self.settings.duration_s,
            acquire_time=acquire_time,
            renew_time=renew_time,
            transitions=transitions,
        )

    def release(self, renew_time: str) -> Claim:
        """The release: no holder, and as client-go does, a duration of one second."""
        own = self.own_write
        return Claim(
            holder="",
            duration_s=1,
            acquire_time=renew_time,
            renew_time=renew_time,
            transitions=own.transitions if own else 0,
        )

    def is_used(self, renew_time: str) -> bool:
        """Whether a write with this time could be confused with another."""
        standing = self.observed.record.renew_time if self.observed and self.observed.record else ""
        return renew_time == standing or any(write.stamp[2] == renew_time for write in self.writes)

    def _with(self, **changes: object) -> Election:
        return msgspec.structs.replace(self, **changes)


def _is_same(record: LeaseRecord | None, other: LeaseRecord | None) -> bool:
    if record is None or other is None:
        return record is other
    return record.version == other.version and bool(record.version)
