"""A small world for steps of automatic rebalancing: pools, pods, replicas, KafkaRebalances and an engine. Pure.

A reconcile follows the order of docs/design/kafka.md section 4.2 and may be cut off after every single write. What is
stored goes through both status views. The world checks what must never happen while it runs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from plimsoll.kafka.model.auto_rebalance import (
    ActionKind,
    AutoRebalance,
    AutoRebalanceObject,
    AutoRebalanceObservation,
    ModeConfiguration,
    SettingsLookup,
)
from plimsoll.kafka.model.rebalances import RebalanceState
from plimsoll.kafka.planning.scaling.auto_rebalance_step import decide_step, needs_executor_state, plan_write_ahead
from plimsoll.kafka.wire.status_views import build_status_views, read_status_views
from plimsoll.objects.api.kafka import KafkaStatus
from tests.kafka.planning.scaling.observations import ADD, BOTH, NOW, REMOVE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.kafka.model.auto_rebalance import AutoRebalanceAction, AutoRebalanceStep
    from plimsoll.kafka.model.requests import Mode

REPLICAS = 6
"""Replicas of a broker after a rebalance."""


class Crashed(Exception):
    """The operator ended after a write."""


@dataclass
class SimulatedRebalance:
    """A KafkaRebalance, reconciled as section 6 says, with automatic approval."""

    uid: str
    mode: str
    brokers: tuple[int, ...]
    is_ours: bool = True
    state: RebalanceState = RebalanceState.NEW
    annotation: str = ""
    is_deleting: bool = False
    is_changed: bool = False
    """The spec differs from what was last requested."""
    fails: bool = False


@dataclass
class SimulatedScaling:
    """A cluster with old brokers 0, 1, 2. `spec` is what the users ask for."""

    spec: set[int] = field(default_factory=lambda: {0, 1, 2})
    node_ids: set[int] = field(default_factory=lambda: {0, 1, 2})
    """The ids in the pool status."""
    pods: set[int] = field(default_factory=lambda: {0, 1, 2})
    ready: set[int] = field(default_factory=lambda: {0, 1, 2})
    replicas: dict[int, int] = field(default_factory=lambda: dict.fromkeys((0, 1, 2), REPLICAS))
    configuration: tuple[ModeConfiguration, ...] = BOTH
    is_configuration_complete: bool = True
    settings: SettingsLookup = field(default_factory=SettingsLookup)
    rebalances: dict[Mode, SimulatedRebalance] = field(default_factory=dict)
    executing: str = ""
    """The uid of the rebalance that the engine executes."""
    status: dict[str, Any] = field(default_factory=dict)
    prunes_design_view: bool = False
    now_s: int = 0
    writes_left: int | None = None
    """The operator crashes after so many writes."""
    writes: int = 0
    created: int = 0
    states: list[str] = field(default_factory=list)
    acted: list[str] = field(default_factory=list)
    touched: list[str] = field(default_factory=list)
    """Uids of objects that actions changed."""

    # ---- the operator

    def reconcile(self) -> AutoRebalanceStep | None:
        """One reconcile; None: it crashed."""
        try:
            return self._reconcile()
        except Crashed:
            return None

    def _reconcile(self) -> AutoRebalanceStep:
        added, removed = sorted(self.spec - self.node_ids), sorted(self.node_ids - self.spec)
        is_held = any(self.replicas.get(broker, 0) for broker in removed)
        blocked = removed if is_held else []
        ahead = plan_write_ahead(self.observe(added, removed, blocked))
        if ahead is not None:
            self._write_status(ahead)
        if removed and not is_held:
            assert not any(self.replicas.get(broker, 0) for broker in removed)
            self.pods -= set(removed)
            self.ready -= set(removed)
            self._count_write()
        ids = self.spec | set(blocked)
        if ids != self.node_ids:
            self.node_ids = ids
            self._count_write()
        if not ids <= self.pods:
            self.pods |= ids
            self._count_write()
        step = decide_step(self.observe(added, removed if is_held else [], blocked))
        if step.write_ahead is not None:
            self._write_status(step.write_ahead)
        for action in step.actions:
            self._act(action)
        self._write_status(step.stored)
        return step

    def observe(self, added: Iterable[int], removed: Iterable[int], blocked: Iterable[int]) -> AutoRebalanceObservation:
        add_rebalance, remove_rebalance = self.see(ADD), self.see(REMOVE)
        is_asked = needs_executor_state(self.read_stored(), add_rebalance, remove_rebalance)
        return AutoRebalanceObservation(
            now=NOW + timedelta(seconds=self.now_s),
            configuration=self.configuration,
            is_configuration_complete=self.is_configuration_complete,
            stored=self.read_stored(),
            added=tuple(added),
            removed=tuple(removed),
            blocked=tuple(blocked),
            brokers=tuple(sorted(self.spec | set(blocked))),
            ready_brokers=tuple(sorted(self.ready)),
            add_rebalance=add_rebalance,
            remove_rebalance=remove_rebalance,
            add_settings=self.settings,
            remove_settings=self.settings,
            is_executing=bool(self.executing) if is_asked else None,
            blocked_replicas=sum(self.replicas.get(broker, 0) for broker in blocked),
        )

    def see(self, mode: Mode) -> AutoRebalanceObject | None:
        found = self.rebalances.get(mode)
        if found is None:
            return None
        return AutoRebalanceObject(
            uid=found.uid,
            is_ours=found.is_ours,
            state=found.state,
            mode=found.mode,
            brokers=found.brokers,
            annotation=found.annotation,
            is_deleting=found.is_deleting,
            message="it failed" if found.state is RebalanceState.NOT_READY else "",
        )

    def read_stored(self) -> AutoRebalance:
        return read_status_views(msgspec.convert(self.status, KafkaStatus))

    def _write_status(self, stored: AutoRebalance) -> None:
        status = _remove_nulls(build_status_views(stored))
        if self.prunes_design_view:
            status.pop("cruiseControl", None)
        if status == self.status:
            return
        self.status = status
        if not self.states or self.states[-1] != stored.state.value:
            self.states.append(stored.state.value)
        lists = (stored.add_brokers, stored.remove_brokers)
        assert all(list(brokers) == sorted(set(brokers)) for brokers in lists)
        assert not set(stored.add_brokers) & set(stored.remove_brokers)
        self._count_write()

    def _act(self, action: AutoRebalanceAction) -> None:
        found, other = self.rebalances.get(action.mode), self.rebalances.get(REMOVE if action.mode is ADD else ADD)
        self.acted.append(f"{action.kind} {action.mode}")
        if found is not None:
            assert found.is_ours or action.kind is ActionKind.STOP_EXECUTION, action
            self.touched.append(found.uid)
        match action.kind:
            case ActionKind.CREATE:
                assert found is None, action
                assert other is None or not (other.is_ours and other.state.is_live), action
                assert other is None or not other.is_ours or self.executing != other.uid, action
                assert action.spec is not None
                assert action.spec.brokers == action.brokers
                self.created += 1
                brokers = action.spec.brokers
                self.rebalances[action.mode] = SimulatedRebalance(
                    f"uid-{self.created}", action.spec.mode.value, brokers
                )
            case ActionKind.REFRESH | ActionKind.RESTORE:
                assert found is not None
                found.is_changed |= (found.mode, found.brokers) != (action.mode.value, action.brokers)
                found.mode, found.brokers = action.mode.value, action.brokers
                if action.kind is ActionKind.REFRESH:
                    found.annotation = "refresh"
            case ActionKind.STOP:
                assert found is not None
                assert found.annotation != "stop"
                found.annotation = "stop"
            case ActionKind.DELETE:
                assert found is not None
                assert self.executing != found.uid or not self.configuration, action
                found.is_deleting = True
                self._count_write()
                del self.rebalances[action.mode]
            case ActionKind.STOP_EXECUTION:
                self.executing = ""
        self._count_write()

    def _count_write(self) -> None:
        self.writes += 1
        if self.writes_left is not None:
            self.writes_left -= 1
            if self.writes_left < 0:
                self.writes_left = None
                raise Crashed

    # ---- the rebalance reconciler and the engine

    def advance_rebalances(self) -> None:
        if self.executing not in {found.uid for found in self.rebalances.values()}:
            # An execution whose object is gone ends by itself.
            self.executing = ""
        for mode in (ADD, REMOVE):
            if mode in self.rebalances:
                self.advance_rebalance(mode)

    def advance_rebalance(self, mode: Mode) -> None:
        found = self.rebalances[mode]
        if found.is_deleting:
            if self.executing == found.uid:
                self.executing = ""
            elif found.is_ours:
                del self.rebalances[mode]
            return
        asked, found.annotation = found.annotation, ""
        if found.is_changed and asked != "stop":
            asked = "refresh"
        if found.state is RebalanceState.NEW:
            found.annotation, found.is_changed = asked, False
            found.state = RebalanceState.PENDING_PROPOSAL
        elif asked == "refresh":
            found.is_changed = False
            self._request(found)
        elif found.state.is_live and asked == "stop":
            self._stop(found)
            found.state = RebalanceState.STOPPED
        else:
            found.annotation = asked
            self._proceed(found)

    def _request(self, found: SimulatedRebalance) -> None:
        self._stop(found)
        found.state = RebalanceState.PENDING_PROPOSAL

    def _stop(self, found: SimulatedRebalance) -> None:
        if self.executing == found.uid:
            self.executing = ""

    def _proceed(self, found: SimulatedRebalance) -> None:
        if found.state.is_live and found.fails:
            self._stop(found)
            found.fails = False
            found.state = RebalanceState.NOT_READY
        elif found.state is RebalanceState.PENDING_PROPOSAL:
            found.state = RebalanceState.PROPOSAL_READY
        elif found.state is RebalanceState.PROPOSAL_READY and not self.executing:
            self.executing = found.uid
            found.state = RebalanceState.REBALANCING
        elif found.state is RebalanceState.REBALANCING:
            self._move(found)
            self._stop(found)
            found.state = RebalanceState.READY

    def _move(self, found: SimulatedRebalance) -> None:
        for broker in found.brokers:
            if broker not in self.pods:
                continue
            self.replicas[broker] = 0 if found.mode == REMOVE else REPLICAS

    # ---- time and users

    def start_pods(self) -> None:
        self.ready |= self.pods

    def scale(self, *brokers: int) -> None:
        self.spec = set(brokers)

    def delete(self, mode: Mode) -> None:
        """A user deletes: the finalizer holds our object, another one goes at once."""
        found = self.rebalances.get(mode)
        if found is not None and found.is_ours:
            found.is_deleting = True
        elif found is not None:
            del self.rebalances[mode]

    def strip_finalizer(self, mode: Mode) -> None:
        found = self.rebalances.get(mode)
        if found is None:
            return
        if found.is_deleting:
            del self.rebalances[mode]
        else:
            found.is_ours = False

    def annotate(self, mode: Mode, value: str) -> None:
        if mode in self.rebalances:
            self.rebalances[mode].annotation = value

    def run(self, ticks: int = 1, *, restarts_late: bool = False) -> None:
        """After a crash the operator starts again at once, or only when everything else has gone on."""
        for _ in range(ticks):
            if self.reconcile() is None and not restarts_late:
                self.reconcile()
            self.advance_rebalances()
            self.start_pods()
            self.now_s += 60

    def summarize(self) -> dict[str, Any]:
        """What must not depend on when the operator crashed."""
        stored = self.read_stored()
        return {
            "nodeIds": sorted(self.node_ids),
            "pods": sorted(self.pods),
            "replicas": {broker: count for broker, count in sorted(self.replicas.items()) if count},
            "rebalances": sorted(self.rebalances),
            "executing": self.executing,
            "state": stored.state.value,
            "add": stored.add_brokers,
            "remove": stored.remove_brokers,
            "running": stored.running,
        }


def _remove_nulls(patch: dict[str, Any]) -> dict[str, Any]:
    """A merge patch on an empty object."""
    return {
        key: _remove_nulls(value) if isinstance(value, dict) else value
        for key, value in patch.items()
        if value is not None and value != {"autoRebalance": None}
    }
