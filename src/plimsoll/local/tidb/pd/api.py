"""PD's HTTP API over a simulated state: requests are answered in PD's formats, with the state that follows. Pure.

`simulated_pds` stores the state. Formats and refusals are those of PD; unused endpoints (members of etcd, single
regions) get a short response or 404.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from datetime import datetime  # noqa: TC003 - msgspec reads annotations at run time
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, unquote

import msgspec
import re2
from msgspec.structs import replace

from plimsoll.core.values import Value
from plimsoll.local.tidb.instances import TidbInstance  # noqa: TC001 - msgspec reads annotations at run time
from plimsoll.local.tidb.pd.store_json import build_store_json
from plimsoll.local.tidb.pd.stores import OFFLINE, TOMBSTONE, UP, PdState, StoreState

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_API: Final = "/pd/api/v1"
_EVICT: Final = "evict-leader-scheduler"
_DEFAULT_SCHEDULERS: Final = ("balance-region-scheduler", "balance-leader-scheduler", "balance-hot-region-scheduler")
_NOT_BOOTSTRAPPED: Final = "[PD:cluster:ErrNotBootstrapped]TiKV cluster not bootstrapped, please start TiKV first"
_LONGEST_PATTERN: Final = 1000


class PdRequest(Value):
    """A request to PD. `target` is path and query."""

    method: str
    target: str
    body: bytes = b""


class PdResponse(Value):
    """A response, and the state after it."""

    status: int
    body: bytes
    state: PdState


class PdContext(Value):
    """What PD hears of besides its stores. `used_bytes` is what all peers together take up."""

    now: datetime
    tidb: tuple[TidbInstance, ...] = ()
    used_bytes: float = 0.0
    metric_storage: str = ""


def answer_request(state: PdState, request: PdRequest, context: PdContext) -> PdResponse:
    """To any request."""
    path, _, query = request.target.partition("?")
    call = _PdCall(
        method=request.method,
        parts=tuple(unquote(part) for part in path.removeprefix(_API).strip("/").split("/")),
        query=parse_qs(query, keep_blank_values=True),
        body=request.body,
    )
    if path == "/v3/kv/range":
        return _build_json_response(state, _build_key_range(call, context))
    if not path.startswith(f"{_API}/"):
        return _build_text_response(state, HTTPStatus.NOT_FOUND, "404 page not found")
    if call.parts[0] in _NEED_STORES and not state.is_bootstrapped:
        return _build_text_response(state, HTTPStatus.INTERNAL_SERVER_ERROR, _NOT_BOOTSTRAPPED)
    handler = _HANDLERS.get((request.method, call.parts[0]))
    return (
        _build_text_response(state, HTTPStatus.NOT_FOUND, "404 page not found")
        if handler is None
        else handler(state, call, context)
    )


class _PdCall(Value):
    method: str
    parts: tuple[str, ...]
    query: dict[str, list[str]]
    body: bytes

    def get_first(self, name: str) -> str:
        return (self.query.get(name) or [""])[0]


# ---- stores


def _answer_stores(state: PdState, call: _PdCall, context: PdContext) -> PdResponse:
    if call.parts[1:] == ("progress",):
        return _answer_progress(state, call)
    wanted = call.query.get("state") or ["0", "1"]
    found = [store_state for store_state in state.stores if str(store_state.state) in wanted]
    return _build_json_response(state, _list_stores(state, found, context))


def _list_stores(state: PdState, stores: Sequence[StoreState], context: PdContext) -> dict[str, Any]:
    per_peer = context.used_bytes / max(1, sum(store_state.regions for store_state in state.stores))
    bodies = [
        build_store_json(store_state, now=context.now, used_bytes=per_peer * store_state.regions)
        for store_state in stores
    ]
    return {"count": len(bodies), "stores": bodies}


def _answer_progress(state: PdState, call: _PdCall) -> PdResponse:
    wanted = call.get_first("id")
    leaving = [
        store_state
        for store_state in state.stores
        if store_state.state == OFFLINE and wanted in {"", str(store_state.id)}
    ]
    if not leaving:
        return _build_text_response(state, HTTPStatus.NOT_FOUND, "no progress found for the given action")
    share = 1 - leaving[0].regions / max(1, state.regions)
    progress = {"action": "removing", "store_id": leaving[0].id, "progress": round(share, 2)}
    return _build_json_response(state, {**progress, "current_speed": 0, "left_seconds": 0})


def _store(state: PdState, call: _PdCall, context: PdContext) -> PdResponse:
    number = call.parts[1] if len(call.parts) > 1 else ""
    store = state.store(int(number)) if number.isascii() and number.isdecimal() and len(number) < 19 else None
    if store is None:
        status = HTTPStatus.NOT_FOUND if number.isdecimal() else HTTPStatus.BAD_REQUEST
        return _build_text_response(state, status, f"store {number} not found")
    match call.method, call.parts[2:]:
        case "GET", ():
            return _build_json_response(state, _list_stores(state, [store], context)["stores"][0])
        case "DELETE", ():
            return _take_offline(state, store, context)
        case "POST", ("state",):
            return _put_into(state, store, call.get_first("state"), context)
        case "POST", ("label",):
            return _relabel(state, store, call)
    return _build_text_response(state, HTTPStatus.NOT_FOUND, "404 page not found")


def _take_offline(state: PdState, store: StoreState, context: PdContext) -> PdResponse:
    if store.state == TOMBSTONE:
        return _build_text_response(state, HTTPStatus.GONE, f"store {store.id} has been removed")
    if store.state == UP:
        left = sum(store_state.is_healthy(context.now) for store_state in state.stores if store_state.id != store.id)
        if left < state.max_replicas:
            problem = (
                f"can not remove store {store.id} since the number of up stores would be {left} "
                f"while need {state.max_replicas}"
            )
            return _build_text_response(state, HTTPStatus.BAD_REQUEST, problem)
    return _build_json_response(state.with_store(replace(store, state=OFFLINE)), "The store is set as Offline.")


def _put_into(state: PdState, store: StoreState, wanted: str, context: PdContext) -> PdResponse:
    if wanted == "Offline":
        return _take_offline(state, store, context)
    if wanted != "Up":
        return _build_text_response(state, HTTPStatus.BAD_REQUEST, f"invalid state {wanted}")
    if store.state == TOMBSTONE:
        return _build_text_response(state, HTTPStatus.GONE, f"store {store.id} has been removed")
    return _build_json_response(state.with_store(replace(store, state=UP)), "The store's state is updated.")


def _relabel(state: PdState, store: StoreState, call: _PdCall) -> PdResponse:
    labels = _decode(call.body)
    if not isinstance(labels, dict) or not all(isinstance(label, str) for label in labels.values()):
        return _build_text_response(state, HTTPStatus.BAD_REQUEST, "labels are a map of text")
    changed = replace(store, labels={**store.labels, **labels})
    return _build_json_response(state.with_store(changed), "The store's label is updated.")


def _answer_labels(state: PdState, call: _PdCall, context: PdContext) -> PdResponse:
    """Both parameters are patterns that may match anywhere, in any case."""
    patterns = call.get_first("name"), call.get_first("value")
    if call.parts[1:] != ("stores",) or any(len(pattern) > _LONGEST_PATTERN for pattern in patterns):
        return _build_text_response(state, HTTPStatus.NOT_FOUND, "404 page not found")
    try:
        name, value = (re2.compile(f"(?i){pattern}") for pattern in patterns)
    except re2.error as error:
        return _build_text_response(state, HTTPStatus.BAD_REQUEST, f"error parsing regexp: {error}")
    found = [
        store_state
        for store_state in state.stores
        if store_state.state != TOMBSTONE
        and any(name.search(key) and value.search(text) for key, text in store_state.labels.items())
    ]
    return _build_json_response(state, _list_stores(state, found, context))


# ---- configuration, schedulers


def _answer_config(state: PdState, call: _PdCall, context: PdContext) -> PdResponse:
    replication = {
        "max-replicas": state.max_replicas,
        "location-labels": "",
        "enable-placement-rules": "false",
        "strictly-match-label": "false",
        "isolation-level": "",
    }
    match call.parts[1:]:
        case ():
            server = {"metric-storage": context.metric_storage}
            return _build_json_response(state, {"replication": replication, "pd-server": server})
        case ("replicate",):
            return _build_json_response(state, replication)
        case ("rules",):
            return _build_text_response(state, HTTPStatus.PRECONDITION_FAILED, "placement rules feature is disabled")
    return _build_text_response(state, HTTPStatus.NOT_FOUND, "404 page not found")


def _answer_schedulers(state: PdState, call: _PdCall, _context: PdContext) -> PdResponse:
    if call.method == "GET":
        return _build_json_response(state, [*_DEFAULT_SCHEDULERS, *([_EVICT] if state.evicting else [])])
    wanted = _decode(call.body)
    store_id = wanted.get("store_id") if isinstance(wanted, dict) else None
    if not isinstance(wanted, dict) or wanted.get("name") != _EVICT or state.store(_parse_int(store_id)) is None:
        return _build_text_response(state, HTTPStatus.BAD_REQUEST, "unknown scheduler or store")
    evicting = tuple(sorted({*state.evicting, _parse_int(store_id)}))
    return _build_json_response(replace(state, evicting=evicting), "The scheduler is created.")


def _answer_scheduler_removal(state: PdState, call: _PdCall, _context: PdContext) -> PdResponse:
    name = call.parts[1] if len(call.parts) > 1 else ""
    if name == _EVICT and state.evicting:
        return _build_json_response(replace(state, evicting=()), "The scheduler is removed.")
    number = name.removeprefix(f"{_EVICT}-")
    if not number.isdecimal() or int(number[:18]) not in state.evicting:
        return _build_text_response(state, HTTPStatus.NOT_FOUND, "scheduler not found")
    left = tuple(store_id for store_id in state.evicting if store_id != int(number))
    return _build_json_response(replace(state, evicting=left), "The scheduler is removed.")


def _answer_scheduler_config(state: PdState, call: _PdCall, _context: PdContext) -> PdResponse:
    if call.parts[1:] != (_EVICT, "list") or not state.evicting:
        return _build_text_response(state, HTTPStatus.NOT_FOUND, "scheduler not found")
    everything = [{"start-key": "", "end-key": ""}]
    return _build_json_response(state, {"store-id-ranges": {str(store_id): everything for store_id in state.evicting}})


# ---- regions, health, etcd


def _answer_regions(state: PdState, call: _PdCall, context: PdContext) -> PdResponse:
    match call.parts[1:]:
        case ("count",):
            count = state.regions
        case ("store", number) if number.isdecimal():
            store = state.store(int(number[:18]))
            count = store.regions if store else 0
        case ("check", "miss-peer"):
            count = min(state.regions, state.peers_missing)
        case ("check", "down-peer"):
            lost = [
                store_state
                for store_state in state.stores
                if store_state.get_state_name(context.now) in {"Disconnected", "Down"}
            ]
            count = min(state.regions, sum(store_state.regions for store_state in lost))
        case ("check", "offline-peer"):
            leaving = [store_state for store_state in state.stores if store_state.state == OFFLINE]
            count = min(state.regions, sum(store_state.regions for store_state in leaving))
        case ("check", "pending-peer" | "extra-peer"):
            count = 0
        case _:
            return _build_text_response(state, HTTPStatus.NOT_FOUND, "404 page not found")
    return _build_json_response(state, {"count": count, "regions": None})


def _answer_health(state: PdState, call: _PdCall, _context: PdContext) -> PdResponse:
    member = {"name": "pd-0", "member_id": 1, "client_urls": []}
    if call.parts[0] == "leader":
        return _build_json_response(state, member)
    if call.parts[0] == "members":
        return _build_json_response(state, {"members": [member], "leader": member})
    return _build_json_response(state, [{**member, "health": True}])


def _build_key_range(call: _PdCall, context: PdContext) -> dict[str, Any]:
    """As etcd's gateway says it: numbers are text, and what is empty is left out."""
    wanted = _decode(call.body)
    wanted = wanted if isinstance(wanted, dict) else {}
    first = _from_base64(wanted.get("key"))
    after = _from_base64(wanted.get("range_end")) or first + b"\0"
    found = sorted((key, value) for key, value in _build_topology(context) if first <= key < after)
    kvs = [{"key": b64encode(key).decode(), "value": b64encode(value).decode()} for key, value in found]
    return {"header": {"revision": "1"}, **({"kvs": kvs, "count": str(len(kvs))} if kvs else {})}


def _build_topology(context: PdContext) -> list[tuple[bytes, bytes]]:
    keys = []
    for instance in context.tidb:
        started = int((instance.since or context.now).timestamp())
        info = {"version": "v7.5.0", "start_timestamp": started, "labels": instance.labels}
        place = f"/topology/tidb/{instance.address}".encode()
        keys.append((place + b"/info", msgspec.json.encode(info)))
        keys.append((place + b"/ttl", str(int(context.now.timestamp() * 1e9)).encode()))
    return keys


def _from_base64(text: Any) -> bytes:
    try:
        return b64decode(text, validate=True) if isinstance(text, str) else b""
    except ValueError:
        return b""


# ---- the wire


def _decode(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _parse_int(number: Any) -> int:
    return number if isinstance(number, int) else 0


def _build_json_response(state: PdState, body: Any) -> PdResponse:
    return PdResponse(status=HTTPStatus.OK, body=msgspec.json.encode(body), state=state)


def _build_text_response(state: PdState, status: HTTPStatus, text: str) -> PdResponse:
    return PdResponse(status=status, body=msgspec.json.encode(text), state=state)


_HANDLERS: Final[dict[tuple[str, str], Callable[[PdState, _PdCall, PdContext], PdResponse]]] = {
    ("GET", "stores"): _answer_stores,
    ("GET", "store"): _store,
    ("DELETE", "store"): _store,
    ("POST", "store"): _store,
    ("GET", "labels"): _answer_labels,
    ("GET", "config"): _answer_config,
    ("GET", "schedulers"): _answer_schedulers,
    ("POST", "schedulers"): _answer_schedulers,
    ("DELETE", "schedulers"): _answer_scheduler_removal,
    ("GET", "scheduler-config"): _answer_scheduler_config,
    ("GET", "regions"): _answer_regions,
    ("GET", "health"): _answer_health,
    ("GET", "members"): _answer_health,
    ("GET", "leader"): _answer_health,
}
_NEED_STORES: Final = frozenset({"stores", "store", "labels", "schedulers", "scheduler-config", "regions"})
