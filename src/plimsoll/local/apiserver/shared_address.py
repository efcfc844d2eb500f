"""The address of a server that further clusters use too: one socket, one certificate, one kubeconfig."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from plimsoll.local.apiserver.transport.kubeconfig import NAME, build_kubeconfig, read_current_context

if TYPE_CHECKING:
    from pathlib import Path

    from plimsoll.local.apiserver.data_directory import DataDirectory
    from plimsoll.local.apiserver.long_work import LongWork
    from plimsoll.local.apiserver.transport.cluster_router import ClusterRouter
    from plimsoll.local.apiserver.transport.kubeconfig import KubeconfigContext


class KubeconfigFile:
    """The kubeconfig in the directory of a server, with a context for each cluster."""

    def __init__(self, directory: DataDirectory, own: KubeconfigContext, *, ca_pem: bytes) -> None:
        self._directory = directory
        self._own = own
        self._ca_pem = ca_pem
        self._clusters: dict[str, KubeconfigContext] = {}
        self._awaited = read_current_context(directory.read_kubeconfig())
        """The context that was selected before the restart; its cluster may not have come back yet."""

    def add(self, cluster_id: str, token: str) -> None:
        self._clusters[cluster_id] = self._own.build_below(cluster_id, token)
        self.write()

    def build_for(self, cluster_id: str, token: str) -> bytes:
        """A kubeconfig with the context of one cluster."""
        return build_kubeconfig([self._own.build_below(cluster_id, token)], ca_pem=self._ca_pem)

    def remove(self, cluster_id: str) -> None:
        if self._clusters.pop(cluster_id, None) is not None:
            self.write()

    def write(self) -> Path:
        """Whole. The current context stays if it still exists: kubectl config use-context may have changed it."""
        current = read_current_context(self._directory.read_kubeconfig()) or NAME
        if self._awaited in self._clusters:
            current, self._awaited = self._awaited, ""
        contexts = [self._own, *(self._clusters[cluster_id] for cluster_id in sorted(self._clusters))]
        return self._directory.write_kubeconfig(build_kubeconfig(contexts, ca_pem=self._ca_pem, current=current))


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedAddress:
    """`long_work` has the threads of the process; `ca_pem` is the authority of the certificate."""

    router: ClusterRouter
    kubeconfig: KubeconfigFile
    long_work: LongWork
    ca_pem: bytes = field(repr=False)
