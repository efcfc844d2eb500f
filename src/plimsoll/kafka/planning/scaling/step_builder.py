"""Collects what one step of automatic rebalancing decides: actions, the stored state, reasons and warnings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from plimsoll.kafka.model.auto_rebalance import (
    ActionKind,
    AutoRebalance,
    AutoRebalanceAction,
    AutoRebalanceObject,
    AutoRebalanceObservation,
    AutoRebalanceState,
    AutoRebalanceStep,
    ModeConfiguration,
    SettingsLookup,
)
from plimsoll.kafka.model.rebalances import RebalanceAnnotation, RebalanceSpec, RebalanceState
from plimsoll.kafka.model.requests import Mode
from plimsoll.kafka.planning.scaling import reasons
from plimsoll.runtime.backoff import Backoff

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from plimsoll.core.plans import Reason

RETRY: Final = Backoff(initial_s=30.0, factor=2.0, cap_s=900.0, jitter=0.0)
"""The waits between attempts at a failed rebalance: 30 s to 15 min."""
SETTINGS_WAIT_S: Final = 30.0
"""Settings are not watched: they are read again after this time."""
_STATES: Final = {
    RebalanceState.NEW: AutoRebalanceState.PENDING_PROPOSAL,
    RebalanceState.PENDING_PROPOSAL: AutoRebalanceState.PENDING_PROPOSAL,
    RebalanceState.PROPOSAL_READY: AutoRebalanceState.PROPOSAL_READY,
    RebalanceState.REBALANCING: AutoRebalanceState.REBALANCING,
    RebalanceState.STOPPED: AutoRebalanceState.STOPPED,
    RebalanceState.NOT_READY: AutoRebalanceState.NOT_READY,
    RebalanceState.READY: AutoRebalanceState.READY,
    RebalanceState.RECONCILIATION_PAUSED: AutoRebalanceState.RECONCILIATION_PAUSED,
}
_APPROVED: Final = frozenset({RebalanceState.PROPOSAL_READY, RebalanceState.REBALANCING, RebalanceState.READY})
"""States in which replicas moved, or may move before a stop is noticed: automatic rebalances are approved at once."""


class StepBuilder:
    """The decision while it is made. `stored` begins as it was, with the lists of brokers brought up to date."""

    def __init__(self, seen: AutoRebalanceObservation) -> None:
        self.seen = seen
        self.before: Final = seen.stored
        self._configured = {configured.mode: configured for configured in seen.configuration}
        self._forgotten: set[Mode] = set()
        self._write_ahead: AutoRebalance | None = None
        self._actions: list[AutoRebalanceAction] = []
        self._reasons: list[Reason] = []
        self._warnings: list[Reason] = []
        self._retry_after_s: float | None = None
        self.wanted: Final = frozenset(seen.brokers) - frozenset(seen.removed)
        """Brokers that are there or will be, and do not leave."""
        recorded = (*seen.stored.add_brokers, *seen.stored.leaving_brokers)
        added = () if self.is_off(Mode.ADD_BROKERS) else (*recorded, *seen.added)
        self.stored = msgspec.structs.replace(
            seen.stored,
            add_brokers=self._select_wanted(added),
            leaving_brokers=tuple(sorted(frozenset(seen.blocked).intersection(added))),
            remove_brokers=tuple(sorted(set(seen.blocked))) if self.is_configured(Mode.REMOVE_BROKERS) else (),
        )

    # ---- what is seen

    @property
    def queue(self) -> tuple[int, ...]:
        """A of the design: brokers onto which replicas have to move."""
        return self.stored.add_brokers

    @property
    def blocked(self) -> tuple[int, ...]:
        """R of the design: brokers that leave and have to be emptied; empty if that mode is not configured."""
        return tuple(sorted(set(self.seen.blocked))) if self.is_configured(Mode.REMOVE_BROKERS) else ()

    def is_configured(self, mode: Mode) -> bool:
        return mode in self._configured

    def get_configuration(self, mode: Mode) -> ModeConfiguration:
        return self._configured[mode]

    def is_off(self, mode: Mode) -> bool:
        """Surely not configured. With a mistake in the configuration that is not sure."""
        return mode not in self._configured and self.seen.is_configuration_complete

    def get_rebalance(self, mode: Mode) -> AutoRebalanceObject | None:
        """The automatic rebalance of a mode, if it is ours and was not deleted in this step."""
        found = self.get_object(mode)
        return found if found is not None and found.is_ours and mode not in self._forgotten else None

    def get_object(self, mode: Mode) -> AutoRebalanceObject | None:
        """Whatever has the name of the automatic rebalance of a mode. The order of its brokers does not matter."""
        found = self.seen.add_rebalance if mode is Mode.ADD_BROKERS else self.seen.remove_rebalance
        return None if found is None else msgspec.structs.replace(found, brokers=_sort(found.brokers))

    def list_not_ready(self) -> tuple[int, ...]:
        ready = frozenset(self.seen.ready_brokers)
        return tuple(broker for broker in self.queue if broker not in ready)

    def find_start_problem(self, mode: Mode) -> Reason | None:
        """Why a rebalance of this mode cannot be created now."""
        found = self.get_object(mode)
        if found is not None and not found.is_ours:
            return reasons.build_name_conflict(mode)
        return self.find_settings_problem(mode)

    def find_settings_problem(self, mode: Mode) -> Reason | None:
        configured = self._configured[mode]
        if configured.problem is not None:
            return configured.problem
        lookup = self._get_settings(mode)
        if lookup.problem is not None:
            return lookup.problem
        if configured.settings is not None and lookup.spec is None:
            return reasons.build_settings_not_read(mode, configured.settings.name)
        return None

    def _get_settings(self, mode: Mode) -> SettingsLookup:
        return self.seen.add_settings if mode is Mode.ADD_BROKERS else self.seen.remove_settings

    def _select_wanted(self, brokers: Collection[int]) -> tuple[int, ...]:
        return tuple(sorted(self.wanted.intersection(brokers)))

    # ---- what is stored

    def update(self, **changes: Any) -> None:
        self.stored = msgspec.structs.replace(self.stored, **changes)

    def enqueue(self, brokers: Collection[int]) -> None:
        """Queue brokers onto which replicas have to move, if that mode is not off."""
        if not self.is_off(Mode.ADD_BROKERS):
            self.update(add_brokers=self._select_wanted({*self.queue, *brokers}))

    def dequeue(self, brokers: Collection[int]) -> None:
        self.update(add_brokers=tuple(broker for broker in self.queue if broker not in brokers))

    def follow(self, mode: Mode, rebalance: AutoRebalanceObject) -> None:
        """Record the rebalance that runs or holds, and mirror its state. One that was not recorded is adopted."""
        is_same = self.before.running is mode
        self.update(
            state=_STATES[rebalance.state],
            running=mode,
            rebalance_uid=rebalance.uid,
            requested=self.stored.requested if is_same and self.stored.requested else rebalance.brokers,
            has_moved=(is_same and self.stored.has_moved) or rebalance.state in _APPROVED,
        )
        if self.before.running is not None and not is_same:
            self.update(is_stopping=False, **_NO_ATTEMPTS)
        if not is_same and mode is Mode.ADD_BROKERS:
            self.enqueue(rebalance.brokers)

    def end_operation(self, state: AutoRebalanceState) -> None:
        """No rebalance runs any more; the lists stay as they are."""
        self.update(state=state, **_NO_OPERATION)

    def prepare_deletion(self, state: AutoRebalanceState) -> None:
        """End the operation and store that first: an object that is gone must not look like a user's deletion."""
        is_stopping = self.stored.is_stopping
        self.end_operation(state)
        # If the object is still there after a crash, it was stopped by us.
        self.update(is_stopping=is_stopping)
        self.save_first()
        self.update(is_stopping=False)

    def save_first(self) -> None:
        """Store what is decided so far before the next action: a crash behind it must find it."""
        self._write_ahead = self._stamp(self.stored)

    # ---- what is done

    def create(self, mode: Mode, brokers: tuple[int, ...]) -> None:
        self.end_operation(AutoRebalanceState.PENDING_PROPOSAL)
        self.update(running=mode, requested=brokers)
        self._act(
            ActionKind.CREATE, mode, reasons.build_started(mode, brokers), brokers, self._build_spec(mode, brokers)
        )

    def refresh(self, mode: Mode, brokers: tuple[int, ...], reason: Reason) -> bool:
        """Ask for a new proposal with settings read anew; not done, with a warning, if they cannot be used."""
        if problem := self.find_settings_problem(mode):
            self.warn(problem)
            self.wait(SETTINGS_WAIT_S)
            return False
        self._act(ActionKind.REFRESH, mode, reason, brokers, self._build_spec(mode, brokers))
        self.update(
            state=AutoRebalanceState.PENDING_PROPOSAL, requested=brokers, is_stopping=False, next_retry_time=None
        )
        return True

    def restore(self, mode: Mode, brokers: tuple[int, ...]) -> None:
        self._act(ActionKind.RESTORE, mode, reasons.build_restored(mode, brokers), brokers)

    def stop(self, mode: Mode, rebalance: AutoRebalanceObject, reason: Reason) -> None:
        """Annotate stop, once. That the stop is ours is stored first: `Stopped` must not look like a user's wish."""
        self.update(is_stopping=True)
        if rebalance.annotation != RebalanceAnnotation.STOP:
            self.save_first()
            self._act(ActionKind.STOP, mode, reason)
        self.explain(reasons.build_stopping(mode, rebalance))

    def delete(self, mode: Mode, reason: Reason) -> None:
        self._forgotten.add(mode)
        self._act(ActionKind.DELETE, mode, reason)

    def stop_execution(self, mode: Mode) -> None:
        self._act(ActionKind.STOP_EXECUTION, mode, reasons.build_waiting_for_executor(mode))

    def _build_spec(self, mode: Mode, brokers: tuple[int, ...]) -> RebalanceSpec:
        return msgspec.structs.replace(self._get_settings(mode).spec or RebalanceSpec(), mode=mode, brokers=brokers)

    def _act(
        self,
        kind: ActionKind,
        mode: Mode,
        reason: Reason,
        brokers: tuple[int, ...] = (),
        spec: RebalanceSpec | None = None,
    ) -> None:
        self._actions.append(AutoRebalanceAction(kind=kind, mode=mode, brokers=brokers, spec=spec, reason=reason))
        self.explain(reason)

    # ---- messages

    def explain(self, reason: Reason) -> None:
        if reason not in self._reasons:
            self._reasons.append(reason)

    def warn(self, reason: Reason) -> None:
        self.explain(reason)
        if reason not in self._warnings:
            self._warnings.append(reason)

    def wait(self, seconds: float) -> None:
        """Look again after this time at the latest."""
        known = self._retry_after_s
        self._retry_after_s = max(0.0, seconds) if known is None else min(known, max(0.0, seconds))

    def wait_until(self, moment: datetime) -> None:
        self.wait((moment - self.seen.now).total_seconds())

    # ---- the outcome

    def build(self) -> AutoRebalanceStep:
        return AutoRebalanceStep(
            write_ahead=self._write_ahead if self._write_ahead != self.before else None,
            actions=tuple(self._actions),
            stored=self._stamp(self.stored),
            reasons=tuple(self._reasons),
            warnings=tuple(self._warnings),
            retry_after_s=self._retry_after_s,
        )

    def _stamp(self, stored: AutoRebalance) -> AutoRebalance:
        """Both times change only with the state that they belong to."""
        if stored in {AutoRebalance(), self.before}:
            return stored
        before, now = self.before, self.seen.now
        is_used = stored.state is not AutoRebalanceState.NONE or bool(stored.add_brokers or stored.remove_brokers)
        since = before.state_since if stored.state is before.state else now
        changed = before.last_transition_time
        if stored.strimzi_state is not before.strimzi_state or (changed is None and is_used):
            changed = now
        return msgspec.structs.replace(
            stored,
            state_since=(since or now) if is_used else None,
            last_transition_time=changed,
        )


def _sort(brokers: Collection[int]) -> tuple[int, ...]:
    return tuple(sorted(set(brokers)))


_NO_ATTEMPTS: Final[dict[str, Any]] = {"attempts": 0, "remaining_replicas": None, "next_retry_time": None}
_NO_OPERATION: Final[dict[str, Any]] = {
    "running": None,
    "rebalance_uid": "",
    "requested": (),
    "is_stopping": False,
    "has_moved": False,
    **_NO_ATTEMPTS,
}
