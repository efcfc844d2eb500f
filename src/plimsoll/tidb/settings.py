"""Settings of the TiDB autoscaler."""

from __future__ import annotations

from typing import Final, Literal

from plimsoll.core.values import Value
from plimsoll.tidb.model.reconcile_types import ReconcilePolicy

NAME: Final = "tidb-autoscaler"
"""The field manager and the source of Events."""
LEASE: Final = "plimsoll-tidb"
RESYNC_S: Final = 30.0
DRAIN_LOOK_S: Final = 10.0
"""How soon a store that is being drained is checked again."""


class TidbSettings(Value):
    """`pd` replaces the address derived from the name of a cluster.

    Without a `planner`, plans are made in this process.
    """

    planner: str = ""
    pd: str = ""
    prometheus: str = ""
    falls_back: bool = False
    """For plans made in this process: scale out groups where the base cluster may not grow."""
    drains_actively: bool = False
    """False: TiDB Operator removes stores, and the autoscaler only guards it. True: the autoscaler removes them."""
    peer_tolerance: int = 0
    """How many regions may have a missing, pending or down peer while a store is removed."""
    potential_nodes: bool = False
    """Also count nodes that the node autoscaler may still add."""
    makes_endpoint_slices: bool = True
    external_allow: tuple[str, ...] = ()
    policy: ReconcilePolicy = ReconcilePolicy()
    dry_run: bool = False
    namespace: str = ""
    """The namespace of TidbClusterAutoScalers; empty: all namespaces."""
    controller_namespace: str = "kube-system"
    """The namespace of the ConfigMap of Plimsoll's controllers, which holds the pause annotation."""
    resync_s: float = RESYNC_S


DrainMode = Literal["guard", "active"]
