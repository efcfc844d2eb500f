"""A PD whose stores hold regions and leaders that move as time passes; it refuses as PD does, and buries what is empty.

It is a `Web` for `plimsoll.tidb.pd.client.Pd`, at any address. What it receives counts even if the answer is
lost (`loses`); `is_silent` is an unreachable PD. `together` is the most stores that were ever Offline at one
time.

    pd = BreathingPd(clock)
    pd.register("db-tikv-0")
    drainer = Drainer(Pd("http://pd.test", web=pd), is_active=True)
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from plimsoll.web.client import Request, RequestFailed, Response

if TYPE_CHECKING:
    from datetime import datetime

    from plimsoll.core.clock import Clock

GIB = 1024**3
STATES = ("Up", "Offline", "Tombstone")
_EVICT = "evict-leader-scheduler"


@dataclass
class SimulatedStore:
    """`state` 0 Up, 1 Offline, 2 Tombstone; `heard` says how Up it is: Up, Disconnected, Down."""

    id: int
    pod: str
    namespace: str = "prod"
    labels: dict[str, str] = field(default_factory=dict)
    state: int = 0
    heard: str = "Up"
    leaders: float = 10
    regions: float = 30
    capacity_gib: int = 100
    used_gib: int = 30

    @property
    def is_normal(self) -> bool:
        return self.state == 0 and not self.labels.get("specialUse") and self.labels.get("engine") != "tiflash"

    @property
    def body(self) -> dict[str, Any]:
        peers = self.pod.rpartition("-")[0] + "-peer"
        labels = [{"key": key, "value": value} for key, value in self.labels.items()]
        meta = {
            "id": self.id,
            "address": f"{self.pod}.{peers}.{self.namespace}.svc:20160",
            "labels": labels,
            "state_name": self.heard if self.state == 0 else STATES[self.state],
        }
        status = {
            "capacity": f"{self.capacity_gib}GiB",
            "available": f"{self.capacity_gib - self.used_gib}GiB",
            "used_size": f"{self.used_gib}GiB",
            "leader_count": int(self.leaders),
            "region_count": int(self.regions),
        }
        return {"store": {**meta, **({"state": self.state} if self.state else {})}, "status": status}


class SimulatedPd:
    """`leaders_per_s` and `regions_per_s` is how fast they leave a store; infinite: at once."""

    def __init__(self, clock: Clock, *, leaders_per_s: float = 1.0, regions_per_s: float = 1.0) -> None:
        self.stores: dict[int, SimulatedStore] = {}
        self.max_replicas = 3
        self.rules: list[dict[str, Any]] | None = None
        self.wrong = {"miss-peer": 0, "pending-peer": 0, "down-peer": 0}
        self.evicting: set[int] = set()
        self.is_silent = False
        self.loses = 0
        """So many answers to writes are lost."""
        self.is_old = False
        """One scheduler for each store, by its name, and no list of them."""
        self.hidden: set[int] = set()
        """Stores that the list lacks and that are answered by their number."""
        self.doubled: set[int] = set()
        """Stores that the list has twice."""
        self.heard_at: datetime | None = None
        """When stores were last heard from; None: PD does not say."""
        self.lists_evictions = True
        self.wrote: list[str] = []
        self.together = 0
        self._clock = clock
        self._speeds = leaders_per_s, regions_per_s
        self._moved_at = clock.monotonic_s()

    def register(self, pod: str, **more: Any) -> SimulatedStore:
        """What a pod does when it starts: the store it had, unless that is buried, or a new one."""
        found = self.of_pod(pod)
        if found is not None:
            return found
        store = SimulatedStore(id=len(self.stores) + 1, pod=pod, **more)
        self.stores[store.id] = store
        return store

    def of_pod(self, pod: str) -> SimulatedStore | None:
        """Its store that is not buried."""
        return next(
            (
                breathing_store
                for breathing_store in self.stores.values()
                if breathing_store.pod == pod and breathing_store.state != 2
            ),
            None,
        )

    @property
    def offline(self) -> list[int]:
        return [breathing_store.id for breathing_store in self.stores.values() if breathing_store.state == 1]

    async def send(self, asked: Request) -> Response | RequestFailed:
        if self.is_silent:
            return RequestFailed(problem="no answer from http://pd.test within 5 s")
        self.breathe()
        split = urlsplit(asked.url)
        status, body = self._answer(asked.method, split.path, parse_qs(split.query), asked.body)
        self.together = max(self.together, len(self.offline))
        self.breathe()
        if asked.method != "GET":
            self.wrote.append(f"{asked.method} {split.path.removeprefix('/pd/api/v1')}")
            if self.loses:
                self.loses -= 1
                return RequestFailed(problem="the answer was lost")
        return Response(status=status, body=json.dumps(body).encode())

    # ---- as time passes

    def breathe(self) -> None:
        now = self._clock.monotonic_s()
        passed, self._moved_at = now - self._moved_at, now
        leaders, regions = self._speeds
        for store in self.stores.values():
            if store.id in self.evicting or store.state == 1:
                store.leaders = _less(store.leaders, leaders, passed)
            if store.state == 1 and any(breathing_store.is_normal for breathing_store in self.stores.values()):
                store.regions = _less(store.regions, regions, passed)
                store.leaders = min(store.leaders, store.regions)
                store.state = 2 if store.regions < 1 else 1

    # ---- the API

    def _answer(self, method: str, path: str, query: dict[str, list[str]], body: bytes) -> tuple[int, Any]:
        match method, path.removeprefix("/pd/api/v1").strip("/").split("/"):
            case "GET", ["stores"]:
                wanted = {int(state) for state in query.get("state", ["0", "1"])}
                listed = [store for store in self.stores.values() if store.state in wanted]
                listed = [store for store in listed if store.id not in self.hidden]
                listed += [store for store in listed if store.id in self.doubled]
                found = [self._body(store) for store in listed]
                return 200, {"count": len(found), "stores": found}
            case _, ["store", number, *rest]:
                return self._store(method, int(number), rest, query)
            case "GET", ["config", "replicate"]:
                switch = "false" if self.rules is None else "true"
                return 200, {"max-replicas": self.max_replicas, "enable-placement-rules": switch}
            case "GET", ["config", "rules"]:
                return 200, self.rules
            case "GET", ["regions", "check", what] if what in self.wrong:
                return 200, {"count": self.wrong[what], "regions": None}
            case _, ["schedulers" | "scheduler-config", *rest]:
                return self._schedulers(method, rest, json.loads(body or b"{}"))
        return 404, "404 page not found"

    def _body(self, store: SimulatedStore) -> dict[str, Any]:
        body = store.body
        if self.heard_at is not None:
            body["status"]["last_heartbeat_ts"] = self.heard_at.isoformat()
        return body

    def _store(self, method: str, number: int, rest: list[str], query: dict[str, list[str]]) -> tuple[int, Any]:
        store = self.stores.get(number)
        if store is None:
            return 404, f"store {number} not found"
        if method == "GET":
            return 200, self._body(store)
        if store.state == 2:
            return 410, f"store {number} is removed"
        if method == "POST" and rest == ["state"]:
            store.state = STATES.index(query["state"][0])
            return 200, "The store's state is updated."
        up = sum(
            breathing_store.state == 0 and breathing_store.heard == "Up" for breathing_store in self.stores.values()
        )
        if store.state == 0 and up - 1 < self.max_replicas:
            return 400, f"store {number}: number of up stores would be less than max-replicas"
        store.state = 1
        return 200, "The store is set as Offline."

    def _schedulers(self, method: str, rest: list[str], body: dict[str, Any]) -> tuple[int, Any]:
        match method, rest:
            case "GET", [] if not self.lists_evictions:
                return 200, []
            case "GET", [] if self.is_old:
                return 200, [f"{_EVICT}-{store_id}" for store_id in sorted(self.evicting)]
            case "GET", []:
                return 200, [_EVICT] if self.evicting else []
            case "GET", [_, "list"] if self.evicting and not self.is_old:
                return 200, {"store-id-ranges": {str(store_id): [] for store_id in sorted(self.evicting)}}
            case "POST", [] if self.is_old and body["store_id"] in self.evicting:
                return 500, "scheduler existed"
            case "POST", []:
                self.evicting.add(body["store_id"])
                return 200, "The scheduler is created."
            case "DELETE", [name] if int(name.rpartition("-")[2]) in self.evicting:
                self.evicting.discard(int(name.rpartition("-")[2]))
                return 200, "The scheduler is removed."
        return 404, "scheduler not found"


def _less(count: float, per_s: float, passed: float) -> float:
    return 0.0 if per_s == float("inf") else max(0.0, count - per_s * passed)
