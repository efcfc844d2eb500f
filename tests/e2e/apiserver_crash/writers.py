"""Clients that create, update, patch and delete objects of their own as fast as they are answered."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.e2e.apiserver_crash.acknowledged_writes import KINDS, NAMESPACE, Intent, Key
from tests.e2e.apiserver_crash.connections import LOST

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Sequence

    from tests.e2e.apiserver.raw_clients import Client
    from tests.e2e.apiserver_crash.acknowledged_writes import Json, WriteLedger
    from tests.e2e.apiserver_crash.connections import ConnectionSettings

PATCHES = {
    "merge-patch": "application/merge-patch+json",
    "strategic-patch": "application/strategic-merge-patch+json",
    "json-patch": "application/json-patch+json",
    "apply": "application/apply-patch+yaml",
}
WHEN_ABSENT = ("create", "create", "apply")
WHEN_PRESENT = ("update", "update", *PATCHES, "delete", "delete")


class Request(NamedTuple):
    method: str
    path: str
    content_type: str
    body: Any


def request_of(intent: Intent, before: Json | None) -> Request:
    """Where the API lets a write name the state it builds on, it does: that state is from before the crash, too."""
    key = intent.key
    obj = {
        "apiVersion": "v1",
        "kind": KINDS[key.resource],
        "metadata": {"name": key.name, "namespace": NAMESPACE, "labels": intent.labels},
        "data": intent.data,
    }
    plain = "application/json"
    if intent.verb == "create":
        return Request("POST", key.collection, plain, obj)
    if intent.verb == "apply":
        return Request("PATCH", f"{key.path}?fieldManager=crash&force=true", PATCHES["apply"], obj)
    assert before is not None
    version = {"resourceVersion": before["metadata"]["resourceVersion"]}
    if intent.verb == "delete":
        return Request("DELETE", key.path, plain, {"preconditions": version})
    if intent.verb == "update":
        return Request("PUT", key.path, plain, {**obj, "metadata": {**before["metadata"], "labels": intent.labels}})
    if intent.verb == "json-patch":
        changes: Any = [
            {"op": "test", "path": "/metadata/resourceVersion", "value": version["resourceVersion"]},
            {"op": "replace", "path": "/metadata/labels", "value": intent.labels},
            {"op": "replace", "path": "/data", "value": intent.data},
        ]
    else:
        changes = {"metadata": {"labels": intent.labels, **version}, "data": intent.data}
    return Request("PATCH", key.path, PATCHES[intent.verb], changes)


class Writer:
    """One connection and one request at a time."""

    def __init__(self, name: str, keys: Sequence[Key], ledger: WriteLedger) -> None:
        self.name = name
        self.keys = keys
        self._ledger = ledger
        self._sequence = 0

    async def write_until_lost(
        self, session: ConnectionSettings, client: Client, *, chance: random.Random, on_acknowledged: Callable[[], None]
    ) -> None:
        while True:
            key = chance.choice(self.keys)
            verb = chance.choice(WHEN_PRESENT if self._ledger.objects.get(key) else WHEN_ABSENT)
            self._sequence += 1
            try:
                await self.write(session, client, Intent(key, verb, self._sequence))
            except LOST:
                return
            on_acknowledged()

    async def write(self, session: ConnectionSettings, client: Client, intent: Intent) -> None:
        request = request_of(intent, self._ledger.objects.get(intent.key))
        head = session.head(request.method, request.path, content_type=request.content_type)
        self._ledger.under_way[self.name] = intent
        response = await client.ask(head, json.dumps(request.body).encode())
        assert response.status in {200, 201}, (request, response)
        self._ledger.acknowledge(self.name, response.json)
