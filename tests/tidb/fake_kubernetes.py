"""A Kubernetes API server of few words: TidbClusters, TidbClusterAutoScalers and nodes, and nothing else.

No server-side apply, no events, leases, discovery or definitions: what it does not know is 404. It knows pods if a test
makes some, and of selectors one label with its value. Watches are of all namespaces and have no bookmarks.
It answers in memory (`send`, as a transport does) and over HTTP (`answer`).
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import parse_qsl, urlsplit

from plimsoll.kube.transport import Request, Response

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

Json = dict[str, Any]

_TIDB = "/apis/pingcap.com/v1alpha1"
_PLACES = {
    "tidbclusters": (_TIDB, "TidbCluster"),
    "tidbclusterautoscalers": (_TIDB, "TidbClusterAutoScaler"),
    "nodes": ("/api/v1", "Node"),
    "pods": ("/api/v1", "Pod"),
}


class FakeKubernetes:
    """`wrote` is every call that would change something, as METHOD and path. `now` gives times of creation."""

    def __init__(self, now: Callable[[], str] = lambda: "2026-01-01T00:00:00Z") -> None:
        self.objects: dict[tuple[str, str, str], Json] = {}
        self.wrote: list[tuple[str, str]] = []
        self.asked: list[str] = []
        self.keeps_status_apart = True
        self._now = now
        self._version = 100
        self._changes: list[tuple[int, str, Json]] = []
        self._changed = asyncio.Event()

    # ---- for tests

    def put(self, plural: str, body: Json) -> Json:
        """As it is, in place of what was there."""
        metadata = body["metadata"]
        self._version += 1
        body = {
            "apiVersion": _PLACES[plural][0].removeprefix("/apis/").removeprefix("/api/"),
            "kind": _PLACES[plural][1],
            **body,
            "metadata": {
                "uid": f"uid-{metadata['name']}",
                "creationTimestamp": self._now(),
                "generation": 1,
                **metadata,
                "resourceVersion": str(self._version),
            },
        }
        key = plural, metadata.get("namespace", ""), metadata["name"]
        self._notify(plural, {"type": "MODIFIED" if key in self.objects else "ADDED", "object": body})
        self.objects[key] = body
        return body

    def _notify(self, plural: str, event: Json) -> None:
        """Wake the watches."""
        self._changes.append((self._version, plural, event))
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def watch_changes(self, plural: str, since: int) -> AsyncIterator[bytes]:
        """The changes of a kind in all namespaces after a version, for ever."""
        index = 0
        while True:
            while index < len(self._changes):
                version, of, event = self._changes[index]
                index += 1
                if of == plural and version > since:
                    yield json.dumps(event).encode() + b"\n"
            await self._changed.wait()

    # ---- two ways to ask

    async def send(self, call: Request) -> Response:
        place = self._place(call.path)
        if call.is_stream and place is not None:
            query = dict(parse_qsl(urlsplit(call.url).query))
            if "sendInitialEvents" in query:
                return Response(status=400, body=b"{}")
            changes = self.watch_changes(place[0], int(query["resourceVersion"]))
            return Response(status=200, stream=_ChangeStream(changes))
        status, body = self.answer(call.method, call.url, call.body)
        return Response(status=status, headers={"content-type": "application/json"}, body=body)

    async def aclose(self) -> None:
        """Nothing is open."""

    def answer(self, method: str, url: str, body: bytes) -> tuple[int, bytes]:
        path = urlsplit(url).path
        self.asked.append(f"{method} {path}")
        found = self._place(path)
        if method != "GET":
            self.wrote.append((method, path))
        has_pods = any(plural == "pods" for plural, _, _ in self.objects)
        if found is None or (found[0] == "pods" and not has_pods):
            return _status(404, "NotFound", f"the server could not find {path}")
        plural, namespace, name, sub = found
        if not name:
            selector = dict(parse_qsl(urlsplit(url).query)).get("labelSelector", "")
            is_new = method == "POST"
            return self._created(plural, namespace, body) if is_new else self._listed(plural, namespace, selector)
        there = self.objects.get((plural, namespace, name))
        if there is None:
            return _status(404, "NotFound", f'{plural} "{name}" not found')
        match method:
            case "GET":
                return 200, json.dumps(there).encode()
            case "PATCH":
                return self._patched(plural, there, json.loads(body), sub)
            case "DELETE":
                return self._deleted(plural, there)
        return _status(405, "MethodNotAllowed", f"{method} is not supported")

    # ---- inside

    def _place(self, path: str) -> tuple[str, str, str, str] | None:
        for plural, (prefix, _) in _PLACES.items():
            parts = path.removeprefix(prefix).strip("/").split("/")
            if not path.startswith(prefix):
                continue
            namespace = ""
            if parts[0] == "namespaces" and len(parts) > 2:
                namespace, parts = parts[1], parts[2:]
            if parts[0] == plural:
                parts += ["", ""]
                return plural, namespace, parts[1], parts[2]
        return None

    def _listed(self, plural: str, namespace: str, selector: str) -> tuple[int, bytes]:
        label, _, value = selector.partition("=")
        items = [
            item
            for (kind, where, _), item in self.objects.items()
            if kind == plural
            and where.startswith(namespace)
            and (not label or item["metadata"].get("labels", {}).get(label) == value)
        ]
        kind = f"{_PLACES[plural][1]}List"
        body = {"kind": kind, "apiVersion": "v1", "metadata": {"resourceVersion": str(self._version)}, "items": items}
        return 200, json.dumps(body).encode()

    def _created(self, plural: str, namespace: str, body: bytes) -> tuple[int, bytes]:
        made = json.loads(body)
        metadata = {**made["metadata"], "namespace": namespace}
        if (plural, namespace, metadata["name"]) in self.objects:
            return _status(409, "AlreadyExists", f'{plural} "{metadata["name"]}" already exists')
        made.pop("status", None)
        return 201, json.dumps(self.put(plural, {**made, "metadata": metadata})).encode()

    def _patched(self, plural: str, there: Json, patch: Json, sub: str) -> tuple[int, bytes]:
        version = patch.get("metadata", {}).get("resourceVersion", there["metadata"]["resourceVersion"])
        if version != there["metadata"]["resourceVersion"]:
            return _status(409, "Conflict", "the object has been modified")
        kept = {"status": there.get("status", {})} if sub != "status" else {"spec": there["spec"]}
        if not sub and not self.keeps_status_apart:
            kept = {}
        merged = {**merge(there, patch), **kept}
        if merged == there:
            return 200, json.dumps(there).encode()
        if merged.get("spec") != there.get("spec"):
            merged["metadata"] = {**merged["metadata"], "generation": there["metadata"]["generation"] + 1}
        stored = self.put(plural, merged)
        if not stored["metadata"].get("finalizers") and stored["metadata"].get("deletionTimestamp"):
            self._forget(plural, stored)
        return 200, json.dumps(stored).encode()

    def _deleted(self, plural: str, there: Json) -> tuple[int, bytes]:
        if there["metadata"].get("finalizers"):
            there = {**there, "metadata": {**there["metadata"], "deletionTimestamp": self._now()}}
            return 200, json.dumps(self.put(plural, there)).encode()
        self._forget(plural, there)
        return 200, b'{"kind":"Status","status":"Success"}'

    def _forget(self, plural: str, there: Json) -> None:
        del self.objects[plural, there["metadata"].get("namespace", ""), there["metadata"]["name"]]
        self._version += 1
        metadata = {**there["metadata"], "resourceVersion": str(self._version)}
        self._notify(plural, {"type": "DELETED", "object": {**there, "metadata": metadata}})


class _ChangeStream:
    """The body of a watch."""

    def __init__(self, changes: AsyncIterator[bytes]) -> None:
        self._changes = changes

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        return await anext(self._changes)

    async def aclose(self) -> None:
        """Nothing is open."""


def merge(there: Any, patch: Any) -> Any:
    """RFC 7386."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(there) if isinstance(there, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge(merged.get(key), value)
    return merged


def _status(code: int, reason: str, message: str) -> tuple[int, bytes]:
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": message}
    return code, json.dumps({**body, "code": code}).encode()
