"""The usage of one object: the names of a ResourceQuota's `hard`, and how much of each the object takes.

Pods, services and claims are measured, everything else is counted (`count/deployments.apps`). Pure; `now` matters only
for pods that are overdue to terminate.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.durations import add_seconds
from plimsoll.core.quantity import Quantity
from plimsoll.local.apiserver.admission.pod_resources import Amounts, compute_container_amounts, compute_pod_amounts
from plimsoll.objects.builtin.validation.resources import is_extended, is_huge_page

if TYPE_CHECKING:
    from collections.abc import Iterable

Json = dict[str, Any]

_ONE: Final = Quantity.from_int(1)
_REQUESTS: Final = "requests."
_LIMITS: Final = "limits."
_COUNT: Final = "count/"
_COMPUTE: Final = ("cpu", "memory", "ephemeral-storage")
_COUNTED_BY_NAME: Final = frozenset({"configmaps", "resourcequotas", "replicationcontrollers", "secrets"})
_SERVICES: Final = frozenset({"services", "services.nodeports", "services.loadbalancers"})
_CLAIMS: Final = frozenset({"persistentvolumeclaims", "requests.storage"})
_OF_A_CLASS: Final = ".storageclass.storage.k8s.io/"
_CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"
_POD_NAMES: Final = frozenset(
    {"pods", *_COMPUTE, *(f"{prefix}{name}" for prefix in (_REQUESTS, _LIMITS) for name in _COMPUTE)}
)
# Only of these must every container say something: a mistake of early versions that Kubernetes has kept.
_MUST_BE_SAID: Final = frozenset(name for name in _POD_NAMES if name.endswith(("cpu", "memory")))
_GONE: Final = frozenset({"Succeeded", "Failed"})


def find_resource(name: str) -> str | None:
    """The resource (as it is stored) whose objects a name of `hard` is about; None for a name about nothing."""
    if name.startswith(_COUNT):
        plural, _, group = name.removeprefix(_COUNT).partition(".")
        return f"{group}/{plural}" if group else plural
    if name in _SERVICES:
        return "services"
    if name in _CLAIMS or _OF_A_CLASS in name:
        return "persistentvolumeclaims"
    if name in _COUNTED_BY_NAME:
        return name
    bare = name.removeprefix(_REQUESTS)
    is_requested = name.startswith(_REQUESTS) and is_extended(bare)
    return "pods" if name in _POD_NAMES or is_huge_page(bare) or is_requested else None


def select_names_of_resource(stored_as: str, hard: Iterable[str]) -> frozenset[str]:
    """Those names of `hard` that an object of this resource counts against."""
    return frozenset(name for name in hard if find_resource(name) == stored_as)


def compute_usage(stored_as: str, obj: Json, *, now: datetime) -> Amounts:
    """How much of each name the object takes; a zero may be there or not."""
    group, _, plural = stored_as.rpartition("/")
    counted = {f"{_COUNT}{plural}.{group}" if group else f"{_COUNT}{plural}": _ONE}
    if stored_as == "pods":
        return counted | (_compute_pod_usage(obj["spec"]) if _is_charged(obj, now) else {})
    if stored_as == "services":
        return counted | _compute_service_usage(obj.get("spec") or {})
    if stored_as == "persistentvolumeclaims":
        return counted | _compute_claim_usage(obj)
    if stored_as in _COUNTED_BY_NAME:
        return counted | {stored_as: _ONE}
    return counted


def compute_overdue_time(pod: Json) -> datetime | None:
    """The time after which a terminating pod is not charged: its node may never report its end."""
    metadata = pod["metadata"]
    deleted, grace_s = metadata.get("deletionTimestamp"), metadata.get("deletionGracePeriodSeconds")
    if not deleted or grace_s is None:
        return None
    return add_seconds(datetime.fromisoformat(deleted), grace_s)


def find_missing_resources(pod: Json, names: Iterable[str]) -> str | None:
    """The complaint about containers that leave open what a quota is about, or none."""
    spec = pod["spec"]
    if any(spec.get("resources", {}).get(field) for field in ("requests", "limits")):
        return None
    missing: dict[str, set[str]] = {}
    for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        given = _compute(
            compute_container_amounts(container, "requests"), compute_container_amounts(container, "limits")
        )
        for name in _MUST_BE_SAID.intersection(names).difference(given):
            missing.setdefault(name, set()).add(container.get("name", ""))
    if not missing:
        return None
    missing_lines = (f"{name} for: {','.join(sorted(containers))}" for name, containers in sorted(missing.items()))
    return f"must specify {'; '.join(missing_lines)}"


def _is_charged(pod: Json, now: datetime) -> bool:
    if (pod.get("status") or {}).get("phase") in _GONE:
        return False
    overdue = compute_overdue_time(pod)
    return overdue is None or now <= overdue


def _compute_pod_usage(spec: Json) -> Amounts:
    requests, limits = (compute_pod_amounts(spec, field, overhead=True) for field in ("requests", "limits"))
    return {"pods": _ONE, **_compute(requests, limits)}


def _compute(requests: Amounts, limits: Amounts) -> Amounts:
    found: Amounts = {}
    for name, amount in requests.items():
        if name in _COMPUTE or is_huge_page(name):
            found[name] = found[f"{_REQUESTS}{name}"] = amount
        elif is_extended(name):
            found[f"{_REQUESTS}{name}"] = amount
    found.update({f"{_LIMITS}{name}": amount for name, amount in limits.items() if name in _COMPUTE})
    return found


def _compute_service_usage(spec: Json) -> Amounts:
    ports = spec.get("ports") or []
    kind = spec.get("type")
    found: Amounts = {"services": _ONE}
    if kind == "LoadBalancer":
        found["services.loadbalancers"] = _ONE
        if spec.get("allocateLoadBalancerNodePorts") is False:
            ports = [port for port in ports if port.get("nodePort")]
    if kind in {"NodePort", "LoadBalancer"}:
        found["services.nodeports"] = Quantity.from_int(len(ports))
    return found


def _compute_claim_usage(claim: Json) -> Amounts:
    spec = claim.get("spec") or {}
    annotations = claim["metadata"].get("annotations") or {}
    class_name = annotations.get(_CLASS_ANNOTATION) or spec.get("storageClassName")
    found: Amounts = {"persistentvolumeclaims": _ONE}
    storage = compute_container_amounts(spec, "requests").get("storage")
    if storage is not None:
        found["requests.storage"] = Quantity.from_int(storage.round_up(), storage.format)
    if class_name:
        found |= {f"{class_name}{_OF_A_CLASS}{name}": amount for name, amount in found.items()}
    return found
