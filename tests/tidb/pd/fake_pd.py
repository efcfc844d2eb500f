"""A PD of few words: stores, topology of TiDB servers, settings. The same answers in memory and over HTTP."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]
GIB = 1024**3


@dataclass
class FakePd:
    """`answer` is the whole of it. `stated` overrides answers by path; `asked` is what came in."""

    stores: list[Json] = field(default_factory=list)
    keys: dict[str, bytes] = field(default_factory=dict)
    config: Json = field(default_factory=dict)
    stated: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    asked: list[tuple[str, str, bytes]] = field(default_factory=list)

    def add_store(self, address: str, **more: Any) -> None:
        """Labels as a map; all else goes into its status."""
        labels = [{"key": key, "value": value} for key, value in more.pop("labels", {}).items()]
        meta = {"id": len(self.stores) + 1, "address": address, "labels": labels, "state_name": "Up"}
        meta.update({name: more.pop(name) for name in ("state", "state_name") if name in more})
        status = {"capacity": "100GiB", "available": "70GiB", "used_size": "30GiB", **more}
        self.stores.append({"store": meta, "status": status})

    def add_tidb(self, address: str, **info: Any) -> None:
        self.keys[f"/topology/tidb/{address}/ttl"] = b"1767225600000000000"
        self.keys[f"/topology/tidb/{address}/info"] = json.dumps({"version": "v7.5.0", **info}).encode()

    def answer(self, method: str, path: str, body: bytes) -> tuple[int, bytes]:
        self.asked.append((method, path, body))
        if path in self.stated:
            return self.stated[path]
        match path:
            case "/pd/api/v1/stores":
                return 200, _json({"count": len(self.stores), "stores": self.stores})
            case "/pd/api/v1/config":
                return 200, _json(self.config)
            case "/v3/kv/range":
                return 200, _json(self._range(json.loads(body)))
        return 404, b"404 page not found\n"

    def _range(self, wanted: Json) -> Json:
        first = b64decode(wanted["key"]).decode()
        after = b64decode(wanted["range_end"]).decode() if "range_end" in wanted else f"{first}\0"
        found = [(key, value) for key, value in sorted(self.keys.items()) if first <= key < after]
        kvs = [{"key": b64encode(key.encode()).decode(), "value": b64encode(value).decode()} for key, value in found]
        # As etcd's gateway does it: numbers are text, and what is empty is left out.
        return {"header": {"revision": "7"}, **({"kvs": kvs, "count": str(len(kvs))} if kvs else {})}


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()
