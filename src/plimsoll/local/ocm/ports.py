"""What a cluster of the simulated OCM is: the port `DataPlane`.

The service answers requests and keeps states; it asks the data plane to make true what it promised. It keeps its own
state (`local.ocm.state`) and repeats every call after a restart, in the order `make`, `set_pools`, `install`, and
`delete` for clusters that were being deleted. So an implementation needs no record of what it was asked for: it only
has to find again what it made for an id.

Rules of every implementation:

* Every call may be repeated with the same or other arguments, and brings the cluster to what the arguments say. A
  repetition that changes nothing is cheap.
* A call returns when its effect is there. Meanwhile the service goes on answering: the cluster stays `installing`, the
  add-on `installing`, the cluster `uninstalling`. Calls about one cluster never overlap; those about two clusters do.
* `DataPlaneFailed` is the only error: `make` turns the cluster to `error` with this text, `install` the add-on to
  `failed`; `set_pools` and `delete` are tried again later. Any other exception is a bug.
* A cancelled call (the service stops) may be half done; it is repeated after the restart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from plimsoll.core.errors import PlimsollError
from plimsoll.core.values import Value

if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT_POOL = "default"
"""The id of the cluster-wide pool."""


class DataPlaneFailed(PlimsollError):
    """A cluster, or a part of it, cannot be made. The text is shown to the user of the service."""


class PoolTaint(Value):
    """A taint of the nodes of a pool."""

    key: str
    value: str
    effect: str


class PoolSpec(Value):
    """A machine pool. The cluster's own node autoscaler keeps it between its bounds."""

    id: str
    machine_type: str
    min_replicas: int
    max_replicas: int
    """Over all zones: a pool with three zones is three node groups, each with a third of both bounds."""
    zones: tuple[str, ...]
    """In order; one for a cluster in a single zone."""
    labels: dict[str, str] = {}
    taints: tuple[PoolTaint, ...] = ()


class ClusterSpec(Value):
    """A cluster to make. Nothing of it changes during the cluster's life, except the default pool's bounds."""

    id: str
    """Never used twice: lower-case letters and digits, safe as the name of a folder and in a path of a URL."""
    name: str
    cloud_provider: str
    region: str
    zones: tuple[str, ...]
    version: str
    dns: str
    """The default ingress: `apps.<name>.<base domain>`."""
    default_pool: PoolSpec


class DataPlane(Protocol):
    """Makes clusters, bounds their pools, installs add-ons in them, and deletes them."""

    async def make(self, cluster: ClusterSpec) -> None:
        """The cluster runs with its default pool: its API server answers, and nodes may come."""
        ...

    async def set_pools(self, cluster_id: str, pools: tuple[PoolSpec, ...]) -> None:
        """Exactly these pools exist, in order of their ids, the default pool included. A pool not given goes."""
        ...

    async def install(self, cluster_id: str, addon_id: str, parameters: Mapping[str, str]) -> None:
        """The add-on runs with these parameters. An add-on that is not known has no effect and is no error."""
        ...

    async def delete(self, cluster_id: str) -> None:
        """Nothing of the cluster exists any more. An id that is not known is no error."""
        ...


class NoDataPlane:
    """Clusters without anything behind them, for scenarios of the service alone. Every call is done at once."""

    async def make(self, cluster: ClusterSpec) -> None:
        """Nothing to make."""

    async def set_pools(self, cluster_id: str, pools: tuple[PoolSpec, ...]) -> None:
        """Nothing to bound."""

    async def install(self, cluster_id: str, addon_id: str, parameters: Mapping[str, str]) -> None:
        """Nothing to install in."""

    async def delete(self, cluster_id: str) -> None:
        """Nothing to delete."""
