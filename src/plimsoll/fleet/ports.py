"""What the API and the workers need of the database. Every call is one transaction.

A change of a status is one conditional UPDATE that names the statuses it may come from; it returns None or False if
the row is in another status, and the caller decides again from fresh rows. Rows that are soft-deleted are hidden.
"""

from __future__ import annotations

from datetime import datetime  # noqa: TC003 - msgspec reads annotations at run time
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol, TypedDict

from plimsoll.core.errors import PlimsollError
from plimsoll.core.values import Value
from plimsoll.fleet.model.clusters import DynamicCapacity, Locator, StrimziVersion  # noqa: TC001 - likewise

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from plimsoll.fleet.model.clusters import Cluster
    from plimsoll.fleet.model.kafkas import KafkaRequest, Route
    from plimsoll.fleet.model.policy import FleetPolicy
    from plimsoll.fleet.model.provided import Orphan
    from plimsoll.fleet.model.search import Search
    from plimsoll.fleet.model.statuses import ClusterStatus, KafkaStatus
    from plimsoll.fleet.model.units import KafkaCount
    from plimsoll.fleet.model.workers import Worker


class ClusterChanges(TypedDict, total=False):
    """Columns of a cluster that may change."""

    status: ClusterStatus
    cluster_id: str
    external_id: str
    provider_spec: dict[str, Any]
    cluster_spec: dict[str, Any]
    cluster_dns: str
    identity_provider_id: str
    client_id: str
    client_secret: str
    supported_instance_type: str
    dynamic_capacity_info: dict[str, DynamicCapacity]
    available_strimzi_versions: tuple[StrimziVersion, ...]
    schedulable: bool
    delete_requested_at: datetime | None
    retire_requested_at: datetime | None
    empty_since: datetime | None
    ready_at: datetime | None
    last_report_at: datetime | None
    status_details: str


class KafkaChanges(TypedDict, total=False):
    """Columns of a Kafka request that may change."""

    status: KafkaStatus
    owner: str
    cluster_id: str
    size_id: str
    bootstrap_server_host: str
    admin_api_server_url: str
    namespace: str
    placement_id: str
    routes: tuple[Route, ...]
    routes_created: bool
    failed_reason: str
    desired_kafka_version: str
    desired_strimzi_version: str
    desired_kafka_ibp_version: str
    actual_kafka_version: str
    actual_strimzi_version: str
    actual_kafka_ibp_version: str
    kafka_upgrading: bool
    strimzi_upgrading: bool
    kafka_ibp_upgrading: bool
    max_data_retention_size: str
    bytes_stored: int
    resizing_to_units: int
    reauthentication_enabled: bool
    expires_at: datetime | None
    canary_service_account_client_id: str
    canary_service_account_client_secret: str


class UnitReport(Value):
    """Streaming units that an agent reports for one instance type."""

    max_units: int
    remaining_units: int


class ClusterReport(Value):
    """A report of an agent about its cluster. Not ready: capacity and versions are not stored."""

    is_ready: bool
    at: datetime
    units: dict[str, UnitReport] = {}
    versions: tuple[StrimziVersion, ...] = ()
    """Sorted. Empty: the stored ones stay."""


class ClusterStore(Protocol):
    """Cluster rows."""

    async def insert_cluster(self, cluster: Cluster, *, max_parallel: int = 1) -> bool:
        """False: the id or the provider's id is taken, or too many clusters of its locator are terraforming.

        Only a new cluster counts against `max_parallel`: managed, `cluster_accepted`, with one instance type, and
        without a provider's id. Clusters that exist already are registered whatever else is terraforming.
        """
        ...

    async def get_cluster(self, row_id: str) -> Cluster | None: ...

    async def find_cluster(self, cluster_id: str) -> Cluster | None:
        """By the provider's id. An empty id finds nothing."""
        ...

    async def find_client(self, client_id: str) -> Cluster | None:
        """By the client id of its agent. An empty id finds nothing."""
        ...

    async def list_clusters(self, statuses: Collection[ClusterStatus] | None = None) -> tuple[Cluster, ...]:
        """By creation time, then id."""
        ...

    async def list_failed_since(self, since: datetime) -> tuple[Cluster, ...]:
        """Clusters in status `failed` that were created at or after this time."""
        ...

    async def change_cluster(
        self,
        row_id: str,
        changes: ClusterChanges,
        *,
        statuses: Collection[ClusterStatus],
        max_nodes: Mapping[str, int] | None = None,
    ) -> Cluster | None:
        """`max_nodes`: by instance type; merged into the row under its lock, so that reported units stay.

        A type that the row does not have yet is added to its capacity.
        """
        ...

    async def store_report(self, cluster_id: str, report: ClusterReport) -> Cluster | None:
        """Merges a report into the row in status `waiting…` or `ready`, in one transaction that locks the row.

        Only instance types that the row has are updated, and `max_nodes` never is. None: the row is in another status.
        """
        ...

    async def restore_cluster(self, row_id: str) -> Cluster | None:
        """Back to `ready`, from `deprovisioning` without a delete call."""
        ...

    async def request_deletion(self, row_id: str) -> Cluster | None:
        """Records the time of the delete call, once. None: not `deprovisioning`, or a live Kafka is on it."""
        ...

    async def remove_cluster(self, row_id: str, *, statuses: Collection[ClusterStatus]) -> bool:
        """Soft-deletes a managed cluster without its account, and deletes an enterprise cluster."""
        ...

    async def count_deletions(self, since: datetime) -> int:
        """Clusters whose deletion was requested at or after this time, also those that are gone."""
        ...

    async def list_orphans(self) -> tuple[Orphan, ...]:
        """Clusters at providers that no row knows, as the worker found them last."""
        ...

    async def keep_orphans(self, orphans: Collection[Orphan]) -> None:
        """Replaces what the worker found before."""
        ...


class RegionCheck(Value):
    """The limit of a locator, checked in the transaction that inserts the row. `limit` None: no limit."""

    limit: int | None
    sizes: dict[str, int]
    """Streaming units by size."""
    unknown_size_units: int
    """What a row with a size that is not configured counts."""
    owner_limit: int | None = None
    """How many live Kafkas of this instance type an owner may have."""
    organisation_limit: int | None = None
    """How many streaming units of this instance type the live Kafkas of an organisation may consume."""


class ClusterRoom(Value):
    """What a cluster can hold, checked in the transaction that puts a Kafka on it or lets one grow there."""

    most_units: int
    locator: Locator | None
    """Only Kafkas of this locator share the room; None: all that are on the cluster."""
    units: dict[str, dict[str, int]]
    """Streaming units by instance type and size."""
    unknown_size_units: dict[str, int]
    """What a row with a size that is not configured counts, by instance type."""


class InsertResult(StrEnum):
    """The outcome of inserting a Kafka request, or of changing its size."""

    DONE = "done"
    LIMIT_REACHED = "limit reached"
    OWNER_LIMIT_REACHED = "owner limit reached"
    ORGANISATION_LIMIT_REACHED = "organisation limit reached"
    NAME_TAKEN = "name taken"
    CLUSTER_FULL = "cluster full"
    OVERTAKEN = "overtaken"
    """The row changed since it was read."""


class Page(Value):
    """Which part of a list is wanted. `order_by`: columns with their direction, as `Search` allows them."""

    number: int = 1
    size: int = 100
    order_by: tuple[tuple[str, bool], ...] = (("name", True),)
    """Column and whether it ascends. Ties end at the id."""


class KafkaFilter(Value):
    """Which Kafka requests a caller may see. An organisation, or else an owner; neither: all."""

    organisation_id: str = ""
    owner: str = ""


class KafkaStore(Protocol):
    """Kafka request rows."""

    async def insert_kafka(
        self, kafka: KafkaRequest, check: RegionCheck | None, *, room: ClusterRoom | None = None
    ) -> InsertResult:
        """Checks and inserts under the lock of the Kafka's locator. `check` None: an enterprise cluster.

        `room`: of the cluster that the Kafka comes to; None: it comes to none, or to one without a limit.
        """
        ...

    async def change_size(
        self,
        kafka: KafkaRequest,
        size_id: str,
        check: RegionCheck,
        *,
        room: ClusterRoom | None,
        retention: str = "",
    ) -> InsertResult:
        """Gives a `ready` Kafka another size, under the same lock. `room`: of its cluster.

        From now on a change of its size runs, until its agent reports that it has ended.

        `retention`: how much data it may keep from now on; empty: as much as before.
        """
        ...

    async def get_kafka(self, row_id: str) -> KafkaRequest | None: ...

    async def search_kafkas(
        self, visible: KafkaFilter, search: Search | None, page: Page
    ) -> tuple[int, tuple[KafkaRequest, ...]]:
        """The number of all matches, and the page."""
        ...

    async def list_kafkas(
        self, statuses: Collection[KafkaStatus], *, cluster_id: str | None = None
    ) -> tuple[KafkaRequest, ...]:
        """By creation time, then id. `cluster_id` None: of all clusters; empty: those without a place."""
        ...

    async def list_expired(self, at: datetime) -> tuple[KafkaRequest, ...]:
        """Kafkas that are not being removed yet, and whose time is over both at `at` and by the clock of the database.

        One process whose clock is ahead must not remove a Kafka early.
        """
        ...

    async def change_kafka(
        self, row_id: str, changes: KafkaChanges, *, statuses: Collection[KafkaStatus], placement_id: str | None = None
    ) -> KafkaRequest | None:
        """`placement_id`: only if this is still the placement of the row."""
        ...

    async def place_kafka(
        self,
        row_id: str,
        cluster: Cluster,
        changes: KafkaChanges,
        *,
        statuses: Collection[KafkaStatus],
        room: ClusterRoom | None = None,
    ) -> KafkaRequest | None:
        """Assigns a Kafka without a place to a cluster that is still `ready`, under a lock of the cluster's row.

        It also ends `empty_since` of the cluster. None: the cluster or the Kafka is no longer as it was, or Kafkas that
        grew meanwhile have taken the room.
        """
        ...

    async def remove_kafka(self, row_id: str, *, statuses: Collection[KafkaStatus]) -> bool:
        """Soft-deletes the row."""
        ...

    async def count_statuses(self) -> dict[KafkaStatus, int]:
        """The number of live Kafkas by status. A status without Kafkas may be missing."""
        ...

    async def count_kafkas(self, policy: FleetPolicy) -> tuple[KafkaCount, ...]:
        """All live Kafkas, on clusters and without a place, counted by the database.

        `policy`: Kafkas of sizes that it does not have are named by an example.
        """
        ...


class FleetStore(ClusterStore, KafkaStore, Protocol):
    """Both kinds of rows in one database."""

    def with_lease(self, worker: str, holder: str) -> FleetStore:
        """The same rows. Every writing transaction first checks the lease, and keeps it from being taken until its end.

        Such a transaction raises `LeaseLost` if another process holds the lease, or if it has expired. A process that
        was stopped between its own check and the statement thus writes nothing.
        """
        ...


class LeaseTerm(Value):
    """A lease that was taken or renewed. `duration_s` counts from the moment before the statement was sent."""

    worker: str
    holder: str
    duration_s: float


class LeaseLost(PlimsollError):
    """The lease of the worker expired, or another process holds it. Nothing was written."""


class LeaseStore(Protocol):
    """Leases of workers. Expiry is computed and compared by the clock of the database, in one statement."""

    async def acquire_lease(self, worker: str, holder: str, *, duration_s: float) -> LeaseTerm | None:
        """Takes a free or expired lease, or renews an own one. None: another process holds it."""
        ...

    async def release_lease(self, worker: str, holder: str) -> None: ...

    async def list_holders(self) -> dict[str, str]:
        """The holder of every lease that has not expired."""
        ...


class PauseStore(Protocol):
    """The pause of all workers of a fleet, kept in its database."""

    async def read_pause(self) -> str:
        """The user and the reason, or "true"; empty: not paused."""
        ...

    async def set_pause(self, why: str | None) -> str:
        """Pauses the workers, or resumes them with None. Returns the pause that was in force before."""
        ...


class Signals(Protocol):
    """Wakes workers of this process before their period ends."""

    def notify(self, worker: Worker) -> None: ...


class ApiMetrics(Protocol):
    """What the API counts."""

    def set_reserved(self, cluster_id: str, counts: Mapping[tuple[str, str], int]) -> None:
        """Replaces `prewarmed_kafka_instances` of a cluster. `counts`: by instance type and status, zeros included."""
        ...

    def observe_cluster_creation(self, duration_s: float) -> None:
        """A cluster became ready for the first time, so long after its row was made."""
        ...

    def observe_kafka_creation(self, duration_s: float) -> None:
        """A Kafka became ready for the first time, so long after it was requested."""
        ...

    def count_request(self, method: str, path: str, code: int, *, duration_s: float) -> None:
        """`path`: that of the route, with `-` for each variable; only `-` if the address has no route."""
        ...


class QueryMetrics(Protocol):
    """What the database is asked. Threads of the database call it."""

    def count_query(self, kind: str, *, is_success: bool, duration_s: float) -> None:
        """`kind`: `select`, `insert`, `update`, `delete` or `other`."""
        ...
