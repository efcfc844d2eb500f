"""How the clients of a crash round reach the server: by what the kubeconfig of its first start says, for good."""

from __future__ import annotations

import asyncio
import ssl
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from tests.e2e.apiserver.raw_clients import Client, Response

if TYPE_CHECKING:
    from tests.e2e.apiserver.processes import ApiServer

# What a client sees of a server that is killed.
LOST = (asyncio.IncompleteReadError, ConnectionError, ssl.SSLError)


class ConnectionSettings(NamedTuple):
    """Address, trust and token. They outlive the server's process, as they do for any user."""

    port: int
    trust: ssl.SSLContext
    token: str

    @classmethod
    def of(cls, server: ApiServer) -> ConnectionSettings:
        return cls(urlsplit(server.url).port or 0, ssl.create_default_context(cadata=server.ca_pem), server.token)

    async def connected(self) -> Client:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, ssl=self.trust, limit=2**22)
        return Client(reader, writer)

    def head(self, method: str, path: str, *, content_type: str = "application/json") -> str:
        return f"{method} {path}\nAuthorization: Bearer {self.token}\nContent-Type: {content_type}"

    async def get(self, client: Client, path: str) -> Any:
        """The object, or none if it is not there."""
        response: Response = await client.ask(self.head("GET", path))
        assert response.status in {200, 404}, response
        return response.json if response.status == 200 else None
