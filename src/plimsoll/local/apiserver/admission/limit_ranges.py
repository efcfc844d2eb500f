"""LimitRanger: fills the requests and limits a pod leaves open, and holds pods and claims to a namespace's bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.selectors import aggregate
from plimsoll.local.apiserver.admission.attempts import forbidden
from plimsoll.local.apiserver.admission.limit_bounds import claim_problems, pod_problems
from plimsoll.local.apiserver.storage import ListQuery
from plimsoll.objects.limit_ranges import fill_in, limits_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plimsoll.local.apiserver.admission.attempts import Attempt
    from plimsoll.local.apiserver.storage import Store

Json = dict[str, Any]

_CLAIMS: Final = "persistentvolumeclaims"


class LimitRanger:
    """Pods are looked at when they are made (their resources do not change by an update), claims at every write."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def mutate(self, attempt: Attempt) -> None:
        if attempt.creates("pods"):
            assert attempt.obj is not None
            for limit_range in self._limit_ranges(attempt.namespace):
                fill_in(attempt.obj, limit_range)

    def validate(self, attempt: Attempt) -> None:
        is_pod = attempt.creates("pods")
        is_leaving = bool((attempt.old or {}).get("metadata", {}).get("deletionTimestamp"))
        if not is_pod and (is_leaving or not attempt.writes(_CLAIMS)):
            return
        assert attempt.obj is not None
        for limit_range in self._limit_ranges(attempt.namespace):
            limits = limits_of(limit_range)
            problems = pod_problems(attempt.obj, limits) if is_pod else claim_problems(attempt.obj, limits)
            if problems:
                raise forbidden(attempt, aggregate(problems))

    def _limit_ranges(self, namespace: str) -> Iterator[Json]:
        for stored in self._store.list("limitranges", ListQuery(namespace=namespace)).items:
            yield stored.body()
