"""What the reconciler of a Kafka cluster needs: its dependencies, and the port to the brokers and the engine.

What cannot be seen is never "nothing": every method that reads brokers raises `KafkaUnavailable` or `KafkaRefused`
(`kafka.brokers.ports`), and the reconcile fails without a change.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from plimsoll.core.plans import Reason  # noqa: TC001 - msgspec reads annotations at run time
from plimsoll.core.values import Value
from plimsoll.operator.pause import ActionGuard

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection

    from plimsoll.core.clock import Clock
    from plimsoll.kafka.cruise_control.client.ports import CruiseControls
    from plimsoll.kafka.reporting.cluster_reporter import ClusterReporter
    from plimsoll.kube.client import Client
    from plimsoll.objects.api.kafka import Kafka, KafkaNodePool

    ReadGuard = Callable[[], Awaitable[ActionGuard]]


class BrokerSnapshot(Value):
    """The brokers of a cluster, as they describe it now."""

    cluster_id: str
    registered: frozenset[int]
    """Brokers that are registered and not fenced."""
    fenced: frozenset[int]
    """Brokers that are registered, and whose heartbeats the controller misses."""
    in_use: frozenset[int]
    """Brokers that hold a replica of any topic, internal ones too, or that a reassignment moves one to."""
    replicas: dict[int, int] = {}
    """How many replicas these brokers hold, by the metadata."""
    voters: frozenset[int] | None = None
    """The voters of the metadata quorum; None: they could not be seen."""


class KnownBrokers(Value):
    """The brokers that the engine knows with their capacity, and that take replicas. `problem`: why others do not."""

    brokers: frozenset[int] = frozenset()
    problem: Reason | None = None


class BrokerView(Protocol):
    """The brokers of Kafka clusters. All methods are safe to repeat."""

    async def observe(self, kafka: Kafka, *, leaving: Collection[int] = ()) -> BrokerSnapshot:
        """The brokers now. A topic that cannot be described raises `KafkaUnavailable`.

        The metadata that one broker answers may be seconds old. So each broker of `leaving` that looks empty and is
        alive is asked for its logs; one that is silent raises `KafkaUnavailable`.
        """
        ...

    async def list_alive(self, kafka: Kafka) -> frozenset[int]:
        """The brokers that are registered and not fenced."""
        ...

    async def list_known(self, kafka: Kafka, brokers: Collection[int]) -> KnownBrokers:
        """Those of `brokers` that the engine knows with their capacity, and that take replicas.

        Nothing is known of an engine that is away.
        """
        ...

    async def change_cordons(
        self, kafka: Kafka, *, leaving: Collection[int], staying: Collection[int]
    ) -> tuple[Reason, ...]:
        """Cordon all log directories of `leaving`, and uncordon `staying` where all are cordoned.

        Brokers that are in neither are left alone: a user may have cordoned them. Gives what could not be done. Kafka
        before 4.3 has no cordons; then nothing is done.
        """
        ...

    async def unregister(self, kafka: Kafka, broker: int, is_gone: Callable[[int], Awaitable[bool]]) -> Reason | None:
        """Remove the registration of a broker that holds no replica and whose pod is gone. Gives why it was not done.

        A broker that is not registered is a success.
        """
        ...

    async def configure(self, kafka: Kafka, pools: Collection[KafkaNodePool]) -> tuple[Reason, ...]:
        """Give the engine the capacities and goals of the objects, and start it if it is not running.

        An execution that an earlier process has not finished goes on. Gives what is wrong in the objects.
        """
        ...

    async def forget(self, namespace: str, name: str) -> None:
        """The Kafka is gone: close its connections and its engine."""
        ...


async def _allow_all() -> ActionGuard:
    return ActionGuard()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterDependencies:
    """The dependencies of the reconciler."""

    client: Client
    clock: Clock
    brokers: BrokerView
    cruise_controls: CruiseControls
    reporter: ClusterReporter
    read_guard: ReadGuard = _allow_all
    """The pause of all controllers, and dry run."""
