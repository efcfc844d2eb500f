"""Watches: a stream of events from the store, with bookmarks, until the timeout or until the client disconnects.

A watch of custom resources also ends, after its pending events, with the definition it was opened under. The plain form
sends the bytes that the store encoded once for all watchers. Everything is one asynchronous generator without tasks of
its own: closing it closes the watch.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import msgspec

from plimsoll.local.apiserver import presentation, status_errors
from plimsoll.local.apiserver.crds.serving import find_served_version
from plimsoll.local.apiserver.handlers.get_list import read_selectors, select_matching, wait_for_revision
from plimsoll.local.apiserver.http_types import JSON, Response
from plimsoll.local.apiserver.request.options import ListOptions, parse_revision, read_list_options
from plimsoll.local.apiserver.request.responses import negotiate_form
from plimsoll.local.apiserver.storage import Compacted, EventType, Expired, ListQuery
from plimsoll.local.apiserver.strategies.lookup import find_strategy

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from plimsoll.local.apiserver.presentation import MediaForm
    from plimsoll.local.apiserver.request.context import RequestContext
    from plimsoll.local.apiserver.server import Server
    from plimsoll.local.apiserver.storage import Event, Stored, Watch

Json = dict[str, Any]

_BOOKMARK_EVERY_S: Final = 60.0
# A watch gets its last bookmarks so long before its end.
_BOOKMARKS_BEFORE_END_S: Final = (2.0, 1.0)
# An alarm set in floats may ring a hair too early.
_SAME_INSTANT_S: Final = 1e-6
_SHORTEST_S, _LONGEST_S = 1800.0, 3600.0
_INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"
_encoder: Final = msgspec.json.Encoder()


async def watch(server: Server, call: RequestContext) -> Response:
    form = negotiate_form(call, watch=True)
    options = read_list_options(call.request, watch=True)
    matches = await read_selectors(server, call, options)
    if call.name:
        matches = _match_name(call.name, matches)
    try:
        stream = await _join(server, call, options, matches)
    except Compacted as error:
        return Response(status=200, body=_yield_single(_encode_gone(error.requested, error.oldest)), content_type=JSON)
    session = _WatchStream(server, call, form=form, options=options, stream=stream)
    return Response(status=200, body=session.stream_frames(), content_type=JSON)


def _match_name(name: str, matches: Callable[[Stored], bool] | None) -> Callable[[Stored], bool]:
    return lambda stored: stored.name == name and (matches is None or matches(stored))


async def _join(
    server: Server, call: RequestContext, options: ListOptions, matches: Callable[[Stored], bool] | None
) -> Watch:
    resource_version = options.resource_version
    number = parse_revision(resource_version or "0")
    if isinstance(number, str):
        raise status_errors.unexpected(f'resourceVersion: Invalid value: "{resource_version}": {number}')
    since: int | None = number or None
    if options.send_initial_events:
        await wait_for_revision(server, number)
        since = None
    elif options.send_initial_events is False and since is None:
        since = server.store.revision
    namespace = (call.namespace if call.resource.namespaced else "") or None
    resource = call.resource.stored_as
    if since is not None or matches is None:
        return server.store.watch(resource, namespace=namespace, since=since, matches=matches)
    everything = server.store.list(resource, ListQuery(namespace=namespace))
    state = await select_matching(server, everything, options, matches, limit=None)
    return server.store.watch(resource, namespace=namespace, since=state.revision, matches=matches, initial=state.items)


def _encode_gone(requested: int, oldest: int) -> bytes:
    status = status_errors.failure(410, "Expired", f"too old resource version: {requested} ({oldest})").status
    return _encoder.encode({"type": "ERROR", "object": status}) + b"\n"


async def _yield_single(frame: bytes) -> AsyncIterator[bytes]:
    yield frame


class _WatchStream:
    """One watch under way."""

    def __init__(
        self, server: Server, call: RequestContext, *, form: MediaForm, options: ListOptions, stream: Watch
    ) -> None:
        self._server = server
        self._resource = call.resource
        self._strategy = find_strategy(call.resource)
        self._form = form
        self._options = options
        self._stream = stream
        self._sends_columns = True
        # How a stored object is shown may change with its definition.
        self._generation = server.registry.generation
        timeout_s = options.timeout_s
        # As the real server: zero means no timeout, and one that is over before it begins ends the watch at once.
        if not timeout_s:
            timeout_s = int(server.entropy.draw_uniform(_SHORTEST_S, _LONGEST_S))
        self._ends_s = server.clock.monotonic_s() + timeout_s
        self._next_bookmark_s = server.clock.monotonic_s() + _BOOKMARK_EVERY_S
        is_long = timeout_s > _BOOKMARKS_BEFORE_END_S[0]
        self._last_bookmarks_s = [self._ends_s - before for before in _BOOKMARKS_BEFORE_END_S] if is_long else []
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_s = 0.0

    def end(self) -> None:
        """Its time is up now: what is at hand is still delivered."""
        self._ends_s = self._server.clock.monotonic_s()
        self._stream.wake()

    @contextmanager
    def _end_with_definition(self) -> Iterator[None]:
        if not self._resource.is_custom:
            yield
            return
        work, definition = self._server.crd_tasks, self._resource.full_name
        current = find_served_version(self._server.registry, definition)
        if current is None or current.compiled is not self._resource.compiled:
            self.end()
        work.add_watch(definition, self)
        try:
            yield
        finally:
            work.remove_watch(definition, self)

    async def stream_frames(self) -> AsyncIterator[bytes]:
        sends_end_of_initial = bool(self._options.send_initial_events)
        with self._stream as stream, self._end_with_definition(), self._start_alarm():
            while True:
                if sends_end_of_initial and not stream.initial_left:
                    sends_end_of_initial = False
                    if self._options.bookmarks:
                        yield self._encode_bookmark(stream.revision, initial_end=True)
                try:
                    batch = await self._wait_for_batch(stream)
                except Expired as error:
                    yield _encode_gone(error.at, error.oldest)
                    return
                except StopAsyncIteration:
                    return
                if batch is None:
                    if self._server.clock.monotonic_s() >= self._ends_s - _SAME_INSTANT_S:
                        return
                    if self._options.bookmarks and self._is_bookmark_due() and (revision := stream.revision):
                        yield self._encode_bookmark(revision)
                    continue
                yield await self._encode_batch(batch)

    async def _wait_for_batch(self, stream: Watch) -> list[Event] | None:
        """Events, or none if it is time for something else."""
        wakes_s = self._ends_s
        if self._options.bookmarks:
            wakes_s = min(wakes_s, self._next_bookmark_s, *self._last_bookmarks_s)
        self._set_alarm(wakes_s)
        return await stream.wait_for_batch() or None

    def _set_alarm(self, wakes_s: float) -> None:
        """One timer from bookmark to bookmark, not one for every batch."""
        if self._alarm is not None:
            if self._alarm_s == wakes_s:
                return
            self._alarm.cancel()
        loop = asyncio.get_running_loop()
        after_s = max(0.0, wakes_s - self._server.clock.monotonic_s())
        self._alarm_s = wakes_s
        self._alarm = loop.call_at(loop.time() + after_s, self._on_alarm)

    def _on_alarm(self) -> None:
        self._alarm = None
        self._stream.wake()

    @contextmanager
    def _start_alarm(self) -> Iterator[None]:
        try:
            yield
        finally:
            if self._alarm is not None:
                self._alarm.cancel()

    def _is_bookmark_due(self) -> bool:
        now_s = self._server.clock.monotonic_s()
        reached_s = now_s + _SAME_INSTANT_S
        passed = [moment for moment in self._last_bookmarks_s if moment <= reached_s]
        self._last_bookmarks_s = self._last_bookmarks_s[len(passed) :]
        due = bool(passed) or reached_s >= self._next_bookmark_s
        if due:
            self._next_bookmark_s = now_s + _BOOKMARK_EVERY_S
        return due

    async def _encode_batch(self, batch: list[Event]) -> bytes:
        """The lines of some events: as they are kept, or encoded, large objects away from the loop."""
        if self._form.is_plain and self._strategy.is_stored_as_presented:
            return b"".join([event.wire for event in batch])
        return b"".join([await self._encode_frame(event) for event in batch])

    async def _encode_frame(self, event: Event) -> bytes:
        stored = event.object
        size_bytes = len(stored.data) + self._resource.schema_bytes
        form = (self._resource.api_version, self._generation)
        if not self._form.is_plain:
            columns, self._sends_columns = self._sends_columns, False
            return await self._server.long_work.run(
                size_bytes, lambda: self._encode_event(event.type.value, self._present(stored), with_columns=columns)
            )
        kept = event.get_encoding(form)
        if kept is not None:
            return kept
        encoded = await self._server.long_work.run(size_bytes, lambda: self._encode_plain(event.type, stored))
        event.keep_encoding(form, encoded)
        return encoded

    def _encode_plain(self, kind: EventType, stored: Stored) -> bytes:
        if kind is EventType.DELETED:  # No other request shows an object under the revision of its deletion.
            return _encoder.encode({"type": kind.value, "object": self._present(stored)}) + b"\n"
        return b'{"type":"%b","object":%b}\n' % (
            kind.value.encode(),
            self._server.presented.encode(self._strategy, stored),
        )

    def _present(self, stored: Stored) -> Json:
        return self._strategy.present(stored.decode_body())

    def _encode_bookmark(self, revision: int, *, initial_end: bool = False) -> bytes:
        metadata: Json = {"resourceVersion": str(revision)}
        if initial_end:
            metadata["annotations"] = {_INITIAL_EVENTS_END: "true"}
        blank = {"kind": self._resource.kind, "apiVersion": self._resource.api_version, "metadata": metadata}
        if self._form.is_plain:
            return _encoder.encode({"type": "BOOKMARK", "object": blank}) + b"\n"
        return self._encode_event("BOOKMARK", blank, with_columns=False)

    def _encode_event(self, kind: str, obj: Json, *, with_columns: bool) -> bytes:
        return presentation.encode_event(
            self._form, kind, obj, self._resource, now=self._server.clock.now(), with_columns=with_columns
        )
