"""The simulated PDs: one per TidbCluster that has a PD, with its state in a ConfigMap in the same namespace.

Each step reads which pods run, moves regions for the elapsed time, and stores the result. Requests to PD's API see the
current state. Only what a restart must know is stored (stores, their states, leader evictions); the moves of regions
follow from the time. So a PD that is killed loses nothing.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import msgspec
import structlog
from msgspec.structs import replace

from plimsoll.kube.controlled_objects.pod_control import build_controller_reference
from plimsoll.kube.controller.controller import Again, Controller, Done
from plimsoll.kube.controller.enqueue import enqueue_on
from plimsoll.kube.errors import NotFound
from plimsoll.local.tidb.instances import PD, TIDB, build_component_labels
from plimsoll.local.tidb.pd.api import PdContext, PdRequest, answer_request
from plimsoll.local.tidb.pd.scheduling import MOVES_PER_SECOND, advance, compute_seconds_to_settle
from plimsoll.local.tidb.pd.stores import DISCONNECTED_AFTER, DOWN_AFTER, UP, PdState, apply_heartbeats
from plimsoll.objects.api.core import ConfigMap
from plimsoll.objects.api.tidb import TidbCluster

if TYPE_CHECKING:
    from collections.abc import Callable

    from plimsoll.kube.informer.events import Key
    from plimsoll.local.components import Component
    from plimsoll.local.tidb.load.cluster_loads import ClusterLoads
    from plimsoll.local.tidb.pd.api import PdResponse
    from plimsoll.local.tidb.topology import Topology

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

NAME: Final = "simulated-pd"
_STATE: Final = "state.json"
_LEAST_WAIT_S: Final = 0.1
# While regions move, the status is written about as often as by an operator.
_LONGEST_WAIT_S: Final = 30.0


def build_config_map_name(base: str) -> str:
    """The name of the ConfigMap."""
    return f"{base}-simulated-pd"


class SimulatedPds:
    """`controller` is what runs; `on_change` hears of clusters whose stores changed."""

    def __init__(
        self, component: Component, topology: Topology, loads: ClusterLoads, *, metric_storage: str, speed: float = 0.0
    ) -> None:
        self._client = component.client
        self._clock = component.clock
        self._topology = topology
        self._loads = loads
        self._metric_storage = metric_storage
        self._speed = speed or MOVES_PER_SECOND
        self._states: dict[Key, PdState] = {}
        self._written: dict[Key, PdState] = {}
        self._locks: dict[Key, asyncio.Lock] = {}
        self.on_change: Callable[[Key], None] = lambda _base: None
        self.controller: Controller[Key] = Controller(
            NAME, self.reconcile, clock=component.clock, entropy=component.entropy, all_keys=topology.list_bases
        )
        enqueue_on(topology.clusters, self.controller, topology.list_bases_of_cluster)
        enqueue_on(topology.pods, self.controller, topology.list_bases_of_pod)

    async def reconcile(self, key: Key) -> Done | Again:
        async with self._lock(key):
            state = await self._compute_current(key)
            if state is None:
                self._forget(key)
                return Done()
            changed = apply_heartbeats(state, self._topology.list_all_instances(key), now=self._clock.now())
            await self._keep(key, changed)
        return self._schedule_next(changed)

    def get_state(self, base: Key) -> PdState | None:
        """As of this moment; None: not known yet."""
        known = self._states.get(base)
        return None if known is None else advance(known, now=self._clock.now(), speed=self._speed)

    async def answer(self, base: Key, request: PdRequest) -> PdResponse | None:
        """To a request; None: no PD runs that could answer."""
        if not self._topology.has_pd(base):
            return None
        async with self._lock(base):
            state = await self._compute_current(base)
            if state is None:
                return None
            around = PdContext(
                now=self._clock.now(),
                tidb=tuple(
                    instance
                    for instance in self._topology.list_all_instances(base)
                    if instance.component == TIDB and instance.is_ready
                ),
                used_bytes=self._loads.sum_used_bytes(base),
                metric_storage=self._metric_storage,
            )
            response = answer_request(state, request, around)
            await self._keep(base, response.state)
        if response.state != state:
            self.controller.queue.add(base)
        return response

    # ---- the state

    def _lock(self, key: Key) -> asyncio.Lock:
        return self._locks.setdefault(key, asyncio.Lock())

    def _forget(self, key: Key) -> None:
        self._states.pop(key, None)
        self._written.pop(key, None)

    async def _compute_current(self, key: Key) -> PdState | None:
        """None: there is no such cluster."""
        base = self._topology.find_base(key)
        if base is None:
            return None
        uid, now = base.metadata.uid, self._clock.now()
        state = self._states.get(key) or await self._read(key)
        if state is None or state.cluster_uid != uid:
            return PdState(cluster_uid=uid, as_of=now)
        return advance(state, now=now, speed=self._speed)

    async def _read(self, key: Key) -> PdState | None:
        try:
            kept = await self._client.get(ConfigMap, build_config_map_name(key.name), namespace=key.namespace)
        except NotFound:
            return None
        try:
            state = msgspec.json.decode(kept.data.get(_STATE, ""), type=PdState)
        except msgspec.DecodeError as error:
            log.warning("simulated_pd.unreadable", cluster=str(key), error=str(error))
            return None
        self._written[key] = state
        return state

    async def _keep(self, key: Key, state: PdState) -> None:
        before = self._written.get(key)
        is_news = before is None or _get_lasting_state(before) != _get_lasting_state(state)
        has_settled = compute_seconds_to_settle(state, now=self._clock.now(), speed=self._speed) == 0
        if is_news or (has_settled and before is not None and before.stores != state.stores):
            await self._write(key, state)
            self._written[key] = state
            self._states[key] = state
            self.on_change(key)
        self._states[key] = state

    async def _write(self, key: Key, state: PdState) -> None:
        base = self._topology.find_base(key)
        if base is None:
            return
        name = build_config_map_name(key.name)
        # One that an earlier cluster of the name left behind becomes ours, and does not go with that.
        owner = build_controller_reference(self._client.calls.get_resource(TidbCluster), base.metadata)
        metadata = {"name": name, "labels": build_component_labels(key.name, PD), "ownerReferences": [owner]}
        body = {"metadata": metadata, "data": {_STATE: msgspec.json.encode(state).decode()}}
        try:
            await self._client.merge_patch(ConfigMap, name, body, namespace=key.namespace)
        except NotFound:
            await self._client.create(ConfigMap, body, namespace=key.namespace)

    def _schedule_next(self, state: PdState) -> Done | Again:
        now = self._clock.now()
        waits = [
            (store.silent_since + after - now).total_seconds() + _LEAST_WAIT_S
            for store in state.stores
            if store.state == UP and store.silent_since is not None
            for after in (DISCONNECTED_AFTER, DOWN_AFTER)
            if now <= store.silent_since + after
        ]
        moving_s = compute_seconds_to_settle(state, now=now, speed=self._speed)
        if moving_s:
            waits.append(min(_LONGEST_WAIT_S, moving_s + _LEAST_WAIT_S))
        return Again(after_s=max(_LEAST_WAIT_S, min(waits))) if waits else Done()


def _get_lasting_state(state: PdState) -> tuple[Any, ...]:
    """What does not follow from the time alone."""
    stores = tuple(replace(store_state, regions=0, leaders=0) for store_state in state.stores)
    return stores, state.evicting, state.cluster_uid
