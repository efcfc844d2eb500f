"""The instances of a TiDB cluster that PD knows: stores, and TiDB servers that register in etcd.

An instance that cannot be matched to a pod exists nevertheless: it occupies a node and its load counts. An unreadable
entry is a failure and never a shorter list, because an omitted instance looks like one to remove.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import msgspec

from plimsoll.core.values import Value, Wire
from plimsoll.objects.api.meta import format_time
from plimsoll.objects.codec.decode_problems import describe_problem
from plimsoll.tidb.model.components import Component
from plimsoll.tidb.model.limits import HEARD_WITHIN_S
from plimsoll.tidb.pd.client import PdFailed
from plimsoll.tidb.pd.types import OFFLINE, TOMBSTONE, UP

if TYPE_CHECKING:
    from plimsoll.tidb.pd.client import PdClient
    from plimsoll.tidb.pd.types import Store

_TOPOLOGY: Final = "/topology/tidb/"
_ALIVE: Final = "ttl"
_INFO: Final = "info"
_PARTS_OF_A_POD: Final = 4
_LATEST_S: Final = datetime(9999, 1, 1, tzinfo=UTC).timestamp()


class BaseCluster(Value):
    """The TidbCluster whose own pods are the homogeneous instances."""

    namespace: str
    name: str

    def owns(self, pod: PodName, component: Component) -> bool:
        """Whether a pod belongs to the cluster's own StatefulSet."""
        prefix, _, ordinal = pod.name.rpartition("-")
        is_its = pod.namespace == self.namespace and prefix == f"{self.name}-{component}"
        return is_its and re.fullmatch("0|[1-9][0-9]*", ordinal) is not None


class PodName(Value):
    """The pod of an instance, as in the labels of its metrics."""

    name: str
    namespace: str


class Member(Value):
    """An instance. `pod` is None if its address does not name one. Sizes are those of stores, if known."""

    address: str
    pod: PodName | None
    is_base: bool
    labels: dict[str, str] = {}
    state: str = UP
    store_id: int | None = None
    capacity_bytes: int | None = None
    used_bytes: int | None = None
    started: datetime | None = None
    is_tiflash: bool = False

    @property
    def is_leaving(self) -> bool:
        return self.state in {OFFLINE, TOMBSTONE}


class _TidbInfo(Wire, rename={}):
    labels: dict[str, str] | None = None
    start_timestamp: float | None = None


def parse_pod_address(address: str) -> PodName | None:
    """The pod in `POD.SERVICE.NAMESPACE.svc[…]:PORT`; None for other addresses, such as IP addresses."""
    host = address.rpartition(":")[0] or address
    parts = host.split(".")
    if len(parts) < _PARTS_OF_A_POD or parts[3] != "svc" or not parts[0] or not parts[2]:
        return None
    return PodName(name=parts[0], namespace=parts[2])


async def list_members(
    component: Component, base: BaseCluster, pd: PdClient, *, at: datetime
) -> tuple[Member, ...] | PdFailed:
    """All members that PD lists, including leaving stores and TiFlash; the planner interprets them.

    Members report to PD every few seconds. Reports from another time than `at` are an old answer, or a wrong clock.
    """
    if component is Component.TIDB:
        return await _read_tidb_members(base, pd, at=at)
    stores = await pd.get_stores()
    if isinstance(stores, PdFailed):
        return stores
    for store in stores:
        if store.state == UP and _is_from_another_time(store.last_heartbeat, at):
            return _build_outdated_error(f"store {store.id}", store.last_heartbeat)
    return tuple(_store_member(store, base) for store in stores)


def _store_member(store: Store, base: BaseCluster) -> Member:
    pod = parse_pod_address(store.store.address)
    return Member(
        address=store.store.address,
        pod=pod,
        is_base=pod is not None and base.owns(pod, Component.TIKV),
        labels=store.labels,
        state=store.state,
        store_id=store.id,
        capacity_bytes=store.capacity_bytes,
        used_bytes=store.used_bytes,
        started=store.started,
        is_tiflash=store.is_tiflash,
    )


def _is_from_another_time(reported: datetime | None, at: datetime) -> bool:
    return reported is not None and abs((at - reported).total_seconds()) > HEARD_WITHIN_S


def _build_outdated_error(what: str, reported: datetime | None) -> PdFailed:
    assert reported is not None
    problem = f"PD last heard from {what} at {format_time(reported)}: the answer is old, or the clocks differ"
    return PdFailed(problem=problem, status=200)


async def _read_tidb_members(base: BaseCluster, pd: PdClient, *, at: datetime) -> tuple[Member, ...] | PdFailed:
    keys = await pd.get_keys(_TOPOLOGY)
    if isinstance(keys, PdFailed):
        return keys
    found = []
    for key in sorted(keys):
        address, _, name = key.removeprefix(_TOPOLOGY).rpartition("/")
        if name != _ALIVE:
            continue
        reported = _read_report_time(keys[key])
        if _is_from_another_time(reported, at):
            return _build_outdated_error(f"TiDB {address}", reported)
        member = _build_tidb_member(address, keys.get(f"{_TOPOLOGY}{address}/{_INFO}"), base)
        if isinstance(member, PdFailed):
            return member
        found.append(member)
    return tuple(found)


def _build_tidb_member(address: str, info: bytes | None, base: BaseCluster) -> Member | PdFailed:
    pod = parse_pod_address(address)
    is_base = pod is not None and base.owns(pod, Component.TIDB)
    if info is None and not is_base:
        return PdFailed(
            problem=f"TiDB {address} is alive and has not published its labels: its group is unknown", status=200
        )
    try:
        read = msgspec.json.decode(info, type=_TidbInfo) if info else _TidbInfo()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return PdFailed(problem=f"the entry of TiDB {address} cannot be read: {describe_problem(error)}", status=200)
    return Member(address=address, pod=pod, is_base=is_base, labels=read.labels or {}, started=_parse_start_time(read))


def _read_report_time(value: bytes) -> datetime | None:
    """When a TiDB server last reported: nanoseconds since 1970; None: it does not say."""
    seconds = int(value) / 1e9 if re.fullmatch(b"[0-9]{1,20}", value) else 0
    return datetime.fromtimestamp(seconds, UTC) if 0 < seconds < _LATEST_S else None


def _parse_start_time(info: _TidbInfo) -> datetime | None:
    seconds = info.start_timestamp
    return datetime.fromtimestamp(seconds, UTC) if seconds is not None and 0 < seconds < _LATEST_S else None
