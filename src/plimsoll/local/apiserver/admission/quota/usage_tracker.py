"""The usage of a quota: a running sum over the stored objects it covers, and over pending writes.

The sum follows the store's watches, so a check costs as much as has changed since the last one, not as much as there
is. Kubernetes keeps this number in the quota's status and has a controller correct it; here the objects themselves are
the truth, and a deletion frees its share at once.

An admitted write is reserved until its object appears in the store, or until it is released because the write failed.
Even then it may still be on its way to the disk, if only its caller was cancelled; so it counts until it is settled.
What a write will free is free only once the write is durable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from plimsoll.core.quantity import Quantity
from plimsoll.core.values import Value
from plimsoll.local.apiserver.admission.pod_resources import Amounts, add_amounts, subtract_amounts
from plimsoll.local.apiserver.admission.quota.scopes import Scope, is_in_scope, read_scopes
from plimsoll.local.apiserver.admission.quota.usage import (
    compute_overdue_time,
    compute_usage,
    find_resource,
    select_names_of_resource,
)
from plimsoll.local.apiserver.storage import Event, EventType, Expired, Key, Watch

if TYPE_CHECKING:
    from datetime import datetime

    from plimsoll.local.apiserver.admission.attributes import AdmissionAttributes
    from plimsoll.local.apiserver.storage import Store

Json = dict[str, Any]


class QuotaSpec(Value):
    """The fields of a quota that its usage depends on."""

    uid: str
    names: frozenset[str]
    scopes: tuple[Scope, ...]


def read_quota_spec(quota: Json) -> QuotaSpec:
    hard = (quota.get("spec") or {}).get("hard") or {}
    return QuotaSpec(uid=quota["metadata"].get("uid", ""), names=frozenset(hard), scopes=read_scopes(quota))


class _Reservation(NamedTuple):
    attempt: AdmissionAttributes
    key: Key
    since: int
    amounts: Amounts


class QuotaUsage:
    """The usage of one quota."""

    def __init__(self, store: Store, namespace: str, spec: QuotaSpec) -> None:
        self.spec = spec
        self._store = store
        self._namespace = namespace
        self._stored: dict[Key, Amounts] = {}
        self._overdue_at: dict[Key, datetime] = {}
        self._reserved: dict[int, _Reservation] = {}
        self._abandoned: set[int] = set()
        """Reservations whose caller has gone while the write was on its way to the disk."""
        self._total: Amounts = {name: Quantity(0) for name in sorted(spec.names)}
        resources = sorted({found for name in spec.names if (found := find_resource(name)) is not None})
        self._watches: dict[str, Watch] = {}
        for resource in resources:
            self._follow(resource)

    def compute_used(self) -> Amounts:
        """By name of `hard`; what is reserved counts."""
        return {name: self._total[name] for name in sorted(self.spec.names)}

    def compute_expected(self) -> Amounts:
        """The use once all writes on their way have come about, for people to read: what they free is freed."""
        total = self._total
        for reservation in self._reserved.values():
            total = add_amounts(total, self._select_charged(_select_freed(reservation.amounts)))
        return {name: total[name] for name in sorted(self.spec.names)}

    def find_charged_names(self, stored_as: str, obj: Json) -> frozenset[str]:
        """The names of `hard` that this object counts against; none if the quota is not about it."""
        return (
            select_names_of_resource(stored_as, self.spec.names)
            if is_in_scope(stored_as, obj, self.spec.scopes)
            else frozenset()
        )

    async def catch_up(self, now: datetime) -> None:
        """Apply the pending watch events. It never awaits, so no other task runs before the caller continues."""
        for resource in tuple(self._watches):
            try:
                await self._take_in(resource, now)
            except Expired:
                self._follow(resource)
                await self._take_in(resource, now)
        for identity in tuple(self._abandoned):
            if not self._store.is_being_written(self._reserved[identity].key):
                self._drop(identity)
        for key in [key for key, due in self._overdue_at.items() if due < now]:
            stored = self._store.get(key)
            self._count(key, None if stored is None else stored.decode_body(), now=now)

    def reserve(self, attempt: AdmissionAttributes, key: Key, amounts: Amounts) -> None:
        self._hold(_Reservation(attempt, key, self._store.revision, amounts))

    def release(self, attempt: AdmissionAttributes) -> None:
        """Harmless for an attempt that is settled already."""
        reservation = self._reserved.get(id(attempt))
        if reservation is None:
            return
        if self._store.is_being_written(reservation.key):
            self._abandoned.add(id(attempt))
        else:
            self._drop(id(attempt))

    def inherit(self, other: QuotaUsage) -> None:
        """Take over what is on its way, from a count under another spec."""
        for reservation in other._reserved.values():
            assert reservation.attempt.obj is not None
            if self.find_charged_names(reservation.key.resource, reservation.attempt.obj):
                self._hold(reservation)
        self._abandoned |= other._abandoned & self._reserved.keys()

    def close(self) -> None:
        for watch in self._watches.values():
            watch.close()

    def _hold(self, reservation: _Reservation) -> None:
        self._reserved[id(reservation.attempt)] = reservation
        self._total = add_amounts(self._total, self._select_charged(_select_claimed(reservation.amounts)))

    def _drop(self, identity: int) -> None:
        reservation = self._reserved.pop(identity)
        self._abandoned.discard(identity)
        self._total = subtract_amounts(self._total, self._select_charged(_select_claimed(reservation.amounts)))

    def _select_charged(self, amounts: Amounts) -> Amounts:
        return {name: amount for name, amount in amounts.items() if name in self.spec.names}

    def _follow(self, resource: str) -> None:
        for key in [key for key in self._stored if key.resource == resource]:
            self._total = subtract_amounts(self._total, self._stored.pop(key))
            self._overdue_at.pop(key, None)
        self._watches[resource] = self._store.watch(resource, namespace=self._namespace)

    async def _take_in(self, resource: str, now: datetime) -> None:
        watch = self._watches[resource]
        while watch.initial_left or watch.revision < self._store.revision:
            for event in await watch.wait_for_batch():
                self._apply_event(event, now)

    def _apply_event(self, event: Event, now: datetime) -> None:
        key = event.object.key
        self._count(key, None if event.type is EventType.DELETED else event.object.decode_body(), now=now)
        if event.type is EventType.DELETED:
            return  # the writer that recreates the object is still under way
        for reservation in tuple(self._reserved.values()):
            if reservation.key == key and event.revision > reservation.since:
                self._drop(id(reservation.attempt))

    def _count(self, key: Key, obj: Json | None, *, now: datetime) -> None:
        """Put what the object uses now in the place of what it used."""
        before = self._stored.pop(key, {})
        self._overdue_at.pop(key, None)
        after: Amounts = {}
        if obj is not None and self.find_charged_names(key.resource, obj):
            found = compute_usage(key.resource, obj, now=now)
            after = self._stored[key] = self._select_charged(found)
            due = compute_overdue_time(obj) if key.resource == "pods" else None
            if due is not None and due >= now:
                self._overdue_at[key] = due
        self._total = add_amounts(subtract_amounts(self._total, before), after)


def _select_claimed(amounts: Amounts) -> Amounts:
    return {name: amount for name, amount in amounts.items() if amount.nano > 0}


def _select_freed(amounts: Amounts) -> Amounts:
    return {name: amount for name, amount in amounts.items() if amount.nano < 0}
