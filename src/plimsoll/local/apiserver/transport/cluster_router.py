"""Several clusters behind one address: `/clusters/ID/...` is the API of the cluster with this id.

Clients take such a URL as the address of a server, so kubectl needs a context and nothing else.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from plimsoll.local.apiserver.http_types import Response

if TYPE_CHECKING:
    from plimsoll.local.apiserver.http_types import Request
    from plimsoll.local.apiserver.transport.limits import Handler

CLUSTERS_PATH: Final = "/clusters/"
_LONGEST_ID: Final = 63


class ClusterRouter:
    """A `Handler`. What is not below `CLUSTERS_PATH` goes to `handler`, the server whose address it is."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._clusters: dict[str, Handler] = {}

    def add(self, cluster_id: str, handler: Handler) -> None:
        """From now on the cluster is reached."""
        self._clusters[cluster_id] = handler

    def remove(self, cluster_id: str) -> None:
        """Further requests are answered with 404. Those under way are not ended."""
        self._clusters.pop(cluster_id, None)

    async def handle(self, request: Request) -> Response:
        if not request.path.startswith(CLUSTERS_PATH):
            return await self._handler.handle(request)
        cluster_id, _, path = request.path.removeprefix(CLUSTERS_PATH).partition("/")
        handler = self._clusters.get(cluster_id)
        if handler is None:
            return _build_not_found(cluster_id)
        return await handler.handle(request._replace(path=f"/{path}"))


def _build_not_found(cluster_id: str) -> Response:
    """As a Status, which kubectl shows. No token is asked for: ids are no secrets, and there is nothing behind it."""
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": f'there is no cluster "{cluster_id[:_LONGEST_ID]}"',
        "reason": "NotFound",
        "code": HTTPStatus.NOT_FOUND,
    }
    return Response.from_json(status, status=HTTPStatus.NOT_FOUND)
