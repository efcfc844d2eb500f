"""The machine types of a simulated cloud with their prices, for the console and the tour."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.nodes.providers.simulated.cache import build_machine_type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plimsoll.local.cloud.api import SimulatedCloud
    from plimsoll.nodes.model.snapshot import MachineType


class CloudPrices:
    """Asks the cloud each time: what it sells may change."""

    def __init__(self, cloud: SimulatedCloud) -> None:
        self._cloud = cloud

    async def list_machine_types(self) -> Sequence[MachineType]:
        zones = (await self._cloud.get_cloud()).spec.zones
        return [build_machine_type(sold, zones=zones) for sold in await self._cloud.list_machine_types()]
