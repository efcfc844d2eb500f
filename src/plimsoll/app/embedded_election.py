"""The elections of `plimsoll up`: each of its controllers takes the lease that `plimsoll run` takes for the same one.

So a controller that is started beside it, against the same API server, and the embedded one never act at the same time:
the later one is on standby. The election is a task of the common event loop, because the API server is in this process
too. After a loss of the lease it contends again; the other parts of the process go on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import structlog

from plimsoll.kube.errors import ApiCallFailed, NotFound
from plimsoll.kube.leases import (
    LeaderElector,
    LeadershipLost,
    LeaseHolder,
    LeaseLock,
    NotLeading,
    generate_identity,
    run_while_leading,
    start_elector,
)
from plimsoll.objects.api.coordination import Lease
from plimsoll.operator.program import describe_role
from plimsoll.runtime.supervisor import Supervisor

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from plimsoll.core.clock import Clock
    from plimsoll.core.entropy import Entropy
    from plimsoll.kube.client import Client
    from plimsoll.kube.leases import LeaseSettings
    from plimsoll.kube.transport import Transport
    from plimsoll.operator.metrics import ControllerMetrics
    from plimsoll.runtime.supervisor import Service

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

HOST: Final = "plimsoll-up"
"""The first part of an identity in a lease."""


class EmbeddedElection:
    """The candidacies for one lease, and the guard of a client whose process contends for it more than once."""

    def __init__(
        self,
        lease: LeaseSettings,
        transport: Transport,
        client: Client,
        *,
        clock: Clock,
        entropy: Entropy,
        host: str = HOST,
    ) -> None:
        self._lease = lease
        self._transport = transport
        self._client = client
        self._clock = clock
        self._entropy = entropy
        self._host = host
        self._holder: LeaseHolder | None = None

    def limit_duration_s(self, wanted_s: float) -> float:
        return self._get_holder().limit_duration_s(wanted_s)

    async def confirm(self) -> None:
        await self._get_holder().confirm()

    def _get_holder(self) -> LeaseHolder:
        if self._holder is None:
            raise NotLeading(f"lease {self._lease.namespace}/{self._lease.name}: not contended for yet")
        return self._holder

    def describe_role(self) -> str:
        """Whether it leads, for the health page."""
        return "standby" if self._holder is None else describe_role(self._holder)

    def add_metrics(self, metrics: ControllerMetrics) -> None:
        metrics.add_current_lease(self._lease.name, lambda: self._holder)

    async def run(self, services: Sequence[Service], *, on_end: Callable[[], Awaitable[None]]) -> None:
        """Run services while leading, until cancelled. `on_end` is called each time that they have ended."""

        async def lead() -> None:
            try:
                await Supervisor(services, clock=self._clock, entropy=self._entropy).run()
            finally:
                await on_end()

        await self._release_dead_lease()
        while True:
            identity = generate_identity(self._host, self._entropy)
            holder = self._holder = LeaseHolder(
                self._lease, identity=identity, clock=self._clock, get_json=self._client.get_json
            )
            port = LeaseLock(self._transport, self._lease, clock=self._clock)
            try:
                async with start_elector(LeaderElector(holder, port, entropy=self._entropy)):
                    await run_while_leading(holder, lead)
            except LeadershipLost as error:
                log.warning("lease.on_standby", lease=f"{self._lease.namespace}/{self._lease.name}", why=str(error))

    async def _release_dead_lease(self) -> None:
        """Empty the lease that an earlier process left: it is dead, because the data directory is ours."""
        name, namespace = self._lease.name, self._lease.namespace
        try:
            lease = await self._client.get(Lease, name, namespace=namespace)
            if (lease.spec.holder_identity or "").startswith(f"{self._host}_"):
                patch = {
                    "metadata": {"resourceVersion": lease.metadata.resource_version},
                    "spec": {"holderIdentity": ""},
                }
                await self._client.merge_patch(Lease, name, patch, namespace=namespace)
        except NotFound:
            return
        except ApiCallFailed as error:
            log.warning("lease.not_released", lease=f"{namespace}/{name}", problem=str(error))
