"""Random operations on the server and on the model, side by side: a hypothesis state machine.

`machine(driver)` is used by the short run of the suite and the long one of `tests/e2e`. With the sqlite driver the
server is also stopped and started again on the same file, after which nothing may be missing, repeated or renumbered.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from plimsoll.local.apiserver.http_types import Request
from plimsoll.local.apiserver.storage import MemoryDriver, SqliteDriver
from plimsoll.runtime.clocks import RealClock
from tests.conformance.object_model import Event, Key, Model, ModelObject
from tests.conformance.servers import ADMIN_TOKEN, embedded_server

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.local.apiserver.storage.drivers.interface import Driver

Json = dict[str, Any]

_KEYS = st.tuples(st.sampled_from(("one", "two")), st.sampled_from(("a", "b", "c")))
_DATA = st.dictionaries(st.sampled_from(("x", "y")), st.sampled_from(("1", "2")), max_size=2)
_LABELS = st.dictionaries(st.sampled_from(("l", "m")), st.sampled_from(("1", "2")), max_size=2)
_SELECTED = st.sampled_from(("", "l"))
_HOLD = "ex.com/hold"
_SENTINELS = "sentinels"
_JSON = "application/json"
_READ_WITHIN_S = 30


def _path(key: Key, *, collection: bool = False) -> str:
    return f"/api/v1/namespaces/{key[0]}/configmaps" + ("" if collection else f"/{key[1]}")


class OperationMachine(RuleBasedStateMachine):
    """Subclasses say which driver."""

    is_durable = False

    def __init__(self) -> None:
        super().__init__()
        self._directory = tempfile.TemporaryDirectory()
        self._runner = asyncio.Runner()
        self._model = Model()
        self._sentinels = 0
        self._start()

    def _driver(self) -> Driver:
        directory = Path(self._directory.name) / "data"
        directory.mkdir(exist_ok=True)
        return SqliteDriver(directory) if self.is_durable else MemoryDriver()

    def _start(self) -> None:
        self._server = self._runner.run(embedded_server(RealClock(), driver=self._driver()))

    def _stop(self) -> None:
        self._runner.run(self._server.store.aclose())

    def teardown(self) -> None:
        self._stop()
        self._runner.close()
        self._directory.cleanup()

    # ---- talking to the server

    def _send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = _JSON,
        query: Mapping[str, str] | None = None,
    ) -> tuple[int, Json]:
        headers = {"authorization": f"Bearer {ADMIN_TOKEN}", "content-type": content_type, "user-agent": "model/1"}
        payload = b"" if body is None else json.dumps(body).encode()
        request = Request(method, path, tuple((query or {}).items()), headers, payload)
        return self._runner.run(self._whole(request))

    async def _whole(self, request: Request) -> tuple[int, Json]:
        answer = await self._server.application.handle(request)
        assert isinstance(answer.body, bytes)
        return answer.status, json.loads(answer.body)

    def _written(self, key: Key, after: ModelObject, answer: Json) -> None:
        """An object was (or was not) changed to `after`: the answer shows it, and the revision shows which."""
        before = self._model.objects.get(key)
        revision = int(answer["metadata"]["resourceVersion"])
        if before is not None and before.same_content(after):
            assert revision == before.revision, "a write that changes nothing keeps the resourceVersion"
        else:
            self._model.change(key, after, revision=revision)
        assert _held(answer) == after._replace(revision=revision)

    # ---- operations

    @initialize()
    def make_namespaces(self) -> None:
        for name in ("one", "two", _SENTINELS):
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            assert self._send("POST", "/api/v1/namespaces", body)[0] == 201

    @rule(key=_KEYS, data=_DATA, labels=_LABELS, is_held=st.booleans())
    def create(self, key: Key, data: dict[str, str], labels: dict[str, str], is_held: bool) -> None:
        finalizers = (_HOLD,) if is_held else ()
        metadata = {"name": key[1], "labels": labels, "finalizers": list(finalizers)}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
        status, answer = self._send("POST", _path(key, collection=True), body)
        if key in self._model.objects:
            assert (status, answer["reason"]) == (409, "AlreadyExists")
            return
        assert status == 201
        self._written(key, ModelObject(answer["metadata"]["uid"], 0, data, labels, finalizers), answer)

    @rule(key=_KEYS, data=_DATA, labels=_LABELS, version=st.sampled_from(("none", "current", "stale")))
    def replace(self, key: Key, data: dict[str, str], labels: dict[str, str], version: str) -> None:
        before = self._model.objects.get(key)
        metadata: Json = {"name": key[1], "labels": labels, "finalizers": list(before.finalizers) if before else []}
        if version != "none":
            metadata["resourceVersion"] = str(before.revision if before and version == "current" else 1)
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
        status, answer = self._send("PUT", _path(key), body)
        if before is None:
            assert status == 404
        elif version == "stale":
            assert (status, answer["reason"]) == (409, "Conflict")
        else:
            assert status == 200
            self._written(key, before._replace(data=data, labels=labels), answer)

    @rule(
        key=_KEYS,
        name=st.sampled_from(("x", "y")),
        value=st.sampled_from(("1", "3")),
        how=st.sampled_from(("merge", "strategic", "json")),
    )
    def patch_data(self, key: Key, name: str, value: str, how: str) -> None:
        before = self._model.objects.get(key)
        body: Any = {"data": {name: value}}
        if how == "json":
            has_data = before is not None and before.data
            body = [
                {
                    "op": "add",
                    "path": f"/data/{name}" if has_data else "/data",
                    "value": value if has_data else body["data"],
                }
            ]
        content_type = "strategic-merge-patch" if how == "strategic" else f"{how}-patch"
        status, answer = self._send("PATCH", _path(key), body, content_type=f"application/{content_type}+json")
        if before is None:
            assert status == 404
            return
        assert status == 200
        self._written(key, before._replace(data={**before.data, name: value}), answer)

    @rule(key=_KEYS, name=st.sampled_from(("l", "m")))
    def remove_label(self, key: Key, name: str) -> None:
        before = self._model.objects.get(key)
        body = {"metadata": {"labels": {name: None}}}
        status, answer = self._send("PATCH", _path(key), body, content_type="application/merge-patch+json")
        if before is None:
            assert status == 404
            return
        assert status == 200
        self._written(
            key, before._replace(labels={item: v for item, v in before.labels.items() if item != name}), answer
        )

    @rule(key=_KEYS)
    def release(self, key: Key) -> None:
        """Remove the finalizers: what is being deleted is gone then."""
        before = self._model.objects.get(key)
        body = {"metadata": {"finalizers": None}}
        status, answer = self._send("PATCH", _path(key), body, content_type="application/merge-patch+json")
        if before is None:
            assert status == 404
        elif before.is_deleting:
            assert status == 200
            self._gone(key, before)
        else:
            assert status == 200
            self._written(key, before._replace(finalizers=()), answer)

    @rule(key=_KEYS, precondition_=st.sampled_from(("none", "right", "wrong")))
    def delete(self, key: Key, precondition_: str) -> None:
        before = self._model.objects.get(key)
        uid = before.uid if before and precondition_ == "right" else "11111111-1111-1111-1111-111111111111"
        options = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": uid}}
        status, answer = self._send("DELETE", _path(key), None if precondition_ == "none" else options)
        if before is None:
            assert status == 404
        elif precondition_ == "wrong":
            assert (status, answer["reason"]) == (409, "Conflict")
        elif before.finalizers:
            assert status == 200
            self._written(key, before._replace(is_deleting=True), answer)
        else:
            assert (status, answer["status"]) == (200, "Success")
            self._gone(key, before)

    def _gone(self, key: Key, before: ModelObject) -> None:
        """The revision of a deletion is sent only to watchers."""
        event = next(item for item in self._watched(since=self._model.revision, label="") if item.type == "DELETED")
        assert event.key == key
        assert event.labels == tuple(sorted(before.labels.items()))
        self._model.change(key, None, revision=event.revision)

    @rule(namespace=st.sampled_from(("one", "two")), label=_SELECTED)
    def delete_collection(self, namespace: str, label: str) -> None:
        chosen = self._model.selected(namespace, label)
        since = self._model.revision
        # The certificate every namespace has is not the model's.
        query = {"fieldSelector": "metadata.name!=kube-root-ca.crt", **({"labelSelector": label} if label else {})}
        assert self._send("DELETE", _path((namespace, ""), collection=True), query=query)[0] == 200
        for event in self._watched(since=since, label=""):
            held = chosen.pop(event.key)
            assert (event.type == "MODIFIED") == bool(held.finalizers)
            after = held._replace(is_deleting=True) if held.finalizers else None
            self._model.change(event.key, after, revision=event.revision)
        assert all(held.is_deleting for held in chosen.values()), "only what was on its way out stays as it is"

    # ---- looking

    @rule(namespace=st.sampled_from(("one", "two")), label=_SELECTED, limit=st.sampled_from(("", "1", "2")))
    def list_pages(self, namespace: str, label: str, limit: str) -> None:
        items: list[Json] = []
        query = {"fieldSelector": "metadata.name!=kube-root-ca.crt"}
        query |= {name: value for name, value in (("labelSelector", label), ("limit", limit)) if value}
        while True:
            status, page = self._send("GET", _path((namespace, ""), collection=True), query=query)
            assert status == 200
            items += page["items"]
            if not page["metadata"].get("continue"):
                break
            query["continue"] = page["metadata"]["continue"]
        assert {_key(item): _held(item) for item in items} == self._model.selected(namespace, label)
        assert [_key(item) for item in items] == list(self._model.selected(namespace, label))

    @precondition(lambda self: bool(self._model.happenings))
    @rule(back=st.integers(0, 20))
    def list_at_an_earlier_revision(self, back: int) -> None:
        revision = self._model.happenings[max(0, len(self._model.happenings) - 1 - back)].revision
        query = {"resourceVersion": str(revision), "resourceVersionMatch": "Exact"}
        status, page = self._send("GET", "/api/v1/configmaps", query=query)
        assert status == 200
        seen = {_key(item): _held(item) for item in page["items"] if _is_ours(item)}
        assert seen == self._model.at(revision)

    @precondition(lambda self: bool(self._model.happenings))
    @rule(back=st.integers(0, 30), label=_SELECTED)
    def watch_from_an_earlier_revision(self, back: int, label: str) -> None:
        since = self._model.happenings[max(0, len(self._model.happenings) - 1 - back)].revision
        assert self._watched(since=since, label=label) == self._model.events(since=since, label=label)

    def _watched(self, *, since: int, label: str) -> list[Event]:
        """All events after `since`, up to a sentinel made now."""
        self._sentinels += 1
        name = f"s{self._sentinels}"
        metadata = {"name": name, "labels": {"l": "sentinel"}}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
        assert self._send("POST", _path((_SENTINELS, ""), collection=True), body)[0] == 201
        query = {"watch": "true", "resourceVersion": str(since), **({"labelSelector": label} if label else {})}
        return self._runner.run(self._events_until(name, query))

    async def _events_until(self, sentinel: str, query: dict[str, str]) -> list[Event]:
        headers = {"authorization": f"Bearer {ADMIN_TOKEN}"}
        answer = await self._server.application.handle(
            Request("GET", "/api/v1/configmaps", tuple(query.items()), headers)
        )
        assert not isinstance(answer.body, bytes), answer.body
        events: list[Event] = []
        pending = b""
        async with asyncio.timeout(_READ_WITHIN_S):
            async for chunk in answer.body:
                *lines, pending = (pending + chunk).split(b"\n")
                for line in lines:
                    event = json.loads(line)
                    if event["object"]["metadata"].get("name") == sentinel:
                        await answer.body.aclose()  # type: ignore[attr-defined]  # a stream is an async generator
                        return events
                    if _is_ours(event["object"]):
                        events.append(_event(event))
        raise AssertionError("the watch ended before its sentinel")

    # ---- going away and coming back

    @precondition(lambda self: self.is_durable)
    @rule()
    def restart(self) -> None:
        self._stop()
        self._start()

    @invariant()
    def the_server_holds_what_the_model_holds(self) -> None:
        objects: dict[Any, Any] = {}
        for namespace in ("one", "two"):
            _, answer = self._send("GET", _path((namespace, ""), collection=True))
            objects |= {_key(item): _held(item) for item in answer.get("items", ()) if _is_ours(item)}
        assert objects == self._model.objects


def _is_ours(obj: Json) -> bool:
    return obj["metadata"].get("namespace") in {"one", "two"} and obj["metadata"]["name"] != "kube-root-ca.crt"


def _key(obj: Json) -> Key:
    return obj["metadata"]["namespace"], obj["metadata"]["name"]


def _held(obj: Json) -> ModelObject:
    metadata = obj["metadata"]
    return ModelObject(
        uid=metadata["uid"],
        revision=int(metadata["resourceVersion"]),
        data=obj.get("data") or {},
        labels=metadata.get("labels") or {},
        finalizers=tuple(metadata.get("finalizers") or ()),
        is_deleting="deletionTimestamp" in metadata,
    )


def _event(event: Json) -> Event:
    metadata = event["object"]["metadata"]
    labels = tuple(sorted((metadata.get("labels") or {}).items()))
    return Event(event["type"], _key(event["object"]), int(metadata["resourceVersion"]), labels)


class InMemory(OperationMachine):
    """The memory driver."""


class OnDisk(OperationMachine):
    """The sqlite driver, with restarts."""

    is_durable = True
