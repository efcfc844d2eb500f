"""Calls of a worker to its providers: back-off per cluster, one failure per provider and pass, and few at a time.

A provider that cannot be reached is called once per pass, not once per cluster: the other passes of the process wait
for this one. A cluster whose calls fail is left alone for longer and longer; all others go on.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, TypeVar

from plimsoll.core.errors import PlimsollError
from plimsoll.fleet.model.provided import CallFailed, FailureKind, build_failure, name_cluster
from plimsoll.runtime.backoff import Backoff, BackoffTable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from plimsoll.core.clock import Clock
    from plimsoll.core.entropy import Entropy
    from plimsoll.fleet.model.clusters import Cluster
    from plimsoll.fleet.model.provided import ProvidedCluster
    from plimsoll.fleet.model.statuses import ProviderType
    from plimsoll.fleet.providers.port import ClusterProvider
    from plimsoll.fleet.workers.leased_store import LeasedStore

T = TypeVar("T")
_BACKOFF: Final = Backoff(initial_s=20.0, cap_s=600.0, jitter=0.0, reset_after_s=3600.0)
_UNREACHABLE: Final = Backoff(initial_s=20.0, cap_s=60.0, jitter=0.0, reset_after_s=3600.0)
_AT_ONCE: Final = 8
STILL_LISTED: Final = "its provider answers that the cluster is gone, and still lists it; it counts as present"


class ProviderCallFailed(PlimsollError):
    """A change at a provider that failed: the step that made it failed."""


def is_listed(cluster: Cluster, listed: Iterable[ProvidedCluster]) -> bool:
    """Whether a list has the cluster of a row: by its id, or by its name while the row has no id."""
    name = name_cluster(cluster.id)
    return any(found.cluster_id == cluster.cluster_id if cluster.cluster_id else found.name == name for found in listed)


class ProviderCalls:
    """The providers as one worker calls them."""

    def __init__(self, providers: Mapping[ProviderType, ClusterProvider], *, clock: Clock, entropy: Entropy) -> None:
        self.providers = providers
        self._clock = clock
        self._backoff = BackoffTable(_BACKOFF, entropy)
        self._orders = BackoffTable(_BACKOFF, entropy)
        self._silences = BackoffTable(_UNREACHABLE, entropy)
        self._unreachable: dict[ProviderType, CallFailed] = {}

    def begin_pass(self) -> None:
        """Providers that were unreachable long enough ago are tried again."""
        for kind in [kind for kind in self._unreachable if self._silences.is_ready(kind, self._clock.monotonic_s())]:
            del self._unreachable[kind]

    def find_provider(self, cluster: Cluster) -> ClusterProvider | None:
        return self.providers.get(cluster.provider_type)

    def is_due(self, cluster: Cluster) -> bool:
        """Whether the cluster's last failure is long enough ago."""
        if cluster.provider_type in self._unreachable:
            return False
        return self._backoff.is_ready(cluster.id, self._clock.monotonic_s())

    def may_repeat_order(self, cluster: Cluster) -> bool:
        """Whether bounds that the provider kept otherwise may be ordered again."""
        return self._orders.is_ready(cluster.id, self._clock.monotonic_s())

    def record_order(self, cluster: Cluster, *, is_met: bool) -> None:
        """Whether the provider keeps the bounds that were ordered."""
        if is_met:
            self._orders.record_success(cluster.id)
        else:
            self._orders.record_failure(cluster.id, self._clock.monotonic_s())

    async def call(
        self, cluster: Cluster, send: Callable[[ClusterProvider], Awaitable[T | CallFailed]]
    ) -> T | CallFailed:
        """One call about a cluster whose provider is known."""
        provider = self.providers[cluster.provider_type]
        unreachable = self._unreachable.get(provider.type)
        if unreachable is not None:
            return unreachable
        result = await send(provider)
        if isinstance(result, CallFailed):
            self._record_failure(cluster, result)
        else:
            self._silences.record_success(provider.type)
        return result

    async def call_all(
        self,
        clusters: Iterable[Cluster],
        send: Callable[[ClusterProvider, Cluster], Awaitable[T | CallFailed]],
    ) -> dict[str, T | CallFailed]:
        """A call about every cluster that is due, a few at a time; by the id of the row."""
        slots = asyncio.Semaphore(_AT_ONCE)
        found: dict[str, T | CallFailed] = {}

        async def call_one(cluster: Cluster) -> None:
            async with slots:
                found[cluster.id] = await self.call(cluster, lambda provider: send(provider, cluster))

        async with asyncio.TaskGroup() as group:
            for cluster in clusters:
                if self.find_provider(cluster) is not None and self.is_due(cluster):
                    group.create_task(call_one(cluster))
        return found

    async def list_all(self) -> dict[ProviderType, tuple[ProvidedCluster, ...] | CallFailed]:
        """The clusters that each provider has under names like ours."""
        found: dict[ProviderType, tuple[ProvidedCluster, ...] | CallFailed] = {}
        for kind, provider in self.providers.items():
            listed = self._unreachable.get(kind) or await provider.list_clusters()
            if isinstance(listed, CallFailed):
                self._note_silence(kind, listed)
            found[kind] = listed
        return found

    async def change(
        self,
        cluster: Cluster,
        send: Callable[[ClusterProvider], Awaitable[T | CallFailed]],
        store: LeasedStore,
    ) -> T:
        """A call of a step. Raises `ProviderCallFailed`, and `LeaseLost` before it is sent.

        It may consist of several exchanges, and the last of them is the one that creates: none begins after the lease.
        """
        store.check_lease()

        async def send_in_time(provider: ClusterProvider) -> T | CallFailed:
            try:
                async with asyncio.timeout(store.compute_lease_left_s()):
                    return await send(provider)
            except TimeoutError:
                return build_failure(FailureKind.RETRY, "the call did not end within the lease of its worker")

        result = await self.call(cluster, send_in_time)
        if isinstance(result, CallFailed):
            raise ProviderCallFailed(result.problem)
        self.record_success(cluster)
        return result

    async def confirm_gone(self, cluster: Cluster, store: LeasedStore) -> None:
        """A second, independent read. Raises `ProviderCallFailed` unless the provider's list lacks the cluster too."""
        listed = await self.change(cluster, lambda provider: provider.list_clusters(), store)
        if is_listed(cluster, listed):
            failed = build_failure(FailureKind.RETRY, STILL_LISTED)
            self._record_failure(cluster, failed)
            raise ProviderCallFailed(failed.problem)

    def record_success(self, cluster: Cluster) -> None:
        self._backoff.record_success(cluster.id)

    def _record_failure(self, cluster: Cluster, failed: CallFailed) -> None:
        if failed.kind is not FailureKind.UNREACHABLE:
            self._backoff.record_failure(cluster.id, self._clock.monotonic_s())
        self._note_silence(cluster.provider_type, failed)

    def _note_silence(self, kind: ProviderType, failed: CallFailed) -> None:
        """A provider that did not answer is not called again in this pass."""
        if failed.kind is FailureKind.UNREACHABLE and kind not in self._unreachable:
            self._silences.record_failure(kind, self._clock.monotonic_s())
            self._unreachable[kind] = failed
