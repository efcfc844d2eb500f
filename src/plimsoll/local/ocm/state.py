"""The state of the simulated OCM: its clusters with pools, add-ons, sync sets and identity providers, as plain data.

It can be written as JSON and read again, so that the service goes on after a restart. Secrets of requests (keys of
clouds) are not kept.
"""

from __future__ import annotations

from datetime import datetime  # noqa: TC003 - msgspec reads annotations at run time
from enum import StrEnum
from typing import Any, Final

import msgspec
from msgspec import structs

from plimsoll.core.errors import InvalidInput
from plimsoll.core.values import Value
from plimsoll.local.ocm.ports import DEFAULT_POOL, ClusterSpec, PoolSpec

VERSION: Final = 1


class ClusterState(StrEnum):
    """The states of OCM that this service goes through."""

    PENDING = "pending"
    INSTALLING = "installing"
    READY = "ready"
    ERROR = "error"
    UNINSTALLING = "uninstalling"


class AddonInstallation(Value):
    """An add-on of a cluster. `installed_at`: when its installation, or the change of its parameters, began."""

    id: str
    parameters: dict[str, str]
    installed_at: datetime
    state: str = "installing"
    details: str = ""
    is_applied: bool = False
    """Whether the data plane has these parameters."""


class OcmCluster(Value):
    """A cluster of the service. `since`: when it entered its state."""

    spec: ClusterSpec
    external_id: str
    created_at: datetime
    since: datetime
    multi_az: bool
    state: ClusterState = ClusterState.PENDING
    details: str = ""
    pools: dict[str, PoolSpec] = {}
    """All but the default one."""
    addons: dict[str, AddonInstallation] = {}
    sync_sets: dict[str, list[Any]] = {}
    identity_providers: dict[str, dict[str, Any]] = {}
    is_made: bool = False
    """Whether the data plane has made it."""
    pools_applied: bool = False
    """Whether the data plane has its pools."""
    fails: str = ""
    """The error that its creation ends with; empty: it succeeds."""

    @property
    def id(self) -> str:
        return self.spec.id

    @property
    def all_pools(self) -> tuple[PoolSpec, ...]:
        """The pools in order of their ids, the default one included."""
        pools = {DEFAULT_POOL: self.spec.default_pool, **self.pools}
        return tuple(pools[pool_id] for pool_id in sorted(pools))

    @property
    def most_nodes(self) -> int:
        """The workers that its pools may have together."""
        return sum(pool.max_replicas for pool in self.all_pools)

    def enter(self, state: ClusterState, now: datetime, *, details: str = "") -> OcmCluster:
        return structs.replace(self, state=state, since=now, details=details)


class OcmState(Value):
    """Everything that outlives the process."""

    version: int = VERSION
    clusters: tuple[OcmCluster, ...] = ()


_DECODER: Final = msgspec.json.Decoder(OcmState)


def encode_state(clusters: tuple[OcmCluster, ...]) -> bytes:
    return msgspec.json.encode(OcmState(clusters=clusters), order="deterministic")


def decode_state(content: bytes) -> tuple[OcmCluster, ...]:
    """Raises `InvalidInput` for what this version did not write."""
    try:
        state = _DECODER.decode(content)
    except msgspec.DecodeError as error:
        raise InvalidInput(f"is not the state of a simulated OCM: {error}") from error
    if state.version != VERSION:
        raise InvalidInput(f"has version {state.version}, and this Plimsoll knows version {VERSION}")
    return state.clusters
