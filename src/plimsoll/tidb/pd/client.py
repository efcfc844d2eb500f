"""PD's HTTP API, as far as scaling needs it: stores, replication, schedulers, region health and etcd keys.

The client keeps no state and never retries. Refusals and missing answers are values (`PdFailed`). A store is never
deleted by force: there is no call for it.

Reads are marked (`Request.is_safe`); `pd.access` asks the lease before every other request.
"""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar
from urllib.parse import quote

import msgspec

from plimsoll.core.values import Value
from plimsoll.objects.codec.decode_problems import describe_problem
from plimsoll.tidb.pd import types
from plimsoll.web.client import Request, RequestFailed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plimsoll.web.client import HttpClient

T = TypeVar("T")

_API: Final = "/pd/api/v1"
_JSON: Final = "application/json"
_EVICT_LEADERS: Final = "evict-leader-scheduler"
RegionCheck = Literal["miss-peer", "pending-peer", "down-peer", "extra-peer", "offline-peer"]


class PdFailed(Value):
    """The object does not exist, the request was refused, or the answer is unknown. `status` 0: no answer in time."""

    problem: str
    status: int = 0

    @property
    def is_unreachable(self) -> bool:
        return self.status == 0

    @property
    def is_gone(self) -> bool:
        """Unknown to PD, or removed already."""
        return self.status in {404, 410}

    @property
    def is_refused(self) -> bool:
        return self.status == 400

    @property
    def has_existed(self) -> bool:
        """A scheduler was refused because there is one."""
        return "existed" in self.problem

    @property
    def is_not_bootstrapped(self) -> bool:
        """No TiKV store has ever registered: there is nothing to scale yet, and nothing follows."""
        return self.status == 500 and "bootstrap" in self.problem.lower()


class EvictionExisted(Value):
    """The leaders of the store were evicted already."""


class PdClient:
    """The PD of one cluster. Any member answers."""

    def __init__(self, base: str, *, web: HttpClient) -> None:
        self._base = base
        self._web = web

    # ---- stores

    async def get_stores(self, states: Sequence[int] = ()) -> tuple[types.Store, ...] | PdFailed:
        """Stores that are Up or Offline, unless `states` selects others (0 Up, 1 Offline, 2 Tombstone)."""
        query = "&".join(f"state={state}" for state in states)
        found = await self._read(types.Stores, f"{_API}/stores{'?' if query else ''}{query}")
        if isinstance(found, PdFailed):
            return found
        if problem := found.contradiction:
            return PdFailed(problem=f"PD's list of stores is not believed: {problem}", status=200)
        return found.stores or ()

    async def get_store(self, store_id: int) -> types.Store | PdFailed:
        found = await self._read(types.Store, f"{_API}/store/{store_id}")
        if not isinstance(found, PdFailed) and found.id != store_id:
            return PdFailed(problem=f"PD answers about store {found.id} instead of {store_id}", status=200)
        return found

    async def delete_store(self, store_id: int) -> PdFailed | None:
        """Set a store Offline: its regions move away, and then it becomes a Tombstone. A refusal is a failure."""
        return await self._act("DELETE", f"{_API}/store/{store_id}")

    async def set_store_state(self, store_id: int, state: Literal["Up", "Offline"]) -> PdFailed | None:
        return await self._act("POST", f"{_API}/store/{store_id}/state?state={state}")

    # ---- configuration

    async def get_replication(self) -> types.Replication | PdFailed:
        return await self._read(types.Replication, f"{_API}/config/replicate")

    async def get_config(self) -> types.PdConfig | PdFailed:
        return await self._read(types.PdConfig, f"{_API}/config")

    async def get_placement_rules(self) -> tuple[types.PlacementRule, ...] | PdFailed:
        """The placement rules, for a PD that uses them: it has a default rule at least."""
        found = await self._read(tuple[types.PlacementRule, ...] | None, f"{_API}/config/rules")
        return found or PdFailed(problem="PD uses placement rules and lists none", status=200)

    # ---- schedulers

    async def list_schedulers(self) -> tuple[str, ...] | PdFailed:
        found = await self._read(tuple[str, ...] | None, f"{_API}/schedulers")
        return () if found is None else found

    async def list_evicted_stores(self) -> frozenset[int] | PdFailed:
        """Stores whose leaders are evicted; newer PDs have one scheduler for all of them."""
        found = await self._read(types.EvictedStores, f"{_API}/scheduler-config/{_EVICT_LEADERS}/list")
        if isinstance(found, PdFailed):
            return found
        return frozenset(int(name) for name in found.ranges or {} if name.isdecimal())

    async def list_evicting(self) -> frozenset[int] | PdFailed:
        """Stores whose leaders are evicted, by one scheduler for all stores or by one per store."""
        named, listed = await self.list_schedulers(), await self.list_evicted_stores()
        if isinstance(named, PdFailed):
            return named if named.is_unreachable else listed
        prefix = f"{_EVICT_LEADERS}-"
        ids = (name.removeprefix(prefix) for name in named if name.startswith(prefix))
        own = frozenset(int(name) for name in ids if name.isdecimal())
        # A PD without the scheduler has no configuration for it.
        return own if isinstance(listed, PdFailed) and not listed.is_unreachable else _join_stores(own, listed)

    async def evict_leaders(self, store_id: int) -> PdFailed | EvictionExisted | None:
        """Evict the leaders of a store. An existing eviction is not a failure."""
        failed = await self._act("POST", f"{_API}/schedulers", {"name": _EVICT_LEADERS, "store_id": store_id})
        if failed is None or not failed.has_existed:
            return failed
        evicted, named = await self.list_evicted_stores(), await self.list_schedulers()
        is_evicted = not isinstance(evicted, PdFailed) and store_id in evicted
        is_named = not isinstance(named, PdFailed) and f"{_EVICT_LEADERS}-{store_id}" in named
        return EvictionExisted() if is_evicted or is_named else failed

    async def stop_evicting_leaders(self, store_id: int) -> PdFailed | None:
        """Stop evicting. A missing scheduler is not a failure."""
        failed = await self._act("DELETE", f"{_API}/schedulers/{_EVICT_LEADERS}-{store_id}")
        return None if failed is not None and failed.is_gone else failed

    # ---- regions, health, etcd

    async def count_regions(self, check: RegionCheck) -> int | PdFailed:
        """The number of regions that fail a check."""
        found = await self._read(types.RegionCount, f"{_API}/regions/check/{check}")
        return found if isinstance(found, PdFailed) else found.count

    async def get_health(self) -> tuple[types.MemberHealth, ...] | PdFailed:
        return await self._read(tuple[types.MemberHealth, ...], f"{_API}/health")

    async def get_keys(self, prefix: str) -> dict[str, bytes] | PdFailed:
        """Etcd keys with a prefix."""
        after = prefix[:-1] + chr(ord(prefix[-1]) + 1)
        return await self._read_range({"key": _encode_base64(prefix), "range_end": _encode_base64(after)})

    async def get_key(self, name: str) -> bytes | PdFailed | None:
        """One etcd key; None: it does not exist."""
        found = await self._read_range({"key": _encode_base64(name)})
        return found if isinstance(found, PdFailed) else found.get(name)

    async def _read_range(self, wanted: dict[str, str]) -> dict[str, bytes] | PdFailed:
        path = "/v3/kv/range"
        found = await self._read(types.KeyRange, path, body=msgspec.json.encode(wanted))
        if isinstance(found, PdFailed):
            return found
        kvs = found.kvs or ()
        if found.more or (found.count is not None and str(found.count) != str(len(kvs))):
            return PdFailed(problem=f"{path} gives {len(kvs)} of {found.count or 'more'} keys", status=200)
        try:
            return dict(name.decode() for name in kvs)
        except ValueError as error:
            return PdFailed(problem=f"{path} has a key that is not base64: {error}", status=200)

    # ---- the wire

    async def _read(self, form: type[T] | Any, path: str, *, body: bytes = b"") -> T | Any | PdFailed:
        answer = await self._ask("POST" if body else "GET", path, body, is_query=True)
        if isinstance(answer, PdFailed):
            return answer
        try:
            return msgspec.json.decode(answer, type=form)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            return PdFailed(problem=f"the answer of PD to {path} cannot be read: {describe_problem(error)}", status=200)

    async def _act(
        self, method: Literal["POST", "DELETE"], path: str, body: dict[str, Any] | None = None
    ) -> PdFailed | None:
        answer = await self._ask(method, path, b"" if body is None else msgspec.json.encode(body))
        return answer if isinstance(answer, PdFailed) else None

    async def _ask(
        self, method: Literal["GET", "POST", "DELETE"], path: str, body: bytes, *, is_query: bool = False
    ) -> bytes | PdFailed:
        request = Request(
            method=method,
            url=f"{self._base}{quote(path, safe='/?&=')}",
            body=body,
            content_type=_JSON if body else "",
            is_query=is_query,
        )
        answer = await self._web.send(request)
        if isinstance(answer, RequestFailed):
            return PdFailed(problem=answer.problem)
        if not answer.is_ok:
            return PdFailed(
                problem=f"PD answers {answer.status} to {method} {path}: {answer.excerpt}", status=answer.status
            )
        return answer.body


def _join_stores(own: frozenset[int], listed: frozenset[int] | PdFailed) -> frozenset[int] | PdFailed:
    return listed if isinstance(listed, PdFailed) else own | listed


def _encode_base64(text: str) -> str:
    return b64encode(text.encode()).decode()
