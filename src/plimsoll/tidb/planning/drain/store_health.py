"""Whether a cluster can spare a TiKV store: enough other stores, all healthy, with enough space for its data.

PD has its own check, but it counts stores that cannot take the data, so this check comes first. Unknown values count
against removal.
"""

from __future__ import annotations

from datetime import datetime  # noqa: TC003 - msgspec reads annotations at run time
from fractions import Fraction
from typing import Any, Final

from plimsoll.core.plans import Reason
from plimsoll.core.values import Value

UP: Final = "Up"
OFFLINE: Final = "Offline"
DOWN: Final = "Down"


class ObservedStore(Value):
    """A store that is not a Tombstone. `pod` is empty if the address does not name one; unreported sizes are None."""

    id: int
    pod: str = ""
    namespace: str = ""
    state: str = UP
    leaders: int = 0
    regions: int = 0
    capacity_bytes: int | None = None
    used_bytes: int | None = None
    is_special: bool = False
    """Labelled `specialUse`: PD moves no replacement replicas there."""
    is_tiflash: bool = False
    last_heartbeat: datetime | None = None
    """When PD last heard from it; None: PD does not say."""


class RegionHealth(Value):
    """Health of all regions: the highest replica count, and the number of unhealthy regions per check."""

    needed: int
    unhealthy: dict[str, int]

    def build_facts(self, store: ObservedStore, stores: tuple[ObservedStore, ...]) -> dict[str, Any]:
        return {"store": store.id, "up": len(_list_receivers(store, stores)), "needed": self.needed}


def find_blocker(
    store: ObservedStore,
    stores: tuple[ObservedStore, ...],
    *,
    health: RegionHealth,
    highest_usage: Fraction,
    peer_tolerance: int = 0,
) -> Reason | None:
    """The first reason why a store must not be removed; None: it may be."""
    facts = health.build_facts(store, stores)
    up = facts["up"]
    if up < health.needed:
        text = f"without store {store.id}, {up} normal stores are Up and {health.needed} are needed"
        return Reason(code="TooFewStores", message=text, facts=facts)
    if found := _find_unhealthy(store, stores):
        text = f"store {found.id} is {found.state} ({up} normal stores stay Up, {health.needed} are needed)"
        code = "AnotherLeaves" if found.state == OFFLINE else "StoreDown"
        return Reason(code=code, message=text, facts={**facts, "stores": [found.id]})
    for check, count in sorted(health.unhealthy.items()):
        if count > peer_tolerance:
            text = f"{count} regions have a {check}, at most {peer_tolerance} may"
            return Reason(code="RegionsNotHealthy", message=text, facts={**facts, check: count})
    return _find_space_problem(store, stores, highest_usage=highest_usage, facts=facts)


def _list_receivers(store: ObservedStore, stores: tuple[ObservedStore, ...]) -> list[ObservedStore]:
    """Stores that can take the data of a store."""
    return [other for other in stores if _is_normal(other) and other.state == UP and other.id != store.id]


def _is_normal(store: ObservedStore) -> bool:
    return not store.is_tiflash and not store.is_special


def _find_unhealthy(store: ObservedStore, stores: tuple[ObservedStore, ...]) -> ObservedStore | None:
    """Another store that is Offline, or any store that is Down.

    A Down store that is to be removed itself does not count once PD has replaced all its regions.
    """
    for other in sorted(stores, key=lambda other: other.id):
        if other.id == store.id and not other.regions:
            continue
        if other.state == DOWN or (other.state == OFFLINE and other.id != store.id):
            return other
    return None


def _find_space_problem(
    store: ObservedStore, stores: tuple[ObservedStore, ...], *, highest_usage: Fraction, facts: dict[str, Any]
) -> Reason | None:
    data_stores = [other for other in stores if not other.is_tiflash]
    receivers = _list_receivers(store, stores)
    unknown = [other.id for other in data_stores if other.used_bytes is None] + [
        other.id for other in receivers if not other.capacity_bytes
    ]
    if unknown:
        text = f"the disk usage of store {min(unknown)} is unknown"
        return Reason(code="SpaceNotKnown", message=text, facts={**facts, "stores": sorted(set(unknown))})
    used, capacity = (
        sum(other.used_bytes or 0 for other in data_stores),
        sum(other.capacity_bytes or 0 for other in receivers),
    )
    if not capacity or Fraction(used, capacity) >= highest_usage:
        text = f"{used} bytes are stored, and without store {store.id} the capacity is {capacity}"
        limit = f"{float(highest_usage):.4g} of the capacity may be used"
        return Reason(
            code="TooLittleSpace", message=f"{text}; {limit}", facts={**facts, "used": used, "room": capacity}
        )
    return None
