"""The worker `general_kafka_worker`: gauges about rows, and Kafkas that have to go (docs/design/fleet.md 12).

A Kafka goes when its time is over, or when its owner is on the deny list. The time ends with the lifespan of its size,
or with the quota of its organisation.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final, Protocol

from plimsoll.fleet.model.search import Comparison, Conjunction, Operator
from plimsoll.fleet.model.statuses import ENDING, KafkaStatus
from plimsoll.fleet.model.workers import Worker
from plimsoll.fleet.planning.capacity import build_capacity
from plimsoll.fleet.ports import KafkaFilter, Page
from plimsoll.fleet.workers.kafka_decisions import Cause, build_change_step
from plimsoll.fleet.workers.passes import build_work

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from datetime import datetime

    from plimsoll.fleet.model.access import AccessPolicy, BillingQuota
    from plimsoll.fleet.model.kafkas import KafkaRequest
    from plimsoll.fleet.model.policy import FleetPolicy
    from plimsoll.fleet.model.provided import Orphan
    from plimsoll.fleet.model.search import Search
    from plimsoll.fleet.planning.capacity import Capacity
    from plimsoll.fleet.workers.leased_store import LeasedStore
    from plimsoll.fleet.workers.passes import Step, Work

_LIVE: Final = frozenset(KafkaStatus) - ENDING
_UNSETTLED: Final = frozenset(KafkaStatus) - {KafkaStatus.READY}
_PAGE_SIZE: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedRows:
    """The rows of a pass, for gauges. `unsettled`: the Kafkas that are not `ready`."""

    at: datetime
    capacity: Capacity
    statuses: Mapping[KafkaStatus, int]
    unsettled: tuple[KafkaRequest, ...]
    orphans: tuple[Orphan, ...] = ()


class RowObserver(Protocol):
    """What makes gauges of rows."""

    def observe_rows(self, rows: ObservedRows) -> None: ...


class GeneralKafkas:
    """Reads what no other worker reads: counts by status, expired Kafkas, and Kafkas of listed users."""

    name: Final = Worker.GENERAL_KAFKA

    def __init__(self, policy: FleetPolicy, access: AccessPolicy, observer: RowObserver) -> None:
        self._policy = policy
        self._access = access
        self._observer = observer

    async def plan_pass(self, store: LeasedStore, *, number: int, now: datetime) -> Work:
        await self._observe(store, now)
        ending: dict[str, Step] = {}
        async for kafka in self._iterate_denied(store):
            cause = Cause(code="owner_denied", message="its owner is on the deny list", facts={})
            ending[kafka.id] = _build_ending(store, kafka, cause)
        for kafka in await store.list_expired(now):
            cause = Cause(code="expired", message="its time is over", facts={"expires_at": str(kafka.expires_at)})
            ending.setdefault(kafka.id, _build_ending(store, kafka, cause))
        expiring = [step async for step in self._iterate_expiries(store, ended=frozenset(ending))]
        return build_work(
            self.name, (*ending.values(), *expiring), number=number, now=now, follow=Worker.DELETING_KAFKA
        )

    async def _observe(self, store: LeasedStore, now: datetime) -> None:
        clusters, counts = await store.list_clusters(), await store.count_kafkas(self._policy)
        capacity = build_capacity(clusters, counts, self._policy, now)
        statuses, unsettled = await store.count_statuses(), await store.list_kafkas(_UNSETTLED)
        orphans = await store.list_orphans()
        rows = ObservedRows(at=now, capacity=capacity, statuses=statuses, unsettled=unsettled, orphans=orphans)
        self._observer.observe_rows(rows)

    async def _iterate_denied(self, store: LeasedStore) -> AsyncIterator[KafkaRequest]:
        denied = self._access.denied_users
        if denied:
            owners = Comparison(column="owner", operator=Operator.IN, values=tuple(sorted(denied)))
            async for kafka in _iterate_kafkas(store, KafkaFilter(), owners):
                yield kafka

    async def _iterate_expiries(self, store: LeasedStore, *, ended: frozenset[str]) -> AsyncIterator[Step]:
        """Kafkas of organisations with a quota get the time at which the quota ends, and lose it when it does not."""
        quota = self._access.quota
        for grantee in quota.organisations.values() if quota.is_enforced else ():
            async for kafka in _iterate_kafkas(store, KafkaFilter(organisation_id=grantee.id), None):
                size = self._policy.find_size(kafka.instance_type, kafka.size_id)
                if kafka.id in ended or size is None or size.lifespan_seconds is not None:
                    continue
                expires_at = self._find_expiry(kafka)
                if expires_at != kafka.expires_at:
                    message = f"the quota of organisation {grantee.id} ends then" if expires_at else "its quota lasts"
                    cause = Cause(code="quota_expiry", message=message, facts={"expires_at": str(expires_at)})
                    yield build_change_step(store, kafka, {"expires_at": expires_at}, verb="expire", cause=cause)

    def _find_expiry(self, kafka: KafkaRequest) -> datetime | None:
        """When the quota of a Kafka ends, with the days of grace of its billing model."""
        quota = self._find_quota(kafka)
        if quota is None or quota.expires_at is None:
            return None
        known = self._policy.instance_types[kafka.instance_type].billing_models
        grace = next((model.grace_period_days for model in known if model.id == quota.billing_model), 0)
        return quota.expires_at + timedelta(days=grace)

    def _find_quota(self, kafka: KafkaRequest) -> BillingQuota | None:
        grantee = self._access.quota.organisations[kafka.organisation_id]
        return next(
            (
                billing
                for granted in grantee.granted
                if granted.instance_type == kafka.instance_type
                for billing in granted.billing_models
                if billing.billing_model == kafka.desired_kafka_billing_model
            ),
            None,
        )


async def _iterate_kafkas(
    store: LeasedStore, visible: KafkaFilter, search: Search | None
) -> AsyncIterator[KafkaRequest]:
    """All live Kafkas that match, page by page."""
    live = Comparison(
        column="status", operator=Operator.NOT_IN, values=tuple(sorted(status.value for status in ENDING))
    )
    condition = live if search is None else Conjunction(parts=(live, search))
    page_number, seen = 1, 0
    while True:
        page = Page(number=page_number, size=_PAGE_SIZE)
        total, kafkas = await store.search_kafkas(visible, condition, page)
        for kafka in kafkas:
            yield kafka
        seen += len(kafkas)
        if not kafkas or seen >= total:
            return
        page_number += 1


def _build_ending(store: LeasedStore, kafka: KafkaRequest, cause: Cause) -> Step:
    return build_change_step(
        store, kafka, {"status": KafkaStatus.DEPROVISION}, verb="deprovision", cause=cause, statuses=_LIVE
    )
