"""Who may lead, as a pure function of what was seen and when: no clock, no network, no task.

`electors` feeds it with what the API server answers and does what it decides. The rules, and why no two processes act
at the same time:

* **A leader's time is counted from before it asked.** A renewal that was sent at t and succeeded is good until
  t + duration - margin on the leader's own clock, whenever its answer came.
* **A challenger's wait is counted from after it saw.** It may take a record over only when the same version of it
  stood there for the whole duration that is written in it, on the challenger's own clock. What it saw was written
  after t, so its wait ends after t + duration. Clocks are never compared, only their speed must agree, within margin.
* **Every write names the version it replaces**, so a takeover fails if the leader renewed since it was last seen, and
  a renewal fails if somebody took over. "The same" means the same resourceVersion: it changes with every write,
  whatever times a holder writes. For that a write must change something (a write that does not keeps its version on
  a real server), so we never write a renewTime that stands there already or that we wrote before.
* **An answer that is lost decides nothing.** The leader's time is not extended; the next step is to look. If the record
  is then one of the writes we remember, it counts from when *that* was sent: such a write may arrive late, but it
  cannot make us good for longer than those who see it respect it.
* **A name proves nothing.** Only a record that this process wrote is its own. One that has our name and that we did
  not write (a former life with the same name, a copied configuration) is waited for like any other.
* **A record that is gone.** Nobody removes one by these rules. Who has never seen one creates it at once: that is how
  a new cluster starts. Who has seen one held waits as long as that record was to be respected, from the moment it saw
  that it is gone, because its holder has not noticed yet. The holder, when it notices, stops acting at once (a new
  process or client-go may have created the Lease in the gap), creates it, and goes on only if its creation wins.

Somebody who empties, shortens or deletes a held Lease by hand, and another who takes it at once, can make two act until
the holder's next renewal. That cannot be helped by any elector.
"""

from __future__ import annotations

import enum

import msgspec

from plimsoll.core.values import Value
from plimsoll.kube.leases.lease_record import Claim, LeaseRecord
from plimsoll.kube.leases.settings import INT32_MAX, LeaseSettings


class ObservedRecord(Value):
    """What stood there (None: nothing), since when we know, and from when on it may be taken if it still does.

    Not `is_current`: a write of ours went astray since, and it has to be looked at again.
    """

    record: LeaseRecord | None
    since_s: float
    free_at_s: float
    is_current: bool = True


class Write(Value):
    """Something we sent, and the moment before we did."""

    stamp: tuple[str, str, str]
    acquire_time: str
    transitions: int
    sent_at_s: float


class Step(enum.StrEnum):
    """What to do next."""

    LOOK = "look"
    """read the Lease: what we know is not enough"""
    CREATE = "create"
    TAKE = "take"
    """it is free, or its holder's time is over"""
    RENEW = "renew"
    """it is ours"""
    WAIT = "wait"
    """until `until_s`, and look in between"""


class Decision(Value):
    """The step, and for a wait its end."""

    step: Step
    until_s: float = 0.0


class Election(Value):
    """One process's part in it. Every method gives a new one."""

    identity: str
    settings: LeaseSettings
    observed: ObservedRecord | None = None
    writes: tuple[Write, ...] = ()

    # -- what happens

    def observe(self, record: LeaseRecord | None, *, now_s: float) -> Election:
        """The Lease as an answer showed it (None: there is none), at the moment after it came."""
        last = self.observed
        if last is not None and _is_same(last.record, record):
            return self._with(seen=msgspec.structs.replace(last, is_current=True))
        # Of a record that is gone, the one that was there last counts; unless it was ours and is still good.
        respected = record
        if record is None and last is not None and not self._is_good(now_s):
            respected = last.record
        respected_s = respected.duration_s if respected is not None and respected.holder else 0.0
        return self._with(seen=ObservedRecord(record=record, since_s=now_s, free_at_s=now_s + respected_s))

    def remember_write(self, claim: Claim, *, now_s: float) -> Election:
        """A write is about to be sent: remembered before its fate is known.

        Of the others the one that stands there and those that could still count: a record older than its duration is
        good for nothing, whoever wrote it.
        """
        write = Write(
            stamp=claim.stamp, acquire_time=claim.acquire_time, transitions=claim.transitions, sent_at_s=now_s
        )
        own, since_s = self.own_write, now_s - self.settings.duration_s
        return self._with(
            writes=(*(earlier for earlier in self.writes if earlier is own or earlier.sent_at_s > since_s), write)
        )

    def mark_stale(self) -> Election:
        """A write was refused or not answered: what stands there now is not known, what did is not forgotten."""
        return (
            self if self.observed is None else self._with(seen=msgspec.structs.replace(self.observed, is_current=False))
        )

    # -- what follows

    @property
    def own_write(self) -> Write | None:
        """The write of ours that stands there, if one does."""
        if self.observed is None or self.observed.record is None:
            return None
        stamp = self.observed.record.stamp
        return next((write for write in reversed(self.writes) if write.stamp == stamp), None)

    def _is_good(self, now_s: float) -> bool:
        own = self.own_write
        return own is not None and now_s < own.sent_at_s + self.settings.validity_s

    def decide(self, now_s: float) -> Decision:
        seen = self.observed
        if seen is None or not seen.is_current:
            return Decision(step=Step.LOOK)
        if self.own_write is not None:
            return Decision(step=Step.RENEW)
        if now_s < seen.free_at_s:
            return Decision(step=Step.WAIT, until_s=seen.free_at_s)
        return Decision(step=Step.CREATE if seen.record is None else Step.TAKE)

    def claim(self, renew_time: str) -> Claim:
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
        """What to write to let go: no holder, and as client-go does, a duration of one second."""
        own = self.own_write
        return Claim(
            holder="",
            duration_s=1,
            acquire_time=renew_time,
            renew_time=renew_time,
            transitions=own.transitions if own else 0,
        )

    def is_used(self, renew_time: str) -> bool:
        """Whether a write with this time could be mistaken for another."""
        standing = self.observed.record.renew_time if self.observed and self.observed.record else ""
        return renew_time == standing or any(write.stamp[2] == renew_time for write in self.writes)

    def _with(self, **changes: object) -> Election:
        return msgspec.structs.replace(self, **changes)


def _is_same(one: LeaseRecord | None, other: LeaseRecord | None) -> bool:
    if one is None or other is None:
        return one is other
    return one.version == other.version and bool(one.version)
