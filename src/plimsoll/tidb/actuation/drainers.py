"""Builds drainers: each one talks to the PD of one base cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from plimsoll.tidb.actuation.actuator import ClusterWriter, build_store_drain
from plimsoll.tidb.actuation.drain import Drainer
from plimsoll.tidb.pd.client import PdFailed
from plimsoll.tidb.planning.drain.types import DrainSettings

if TYPE_CHECKING:
    from plimsoll.kube.client import Client
    from plimsoll.objects.api.tidb import TidbCluster
    from plimsoll.tidb.actuation.deletion import EndDrain
    from plimsoll.tidb.observing.observer import Observed
    from plimsoll.tidb.pd.access import PdAccess
    from plimsoll.tidb.settings import TidbSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainerFactory:
    """Makes a drainer for each reconcile, with the settings of the operator."""

    client: Client
    pds: PdAccess
    settings: TidbSettings

    def build(self, observed: Observed) -> Drainer:
        """The drainer of the base cluster, which must exist."""
        assert observed.base is not None, "draining needs the PD of a base cluster"
        settings = DrainSettings(peer_tolerance=self.settings.peer_tolerance)
        pd = self.pds.build_client(observed.base.view)
        return Drainer(pd, is_active=self.settings.drains_actively, settings=settings)

    def end_drain(self, observed: Observed) -> EndDrain:
        """A function that cancels the drain of a cluster, for deletions that do not empty stores."""

        async def end(cluster: TidbCluster, /) -> str:
            if observed.base is None:
                return ""
            drain = build_store_drain(cluster)
            write_record = ClusterWriter(self.client, cluster.metadata).write_record
            cancelled = await self.build(observed).bring_back(drain, wanted=drain.replicas, write_record=write_record)
            return cancelled.problem if isinstance(cancelled, PdFailed) else ""

        return end
