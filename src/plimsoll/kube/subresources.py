"""The parts of objects that are verbs: scale, evict, bind. What is sent, and what the answers mean."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plimsoll.core.values import Value, Wire
from plimsoll.kube.errors import Conflict, NotFound, TooManyRequests
from plimsoll.kube.requests.retry import is_budget_refusal
from plimsoll.objects.api.meta import WireObject

if TYPE_CHECKING:
    from plimsoll.kube.errors import ApiError
    from plimsoll.kube.requests.options import DeleteOptions


class ScaleSpec(Wire):
    """How many are wanted."""

    replicas: int = 0


class ScaleStatus(Wire):
    """How many there are, and the selector that finds them, as text."""

    replicas: int = 0
    selector: str = ""


class Scale(WireObject):
    """How many of something: the same for every kind that can be scaled."""

    spec: ScaleSpec = ScaleSpec()
    status: ScaleStatus = ScaleStatus()


class Evicted(Value, frozen=True):
    """The eviction was accepted (or would be, in a dry run)."""


class Blocked(Value, frozen=True):
    """A disruption budget does not allow it now. `reasons` name the budget and the cause."""

    message: str
    reasons: tuple[str, ...] = ()
    retry_after_s: float | None = None


class PodGone(Value, frozen=True):
    """The pod no longer exists, or another pod has its name."""

    message: str


Eviction = Evicted | Blocked | PodGone


def build_eviction_body(name: str, namespace: str, options: DeleteOptions) -> dict[str, Any]:
    body: dict[str, Any] = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": name, "namespace": namespace},
    }
    return {**body, "deleteOptions": options.body} if options.body else body


def classify_eviction_error(error: ApiError, options: DeleteOptions) -> Blocked | PodGone | None:
    """What a refused eviction means; None: an error like any other."""
    match error:
        case NotFound() if error.status.details.kind == "pods":
            return PodGone(message=str(error))
        case Conflict() if options.uid and "UID" in str(error):
            return PodGone(message=str(error))
        case TooManyRequests() if is_budget_refusal(error):
            reasons = tuple(cause.message for cause in error.causes)
            return Blocked(message=str(error), reasons=reasons, retry_after_s=error.retry_after_s)
        case _:
            return None


def build_binding_body(name: str, namespace: str, *, node: str, uid: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace, **({"uid": uid} if uid else {})}
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}


def build_scale_patch(replicas: int, *, resource_version: str) -> dict[str, Any]:
    precondition = {"metadata": {"resourceVersion": resource_version}} if resource_version else {}
    return {**precondition, "spec": {"replicas": replicas}}
