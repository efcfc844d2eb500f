"""What a Cluster of the simulated Cluster API is: the port `ClusterDataPlane`."""

from __future__ import annotations

from typing import Protocol

from plimsoll.local.ocm.ports import DataPlane, NoDataPlane


class ClusterDataPlane(DataPlane, Protocol):
    """The data plane of the simulated OCM, and how others reach a cluster of it. `install` is not called."""

    def build_kubeconfig(self, cluster_id: str) -> str:
        """The kubeconfig of an administrator, as the Secret of the Cluster gets it."""
        ...


class NoClusterDataPlane(NoDataPlane):
    """Clusters without anything behind them; every kubeconfig names the same address."""

    def __init__(self, kubeconfig: str = "") -> None:
        self._kubeconfig = kubeconfig

    def build_kubeconfig(self, cluster_id: str) -> str:
        del cluster_id
        return self._kubeconfig
