"""A server of widgets, and a transport between it and the informer on which everything can go wrong.

Widgets are a custom kind whose schema takes anything, so that objects which our struct cannot read are really there.
"""

from __future__ import annotations

import asyncio
import json
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from plimsoll.core.values import Wire
from plimsoll.kube.client import Client
from plimsoll.kube.errors import AnswerLost, NotSent, TimedOut
from plimsoll.kube.informer import Informer, InformerSettings
from plimsoll.kube.informer.events import get_version, get_view
from plimsoll.kube.requests.options import ClientSettings
from plimsoll.local.apiserver.application import Application
from plimsoll.local.apiserver.storage import MemoryDriver
from plimsoll.local.apiserver.storage.drivers.interface import EVERYTHING, Recovered, Row
from plimsoll.local.apiserver.transport.kube_transport import EmbeddedTransport
from plimsoll.objects.api.meta import WireObject
from plimsoll.objects.api.resource import Resource
from plimsoll.objects.codec.decode_problems import BadObject
from plimsoll.objects.registry import KINDS
from plimsoll.runtime.backoff import Backoff
from plimsoll.runtime.entropy import SeededEntropy
from tests.local.apiserver.builders import ADMIN, ApiServerHarness, definition, new_server

if TYPE_CHECKING:
    from plimsoll.kube.transport import Request, Response, Stream, Transport
    from plimsoll.local.apiserver.storage import Store

HERE = "/apis/ex.com/v1/namespaces/here/widgets"
MERGE = "application/merge-patch+json"
# The client gives up at once, so that what fails is seen by the informer.
IMPATIENT = ClientSettings(qps=0, retry=Backoff(max_attempts=1))


class WidgetSpec(Wire):
    size: int = 0


class Widget(WireObject):
    spec: WidgetSpec = WidgetSpec()


WIDGETS = Resource(
    group="ex.com", version="v1", kind="Widget", plural="widgets", singular="widget", namespaced=True, struct=Widget
)
KINDS_WITH_WIDGETS = KINDS.extend([WIDGETS])


def widget(name: str, size: Any = 1) -> dict[str, Any]:
    """Bad, if the size is no number."""
    return {"apiVersion": "ex.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": {"size": size}}


class Backup(NamedTuple):
    rows: tuple[Row, ...]
    revision: int

    @classmethod
    def of(cls, store: Store) -> Backup:
        stored = [item for resource in store.list_resources() for item in store.list(resource).items]
        rows = (Row(item.revision, *item.key, item.data) for item in stored)
        return cls(tuple(sorted(rows)), store.revision)


class BackupDriver(MemoryDriver):
    """A store that begins as it was at a moment, with no memory of what came before."""

    def __init__(self, backup: Backup) -> None:
        super().__init__()
        self._backup = backup

    def recover(self) -> Recovered:
        return Recovered(
            rows=self._backup.rows, floors={EVERYTHING: self._backup.revision}, revision=self._backup.revision
        )


@cache
def empty_server() -> Backup:
    """With the kind and a namespace: made once, because that takes longer than what most tests do."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    with ApiServerHarness() as world:
        versions = [{"name": "v1", "served": True, "storage": True, "schema": schema}]
        world.made("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition(versions=versions))
        world.namespace("here")
        world.run.advance_by(10)
        return Backup.of(world.server.store)


class WidgetCluster:
    """The server, the faulty line to it, and informers. `with WidgetCluster() as world:`."""

    def __init__(self) -> None:
        self._world = ApiServerHarness(driver=BackupDriver(empty_server()))
        self.run = self._world.run
        self.clock = self.run.clock
        self.line = FaultyTransport(self._transport())
        self.entropy = SeededEntropy("widgets")
        self.client = self.client_through(self.line)
        self.has_gone_back = False

    def client_through(self, transport: Transport) -> Client:
        return Client(transport, clock=self.clock, entropy=self.entropy, settings=IMPATIENT, kinds=KINDS_WITH_WIDGETS)

    def __enter__(self) -> Self:
        self._world.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._world.__exit__(*error)

    @property
    def store(self) -> Store:
        return self._world.server.store

    def informer(self, settings: InformerSettings | None = None, *, keep_raw: bool = False) -> Informer[Any]:
        informer: Informer[Any] = Informer(  # type: ignore[call-overload] # `keep_raw` is either of the two
            self.client,
            Widget,
            clock=self.clock,
            entropy=self.entropy,
            settings=settings or InformerSettings(),
            keep_raw=keep_raw,
        )
        return informer

    def running(self, settings: InformerSettings | None = None, *, keep_raw: bool = False) -> Informer[Any]:
        informer = self.informer(settings, keep_raw=keep_raw)
        self.run.spawn(informer.run())
        self.run.run_until(informer.wait_until_synced())
        self.run.settle()
        return informer

    # ---- what happens at the server

    def put(self, name: str, size: Any = 1) -> None:
        """Create, or change."""
        reply = self._world.ask("PATCH", f"{HERE}/{name}", {"spec": {"size": size}}, content=MERGE)
        if reply.status == 404:
            self._world.made(HERE, widget(name, size))

    def delete(self, name: str) -> None:
        self._world.ask("DELETE", f"{HERE}/{name}")

    def replace(self, name: str, size: Any = 1) -> None:
        """Another object of the same name."""
        self.delete(name)
        self.put(name, size)

    def compact(self) -> None:
        self.store.compact(self.store.revision)

    def restart(self, *, down_s: float = 0.0) -> None:
        """The process goes and comes back; what it stored is there."""
        self._down(down_s)
        self._world.application = Application(self._world.server)
        self._up()

    def backup(self) -> Backup:
        return Backup.of(self.store)

    def restore(self, backup: Backup, *, down_s: float = 60.0) -> None:
        """The operator brings back an older state, at once or after a while. Writes begin a while later."""
        self._down(down_s)
        self.has_gone_back = self.has_gone_back or backup.revision < self.store.revision
        self._world.server = new_server(self.clock, driver=BackupDriver(backup))
        self._world.application = Application(self._world.server)
        self._up()
        self.run.advance_by(60.0)

    def _down(self, seconds: float) -> None:
        self.line.is_down = True
        self.run.run_until(self.line.break_all())
        self.run.advance_by(seconds)

    def _up(self) -> None:
        self.line.inner = self._transport()
        self.line.is_down = False

    def _transport(self) -> EmbeddedTransport:
        return EmbeddedTransport(self._world.application, token=ADMIN)

    def truth(self) -> dict[str, tuple[str, str, Any]]:
        """Name → uid, version, size: what the server holds."""
        listed = {}
        for stored in self.store.list("ex.com/widgets").items:
            body = stored.decode_body()
            listed[stored.name] = (body["metadata"]["uid"], str(stored.revision), body["spec"]["size"])
        return listed


def identity_of(value: Any) -> tuple[str, str]:
    """The uid and the version of an object, good or bad."""
    return value.uid if isinstance(value, BadObject) else value.metadata.uid, get_version(value)


def known(informer: Informer[Any]) -> dict[str, tuple[str, str, Any]]:
    """The same of a cache; the sizes of bad ones are as bad as they are made here."""
    good = {
        get_view(widget).metadata.name: (*identity_of(widget), get_view(widget).spec.size)  # type: ignore[attr-defined]
        for widget in informer.cache.list()
    }
    bad = {key.name: (*identity_of(bad_object), BAD) for key, bad_object in informer.cache.bad.items()}
    return {**good, **bad}


BAD = "many"


class FaultyTransport:
    """A transport with faults: of everything (`is_down`), of the next answers (`replies`), and of open watches."""

    def __init__(self, inner: Transport) -> None:
        self.inner = inner
        self.is_down = False
        self.replies: list[Response] = []
        """Given instead of the server's, to watches and lists alike, until used up."""
        self.lists_are_bare = False
        """Items of lists say neither kind nor apiVersion: so real servers list built-in kinds, custom ones not."""
        self.sends_bookmarks = True
        """Servers need not send any."""
        self.stalls_watches = False
        """Watches are accepted and never deliver anything."""
        self.stalls_calls = False
        """Nothing is answered, and no connection is closed."""
        self.streams: list[FaultyStream] = []
        self.sent: list[Request] = []

    async def send(self, call: Request) -> Response:
        self.sent.append(call)
        if self.is_down:
            raise NotSent("connection refused")
        if self.stalls_calls:
            await asyncio.sleep(call.timeout_s)
            raise TimedOut("no answer")
        if self.replies:
            return self.replies.pop(0)
        if not self.sends_bookmarks:
            call = call._replace(query=[pair for pair in call.query if pair[0] != "allowWatchBookmarks"])
        reply = await self.inner.send(call)
        if reply.stream is None:
            return _bare(reply) if self.lists_are_bare else reply
        stream = FaultyStream(reply.stream)
        stream.is_silent = self.stalls_watches
        self.streams = [*(faulty_stream for faulty_stream in self.streams if not faulty_stream.is_closed), stream]
        return reply._replace(stream=stream)

    async def aclose(self) -> None:
        await self.inner.aclose()

    async def break_all(self) -> None:
        for stream in self.streams:
            await stream.break_off()

    @property
    def lists(self) -> list[Request]:
        return [call for call in self.sent if not call.is_stream and ("limit", "1") not in call.query]

    @property
    def watches(self) -> list[Request]:
        return [call for call in self.sent if call.is_stream]


def _bare(reply: Response) -> Response:
    body = json.loads(reply.body)
    for item in body.get("items", ()):
        item.pop("kind", None)
        item.pop("apiVersion", None)
    return reply._replace(body=json.dumps(body, separators=(",", ":")).encode())


class FaultyStream:
    """Chunks of a watch: late, twice, in pieces, in part, or not at all. Faults strike with the next chunk."""

    def __init__(self, inner: Stream) -> None:
        self._inner = inner
        self._reported: list[bytes] = []
        self._ready: list[bytes] = []
        self._breaks = False
        self.is_closed = False
        self.is_silent = False
        self.ends_after_bytes: int | None = None
        self.repeats = 0
        self.piece_bytes = 0
        self.delay_s = 0.0
        self.garbage = b""

    def __aiter__(self) -> FaultyStream:
        return self

    async def __anext__(self) -> bytes:
        if self._ready:
            # Time for the handlers: what is sent at once they may never see.
            await asyncio.sleep(0.001)
            return self._ready.pop(0)
        if self._breaks:
            raise AnswerLost("connection reset")
        try:
            chunk = await anext(self._inner)
        except StopAsyncIteration:
            if self._breaks:
                raise AnswerLost("connection reset") from None
            raise
        if self.is_silent:
            await asyncio.get_running_loop().create_future()
        if self.delay_s:
            delay_s, self.delay_s = self.delay_s, 0.0
            await asyncio.sleep(delay_s)
        self._ready = self._pieces(self._distorted(chunk))
        self._ready += self._repeated()
        return self._ready.pop(0) if self._ready else await self.__anext__()

    def _distorted(self, chunk: bytes) -> bytes:
        frames = chunk.splitlines(keepends=True)
        if self.garbage:
            # In the place of what really happened.
            frames[0], self.garbage = self.garbage, b""
        self._reported = [*self._reported, *frames][-20:]
        whole = b"".join(frames)
        if self.ends_after_bytes is not None:
            whole, self._breaks = whole[: self.ends_after_bytes], True
        return whole

    def _repeated(self) -> list[bytes]:
        """Frames that were sent before, once more."""
        if self._breaks or not self.repeats:
            return []
        repeats, self.repeats = self.repeats, 0
        return self._reported[-repeats:]

    def _pieces(self, chunk: bytes) -> list[bytes]:
        size = self.piece_bytes or len(chunk) or 1
        return [chunk[start : start + size] for start in range(0, len(chunk), size)]

    async def break_off(self) -> None:
        self._breaks = True
        await self._inner.aclose()

    async def aclose(self) -> None:
        self.is_closed = True
        await self._inner.aclose()
