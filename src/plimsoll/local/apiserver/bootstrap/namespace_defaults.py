"""The objects that pods need in every namespace: the default ServiceAccount and the server's certificate.

On a real cluster two small controllers create them. Without them no pod could be created in a new namespace, so the API
server runs this service even without a controller manager. It handles namespaces that exist at the start as well as new
ones; an object that a user deletes is created again at the next start only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.local.apiserver.bootstrap.install import create_missing
from plimsoll.local.apiserver.bootstrap.objects import build_namespace_contents
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
                if event.type is EventType.ADDED and not _is_going(event.object.decode_body()):
                    await self._fill(event.object.key.name)

    async def _fill(self, namespace: str) -> None:
        await create_missing(self._server, build_namespace_contents(namespace, ca_certificate=self._ca_certificate))


def _is_going(namespace: dict[str, object]) -> bool:
    metadata = namespace.get("metadata")
    return isinstance(metadata, dict) and "deletionTimestamp" in metadata
