"""An API server in memory and clients of it, in virtual time: what every test of `kube` starts from.

    with EmbeddedApi() as world:
        world.namespace("here")
        pod = world.do(world.client.get(Pod, "p", namespace="here"))

Coroutines are run by `do`; anything that goes on (an informer) is started by `world.run.spawn`, and time passes by
`world.run.advance_by`. Faults go between client and server: `EmbeddedApi(through=LoseAnswers(3, error=lost).wrap)`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self, TypeVar

import msgspec

from plimsoll.kube.client import Client
from plimsoll.kube.requests.options import ClientSettings
from plimsoll.kube.transport import Request, Response
from plimsoll.local.apiserver.transport.kube_transport import EmbeddedTransport
from plimsoll.objects.api.meta import WireObject
from plimsoll.objects.api.resource import Resource
from plimsoll.objects.registry import KINDS, Kinds
from plimsoll.runtime.entropy import SeededEntropy
from tests.local.apiserver.builders import ADMIN, ApiServerHarness

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from plimsoll.core.clock import Clock
    from plimsoll.kube.transport import Guard, Transport

T = TypeVar("T")


class Widget(WireObject):
    """What `definition()` of the server's own tests defines."""

    spec: dict[str, Any] = {}
    status: dict[str, Any] = {}


WIDGETS = Resource(
    group="ex.com",
    version="v1",
    kind="Widget",
    plural="widgets",
    singular="widget",
    namespaced=True,
    struct=Widget,
)

# Without a rate limit: a test that wants one says so.
UNLIMITED = ClientSettings(qps=0)


def unchanged(transport: Transport) -> Transport:
    return transport


class EmbeddedApi:
    """A server, and `client`, the administrator's. `with EmbeddedApi() as world:`."""

    def __init__(
        self,
        *,
        settings: ClientSettings = UNLIMITED,
        through: Callable[[Transport], Transport] = unchanged,
        kinds: Kinds = KINDS,
        guard: Guard | None = None,
    ) -> None:
        self.server = ApiServerHarness()
        self.run = self.server.run
        self.clock = self.run.clock
        self.entropy = SeededEntropy("kube world")
        self._kinds = kinds
        self.client = self.new_client(settings=settings, through=through, guard=guard)

    def new_client(
        self,
        *,
        token: str = ADMIN,
        settings: ClientSettings = UNLIMITED,
        through: Callable[[Transport], Transport] = unchanged,
        guard: Guard | None = None,
    ) -> Client:
        transport = through(self.new_transport(token=token))
        return Client(
            transport, clock=self.clock, entropy=self.entropy, settings=settings, kinds=self._kinds, guard=guard
        )

    def new_transport(self, *, token: str = ADMIN) -> EmbeddedTransport:
        return EmbeddedTransport(self.server.application, token=token)

    def __enter__(self) -> Self:
        self.server.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self.server.__exit__(*error)

    def do(self, coro: Awaitable[T]) -> T:
        """Let time pass until it is done."""
        return self.run.run_until(coro)

    def ask(self, method: str, url: str, body: Any = None, **more: Any) -> Any:
        """Go to the server past every client; what it must not refuse."""
        reply = self.server.ask(method, url, body, **more)
        assert reply.status < 300, reply
        return reply.body

    def namespace(self, name: str = "here") -> str:
        self.server.namespace(name)
        return name

    def made(self, url: str, body: Any) -> Any:
        return self.server.made(url, body)


class ScriptedTransport:
    """Answers from a script: replies, errors to raise, or functions of the call. Keeps what was sent and when.

    The last entry is repeated for ever.
    """

    def __init__(
        self, *script: Response | Exception | Callable[[Request], Response], clock: Clock | None = None
    ) -> None:
        self.script = [*script]
        self.sent: list[Request] = []
        self.sent_at: list[float] = []
        self._clock = clock

    async def send(self, call: Request) -> Response:
        self.sent.append(call)
        if self._clock is not None:
            self.sent_at.append(self._clock.monotonic_s())
        step = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if isinstance(step, Exception):
            raise step
        return step if isinstance(step, Response) else step(call)

    async def aclose(self) -> None:
        """Nothing is held."""


def json_reply(value: Any, *, status: int = 200, **headers: str) -> Response:
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return Response(
        status=status, headers={"content-type": "application/json", **named}, body=msgspec.json.encode(value)
    )


def status_reply(code: int, message: str = "no", *, reason: str = "", details: Any = None, **headers: str) -> Response:
    """A Status, as a server says no."""
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "details": details or {},
        "code": code,
    }
    return json_reply(status, status=code, **headers)
