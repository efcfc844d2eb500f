"""The source of an informer's objects: a client, a kind and a selection, as the calls that list and watch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from plimsoll.kube.errors import NotFound
from plimsoll.kube.informer.status import ReflectorProgress
from plimsoll.objects.codec.json_spans import index_members

if TYPE_CHECKING:
    from plimsoll.kube.client import Client
    from plimsoll.kube.informer.events import KeyTuple
    from plimsoll.kube.requests.options import Selection
    from plimsoll.kube.transport import Stream
    from plimsoll.objects.api.meta import WireObject
    from plimsoll.objects.api.resource import Resource


class ListerWatcher:
    """The list and watch calls of one kind and selection, with the progress of the reflector."""

    def __init__(
        self, client: Client, kind: type[Any] | Resource, *, selection: Selection, keep_raw: bool, list_timeout_s: float
    ) -> None:
        self._client = client
        self._kind = kind
        self._selection = selection
        self._list_timeout_s = list_timeout_s
        resource = client.calls.get_resource(kind)
        self._path = client.calls.build_list_path(resource, selection)
        self.name = resource.full_name
        self.struct: type[WireObject] = resource.struct
        self.keep_raw = keep_raw
        self.progress = ReflectorProgress()

    async def get_page(self, *, limit: int, token: str = "", timeout_s: float | None = None) -> bytes:
        """The body of one page of the newest state. `token` is the `continue` token of the previous page."""
        query = [*self._selection.query]
        if limit:
            query.append(("limit", str(limit)))
        if token:
            query.append(("continue", token))
        call = self._client.calls.get(self._path, query)._replace(timeout_s=timeout_s or self._list_timeout_s)
        return (await self._client.call(call)).body

    async def get_identity(self, key: KeyTuple) -> tuple[str, str] | None:
        """The uid and the version of one object, read by itself; None if it does not exist."""
        namespace, name = key
        try:
            raw = await self._client.get_raw(self._kind, name, namespace=namespace)
        except NotFound:
            return None
        metadata = index_members(index_members(raw).get("metadata", b""))
        return _format_json(metadata.get("uid", b"")), _format_json(metadata.get("resourceVersion", b""))

    async def watch(self, version: str, *, timeout_seconds: int, bookmarks: bool) -> Stream:
        return await self._client.watch(
            self._kind,
            self._selection,
            resource_version=version,
            timeout_seconds=timeout_seconds,
            bookmarks=bookmarks,
        )

    async def watch_list(self, *, timeout_seconds: int) -> Stream:
        """Open a watch that starts with all existing objects."""
        return await self._client.watch(
            self._kind, self._selection, timeout_seconds=timeout_seconds, send_initial_events=True
        )


def _format_json(json: bytes) -> str:
    try:
        return msgspec.json.decode(json, type=str)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""
