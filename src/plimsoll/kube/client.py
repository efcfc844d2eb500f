"""Typed and raw access to one API server.

A client limits its rate, checks its guard before every write, retries where that is harmless, and raises typed errors
(`kube.errors`). It stores no objects and starts no tasks; it belongs to one event loop. There is no PUT: structs are
partial, and an object would lose the fields that its struct does not declare.

Which failures are retried is in `kube.requests.retry` and docs/reference/client.md.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Final, TypeVar, Unpack

import msgspec

from plimsoll.kube.errors import ApiError, UnreadableAnswer
from plimsoll.kube.requests.builder import (
    METADATA_LIST,
    Calls,
    encode_body,
    encode_json,
    encode_patch_body,
    get_namespace,
)
from plimsoll.kube.requests.options import DEFAULT_SETTINGS, EVERYTHING, PLAINLY
from plimsoll.kube.requests.paging import PartialObjectMetadata, RawPage, iterate_pages, list_all
from plimsoll.kube.requests.rate_limiter import RateLimit
from plimsoll.kube.requests.retry import Sender, Shared
from plimsoll.kube.requests.warnings import ServerWarnings
from plimsoll.kube.subresources import (
    Evicted,
    Scale,
    build_binding_body,
    build_eviction_body,
    build_scale_patch,
    classify_eviction_error,
)
from plimsoll.kube.transport import APPLY_PATCH, JSON, JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH
from plimsoll.objects.api.meta import WireObject
from plimsoll.objects.api.pods import Pod
from plimsoll.objects.codec.decode_problems import BadObject
from plimsoll.objects.codec.decoding import DecodedList, RawObject, decode_list, decode_list_with_raw, decode_object
from plimsoll.objects.registry import KINDS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from plimsoll.core.clock import Clock
    from plimsoll.core.entropy import Entropy
    from plimsoll.kube.requests.builder import Body, Query
    from plimsoll.kube.requests.options import (
        ApplyOptions,
        ClientSettings,
        DeleteOptions,
        Selection,
        WatchOptions,
        WriteOptions,
    )
    from plimsoll.kube.subresources import Eviction
    from plimsoll.kube.transport import Guard, Request, Response, Stream, Transport
    from plimsoll.objects.api.resource import Resource
    from plimsoll.objects.registry import Kinds

T = TypeVar("T", bound=WireObject)

# Reads an object to its end and keeps nothing of it.
_OF_AN_OBJECT: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])


class Client:
    """`of` is always a struct of `kinds`, or a `Resource` for kinds that are in no table."""

    def __init__(
        self,
        transport: Transport,
        *,
        clock: Clock,
        entropy: Entropy,
        settings: ClientSettings = DEFAULT_SETTINGS,
        kinds: Kinds = KINDS,
        guard: Guard | None = None,
    ) -> None:
        self.settings = settings
        self.kinds = kinds
        self.calls = Calls(settings, kinds)
        limit = RateLimit(qps=settings.qps, burst=settings.burst, clock=clock)
        shared = Shared(limit=limit, warnings=ServerWarnings())
        self._sender = Sender(transport, clock=clock, entropy=entropy, settings=settings, shared=shared, guard=guard)

    @property
    def guard(self) -> Guard | None:
        """What each call that changes something is checked by. Writes to other servers ask it as well."""
        return self._sender.guard

    def with_guard(self, guard: Guard | None) -> Client:
        """The same server and rate limit under another guard."""
        twin: Client = copy.copy(self)
        twin._sender = self._sender.with_guard(guard)
        return twin

    async def confirm_guard(self) -> None:
        """Make sure that the guard still allows calls: the lease is read again.

        Deletions and evictions by this client do it themselves; what is removed in another way is up to the caller.
        Raises `NotAllowed`, and what a read raises.
        """
        if self.guard is not None:
            await self.guard.confirm()

    # ---- reading

    async def get(self, of: type[T] | Resource, name: str, *, namespace: str = "", resource_version: str = "") -> T:
        """One object. With a `resource_version` the server may answer from its cache, not older than that."""
        path = self.calls.build_path(self.calls.get_resource(of), name, namespace=namespace)
        query = [("resourceVersion", resource_version)] if resource_version else []
        return await self._send_and_decode(of, self.calls.get(path, query))

    async def get_raw(self, of: type[T] | Resource, name: str, *, namespace: str = "", subresource: str = "") -> bytes:
        """One object as the server wrote it."""
        path = self.calls.build_path(self.calls.get_resource(of), name, namespace=namespace, subresource=subresource)
        return (await self._sender.send(self.calls.get(path))).body

    async def get_with_raw(self, of: type[T] | Resource, name: str, *, namespace: str = "") -> RawObject[T]:
        """One object with its bytes, for kinds whose objects are copied."""
        call = self.calls.get(self.calls.build_path(self.calls.get_resource(of), name, namespace=namespace))
        struct: type[T] = self._get_struct(of)
        reply = await self._sender.send(call)
        return RawObject(view=_decode_object(struct, call, reply), raw=reply.body)

    async def get_json(self, path: str, query: Query = ()) -> Any:
        """The JSON at a path."""
        call = self.calls.get(path, query)
        return _decode_json(call, await self._sender.send(call))

    def iterate_pages(self, of: type[T] | Resource, selection: Selection = EVERYTHING) -> AsyncIterator[DecodedList[T]]:
        """A list page by page, all of one moment. Raises `Expired` when the server no longer has that moment."""
        struct: type[T] = self._get_struct(of)

        async def fetch(query: Query) -> DecodedList[T]:
            return decode_list(struct, await self._fetch_page(of, selection, query))

        return iterate_pages(fetch, selection, page_size=self._get_page_size(selection), listed_in=lambda page: page)

    def iterate_raw_pages(self, of: type[T] | Resource, selection: Selection = EVERYTHING) -> AsyncIterator[RawPage[T]]:
        """List objects with their bytes."""
        struct: type[T] = self._get_struct(of)

        async def fetch(query: Query) -> RawPage[T]:
            listed, raws = decode_list_with_raw(struct, await self._fetch_page(of, selection, query))
            return RawPage(listed=listed, raws=raws)

        return iterate_pages(
            fetch, selection, page_size=self._get_page_size(selection), listed_in=lambda page: page.listed
        )

    def iterate_metadata_pages(
        self, of: type[T] | Resource, selection: Selection = EVERYTHING
    ) -> AsyncIterator[DecodedList[PartialObjectMetadata]]:
        """Names, labels and owners only: of large objects a small part."""

        async def fetch(query: Query) -> DecodedList[PartialObjectMetadata]:
            return decode_list(
                PartialObjectMetadata, await self._fetch_page(of, selection, query, accept=METADATA_LIST)
            )

        return iterate_pages(fetch, selection, page_size=self._get_page_size(selection), listed_in=lambda page: page)

    async def list(self, of: type[T] | Resource, selection: Selection = EVERYTHING) -> DecodedList[T]:
        """All pages as one list, started over when it expires on the way. Its version is good to watch from."""
        return await list_all(lambda selected: self.iterate_pages(of, selected), selection)

    async def watch(
        self,
        of: type[T] | Resource,
        selection: Selection = EVERYTHING,
        *,
        resource_version: str = "",
        **options: Unpack[WatchOptions],
    ) -> Stream:
        """Open a watch, in one attempt without retries. Chunks may end anywhere."""
        path = self.calls.build_list_path(self.calls.get_resource(of), selection)
        query = [*selection.query]
        if resource_version:
            query.append(("resourceVersion", resource_version))
        if options.get("bookmarks", True):
            query.append(("allowWatchBookmarks", "true"))
        if options.get("send_initial_events", False):
            query += [("sendInitialEvents", "true"), ("resourceVersionMatch", "NotOlderThan")]
        if timeout := options.get("timeout_seconds", 0):
            query.append(("timeoutSeconds", str(timeout)))
        call = self.calls.watch(path, query)
        reply = await self._sender.send_once(call)
        if reply.stream is None:
            raise UnreadableAnswer(f"{call.method} {call.path}: asked for a watch, got a document")
        return reply.stream

    # ---- writing

    async def create(
        self, of: type[T] | Resource, body: Body, *, namespace: str = "", **options: Unpack[WriteOptions]
    ) -> T:
        """Create an object: in `namespace`, or where it says itself. Bytes are sent as they are."""
        resource = self.calls.get_resource(of)
        path = self.calls.build_collection_path(resource, namespace=namespace or get_namespace(body))
        return await self._send_and_decode(of, self.calls.build_post(path, encode_body(resource, body), options))

    async def delete(
        self, of: type[T] | Resource, name: str, *, namespace: str = "", options: DeleteOptions = PLAINLY
    ) -> None:
        """Ask for an object's end. It may stay for its grace period and its finalizers."""
        path = self.calls.build_path(self.calls.get_resource(of), name, namespace=namespace)
        await self._send(self.calls.delete(path, options))

    async def merge_patch(
        self,
        of: type[T] | Resource,
        name: str,
        body: Body,
        *,
        namespace: str = "",
        subresource: str = "",
        **options: Unpack[WriteOptions],
    ) -> T:
        """Maps are merged, null removes, lists are replaced."""
        path = self._build_path(of, name, namespace, subresource)
        return await self._send_and_decode(of, self.calls.patch(path, encode_patch_body(body), MERGE_PATCH, options))

    async def patch_strategic(
        self,
        of: type[T] | Resource,
        name: str,
        body: Body,
        *,
        namespace: str = "",
        subresource: str = "",
        **options: Unpack[WriteOptions],
    ) -> T:
        """Like a merge patch, but lists are merged by their keys; only kinds that are built in take it."""
        path = self._build_path(of, name, namespace, subresource)
        return await self._send_and_decode(
            of, self.calls.patch(path, encode_patch_body(body), STRATEGIC_MERGE_PATCH, options)
        )

    async def patch_json(
        self,
        of: type[T] | Resource,
        name: str,
        body: Sequence[Mapping[str, Any]] | bytes,
        *,
        namespace: str = "",
        subresource: str = "",
        **options: Unpack[WriteOptions],
    ) -> T:
        """Operations in order; with `test` among them, a precondition on any field."""
        path = self._build_path(of, name, namespace, subresource)
        return await self._send_and_decode(of, self.calls.patch(path, encode_patch_body(body), JSON_PATCH, options))

    async def apply(
        self,
        of: type[T] | Resource,
        name: str,
        body: Body,
        *,
        namespace: str = "",
        subresource: str = "",
        **options: Unpack[ApplyOptions],
    ) -> T:
        """Server-side apply: own these fields with these values, and give up those that are no longer named."""
        path = self._build_path(of, name, namespace or get_namespace(body), subresource)
        data = encode_body(self.calls.get_resource(of), body, name=name)
        return await self._send_and_decode(of, self.calls.patch(path, data, APPLY_PATCH, options))

    # ---- parts that are verbs

    async def get_scale(self, of: type[T] | Resource, name: str, *, namespace: str = "") -> Scale:
        call = self.calls.get(self._build_path(of, name, namespace, "scale"))
        return _decode_object(Scale, call, await self._sender.send(call))

    async def scale(
        self,
        of: type[T] | Resource,
        name: str,
        replicas: int,
        *,
        namespace: str = "",
        resource_version: str = "",
        **options: Unpack[WriteOptions],
    ) -> Scale:
        """Set how many are wanted; with a `resource_version` only if nothing has changed since."""
        body = encode_json(build_scale_patch(replicas, resource_version=resource_version))
        path = self._build_path(of, name, namespace, "scale")
        call = self.calls.patch(path, body, MERGE_PATCH, options)
        return _decode_object(Scale, call, await self._sender.send(call))

    async def evict(self, name: str, *, namespace: str, options: DeleteOptions = PLAINLY) -> Eviction:
        """Ask a pod to go, as far as disruption budgets allow it now."""
        body = encode_json(build_eviction_body(name, namespace, options))
        write: WriteOptions = {"dry_run": options.is_dry_run}
        call = self.calls.build_post(self._build_path(Pod, name, namespace, "eviction"), body, write)
        try:
            await self._send(call)
        except ApiError as error:
            outcome = classify_eviction_error(error, options)
            if outcome is None:
                raise
            return outcome
        return Evicted()

    async def bind(self, name: str, node: str, *, namespace: str, uid: str = "") -> None:
        """Put a pod on a node; with a `uid` only if it is this very pod."""
        body = encode_json(build_binding_body(name, namespace, node=node, uid=uid))
        await self._send(self.calls.build_post(self._build_path(Pod, name, namespace, "binding"), body, {}))

    # ---- raw

    async def call(self, call: Request) -> Response:
        """Send any call with everything a typed call gets: rate limit, guard, retries, typed errors."""
        headers = {"User-Agent": self.settings.user_agent, **call.headers}
        timeout_s = min(call.timeout_s, self.settings.timeout_s)
        return await self._sender.send(call._replace(headers=headers, timeout_s=timeout_s))

    # ---- inside

    def _build_path(self, of: type[T] | Resource, name: str, namespace: str, subresource: str) -> str:
        return self.calls.build_path(self.calls.get_resource(of), name, namespace=namespace, subresource=subresource)

    def _get_struct(self, of: type[T] | Resource) -> type[T]:
        return self.calls.get_resource(of).struct  # type: ignore[return-value] # the caller that passes a Resource knows T

    def _get_page_size(self, selection: Selection) -> int:
        return self.settings.page_size if selection.page_size is None else selection.page_size

    async def _fetch_page(
        self, of: type[T] | Resource, selection: Selection, query: Query, *, accept: str = JSON
    ) -> bytes:
        path = self.calls.build_list_path(self.calls.get_resource(of), selection)
        return (await self._sender.send(self.calls.get(path, query, accept=accept))).body

    async def _send(self, call: Request) -> None:
        """For calls whose answer may be a Status or the object: a proxy's page with a 200 is neither."""
        reply = await self._sender.send(call)
        try:
            _OF_AN_OBJECT.decode(reply.body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise UnreadableAnswer(f"{call.method} {call.path}: neither a Status nor an object: {error}") from error

    async def _send_and_decode(self, of: type[T] | Resource, call: Request) -> T:
        """The object that the answer to a call is."""
        struct: type[T] = self._get_struct(of)
        return _decode_object(struct, call, await self._sender.send(call))


def _decode_object(struct: type[T], call: Request, reply: Response) -> T:
    decoded = decode_object(struct, reply.body)
    if isinstance(decoded, BadObject):
        raise UnreadableAnswer(f"{call.method} {call.path}: {_describe(decoded)}")
    return decoded


def _decode_json(call: Request, reply: Response) -> Any:
    try:
        return msgspec.json.decode(reply.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UnreadableAnswer(f"{call.method} {call.path}: not JSON: {error}") from error


def _describe(bad: BadObject) -> str:
    whose = "/".join(part for part in (bad.namespace, bad.name) if part)
    return f"{bad.kind} {whose}: {bad.problem}" if whose else f"{bad.kind}: {bad.problem}"
