"""Gives every namespace what pods in it need: the default ServiceAccount and the certificate of the server.

On a real cluster two small controllers do this. Without it nobody could create a pod in a namespace of their own, so
the server that people start by hand runs it too. It sees namespaces that are there when it starts as well as new ones;
what somebody deletes on purpose is made again at the next start only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.local.apiserver.bootstrap.install import create_missing
from plimsoll.local.apiserver.bootstrap.objects import namespace_contents
from plimsoll.local.apiserver.storage import EventType

if TYPE_CHECKING:
    from plimsoll.local.apiserver.server import Server


class NamespaceDefaults:
    """A service: runs until it is cancelled."""

    def __init__(self, server: Server, *, ca_certificate: str) -> None:
        self._server = server
        self._ca_certificate = ca_certificate

    async def run(self) -> None:
        with self._server.store.watch("namespaces") as namespaces:
            async for event in namespaces:
                if event.type is EventType.ADDED and not _is_going(event.object.body()):
                    await self._fill(event.object.key.name)

    async def _fill(self, namespace: str) -> None:
        await create_missing(self._server, namespace_contents(namespace, ca_certificate=self._ca_certificate))


def _is_going(namespace: dict[str, object]) -> bool:
    metadata = namespace.get("metadata")
    return isinstance(metadata, dict) and "deletionTimestamp" in metadata
