"""A data plane of several parts: clusters, and what reports for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.local.ocm.ports import ClusterSpec, DataPlane, PoolSpec


class CombinedDataPlane:
    """Every call goes to all parts, one after the other; deletions in reverse order."""

    def __init__(self, *parts: DataPlane) -> None:
        self._parts = parts

    async def make(self, cluster: ClusterSpec) -> None:
        for part in self._parts:
            await part.make(cluster)

    async def set_pools(self, cluster_id: str, pools: tuple[PoolSpec, ...]) -> None:
        for part in self._parts:
            await part.set_pools(cluster_id, pools)

    async def install(self, cluster_id: str, addon_id: str, parameters: Mapping[str, str]) -> None:
        for part in self._parts:
            await part.install(cluster_id, addon_id, parameters)

    async def delete(self, cluster_id: str) -> None:
        for part in reversed(self._parts):
            await part.delete(cluster_id)
