"""What the machines of all clusters of the tour cost per hour, and how many came and went."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from plimsoll.console.costs.cloud_prices import CloudPrices
from plimsoll.local.cloud.api import SimulatedCloud
from plimsoll.nodes.planning.hourly_costs import compute_hourly_costs
from plimsoll.objects.api.nodes import Node
from plimsoll.objects.api.pods import Pod

if TYPE_CHECKING:
    from plimsoll.app.tour.world import TourWorld


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineCosts:
    """`added` and `removed` count all machines since the beginning; `bound` is what the pods need at least."""

    added: int
    removed: int
    machines: int
    cost_per_hour: float
    bound_per_hour: float


class CostMeter:
    """Remembers every machine that it has seen."""

    def __init__(self, world: TourWorld) -> None:
        self._world = world
        self._seen: set[str] = set()

    async def look(self) -> set[str]:
        """The machines that are there now."""
        present: set[str] = set()
        for cluster_id in self._world.list_cluster_ids():
            cloud = SimulatedCloud(self._world.connect(cluster_id), clock=self._world.clock)
            present |= {machine.metadata.uid for machine in await cloud.list_machines()}
        self._seen |= present
        return present

    async def measure(self) -> MachineCosts:
        present, cost, bound = await self.look(), 0.0, 0.0
        for cluster_id in self._world.list_cluster_ids():
            client = self._world.connect(cluster_id)
            prices = CloudPrices(SimulatedCloud(client, clock=self._world.clock))
            machine_types = await prices.list_machine_types()
            nodes, pods = await client.list(Node), await client.list(Pod)
            costs = compute_hourly_costs(nodes.items, pods.items, machine_types)
            cost, bound = cost + costs.cost, bound + costs.bound
        return MachineCosts(
            added=len(self._seen),
            removed=len(self._seen - present),
            machines=len(present),
            cost_per_hour=cost,
            bound_per_hour=bound,
        )
