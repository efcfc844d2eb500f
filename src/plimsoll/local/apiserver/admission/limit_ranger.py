"""LimitRanger: fills missing requests and limits of a pod, and enforces a namespace's LimitRanges on pods and claims.

The messages are those of Kubernetes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.selectors import aggregate
from plimsoll.local.apiserver.admission.attributes import forbidden
from plimsoll.local.apiserver.admission.pod_resources import (
    Amounts,
    compute_container_amounts,
    compute_pod_amounts,
    parse_quantities,
)
from plimsoll.local.apiserver.storage import ListQuery
from plimsoll.objects.limit_ranges import fill_in, list_limits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plimsoll.core.quantity import Quantity
    from plimsoll.local.apiserver.admission.attributes import AdmissionAttributes
    from plimsoll.local.apiserver.storage import Store


Json = dict[str, Any]

_CLAIMS: Final = "persistentvolumeclaims"


class LimitRanger:
    """Checks pods on creation (an update does not change their resources), and claims on every write."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def mutate(self, attempt: AdmissionAttributes) -> None:
        if attempt.creates("pods"):
            assert attempt.obj is not None
            for limit_range in self._iterate_limit_ranges(attempt.namespace):
                fill_in(attempt.obj, limit_range)

    def validate(self, attempt: AdmissionAttributes) -> None:
        is_pod = attempt.creates("pods")
        is_leaving = bool((attempt.old or {}).get("metadata", {}).get("deletionTimestamp"))
        if not is_pod and (is_leaving or not attempt.writes(_CLAIMS)):
            return
        assert attempt.obj is not None
        for limit_range in self._iterate_limit_ranges(attempt.namespace):
            limits = list_limits(limit_range)
            problems = find_pod_problems(attempt.obj, limits) if is_pod else find_claim_problems(attempt.obj, limits)
            if problems:
                raise forbidden(attempt, aggregate(problems))

    def _iterate_limit_ranges(self, namespace: str) -> Iterator[Json]:
        for stored in self._store.list("limitranges", ListQuery(namespace=namespace)).items:
            yield stored.decode_body()


def find_pod_problems(pod: Json, limits: list[Json]) -> list[str]:
    return [problem for limit in limits for problem in _find_problems_of_pod_spec(pod["spec"], limit)]


def find_claim_problems(claim: Json, limits: list[Json]) -> list[str]:
    requests = parse_quantities(((claim.get("spec") or {}).get("resources") or {}).get("requests"))
    return [
        problem
        for limit in limits
        if limit.get("type") == "PersistentVolumeClaim"
        for problem in _find_claim_problems(limit, requests)
    ]


def _find_problems_of_pod_spec(spec: Json, limit: Json) -> Iterator[str]:
    kind = limit.get("type")
    if kind == "Container":
        for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
            bounded = _Bounded(
                kind, compute_container_amounts(container, "requests"), compute_container_amounts(container, "limits")
            )
            yield from bounded.find_problems(limit)
    elif kind == "Pod":
        requests, of_limits = (compute_pod_amounts(spec, field, overhead=False) for field in ("requests", "limits"))
        yield from _Bounded(kind, requests, of_limits).find_problems(limit)


def _find_claim_problems(limit: Json, requests: Amounts) -> Iterator[str]:
    bounded = _Bounded("PersistentVolumeClaim", requests, {})
    for name, bound in sorted(parse_quantities(limit.get("min")).items()):
        yield from bounded.check_minimum(name, bound)
    for name, bound in sorted(parse_quantities(limit.get("max")).items()):
        yield from bounded.request_too_large(name, bound)


class _Bounded:
    """One thing with requests and limits; Go goes through the names of a bound in no order, here it is theirs."""

    def __init__(self, kind: str, requests: Amounts, limits: Amounts) -> None:
        self._kind = kind
        self._requests = requests
        self._limits = limits

    def find_problems(self, limit: Json) -> Iterator[str]:
        for name, bound in sorted(parse_quantities(limit.get("min")).items()):
            yield from self.check_minimum(name, bound)
        for name, bound in sorted(parse_quantities(limit.get("max")).items()):
            yield from self.check_maximum(name, bound)
        for name, bound in sorted(parse_quantities(limit.get("maxLimitRequestRatio")).items()):
            yield from self._check_ratio(name, bound)

    def check_minimum(self, name: str, bound: Quantity) -> Iterator[str]:
        rule = f"minimum {name} usage per {self._kind} is {bound}"
        request, limit = self._requests.get(name), self._limits.get(name)
        if request is None:
            yield f"{rule}.  No request is specified"
        elif request < bound:
            yield f"{rule}, but request is {request}"
        elif limit is not None and limit < bound:
            yield f"{rule}, but limit is {limit}"

    def check_maximum(self, name: str, bound: Quantity) -> Iterator[str]:
        rule = f"maximum {name} usage per {self._kind} is {bound}"
        request, limit = self._requests.get(name), self._limits.get(name)
        if limit is None:
            yield f"{rule}.  No limit is specified"
        elif limit > bound:
            yield f"{rule}, but limit is {limit}"
        elif request is not None and request > bound:
            yield f"{rule}, but request is {request}"

    def request_too_large(self, name: str, bound: Quantity) -> Iterator[str]:
        rule = f"maximum {name} usage per {self._kind} is {bound}"
        request = self._requests.get(name)
        if request is None:
            yield f"{rule}.  No request is specified"
        elif request > bound:
            yield f"{rule}, but request is {request}"

    def _check_ratio(self, name: str, bound: Quantity) -> Iterator[str]:
        rule = f"{name} max limit to request ratio per {self._kind} is {bound}"
        request, limit = self._requests.get(name), self._limits.get(name)
        if not request:
            yield f"{rule}, but no request is specified or request is 0"
        elif not limit:
            yield f"{rule}, but no limit is specified or limit is 0"
        elif limit.as_fraction() > bound.as_fraction() * request.as_fraction():
            yield f"{rule}, but provided ratio is {float(limit.as_fraction() / request.as_fraction()):.6f}"
