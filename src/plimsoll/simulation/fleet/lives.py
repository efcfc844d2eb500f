"""The lives of clusters at a provider that takes its time, as rows that decisions read."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from msgspec import structs

from plimsoll.fleet.model.clusters import Cluster, DynamicCapacity
from plimsoll.fleet.model.statuses import ClusterStatus
from plimsoll.fleet.planning.machine_pools import UNITS_PER_NODE, build_pools
from plimsoll.runtime.entropy import SeededEntropy

if TYPE_CHECKING:
    from plimsoll.fleet.model.clusters import Locator
    from plimsoll.fleet.model.policy import FleetPolicy
    from plimsoll.fleet.planning.scale_up import Registration
    from plimsoll.simulation.fleet.document import ProviderDocument

_HOUR_S: Final = 3600.0


@dataclass(slots=True)
class Life:
    """A cluster from its creation until nothing of it is left. `next_at`: when its provider is done with a step."""

    row: Cluster
    fails: bool
    next_at: datetime | None = None
    ready_at: datetime | None = None
    deletion_at: datetime | None = None
    gone_at: datetime | None = None
    restored: int = 0

    def count_hours(self, end: datetime) -> float:
        """How long it is paid for."""
        return ((self.gone_at or end) - self.row.created_at).total_seconds() / _HOUR_S


class Lives:
    """All clusters of a variant. Whether the n-th creation of a locator fails is the same in all variants."""

    def __init__(self, policy: FleetPolicy, provider: ProviderDocument, *, seed: int) -> None:
        self._policy = policy
        self._provider = provider
        self._seed = seed
        self._created: dict[Locator, int] = {}
        self.lives: dict[str, Life] = {}

    def list_rows(self) -> tuple[Cluster, ...]:
        return tuple(life.row for life in self.lives.values() if life.gone_at is None)

    def find_next(self) -> datetime | None:
        """The next moment at which a provider is done with something."""
        return min((life.next_at for life in self.lives.values() if life.next_at is not None), default=None)

    def create(self, registration: Registration, now: datetime) -> None:
        """The worker creates a registered cluster in the same tick."""
        locator = registration.locator
        number = self._created[locator] = self._created.get(locator, 0) + 1
        row = registration.build_cluster(f"c{len(self.lives) + 1:04d}", now)
        row = structs.replace(row, status=ClusterStatus.PROVISIONING, cluster_id=row.id)
        draw = SeededEntropy(f"creation {self._seed} {locator} {number}").draw_uniform(0.0, 1.0)
        fails = draw < self._provider.failing_share
        takes_s = self._provider.failure if fails else self._provider.creation + self._provider.setup
        self.lives[row.id] = Life(row=row, fails=fails, next_at=now + timedelta(seconds=takes_s))

    def advance(self, now: datetime) -> bool:
        """What providers are done with by now. Returns whether there was anything."""
        due = [life for life in self.lives.values() if life.next_at is not None and life.next_at <= now]
        for life in due:
            self._advance(life, now)
        return bool(due)

    def change(self, row_id: str, now: datetime, status: ClusterStatus) -> None:
        life = self.lives[row_id]
        life.row = structs.replace(life.row, status=status, updated_at=now)

    def restore(self, row_id: str, now: datetime) -> None:
        self.change(row_id, now, ClusterStatus.READY)
        self.lives[row_id].restored += 1

    def delete(self, row_id: str, now: datetime) -> bool:
        """The delete call. Returns whether it is the first one."""
        life = self.lives[row_id]
        if life.deletion_at is not None:
            return False
        life.deletion_at = now
        life.row = structs.replace(life.row, status=ClusterStatus.DEPROVISIONING, delete_requested_at=now)
        life.next_at = now + timedelta(seconds=self._provider.deletion)
        return True

    def keep_emptiness(self, row_id: str, *, since: datetime | None) -> None:
        life = self.lives[row_id]
        life.row = structs.replace(life.row, empty_since=since)

    def _advance(self, life: Life, now: datetime) -> None:
        life.next_at = None
        if life.deletion_at is not None:
            life.gone_at = now
        elif life.row.status is ClusterStatus.FAILED:
            self.delete(life.row.id, now)  # An operator retires it.
        elif life.fails:
            self.change(life.row.id, now, ClusterStatus.FAILED)
            life.next_at = now + timedelta(seconds=self._provider.retired_after)
        else:
            life.ready_at = now
            info = self._build_capacity(life.row)
            life.row = structs.replace(
                life.row, status=ClusterStatus.READY, ready_at=now, empty_since=now, dynamic_capacity_info=info
            )

    def _build_capacity(self, row: Cluster) -> dict[str, DynamicCapacity]:
        pools = build_pools(row.cloud_provider, row.instance_types, self._policy, multi_az=row.multi_az)
        return {
            pool.instance_type: DynamicCapacity(
                max_nodes=pool.max_replicas,
                max_units=int(pool.max_replicas * UNITS_PER_NODE.get(pool.instance_type, Fraction(0))),
            )
            for pool in pools
        }
