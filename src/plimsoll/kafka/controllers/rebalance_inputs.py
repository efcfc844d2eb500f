"""What a step of automatic rebalancing must know beside the objects: readiness, settings, and what the engine does.

It is asked for only while there is an operation: a quiet reconcile only checks the settings that a mode refers to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from plimsoll.core.plans import Reason
from plimsoll.core.values import Value
from plimsoll.kafka.controllers.ports import KnownBrokers
from plimsoll.kafka.model.auto_rebalance import (
    AutoRebalanceObservation,  # noqa: TC001 - msgspec reads annotations at run time
)
from plimsoll.kafka.model.rebalances import RebalanceRefused
from plimsoll.kafka.model.requests import Mode
from plimsoll.kafka.planning.scaling.auto_rebalance_step import needs_executor_state

if TYPE_CHECKING:
    from plimsoll.kafka.controllers.cluster_observer import KafkaObserver, ObservedCluster
    from plimsoll.kafka.controllers.ports import BrokerSnapshot, BrokerView
    from plimsoll.kafka.cruise_control.client.ports import CruiseControls
    from plimsoll.kafka.model.auto_rebalance import SettingsLookup


class CompletedObservation(Value):
    """The observation with everything that the step needs. `is_waiting`: brokers change without an event."""

    observation: AutoRebalanceObservation
    is_waiting: bool = False
    problems: tuple[Reason, ...] = ()
    """Why the engine could not be asked, or which settings cannot be used when the cluster scales."""


class RebalanceInputs:
    """Adds to an observation what the step of an automatic rebalance needs: ready brokers, settings, the executor."""

    def __init__(self, observer: KafkaObserver, brokers: BrokerView, cruise_controls: CruiseControls) -> None:
        self._observer = observer
        self._brokers = brokers
        self._cruise_controls = cruise_controls

    async def complete(
        self,
        seen: AutoRebalanceObservation,
        observed: ObservedCluster,
        snapshot: BrokerSnapshot | None,
        *,
        cordoned: frozenset[int] = frozenset(),
    ) -> CompletedObservation:
        """`snapshot` None: the brokers were not looked at. `cordoned`: brokers that cannot take replicas yet."""
        is_quiet = seen.stored.state.is_without_operation and not (seen.added or seen.blocked or observed.rebalances)
        queued = {*seen.stored.add_brokers, *seen.added}
        if is_quiet and not queued:
            return CompletedObservation(observation=seen, problems=await self._check_settings(seen, observed))
        candidates = _list_candidates(observed, queued)
        known = await self._list_known(observed, snapshot, candidates - cordoned)
        is_executing, problem = await self._ask_executor(seen, observed)
        add_settings = await self._find_settings(seen, observed, Mode.ADD_BROKERS)
        remove_settings = await self._find_settings(seen, observed, Mode.REMOVE_BROKERS)
        completed = replace(
            seen,
            ready_brokers=tuple(sorted(known.brokers)),
            add_settings=add_settings,
            remove_settings=remove_settings,
            is_executing=is_executing,
            blocked_replicas=_count_replicas(seen, snapshot),
        )
        is_waiting = bool(queued) if snapshot is None else candidates != known.brokers
        found = (known.problem or problem, *add_settings.warnings, *remove_settings.warnings)
        problems = tuple(reason for reason in found if reason is not None)
        return CompletedObservation(observation=completed, is_waiting=is_waiting, problems=problems)

    async def _check_settings(self, seen: AutoRebalanceObservation, observed: ObservedCluster) -> tuple[Reason, ...]:
        """What is wrong with settings that the next scaling needs. Only modes that refer to settings are looked up."""
        modes = [entry.mode for entry in seen.configuration if entry.settings is not None and entry.problem is None]
        lookups = [await self._find_settings(seen, observed, mode) for mode in modes]
        found = [(lookup.problem, *lookup.warnings) for lookup in lookups]
        return tuple(reason for reasons in found for reason in reasons if reason is not None)

    async def _find_settings(
        self, seen: AutoRebalanceObservation, observed: ObservedCluster, mode: Mode
    ) -> SettingsLookup:
        kafka = observed.kafka
        configured = next((entry for entry in seen.configuration if entry.mode is mode), None)
        config = None if kafka.spec.cruise_control is None else kafka.spec.cruise_control.config
        goals = config.get("goals") if isinstance(config, dict) else None
        return await self._observer.find_settings(kafka.metadata.namespace, configured, goals)

    async def _list_known(
        self, observed: ObservedCluster, snapshot: BrokerSnapshot | None, candidates: set[int]
    ) -> KnownBrokers:
        """Brokers whose pods are ready, and which Kafka and the engine know."""
        registered = candidates & snapshot.registered if snapshot is not None else set[int]()
        return await self._brokers.list_known(observed.kafka, registered) if registered else KnownBrokers()

    async def _ask_executor(
        self, seen: AutoRebalanceObservation, observed: ObservedCluster
    ) -> tuple[bool | None, Reason | None]:
        """Whether the engine moves replicas for an automatic rebalance; None: not asked, or why it did not answer."""
        if not needs_executor_state(seen.stored, seen.add_rebalance, seen.remove_rebalance):
            return None, None
        cruise_control = await self._cruise_controls.find(observed.kafka)
        state = (
            cruise_control
            if isinstance(cruise_control, RebalanceRefused)
            else await cruise_control.read_executor_state()
        )
        if isinstance(state, RebalanceRefused):
            return None, Reason(code=state.reason, message=state.message)
        if observed.sessions and state.triggered_task_id and state.triggered_task_id not in observed.sessions:
            return False, None
        return not state.is_idle, None


def _list_candidates(observed: ObservedCluster, queued: set[int]) -> set[int]:
    """Queued brokers whose pods are ready."""
    up_to_date = [pod_set for pod_set in observed.pod_sets.values() if pod_set.is_up_to_date]
    return queued.intersection(node_id for pod_set in up_to_date for node_id in pod_set.node_ids)


def _count_replicas(seen: AutoRebalanceObservation, snapshot: BrokerSnapshot | None) -> int | None:
    """The replicas of the brokers that leave: fewer of them after a round are progress."""
    if snapshot is None or not seen.blocked:
        return None
    return sum(snapshot.replicas.get(broker, 0) for broker in seen.blocked)
