"""What an operator of the TiDB autoscaler chooses, whichever way it is run: one value, read once at the start."""

from __future__ import annotations

from typing import Final, Literal

from plimsoll.core.values import Value
from plimsoll.tidb.model.reconcile_types import PassPolicy

NAME: Final = "tidb-autoscaler"
"""Whom it writes and tells events as."""
LEASE: Final = "plimsoll-tidb"
RESYNC_S: Final = 30.0
DRAIN_LOOK_S: Final = 10.0
"""How soon a store that is being emptied is looked at again."""


class TidbSettings(Value):
    """`pd` replaces the address that a cluster's name gives. Without a `planner` the plans are our own."""

    planner: str = ""
    pd: str = ""
    prometheus: str = ""
    falls_back: bool = False
    """Of our own planner: groups grow where the cluster itself may not."""
    drains_actively: bool = False
    """False: TiDB Operator takes stores out, we only watch over it. True: nobody else does."""
    peer_tolerance: int = 0
    """How many regions may miss a peer, or have a pending or dead one, while a store leaves."""
    potential_nodes: bool = False
    """Count nodes that the node autoscaler may still add as if they were there."""
    makes_endpoint_slices: bool = True
    external_allow: tuple[str, ...] = ()
    policy: PassPolicy = PassPolicy()
    dry_run: bool = False
    namespace: str = ""
    """Where TidbClusterAutoScalers are looked for; empty: everywhere."""
    home: str = "kube-system"
    """Where the controllers of Plimsoll have their ConfigMap, with the brake on it."""
    resync_s: float = RESYNC_S


Drain = Literal["guard", "active"]
