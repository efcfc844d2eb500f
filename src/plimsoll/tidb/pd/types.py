"""JSON types of PD: stores, replication, placement rules, schedulers and etcd keys.

Sizes are human-readable text ("97.66GiB", four digits), times are text that may be absent. This module does not
interpret the states of stores.
"""

import re
from base64 import b64decode
from collections import Counter
from datetime import UTC, datetime
from fractions import Fraction
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from plimsoll.core.values import Wire

_SIZE: Final = re.compile(r"\s*([0-9]+(?:\.[0-9]*)?(?:E[+-]?[0-9]{1,2})?)\s*([KMGTPE]?)(?:i?B)?\s*", re.IGNORECASE)
_EXPONENTS: Final = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5, "e": 6}
_LONGEST_SIZE: Final = 40
_TIFLASH: Final = "tiflash"

UP: Final = "Up"
OFFLINE: Final = "Offline"
TOMBSTONE: Final = "Tombstone"
DISCONNECTED: Final = "Disconnected"
DOWN: Final = "Down"
_LEAVING: Final = {1: OFFLINE, 2: TOMBSTONE}


def read_size(written: str | float | None) -> int | None:
    """A size in bytes; None if it is not one. Units are powers of 1024 however they are spelled, as in PD."""
    if isinstance(written, int | float):
        return int(written) if 0 <= written < 2**64 else None
    found = _SIZE.fullmatch(written) if written and len(written) <= _LONGEST_SIZE else None
    if found is None:
        return None
    number, unit = found.groups()
    unit_bytes: int = 1024 ** _EXPONENTS[unit.lower()]
    return round(Fraction(number) * unit_bytes)


def read_time(written: str) -> datetime | None:
    """A time; None if it is absent or unreadable."""
    try:
        moment = msgspec.convert(written, datetime)
        return moment.astimezone(UTC) if moment.tzinfo else None
    except (msgspec.ValidationError, OverflowError):
        return None


class StoreLabel(Wire):
    """A label of a store."""

    key: str
    value: str = ""


class StoreMeta(Wire, rename={}):
    """What a store registered, and its state. PD omits a `state` of 0, which is Up."""

    id: int
    address: str = ""
    labels: tuple[StoreLabel, ...] | None = None
    state: int = 0
    state_name: str = UP


class StoreStatus(Wire, rename={}):
    """The last report of a store."""

    capacity: str | float | None = None
    available: str | float | None = None
    used_size: str | float | None = None
    leader_count: int = 0
    region_count: int = 0
    start_ts: str = ""
    last_heartbeat_ts: str = ""


class Store(Wire):
    """A TiKV or TiFlash store."""

    store: StoreMeta
    status: StoreStatus = StoreStatus()

    @property
    def id(self) -> int:
        return self.store.id

    @property
    def state(self) -> str:
        """The state. `Disconnected` and `Down` stores are registered as Up and have not reported lately."""
        return _LEAVING.get(self.store.state, self.store.state_name)

    @property
    def labels(self) -> dict[str, str]:
        return {label.key: label.value for label in self.store.labels or ()}

    @property
    def is_tiflash(self) -> bool:
        return any(key.lower() == "engine" and value.lower() == _TIFLASH for key, value in self.labels.items())

    @property
    def capacity_bytes(self) -> int | None:
        return read_size(self.status.capacity)

    @property
    def used_bytes(self) -> int | None:
        """The used space that PD counts; without it, all that is not available."""
        used, available = read_size(self.status.used_size), read_size(self.status.available)
        if used is not None or available is None or self.capacity_bytes is None:
            return used
        return max(0, self.capacity_bytes - available)

    @property
    def started(self) -> datetime | None:
        return read_time(self.status.start_ts)

    @property
    def last_heartbeat(self) -> datetime | None:
        """When it last reported."""
        return read_time(self.status.last_heartbeat_ts)


class Stores(Wire):
    """A list of stores."""

    count: int | None = None
    stores: tuple[Store, ...] | None = None

    @property
    def contradiction(self) -> str:
        """Why the list is not believed; empty: it is consistent."""
        stores = self.stores or ()
        if self.count is not None and self.count != len(stores):
            return f"it says {self.count} stores and lists {len(stores)}"
        ids = Counter(store.id for store in stores)
        if twice := sorted(store_id for store_id, times in ids.items() if times > 1):
            return f"it lists store {twice[0]} twice"
        addresses = Counter(store.store.address for store in stores if store.store.address and store.state == UP)
        if twice_used := sorted(address for address, times in addresses.items() if times > 1):
            return f"it lists two stores with the address {twice_used[0]}"
        return ""


class Replication(Wire, rename={"max_replicas": "max-replicas", "placement_rules": "enable-placement-rules"}):
    """The number of replicas of every region. The switch is text in JSON."""

    max_replicas: Annotated[int, Meta(ge=1)]
    placement_rules: str | bool = "false"

    @property
    def has_placement_rules(self) -> bool:
        return str(self.placement_rules).lower() == "true"


class Constraint(Wire):
    """A constraint on the stores of a placement rule."""

    key: str = ""
    op: str = ""
    values: tuple[str, ...] | None = None


class PlacementRule(Wire, rename={}):
    """The number of replicas of a key range on certain stores."""

    group_id: str = ""
    id: str = ""
    start_key: str = ""
    end_key: str = ""
    role: str = ""
    count: int = 0
    label_constraints: tuple[Constraint, ...] | None = None

    @property
    def is_of_tiflash(self) -> bool:
        return any(
            constraint.key == "engine" and constraint.op == "in" and tuple(constraint.values or ()) == (_TIFLASH,)
            for constraint in self.label_constraints or ()
        )


class ServerConfig(Wire, rename={"metric_storage": "metric-storage"}):
    """The configuration of PD itself."""

    metric_storage: str = ""


class PdConfig(Wire, rename={"pd_server": "pd-server"}):
    """The part of PD's configuration that is used."""

    replication: Replication | None = None
    pd_server: ServerConfig = ServerConfig()


class RegionCount(Wire):
    """The number of regions in a list. PD always gives it."""

    count: Annotated[int, Meta(ge=0)]


class MemberHealth(Wire):
    """Health of one PD server."""

    name: str = ""
    health: bool = False


class EvictedStores(Wire, rename={"ranges": "store-id-ranges"}):
    """Ids of stores whose leaders are evicted."""

    ranges: dict[str, Any] | None = None


class KeyValue(Wire):
    """An etcd key and its value, both in base64."""

    key: str = ""
    value: str = ""

    def decode(self) -> tuple[str, bytes]:
        """Key and value. Raises `ValueError` if they are not base64."""
        return b64decode(self.key, validate=True).decode(), b64decode(self.value, validate=True)


class KeyRange(Wire):
    """The keys of a range."""

    kvs: tuple[KeyValue, ...] | None = None
    more: bool = False
    count: int | str | None = None


def count_needed_replicas(replication: Replication, rules: tuple[PlacementRule, ...] = ()) -> int:
    """How many normal stores must stay: the highest replica count of a key range on TiKV, at least the setting."""
    sums: dict[tuple[str, str], int] = {}
    if replication.has_placement_rules:
        for rule in rules:
            if not rule.is_of_tiflash:
                sums[rule.start_key, rule.end_key] = sums.get((rule.start_key, rule.end_key), 0) + rule.count
    return max([replication.max_replicas, *sums.values()])
