"""The simulated OCM, put together: application, lives of clusters, and a file that it goes on from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.local.ocm.application import OcmApplication
from plimsoll.local.ocm.clusters import OcmClusters
from plimsoll.local.ocm.lifecycle import Lifecycle
from plimsoll.local.ocm.ports import NoDataPlane
from plimsoll.local.ocm.settings import OcmSettings
from plimsoll.local.ocm.state import decode_state, encode_state
from plimsoll.runtime.atomic_files import replace_file
from plimsoll.runtime.supervisor import Service

if TYPE_CHECKING:
    from pathlib import Path

    from plimsoll.core.clock import Clock
    from plimsoll.core.entropy import Entropy
    from plimsoll.local.ocm.faults import OcmFaults, ReceivedCall
    from plimsoll.local.ocm.ports import DataPlane


class SimulatedOcm:
    """`application` is the HTTP API; `run` makes time pass for the clusters.

    `file`: where the state is kept after every change; None: it ends with the process. Every change is written before
    the request is answered, so an acknowledged cluster is never lost.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        entropy: Entropy,
        data_plane: DataPlane | None = None,
        settings: OcmSettings | None = None,
        file: Path | None = None,
    ) -> None:
        self.settings = settings or OcmSettings()
        self.clusters = OcmClusters(self.settings, clock=clock, entropy=entropy)
        self._file = file
        self._lifecycle = Lifecycle(
            self.clusters, data_plane or NoDataPlane(), delays=self.settings.delays, clock=clock
        )
        self._known: set[str] = set()
        if file is not None and file.exists():
            self.clusters.restore(decode_state(file.read_bytes()))
            for cluster in self.clusters.list_clusters():
                self._known.add(cluster.id)
                self._lifecycle.begin(cluster.id, is_known=True)
        self.clusters.on_change = self._keep_change
        self.application = OcmApplication(self.clusters, self.settings, clock=clock, entropy=entropy)

    @property
    def faults(self) -> OcmFaults:
        return self.application.faults

    def list_calls(self, call: str = "") -> tuple[ReceivedCall, ...]:
        """What was received, by the names of `application`: `clusters.create`, `machine_pools.update`, `token`."""
        return self.application.log.list_calls(call)

    async def run(self) -> None:
        """Until cancelled."""
        await self._lifecycle.run()

    def list_services(self) -> list[Service]:
        return [Service(name="simulated OCM", run=self.run)]

    def _keep_change(self, cluster_id: str) -> None:
        if self._file is not None:
            replace_file(self._file, encode_state(self.clusters.list_clusters()))
        if cluster_id in self._known:
            self._lifecycle.wake(cluster_id)
        elif self.clusters.find(cluster_id) is not None:
            self._known.add(cluster_id)
            self._lifecycle.begin(cluster_id)
