"""One client connection: uvicorn's HTTP/1.1 with the timeouts it lacks.

uvicorn waits without limit for the first request, for the rest of a request's head, and for a client that does not
read; it accepts heads of any size. Here every wait for the client has a deadline, measured by the loop's time, and the
connections that wait for their client are queued (`IdleConnections`); `listener` closes the first of them when there
are too many.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from uvicorn.config import Config
    from uvicorn.protocols.http.httptools_impl import RequestResponseCycle
    from uvicorn.server import ServerState

    from plimsoll.local.apiserver.transport.limits import Limits


class IdleConnections:
    """Connections that wait for their client, the longest wait first, with the way to close each."""

    def __init__(self) -> None:
        self._queue: dict[object, Callable[[], object]] = {}

    def begin(self, connection: object, disconnect: Callable[[], object]) -> None:
        self._queue.pop(connection, None)
        self._queue[connection] = disconnect

    def end(self, connection: object) -> None:
        self._queue.pop(connection, None)

    def disconnect_one(self) -> bool:
        """Close the longest idle connection; False if all are busy."""
        for connection in self._queue:
            self._queue.pop(connection)()
            return True
        return False


class MovingDeadline:
    """A deadline that moves with every request. One timer follows it, late: most deadlines are never reached."""

    def __init__(self, loop: asyncio.AbstractEventLoop, run_out: Callable[[], object]) -> None:
        self._loop = loop
        self._run_out = run_out
        self._deadline: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    def set_deadline(self, deadline: float | None) -> None:
        """From now on it ends at that time of the loop, or never."""
        self._deadline = deadline
        if deadline is not None and (self._timer is None or self._timer.when() > deadline):
            self._set_timer(deadline)

    def end(self) -> None:
        self._deadline = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _set_timer(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(when, self._look)

    def _look(self) -> None:
        self._timer = None
        if self._deadline is None:
            return
        if self._deadline > self._loop.time():
            self._set_timer(self._deadline)
        else:
            self._run_out()


class _Phase(Enum):
    """What is being read."""

    NOTHING = "nothing"
    HEAD = "head"
    BODY = "body"


class Connection(HttpToolsProtocol):
    """Reads requests one by one, passes them to the ASGI application, and disconnects slow clients."""

    def __init__(self, config: Config, state: ServerState, *, limits: Limits, waiting: IdleConnections) -> None:
        super().__init__(config=config, server_state=state, app_state={})
        self.lost: asyncio.Future[None] = self.loop.create_future()
        """Done when the connection is closed."""
        self._limits = limits
        self._waiting = waiting
        self._phase = _Phase.NOTHING
        self._head_bytes = 0
        self._discarded_bytes = 0
        self._patience = MovingDeadline(self.loop, self.abort)
        self._stall: asyncio.TimerHandle | None = None
        self._running: RequestResponseCycle | None = None

    # ---- the life of the connection

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)  # type: ignore[arg-type]  # uvicorn narrows what asyncio promises
        self._wait_for_client(self._limits.head_s)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        self._patience.end()
        self.resume_writing()
        super().connection_lost(exc)
        self._unset_keepalive_if_required()
        # uvicorn reports only the request that came last; the one that runs is another if the client pipelined.
        if self._running is not None and not self._running.response_complete:
            self._running.disconnected = True
            self._running.message_event.set()
        self.pipeline.clear()
        self.lost.set_result(None)

    def abort(self) -> None:
        """At once, whatever is under way."""
        self.transport.abort()

    # ---- reading

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing() or self._is_too_much_after_the_answer(len(data)):
            return
        super().data_received(data)
        if self._phase is _Phase.HEAD:
            self._head_bytes += len(data)
            if self._head_bytes > self._limits.max_head_bytes:
                self._refuse_head()

    def _is_too_much_after_the_answer(self, size_bytes: int) -> bool:
        """The rest of a rejected body is read, up to a limit: a client cut off while sending sees no response."""
        if self._phase is not _Phase.BODY or not self.cycle.response_complete:
            return False
        self._discarded_bytes += size_bytes
        if self._discarded_bytes <= self._limits.max_discarded_bytes:
            return False
        self.abort()
        return True

    def on_message_begin(self) -> None:
        self._phase = _Phase.HEAD
        self._head_bytes = 0
        self._wait_for_client(self._limits.head_s)
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._phase = _Phase.BODY
        self._discarded_bytes = 0
        self._stop_waiting()
        # The application ends its wait for the body; until then others may ask for the place.
        self._waiting.begin(self, self.abort)
        self._parse_url_without_query(super().on_headers_complete)
        if self.parser.should_upgrade():
            # We speak nothing else, and the parser stops behind the request: nothing can follow it.
            self.cycle.keep_alive = False

    def _parse_url_without_query(self, parse: Callable[[], None]) -> None:
        """Httptools takes no URL beyond 64 KiB, and selectors grow longer; so the query goes around it."""
        self.url, _, query = self.url.partition(b"?")
        parse()
        self.scope["query_string"] = query.partition(b"#")[0]

    def on_message_complete(self) -> None:
        self._phase = _Phase.NOTHING
        self._waiting.end(self)
        super().on_message_complete()
        if self.cycle.response_complete:
            self._wait_for_client(self._limits.idle_s)

    def _refuse_head(self) -> None:
        text = b"431 Request Header Fields Too Large"
        headers = b"content-type: text/plain; charset=utf-8\r\ncontent-length: %d\r\nconnection: close\r\n\r\n"
        self.transport.write(STATUS_LINE[431] + headers % len(text) + text)
        self.transport.close()

    # ---- answering

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._unset_keepalive_if_required()
        if self.cycle.response_complete and not self.transport.is_closing():
            is_unread = self._phase is _Phase.BODY
            self._wait_for_client(self._limits.body_s if is_unread else self._limits.idle_s)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stall = self.loop.call_later(self._limits.write_stall_s, self.abort)

    def resume_writing(self) -> None:
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None
        super().resume_writing()

    # ---- waiting

    def _wait_for_client(self, seconds: float) -> None:
        self._waiting.begin(self, self.abort)
        self._patience.set_deadline(self.loop.time() + seconds)

    def _stop_waiting(self) -> None:
        self._waiting.end(self)
        self._patience.set_deadline(None)
