"""ResourceQuota: keeps a namespace within its quotas, also under concurrent requests.

The check and the reservation of an admitted write happen without an await between them; only then is the new usage
written into the status of the quotas.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from plimsoll.local.apiserver.admission.attributes import CREATE, UPDATE, forbidden
from plimsoll.local.apiserver.admission.pod_resources import Amounts, parse_quantities, subtract_amounts
from plimsoll.local.apiserver.admission.quota.usage import compute_usage, find_missing_resources
from plimsoll.local.apiserver.admission.quota.usage_tracker import QuotaUsage, read_quota_spec
from plimsoll.local.apiserver.admission.server_status import write_status
from plimsoll.local.apiserver.storage import Key, ListQuery

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plimsoll.core.clock import Clock
    from plimsoll.local.apiserver.admission.attributes import AdmissionAttributes
    from plimsoll.local.apiserver.storage import Store

Json = dict[str, Any]

_QUOTAS: Final = "resourcequotas"
# What can grow by an update; of everything else only the number of objects is measured.
_MEASURED_ON_UPDATE: Final = frozenset({"services", "persistentvolumeclaims"})


@dataclass(frozen=True, slots=True)
class _MeasuredQuota:
    """A quota as it is stored, with its usage."""

    quota: Json
    usage: QuotaUsage


class ResourceQuotas:
    """Tracks the usage of each quota, from its first check until the quota changes or is deleted."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._usages: dict[Key, QuotaUsage] = {}

    async def validate(self, attempt: AdmissionAttributes) -> None:
        if not _is_judged(attempt) or not self._store.count(_QUOTAS, attempt.namespace):
            return
        quotas = [
            stored.decode_body() for stored in self._store.list(_QUOTAS, ListQuery(namespace=attempt.namespace)).items
        ]
        measured = [_MeasuredQuota(quota, self._get_usage(quota)) for quota in quotas]
        now = self._clock.now()
        for quota in measured:
            await quota.usage.catch_up(now)
        charged = self._check_and_reserve(attempt, measured)
        if not attempt.dry_run:
            await self._write_statuses(attempt, charged)

    def release(self, attempt: AdmissionAttributes) -> None:
        for usage in self._usages.values():
            usage.release(attempt)

    def _check_and_reserve(self, attempt: AdmissionAttributes, measured: list[_MeasuredQuota]) -> list[_MeasuredQuota]:
        """Refuse, or reserve what is requested; returns the quotas that were charged. Nothing here may wait."""
        assert attempt.obj is not None
        stored_as = attempt.resource.stored_as
        pertinent = [quota for quota in measured if quota.usage.find_charged_names(stored_as, attempt.obj)]
        for pod_quota in pertinent if stored_as == "pods" else []:
            names = pod_quota.usage.find_charged_names(stored_as, attempt.obj)
            unspecified = find_missing_resources(attempt.obj, names)
            if unspecified is not None:
                raise forbidden(attempt, f"failed quota: {pod_quota.quota['metadata']['name']}: {unspecified}")
        requested = self._compute_added(attempt) if pertinent else {}
        charged = [quota for quota in pertinent if quota.usage.spec.names.intersection(requested)]
        for quota in charged:
            _check(attempt, quota.quota, used=quota.usage.compute_used(), requested=requested)
        if not attempt.dry_run:
            key = Key(stored_as, attempt.namespace, attempt.obj["metadata"].get("name") or attempt.name)
            for quota in charged:
                quota.usage.reserve(attempt, key, requested)
        return charged

    def _compute_added(self, attempt: AdmissionAttributes) -> Amounts:
        """What the write adds, without zeros."""
        assert attempt.obj is not None
        stored_as, now = attempt.resource.stored_as, self._clock.now()
        requested = compute_usage(stored_as, attempt.obj, now=now)
        negative = sorted(name for name, amount in requested.items() if amount.nano < 0)
        if negative:
            raise forbidden(attempt, f"quota usage is negative for resource(s): {','.join(negative)}")
        if attempt.operation == UPDATE and attempt.old is not None:
            requested = subtract_amounts(requested, compute_usage(stored_as, attempt.old, now=now))
        return {name: amount for name, amount in requested.items() if amount}

    def _get_usage(self, quota: Json) -> QuotaUsage:
        metadata = quota["metadata"]
        key, spec = Key(_QUOTAS, metadata["namespace"], metadata["name"]), read_quota_spec(quota)
        known = self._usages.get(key)
        if known is not None and known.spec == spec:
            return known
        made = QuotaUsage(self._store, key.namespace, spec)
        if known is not None:
            made.inherit(known)
        for gone in [usage for usage in self._usages if usage == key or self._store.get(usage) is None]:
            self._usages.pop(gone).close()
        self._usages[key] = made
        return made

    async def _write_statuses(self, attempt: AdmissionAttributes, charged: list[_MeasuredQuota]) -> None:
        """A write that is not admitted after all, because a status write failed or was cancelled, is not charged."""
        is_written = False
        try:
            for quota in charged:
                await self._write_status(quota.quota, quota.usage)
            is_written = True
        finally:
            if not is_written:
                self.release(attempt)

    async def _write_status(self, quota: Json, usage: QuotaUsage) -> None:
        metadata = quota["metadata"]

        def update_status(current: Json) -> Json:
            used = {name: str(amount) for name, amount in usage.compute_expected().items()}
            return {**(current.get("status") or {}), "hard": current["spec"].get("hard") or {}, "used": used}

        key = Key(_QUOTAS, metadata["namespace"], metadata["name"])
        await write_status(self._store, key, update_status, now=self._clock.now())


def _is_judged(attempt: AdmissionAttributes) -> bool:
    if attempt.obj is None or attempt.subresource or not attempt.namespace or not attempt.resource.namespaced:
        return False
    return attempt.operation == CREATE or attempt.resource.stored_as in _MEASURED_ON_UPDATE


def _check(attempt: AdmissionAttributes, quota: Json, *, used: Amounts, requested: Amounts) -> None:
    hard = parse_quantities((quota.get("spec") or {}).get("hard"))
    exceeded = [
        name
        for name in sorted(hard)
        if name in requested and requested[name].nano > 0 and (used[name] + requested[name]) > hard[name]
    ]
    if exceeded:
        parts = (
            f"{called}: {','.join(_format_amounts(amounts, exceeded))}"
            for called, amounts in (("requested", requested), ("used", used), ("limited", hard))
        )
        raise forbidden(attempt, f"exceeded quota: {quota['metadata']['name']}, {', '.join(parts)}")


def _format_amounts(amounts: Amounts, names: list[str]) -> Iterator[str]:
    return (f"{name}={amounts[name]}" for name in names)
