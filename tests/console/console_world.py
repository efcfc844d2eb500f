"""A console beside an API server, in virtual time, and the requests of its browsers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Self

from plimsoll.app.console import Console, ConsoleDependencies
from plimsoll.console.views.decision_sources import JournalDecisions
from plimsoll.journal.memory import MemoryJournal
from plimsoll.kube.client import Client
from plimsoll.kube.informer.factory import SharedInformerFactory
from plimsoll.kube.requests.options import ClientSettings
from plimsoll.local.apiserver.transport.kube_transport import EmbeddedTransport
from plimsoll.nodes.plan_runner import run_inline
from plimsoll.objects.custom_kinds import OUR_KINDS
from plimsoll.runtime.entropy import SeededEntropy
from plimsoll.runtime.supervisor import Supervisor
from plimsoll.web.asgi_client import call_application
from plimsoll.web.client import Response
from tests.local.apiserver.builders import ADMIN, ApiServerHarness

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

PORT = 8080
HOST = f"127.0.0.1:{PORT}"
TOKEN = "of-scripts"


class ConsoleWorld(ApiServerHarness):
    """`with ConsoleWorld() as world:`."""

    def __init__(self) -> None:
        super().__init__()
        self.journal = MemoryJournal()

    def __enter__(self) -> Self:
        super().__enter__()
        self.run.run_until(self.application.start())
        clock, entropy = self.run.clock, SeededEntropy("console")
        client = Client(
            EmbeddedTransport(self.application, token=ADMIN),
            clock=clock,
            entropy=entropy,
            settings=ClientSettings(qps=0),
            kinds=OUR_KINDS,
        )
        informers = SharedInformerFactory(client, clock=clock, entropy=entropy)
        self.console = Console(
            ConsoleDependencies(
                client=client,
                informers=informers,
                decisions=JournalDecisions(self.journal),
                clock=clock,
                entropy=entropy,
                token=TOKEN,
                run_planner=run_inline,
            )
        )
        self.page = self.console.build_application(port=PORT)
        services = [*informers.list_services(), *self.console.list_services()]
        self._running = self.run.spawn(Supervisor(services, clock=clock, entropy=entropy).run())
        self.run.run_until(informers.wait_until_synced())
        return self

    def stop(self) -> None:
        """Ends all services, as Ctrl-C does."""
        self._running.cancel()
        self.run.advance_by(1)

    def call(
        self, method: str, path: str, *, headers: Mapping[str, str] | None = None, body: object = None
    ) -> Response:
        """One request as it comes, without credentials of its own."""
        path, _, query = path.partition("?")
        given = {"host": HOST, **(headers or {})}
        sent = b"" if body is None else json.dumps(body).encode()
        answer = self.run.run_until(call_application(self.page, method, path, query=query, headers=given, body=sent))
        assert isinstance(answer, Response), answer
        return answer

    def get(self, path: str) -> Any:
        """The JSON that a script gets."""
        answer = self.call("GET", path, headers={"authorization": f"Bearer {TOKEN}"})
        assert answer.status == 200, answer
        return json.loads(answer.body)

    def add_node(self, name: str, **labels: str) -> None:
        status = {
            "allocatable": {"cpu": "4", "memory": "16Gi", "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True"}],
        }
        self.made("/api/v1/nodes", {"metadata": {"name": name, "labels": labels}, "status": status})
        patched = self.ask("PATCH", f"/api/v1/nodes/{name}/status", {"status": status}, content=MERGE)
        assert patched.status == 200, patched
        self.run.settle()

    def add_pod(self, name: str, node: str = "", namespace: str = "here") -> None:
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
        spec = {"containers": [container], **({"nodeName": node} if node else {})}
        self.made(f"/api/v1/namespaces/{namespace}/pods", {"metadata": {"name": name}, "spec": spec})
        self.run.settle()


MERGE = "application/merge-patch+json"


class Browser:
    """A connection to the stream of changes: the events that came, decoded."""

    def __init__(self, world: ConsoleWorld) -> None:
        self.events: list[tuple[str, Any]] = []
        self.comments = 0
        self._world = world
        self._stream: AsyncIterator[bytes] = world.console.subscribe()
        self._task = world.run.spawn(self._read())
        world.run.settle()

    async def _read(self) -> None:
        async for chunk in self._stream:
            if chunk.startswith(b":"):
                self.comments += 1
                continue
            name, data = chunk.decode().removeprefix("event: ").split("\ndata: ", 1)
            self.events.append((name, json.loads(data)))

    @property
    def has_ended(self) -> bool:
        """Whether the server ended the stream."""
        return self._task.done()

    def leave(self) -> None:
        self._task.cancel()
        self._world.run.settle()

    def names(self) -> list[str]:
        return [name for name, _ in self.events]
