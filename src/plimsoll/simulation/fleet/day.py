"""Plays a day: in each period the decisions of the workers, in the order of a tick, on rows that providers change.

The decisions are those of the service (`fleet.planning`); only the rows are not in a database. A period in which
nothing can be decided otherwise than in the one before it is left out.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from plimsoll.fleet.model.kafkas import KafkaRequest, needs_zones
from plimsoll.fleet.model.statuses import ClusterStatus
from plimsoll.fleet.model.units import KafkaCount
from plimsoll.fleet.planning.capacity import build_capacity
from plimsoll.fleet.planning.deprovisioning import RESTORE, evaluate_deprovisioning, list_returning_clusters
from plimsoll.fleet.planning.placement import place_kafkas
from plimsoll.fleet.planning.region_check import Refused, build_region_check, sum_region_units
from plimsoll.fleet.planning.scale_down import evaluate_scale_down
from plimsoll.fleet.planning.scale_up import evaluate_scale_up, hold_registrations
from plimsoll.simulation.fleet.lives import Lives
from plimsoll.simulation.fleet.outcome import DayOutcome, RequestFate, build_outcome

if TYPE_CHECKING:
    from plimsoll.fleet.planning.capacity import Capacity
    from plimsoll.simulation.fleet.demand import Request
    from plimsoll.simulation.fleet.document import DayDocument, Variant

LONGEST_WAIT: Final = timedelta(hours=1)
"""As in the worker that places Kafkas."""


class Day:
    """One variant of a day."""

    def __init__(self, day: DayDocument, variant: Variant, requests: tuple[Request, ...]) -> None:
        self._day = day
        self._variant = variant
        self._policy = variant.policy
        self._coming = list(reversed(requests))
        self._lives = Lives(self._policy, day.provider, seed=day.seed)
        self._waiting: list[Request] = []
        self._running: dict[str, tuple[Request, str, datetime]] = {}
        """By id: with the id of the cluster, and the time at which the Kafka is deleted."""
        self._fates: list[RequestFate] = []
        self._has_changed = True
        self._is_backing_off = False
        self._last_at = day.start
        self._capacity: Capacity | None = None

    def simulate(self) -> DayOutcome:
        end = self._day.start + timedelta(seconds=self._day.duration)
        now = self._day.start
        while now < end:
            if self._is_due(now):
                self._run_tick(now)
            now += timedelta(seconds=self._day.period)
        self._fates += [RequestFate(request=request) for request in self._waiting]
        return build_outcome(self._variant.name, self._lives, self._fates, self._policy, end=end)

    # ---- one tick

    def _is_due(self, now: datetime) -> bool:
        """Whether anything may be decided otherwise than in the last tick."""
        if self._has_changed or self._is_backing_off:
            return True
        moments = [self._coming[-1].at] if self._coming else []
        moments += [ends_at for _, _, ends_at in self._running.values()]
        moments += [request.at + LONGEST_WAIT for request in self._waiting]
        moments += [moment] if (moment := self._lives.find_next()) is not None else []
        return min(moments, default=now + LONGEST_WAIT) <= now or self._has_timer_ended(now)

    def _has_timer_ended(self, now: datetime) -> bool:
        """Whether a waiting time of a removal ended since the last tick."""
        removal = self._policy.removal
        for row in self._lives.list_rows():
            for since, seconds in ((row.empty_since, removal.minimum_empty_s), (row.ready_at, removal.cool_down_s)):
                if since is not None and seconds and self._last_at < since + timedelta(seconds=seconds) <= now:
                    return True
        return False

    def _run_tick(self, now: datetime) -> None:
        self._has_changed, self._last_at = False, now
        self._capacity = None
        if self._lives.advance(now):
            self._note_change()
        self._end_kafkas(now)
        self._accept(now)
        self._place(now)
        self._look_again(now)
        self._scale_up(now)
        self._scale_down(now)

    def _note_change(self) -> None:
        self._has_changed = True
        self._capacity = None

    def _end_kafkas(self, now: datetime) -> None:
        for kafka_id in [key for key, (_, _, ends_at) in self._running.items() if ends_at <= now]:
            del self._running[kafka_id]
            self._note_change()

    def _accept(self, now: datetime) -> None:
        """As the API does: the limit of a region counts all Kafkas, also those that wait."""
        while self._coming and self._coming[-1].at <= now:
            request = self._coming.pop()
            check = build_region_check(self._policy, request.locator)
            used = sum_region_units(self._count_kafkas(), self._policy).get(request.locator, 0)
            is_full = not isinstance(check, Refused) and check.limit is not None
            if isinstance(check, Refused) or (
                is_full and check.limit is not None and used + check.sizes[request.size_id] > check.limit
            ):
                self._fates.append(RequestFate(request=request, is_refused=True))
            else:
                self._waiting.append(request)
                self._note_change()

    def _place(self, now: datetime) -> None:
        if not self._waiting:
            return
        by_id = {request.id: request for request in self._waiting}
        kafkas = [_build_kafka(request) for request in self._waiting]
        decisions = place_kafkas(kafkas, self._lives.list_rows(), self._count_kafkas(), self._policy, now)
        for decision in decisions:
            request = by_id[decision.kafka_id]
            if decision.cluster is not None:
                ends_at = now + timedelta(seconds=request.lives_s)
                self._running[request.id] = (request, decision.cluster, ends_at)
                self._lives.keep_emptiness(decision.cluster, since=None)
                self._fates.append(RequestFate(request=request, placed_at=now))
                self._waiting.remove(request)
                self._note_change()
            elif now - request.at >= LONGEST_WAIT:
                self._fates.append(RequestFate(request=request, has_failed=True))
                self._waiting.remove(request)
                self._note_change()

    def _look_again(self, now: datetime) -> None:
        rows = self._lives.list_rows()
        for decision in evaluate_deprovisioning(rows, self._build_capacity(now), self._policy, now):
            if decision.decision == RESTORE:
                self._lives.restore(decision.id, now)
                self._note_change()
            elif self._lives.delete(decision.id, now):
                self._note_change()

    def _scale_up(self, now: datetime) -> None:
        capacity = self._build_capacity(now)
        returning = list_returning_clusters(capacity.clusters, capacity, self._policy, now)
        result = hold_registrations(evaluate_scale_up(capacity, self._policy, now), returning)
        for registration in result.register:
            self._lives.create(registration, now)
            self._note_change()
        self._is_backing_off = any(found.reason == "create_backoff" for found in result.evaluations)

    def _scale_down(self, now: datetime) -> None:
        capacity = self._build_capacity(now)
        for cluster in capacity.clusters:
            is_empty = capacity.is_empty(cluster)
            if cluster.status is ClusterStatus.READY and is_empty != (cluster.empty_since is not None):
                self._lives.keep_emptiness(cluster.id, since=now if is_empty else None)
                self._note_change()
        result = evaluate_scale_down(capacity, self._policy, now)
        for row_id in result.deprovision:
            self._lives.change(row_id, now, ClusterStatus.DEPROVISIONING)
            self._note_change()

    # ---- rows

    def _build_capacity(self, now: datetime) -> Capacity:
        """Build the capacity at this tick; the same object as long as nothing changes."""
        if self._capacity is None:
            self._capacity = build_capacity(self._lives.list_rows(), self._count_kafkas(), self._policy, now)
        return self._capacity

    def _count_kafkas(self) -> tuple[KafkaCount, ...]:
        placed = Counter(
            (request.locator, cluster_id, request.size_id) for request, cluster_id, _ in self._running.values()
        )
        waiting = Counter((request.locator, "", request.size_id) for request in self._waiting)
        return tuple(
            KafkaCount(
                locator=locator,
                cluster_id=cluster_id,
                size_id=size_id,
                consuming=number,
                accepted=0 if cluster_id else number,
            )
            for (locator, cluster_id, size_id), number in (*placed.items(), *waiting.items())
        )


def _build_kafka(request: Request) -> KafkaRequest:
    locator = request.locator
    return KafkaRequest(
        id=request.id,
        name=request.id,
        created_at=request.at,
        updated_at=request.at,
        cloud_provider=locator.cloud_provider,
        region=locator.region,
        multi_az=needs_zones(locator.instance_type),
        instance_type=locator.instance_type,
        size_id=request.size_id,
    )
