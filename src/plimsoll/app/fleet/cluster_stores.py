"""Where clusters in this process keep their objects and their journal: in a folder each, or in memory."""

from __future__ import annotations

import asyncio
import shutil
from typing import TYPE_CHECKING, Final, Protocol

from plimsoll.journal.lazy import LazyJournal
from plimsoll.journal.memory import MemoryJournal
from plimsoll.local.apiserver.in_process_server import open_in_directory, open_in_memory
from plimsoll.runtime.atomic_files import replace_file

if TYPE_CHECKING:
    from pathlib import Path

    from plimsoll.core.clock import Clock
    from plimsoll.core.entropy import Entropy
    from plimsoll.journal.ports import Journal
    from plimsoll.local.apiserver.in_process_server import InProcessServer
    from plimsoll.local.apiserver.shared_address import SharedAddress

KUBECONFIG_FILE: Final = "kubeconfig"
CLUSTERS_FOLDER: Final = "clusters"
"""The folder of all clusters in the data directory."""


class ClusterStores(Protocol):
    """Opens the API server of a cluster, and removes what it left."""

    def open_server(self, cluster_id: str) -> InProcessServer: ...

    def open_journal(self, cluster_id: str) -> Journal: ...

    async def remove(self, cluster_id: str) -> None:
        """After server and journal are closed. A cluster that is not known is no error."""
        ...


class StoreFolders:
    """A folder per cluster. `shared` is the address that all clusters are reached at."""

    def __init__(self, data: Path, shared: SharedAddress, *, clock: Clock, entropy: Entropy) -> None:
        self._root = data / CLUSTERS_FOLDER
        self._shared = shared
        self._clock = clock
        self._entropy = entropy

    def open_server(self, cluster_id: str) -> InProcessServer:
        folder = self._root / cluster_id
        server = open_in_directory(
            folder,
            clock=self._clock,
            entropy=self._entropy,
            ca_pem=self._shared.ca_pem,
            long_work=self._shared.long_work,
        )
        self._shared.router.add(cluster_id, server.application)
        self._shared.kubeconfig.add(cluster_id, server.token)
        # Also beside its journal, as commands that read a journal look for the cluster of it.
        replace_file(folder / KUBECONFIG_FILE, self._shared.kubeconfig.build_for(cluster_id, server.token))
        return server

    def open_journal(self, cluster_id: str) -> Journal:
        return LazyJournal(self._root / cluster_id)

    async def remove(self, cluster_id: str) -> None:
        self._shared.router.remove(cluster_id)
        self._shared.kubeconfig.remove(cluster_id)
        folder = self._root / cluster_id
        if folder.exists():
            await asyncio.to_thread(shutil.rmtree, folder)


class MemoryStores:
    """For virtual time. A journal is kept after its cluster is gone."""

    def __init__(self, *, clock: Clock, entropy: Entropy) -> None:
        self._clock = clock
        self._entropy = entropy
        self.journals: dict[str, MemoryJournal] = {}

    def open_server(self, cluster_id: str) -> InProcessServer:  # noqa: ARG002 -- nothing is kept under it
        return open_in_memory(clock=self._clock, entropy=self._entropy)

    def open_journal(self, cluster_id: str) -> Journal:
        return self.journals.setdefault(cluster_id, MemoryJournal())

    async def remove(self, cluster_id: str) -> None:
        """Nothing is left."""
