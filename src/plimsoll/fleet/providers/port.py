"""The port of the providers of data-plane clusters, as the workers need it: `ClusterProvider`.

Rules of every implementation:

* **Answers are values.** A call returns its result or `CallFailed`; nothing that the other side says or does raises.
  Only `asyncio.CancelledError` and errors of our own code leave a call.
* **Every call may be repeated**, at any time, also while an earlier one is under way or after its answer was lost. A
  call that finds everything as wanted changes nothing. A call that stops half-way leaves what a repetition completes.
* **One name, one cluster.** `create_cluster` looks the name up first and returns the cluster that has it. A process may
  crash between the call and the row's update: the repetition finds the cluster. If the provider itself refuses a name
  as taken, the cluster with this name is the answer.
* **`Absent` and `GONE` need an explicit answer of the provider** about this cluster (404). No answer, an unreadable
  one, or a list without the cluster is `CallFailed` or says nothing. The workers believe it only when the list of
  clusters lacks this one too.
* **Answers are checked**: another id than the one that was asked for, or another name, region or provider than the
  row's, is `CallFailed` (`RETRY`), and nothing of the answer is used. All texts are bounded (`bound_text`).
* **Nothing is deleted but by `delete_cluster`**: no pool, no add-on, no object, and no cluster without a row.
* **Calls end**: each has a timeout of at most 15 s per exchange, and a bounded number of exchanges. A lease of a worker
  keeps a margin of 20 s for calls that are under way when it ends; a change that takes longer is cancelled then.

A call gets the row. Its `cluster_id` is empty until a created cluster was saved; `provider_spec` holds what a
registration gave (`{"name": CONTEXT}` for clusters known by the context of a kubeconfig). A provider stores nothing
that it cannot find again from the row and from the other side.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from plimsoll.fleet.model.clusters import Cluster
    from plimsoll.fleet.model.pools import PoolBounds
    from plimsoll.fleet.model.provided import (
        Absent,
        AddonOrder,
        CallFailed,
        ClusterOrder,
        ClusterSetup,
        DeletionState,
        ProvidedCluster,
        SetupOrder,
    )
    from plimsoll.fleet.model.statuses import ProviderType


class ClusterProvider(Protocol):
    """A provider. Workers hold one per `ProviderType`; a row of a type without one is reported and left alone."""

    @property
    def type(self) -> ProviderType: ...

    # ---- reads: also in a dry run, and while the workers are paused

    async def find_cluster(self, name: str, *, region: str) -> ProvidedCluster | Absent | CallFailed:
        """The live cluster with this name. Several: the oldest one."""
        ...

    async def read_cluster(self, cluster: Cluster) -> ProvidedCluster | Absent | CallFailed:
        """The cluster of a row that has a `cluster_id`."""
        ...

    async def read_setup(self, cluster: Cluster, order: SetupOrder) -> ClusterSetup | CallFailed:
        """What a cluster that is `READY` has of an order. It changes nothing."""
        ...

    async def list_clusters(self) -> tuple[ProvidedCluster, ...] | CallFailed:
        """All clusters with names like ours (`mk-…`), in order of their ids, also those being deleted.

        A list that cannot be read to its end is `CallFailed`: a part of it would make clusters look as if they were
        gone. Providers that make no clusters (`standalone`) return none.
        """
        ...

    # ---- changes: only under the lease of a worker, and never in a dry run or while paused

    async def create_cluster(self, order: ClusterOrder) -> ProvidedCluster | CallFailed:
        """The cluster of this name, made now if there is none. It returns as soon as the provider has accepted it."""
        ...

    async def ensure_pools(
        self, cluster: Cluster, pools: tuple[PoolBounds, ...]
    ) -> tuple[PoolBounds, ...] | CallFailed:
        """Makes pools that are missing, and gives pools with other bounds these ones. Further pools stay.

        The label and the taint of a pool have the key `TYPE_KEY` and its instance type as value. Returns the given
        pools as the provider holds them afterwards; these bounds are stored, whatever was asked for.
        """
        ...

    async def ensure_resources(self, cluster: Cluster, order: SetupOrder) -> CallFailed | None:
        """Applies the objects of the order."""
        ...

    async def ensure_addons(self, cluster: Cluster, addons: tuple[AddonOrder, ...]) -> CallFailed | None:
        """Installs add-ons that are missing, and updates parameters of those that are ready. It does not wait."""
        ...

    async def delete_cluster(self, cluster: Cluster) -> DeletionState | CallFailed:
        """Asks the provider to delete the cluster. The workers call it each tick until it is `GONE`.

        A row without `cluster_id` may have a cluster all the same (a crash before it was saved): it is deleted by its
        name.
        """
        ...
