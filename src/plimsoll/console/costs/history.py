"""The cost of the cluster over time: samples of cost and bound, kept for two days.

A sample is computed beside the event loop, and the next one waits at least a hundred times as long as it took, so that
sampling takes at most a hundredth of a core, whatever the size of the cluster.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

import structlog

from plimsoll.core.errors import PlimsollError
from plimsoll.nodes.planning.hourly_costs import compute_hourly_costs

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from plimsoll.core.clock import Clock
    from plimsoll.kube.informer import Informer
    from plimsoll.nodes.model.snapshot import MachineType
    from plimsoll.nodes.plan_runner import PlanRunner
    from plimsoll.nodes.planning.hourly_costs import HourlyCosts
    from plimsoll.objects.api.nodes import Node
    from plimsoll.objects.api.pods import Pod

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

SAMPLE_EVERY_S: Final = 30.0
MOST_SAMPLES: Final = 2 * 24 * 120
_SHARE: Final = 100.0
_MOST_PRICES: Final = 20_000


class PriceSource(Protocol):
    """What machines cost."""

    async def list_machine_types(self) -> Sequence[MachineType]:
        """Those that can be bought; none if it is not known."""
        ...


class NoPrices:
    """Where no provider is at hand: prices are estimates by cores and memory."""

    async def list_machine_types(self) -> Sequence[MachineType]:
        return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CostSample:
    """Cost per hour at one moment, by node group."""

    at: datetime
    cost: float
    bound: float
    groups: dict[str, float]


class CostHistory:
    """The samples, and the last known price of each node. `run` adds to them."""

    def __init__(
        self,
        nodes: Informer[Node],
        pods: Informer[Pod],
        prices: PriceSource,
        *,
        clock: Clock,
        run_planner: PlanRunner,
    ) -> None:
        self._nodes, self._pods = nodes, pods
        self._prices = prices
        self._clock = clock
        self._run_planner = run_planner
        self.samples: deque[CostSample] = deque(maxlen=MOST_SAMPLES)
        self.node_prices: dict[str, float] = {}
        """By node; nodes that are gone are kept, because removals name them."""
        self.estimated = 0
        """Nodes whose price no provider gave, in the last sample."""

    async def run(self) -> None:
        await self._nodes.wait_until_synced()
        await self._pods.wait_until_synced()
        while True:
            began_s = self._clock.monotonic_s()
            try:
                await self.sample()
            except PlimsollError as error:
                log.warning("console.no_cost_sample", problem=str(error))
            took_s = self._clock.monotonic_s() - began_s
            await self._clock.sleep(max(SAMPLE_EVERY_S, _SHARE * took_s))

    async def sample(self) -> CostSample:
        machine_types = await self._prices.list_machine_types()
        nodes, pods = self._nodes.cache.list(), self._pods.cache.list()
        costs = await self._run_planner(lambda: compute_hourly_costs(nodes, pods, machine_types))
        sample = CostSample(
            at=self._clock.now(), cost=costs.cost, bound=costs.bound, groups=dict(sorted(costs.groups.items()))
        )
        self.samples.append(sample)
        self._remember_prices(costs)
        return sample

    def _remember_prices(self, costs: HourlyCosts) -> None:
        self.estimated = costs.estimated
        for name, price in costs.prices.items():
            self.node_prices.pop(name, None)
            self.node_prices[name] = price
        while len(self.node_prices) > max(_MOST_PRICES, 2 * costs.nodes):
            del self.node_prices[next(iter(self.node_prices))]
