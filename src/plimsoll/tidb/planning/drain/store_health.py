"""Whether a cluster can spare one of its TiKV stores: enough others, all of them well, and room for what it holds.

`leaving` asks before a store is told to go. PD has a check of its own, which counts stores that cannot take what the
leaving one holds; so this one comes first. What is not known speaks against it.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Final

from plimsoll.core.plans import Reason
from plimsoll.core.values import Value

UP: Final = "Up"
OFFLINE: Final = "Offline"
DOWN: Final = "Down"


class StoreSeen(Value):
    """A store that is not buried. `pod` is empty if its address does not tell. Sizes are None if it did not."""

    id: int
    pod: str = ""
    namespace: str = ""
    state: str = UP
    leaders: int = 0
    regions: int = 0
    capacity_bytes: int | None = None
    used_bytes: int | None = None
    is_special: bool = False
    """Labelled `specialUse`: PD moves nothing there to replace what is lost elsewhere."""
    is_tiflash: bool = False


class Health(Value):
    """Of all regions: how many replicas one has at most, and of how many something is wrong, by what it is."""

    needed: int
    wrong: dict[str, int]

    def facts(self, store: StoreSeen, stores: tuple[StoreSeen, ...]) -> dict[str, Any]:
        return {"store": store.id, "up": len(_takers(store, stores)), "needed": self.needed}


def may_leave(
    store: StoreSeen,
    stores: tuple[StoreSeen, ...],
    *,
    health: Health,
    highest_usage: Fraction,
    peer_tolerance: int = 0,
) -> Reason | None:
    """None: it may. Otherwise the first thing that speaks against it."""
    facts = health.facts(store, stores)
    up = facts["up"]
    if up < health.needed:
        text = f"without store {store.id} {up} normal stores are Up and {health.needed} are needed"
        return Reason(code="TooFewStores", message=text, facts=facts)
    if found := _unwell(store, stores):
        text = f"store {found.id} is {found.state} ({up} normal stores stay Up, {health.needed} are needed)"
        code = "AnotherLeaves" if found.state == OFFLINE else "StoreDown"
        return Reason(code=code, message=text, facts={**facts, "stores": [found.id]})
    for what, count in sorted(health.wrong.items()):
        if count > peer_tolerance:
            text = f"{count} regions have a {what}, {peer_tolerance} may"
            return Reason(code="RegionsNotHealthy", message=text, facts={**facts, what: count})
    return _space_problem(store, stores, highest_usage=highest_usage, facts=facts)


def _takers(store: StoreSeen, stores: tuple[StoreSeen, ...]) -> list[StoreSeen]:
    """Those that can take what it holds."""
    return [
        store_seen
        for store_seen in stores
        if _is_normal(store_seen) and store_seen.state == UP and store_seen.id != store.id
    ]


def _is_normal(store: StoreSeen) -> bool:
    return not store.is_tiflash and not store.is_special


def _unwell(store: StoreSeen, stores: tuple[StoreSeen, ...]) -> StoreSeen | None:
    """Another that leaves, or any that is lost, the leaving one included unless PD has replaced all that it held."""
    for store_seen in sorted(stores, key=lambda seen: seen.id):
        if store_seen.id == store.id and not store_seen.regions:
            continue
        if store_seen.state == DOWN or (store_seen.state == OFFLINE and store_seen.id != store.id):
            return store_seen
    return None


def _space_problem(
    store: StoreSeen, stores: tuple[StoreSeen, ...], *, highest_usage: Fraction, facts: dict[str, Any]
) -> Reason | None:
    holding = [store_seen for store_seen in stores if not store_seen.is_tiflash]
    takers = _takers(store, stores)
    silent = [store_seen.id for store_seen in holding if store_seen.used_bytes is None] + [
        seen.id for seen in takers if not seen.capacity_bytes
    ]
    if silent:
        text = f"how full store {min(silent)} is, is not known"
        return Reason(code="SpaceNotKnown", message=text, facts={**facts, "stores": sorted(set(silent))})
    used, capacity = (
        sum(store_seen.used_bytes or 0 for store_seen in holding),
        sum(seen.capacity_bytes or 0 for seen in takers),
    )
    if not capacity or Fraction(used, capacity) >= highest_usage:
        text = f"{used} bytes are stored and without store {store.id} there is room for {capacity}"
        limit = f"{float(highest_usage):.4g} of it may be used"
        return Reason(
            code="TooLittleSpace", message=f"{text}; {limit}", facts={**facts, "used": used, "room": capacity}
        )
    return None
