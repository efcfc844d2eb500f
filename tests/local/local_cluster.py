"""A simulated cluster in virtual time, with as many of its parts as a test wants: no kubelet unless it is asked for.

with LocalClusterHarness(lambda parts: [*replica_sets(parts)]) as world:
    world.made("/apis/apps/v1/namespaces/default/replicasets", {...})
    world.run.settle()            # everything that takes no time
    world.run.advance_by(60)      # and what does
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from plimsoll.kube.client import Client
from plimsoll.kube.requests.options import ClientSettings
from plimsoll.local.apiserver.transport.kube_transport import EmbeddedTransport
from plimsoll.local.components import Components
from plimsoll.objects.registry import KINDS
from plimsoll.runtime.entropy import SeededEntropy
from plimsoll.runtime.supervisor import Supervisor
from tests.local.apiserver.builders import ADMIN, ApiServerHarness

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Sequence

    from plimsoll.objects.registry import Kinds
    from plimsoll.runtime.supervisor import Service
    from tests.faults.crashes import CrashAfter

    Parts = Callable[[Components], Sequence[Service]]


class LocalClusterHarness(ApiServerHarness):
    """The API server and parts on top of it. `parts` builds services from components; it is called again on restart."""

    def __init__(
        self, parts: Parts, *, kinds: Kinds = KINDS, through: Callable[[Any], Any] = lambda port: port
    ) -> None:
        super().__init__()
        self._parts = parts
        self._kinds = kinds
        self._through = through
        self._task: asyncio.Task[None] | None = None
        self._starts = 0

    def __enter__(self) -> Self:
        super().__enter__()
        self.run.run_until(self.application.start())
        self.start()
        return self

    def connect(self, manager: str) -> Client:
        """A client that writes as `manager`, without a rate limit."""
        transport = self._through(EmbeddedTransport(self.application, token=ADMIN))
        settings = ClientSettings(user_agent=f"{manager}/v1.34", field_manager=manager, qps=0)
        entropy = SeededEntropy(f"client {manager}")
        return Client(transport, clock=self.run.clock, entropy=entropy, settings=settings, kinds=self._kinds)

    def start(self) -> None:
        """A new process: everything is built from what the server has."""
        self._starts += 1
        entropy = SeededEntropy(f"start {self._starts}")
        components = Components(self.connect, clock=self.run.clock, entropy=entropy)
        services = self._parts(components)
        supervisor = Supervisor([*components.list_services(), *services], clock=self.run.clock, entropy=entropy)
        self._task = self.run.spawn(supervisor.run(), name="cluster")
        self.run.settle()

    def kill(self) -> None:
        """The process is gone at this instant."""
        assert self._task is not None
        self._task.cancel()
        self._task.cancel()
        self.run.settle()


class CrashingLocalCluster(LocalClusterHarness):
    """Beside a world: its process dies after some call, and the next one goes on."""

    def crashes_by(self, crash: CrashAfter) -> None:
        """To be set before the cluster is created."""
        self._crash = crash
        self._is_new_process = False

    def through_the_crash(self, port: Any) -> Any:
        return port if self._is_new_process else self._crash.wrap(port)

    def surviving(self, step: Callable[[], object]) -> None:
        """Take a step; if the process dies on the way, start another and take it again."""
        try:
            step()
        except BaseException:  # noqa: BLE001 -- a crash is one; anything else is raised again
            self._is_a_crash_or_raises()
            super().start()
            step()

    def start(self) -> None:
        try:
            super().start()
        except BaseException:  # noqa: BLE001 -- a crash is one; anything else is raised again
            self._is_a_crash_or_raises()
            super().start()

    def _is_a_crash_or_raises(self) -> None:
        if self._crash.struck is None or self._is_new_process:
            raise  # noqa: PLE0704 -- called while an exception is being handled
        self._is_new_process = True
