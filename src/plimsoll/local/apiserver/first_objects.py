"""A fresh store gets what a real server makes when it starts: namespaces, roles and bindings, priority classes.

Done once, by the first who comes; others wait for it. A store that holds a namespace is not fresh: what somebody has
changed or deleted there stays as it is.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from plimsoll.local.apiserver import bootstrap
from plimsoll.local.apiserver.storage import Decision, Keep, Key, Put, Stored
from plimsoll.local.apiserver.strategies.written_form import written_time

if TYPE_CHECKING:
    from plimsoll.local.apiserver.server import Server

Json = dict[str, Any]


class FirstObjects:
    """What is to be put, and whether it was."""

    def __init__(self, server: Server, *, ca_certificate: str) -> None:
        self._server = server
        self._ca_certificate = ca_certificate
        self._are_there = server.store.count("namespaces") > 0
        self._turn: asyncio.Lock | None = None

    async def put(self) -> None:
        if self._are_there:
            return
        if self._turn is None:
            self._turn = asyncio.Lock()  # made here, where a loop runs
        async with self._turn:
            if not self._are_there:
                for obj in bootstrap.objects(ca_certificate=self._ca_certificate):
                    await self._put(obj)
                self._are_there = True

    async def _put(self, obj: Json) -> None:
        resource = self._server.catalogue.of_kind(obj["apiVersion"], obj["kind"])
        assert resource is not None, f"{obj['kind']} is not served"
        metadata = {
            **obj["metadata"],
            "uid": self._server.entropy.uid(),
            "creationTimestamp": written_time(self._server.clock.now()),
        }
        key = Key(resource.stored_as, metadata.get("namespace", ""), metadata["name"])

        def decide(found: Stored | None) -> Decision:
            return Keep() if found is not None else Put({**obj, "metadata": metadata})

        await self._server.store.update(key, decide)
