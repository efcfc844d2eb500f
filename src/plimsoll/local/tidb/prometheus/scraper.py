"""Scrapes simulated TiDB clusters as a TidbMonitor would, every 15 s while there are any; otherwise it sleeps."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from plimsoll.kube.errors import ApiError
from plimsoll.local.tidb.instances import TIKV
from plimsoll.local.tidb.pd.stores import TOMBSTONE
from plimsoll.local.tidb.prometheus.series import SCRAPE_S, SeriesStore
from plimsoll.runtime.supervisor import Service

if TYPE_CHECKING:
    from plimsoll.core.clock import Clock
    from plimsoll.kube.informer.events import Key
    from plimsoll.local.tidb.instances import TidbInstance
    from plimsoll.local.tidb.load.cluster_loads import ClusterLoads
    from plimsoll.local.tidb.pd.simulated_pds import SimulatedPds
    from plimsoll.local.tidb.topology import Topology

NAME: Final = "simulated-tidb-monitor"


class Scraper:
    """`series` is what it has measured."""

    def __init__(self, topology: Topology, pds: SimulatedPds, loads: ClusterLoads, *, clock: Clock) -> None:
        self._topology = topology
        self._pds = pds
        self._loads = loads
        self._clock = clock
        self._has_work = asyncio.Event()
        self.series = SeriesStore()
        topology.clusters.add_handler(lambda _change: self._has_work.set(), name=NAME)

    def build_service(self) -> Service:
        return Service(name=NAME, run=self.run)

    async def run(self) -> None:
        """Until cancelled."""
        await self._topology.clusters.wait_until_synced()
        await self._topology.pods.wait_until_synced()
        while True:
            await self._has_work.wait()
            await self.scrape()
            if not self.series and not self._topology.list_bases():
                self._has_work.clear()
            await self._clock.sleep(SCRAPE_S)

    async def scrape(self) -> None:
        """Look at everything once."""
        now = self._clock.now()
        instances: list[TidbInstance] = []
        cores: dict[tuple[str, str], float] = {}
        sizes: dict[tuple[str, str], dict[str, float]] = {}
        for key in self._topology.list_bases():
            base = self._topology.find_base(key)
            if base is None:
                continue
            try:
                await self._loads.read(key, base, now=now)
            except ApiError:
                # The server does not answer just now: what was read last goes on.
                continue
            found = self._topology.list_all_instances(key)
            instances += found
            cores |= self._loads.compute_cores(key, found)
            sizes |= self._compute_sizes(key, found)
        self.series.add_scrape(instances, cores=cores, sizes=sizes, at_s=now.timestamp())

    def _compute_sizes(self, key: Key, instances: tuple[TidbInstance, ...]) -> dict[tuple[str, str], dict[str, float]]:
        state = self._pds.get_state(key)
        if state is None:
            return {}
        per_peer = self._loads.sum_used_bytes(key) / max(1, sum(store_state.regions for store_state in state.stores))
        sizes = {}
        for instance in instances:
            store = state.find_store_of_pod(instance.namespace, instance.pod) if instance.component == TIKV else None
            if store is not None and store.state != TOMBSTONE:
                used = min(float(store.capacity_bytes), per_peer * store.regions)
                available = store.capacity_bytes - used
                store_sizes = {"capacity": float(store.capacity_bytes), "used": used, "available": available}
                sizes[instance.namespace, instance.pod] = store_sizes
        return sizes
