"""What is wrong with waiting pods that say they consume a ProvisioningRequest, or with their request. Pure.

No node is added for such a pod, so whoever made it should learn why it waits (specs/nodes.md 2.4, 4.6): its request is
not there, says another class, asks for other pods, or has its capacity no more. `telling` says each thing once in five
minutes; here it is said in every turn in which it holds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.core.plans import Reason
from plimsoll.nodes.observing.waiting_pods import was_refused
from plimsoll.nodes.requests.classes import is_same
from plimsoll.nodes.requests.conditions import Kind
from plimsoll.nodes.requests.consumption import Matches, class_said, consumed_request
from plimsoll.nodes.requests.seen import Phase
from plimsoll.nodes.requests.verdicts import ConsumerWarning

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from plimsoll.nodes.requests.seen import RequestsSeen, Seen
    from plimsoll.objects.pods import Pod

CLASS_MISSING: Final = "ProvisioningClassAnnotationMissing"
CLASS_DIFFERS: Final = "ProvisioningClassMismatch"
POD_DIFFERS: Final = "ProvisioningRequestPodMismatch"
REQUEST_MISSING: Final = "ProvisioningRequestMissing"
UNSCHEDULABLE: Final = "ConsumingPodsUnschedulable"
_MOST_PODS: Final = 50
"""Of one request, so many pods are looked at: they mostly come from one hand."""
_ENDINGS: Final = (Kind.FAILED, Kind.CAPACITY_REVOKED, Kind.BOOKING_EXPIRED)


def consumers(
    waiting: Iterable[Pod],
    requests: RequestsSeen,
    *,
    unbookable: Mapping[str, int] | None = None,
    matches: Matches | None = None,
) -> tuple[ConsumerWarning, ...]:
    """`waiting`: pods without a node; those that consume nothing are passed over.

    `unbookable`: by request, pods that its booking finds no room for.
    """
    by_request: dict[str, list[Pod]] = {}
    for pod in waiting:
        if not pod.spec.node_name and (name := consumed_request(pod)):
            by_request.setdefault(name, []).append(pod)
    if not by_request:
        return ()
    seen = {one.name: one for one in requests.all}
    known = matches or Matches()
    found: list[ConsumerWarning] = []
    for name in sorted(by_request):
        pods = sorted(by_request[name], key=lambda one: one.metadata.name)
        if name not in requests.known:
            found.append(_missing(name, pods))
            found += _without_class(name, pods[:_MOST_PODS])
        elif name in seen:
            found += _of_pods(seen[name], pods[:_MOST_PODS], known)
            found += _of_request(seen[name], pods, (unbookable or {}).get(name, 0))
    return tuple(found)


def _missing(name: str, pods: Sequence[Pod]) -> ConsumerWarning:
    many = f"{len(pods)} pod{'s' * (len(pods) != 1)}"
    told = f"there is no ProvisioningRequest {name}, which {many} wait{'s' * (len(pods) == 1)} to consume"
    reason = Reason(code=REQUEST_MISSING, message=told, facts={"request": name, "pods": len(pods)})
    return ConsumerWarning(reason=reason, request=name, pod=pods[0])


def _without_class(name: str, pods: Iterable[Pod]) -> list[ConsumerWarning]:
    told = f"it consumes ProvisioningRequest {name} but does not name its class"
    reason = Reason(code=CLASS_MISSING, message=told)
    return [ConsumerWarning(reason=reason, request=name, pod=pod) for pod in pods if not class_said(pod)]


def _of_pods(seen: Seen, pods: Iterable[Pod], matches: Matches) -> list[ConsumerWarning]:
    found: list[ConsumerWarning] = []
    wanted = seen.request.spec.provisioning_class_name
    for pod in pods:
        said = class_said(pod)
        if not said:
            told = f"it consumes ProvisioningRequest {seen.name} but does not name its class, {wanted}"
            found.append(_of_pod(seen, pod, CLASS_MISSING, told))
        elif not is_same(said, wanted):
            told = f"it names class {said}, but ProvisioningRequest {seen.name} is of class {wanted}"
            found.append(_of_pod(seen, pod, CLASS_DIFFERS, told))
        if seen.templates and not matches.of(pod, seen):
            told = (
                f"none of the pod sets of ProvisioningRequest {seen.name} asks for such a pod: "
                "it may need other room than was given"
            )
            found.append(_of_pod(seen, pod, POD_DIFFERS, told))
    return found


def _of_pod(seen: Seen, pod: Pod, code: str, told: str) -> ConsumerWarning:
    return ConsumerWarning(reason=Reason(code=code, message=told), request=seen.name, pod=pod, seen=seen)


def _of_request(seen: Seen, pods: Sequence[Pod], unbookable: int) -> list[ConsumerWarning]:
    """While its pods wait and nothing is kept for them."""
    why = _why_gone(seen, pods, unbookable)
    if not why:
        return []
    many = f"{len(pods)} pod{'s that consume' if len(pods) != 1 else ' that consumes'} it"
    told = f"{many} wait{'s' * (len(pods) == 1)} for a node, and none is added: {why}"
    reason = Reason(code=UNSCHEDULABLE, message=told, facts={"pods": len(pods)})
    return [ConsumerWarning(reason=reason, request=seen.name, seen=seen)]


def _why_gone(seen: Seen, pods: Sequence[Pod], unbookable: int) -> str:
    """Empty where its capacity is still to come, or is there."""
    if seen.phase is Phase.OVER:
        ended = next((one for kind in _ENDINGS if (one := seen.conditions.get(kind)) and one.status == "True"), None)
        return "its capacity is not kept any more" if ended is None else f"{ended.type} ({ended.reason})"
    if seen.phase is not Phase.HELD:
        return ""
    if unbookable:
        return f"there is no room for {unbookable} of the {seen.total} pods that capacity was found for"
    if not seen.parameters.reserves and any(map(was_refused, pods)):
        return "its capacity was found but, as it asked, not kept for it"
    return ""
