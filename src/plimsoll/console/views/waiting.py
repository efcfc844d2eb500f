"""Pods without a node, by reason, and ProvisioningRequests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.plans import Ref
from plimsoll.journal.entries import Query
from plimsoll.kube.errors import ApiCallFailed, NotFound
from plimsoll.nodes.requests.status import find_state
from plimsoll.objects.api.provisioning_requests import ProvisioningRequest
from plimsoll.web.responses import build_json_response

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from plimsoll.console.views.ports import DecisionSource
    from plimsoll.core.plans import Reason
    from plimsoll.journal.entries import Entry
    from plimsoll.kube.client import Client
    from plimsoll.kube.informer import Informer
    from plimsoll.objects.api.pods import Pod

_ENTRIES: Final = 20
"""Newest entries in which the reason of a pod is looked for: an entry names all pods of its loop iteration."""
_NAMED: Final = 100
_UNDECIDED: Final = "no controller has decided about them yet"
UNBOUND: Final = "console/unbound"


class WaitingView:
    """`/api/waiting`."""

    def __init__(self, source: DecisionSource, client: Client, pods: Informer[Pod]) -> None:
        self._source = source
        self._client = client
        self._pods = pods
        pods.add_index(UNBOUND, _index_unbound)

    async def list_waiting(self, _request: Request) -> Response:
        pods = self._pods.cache.list_by_index(UNBOUND, True)  # noqa: FBT003 - the value of the index
        reasons = _find_reasons(await self._source.list_entries(Query(subsystem="nodes", limit=_ENTRIES)))
        requests, problem = await self._list_requests()
        answer = {"pods": _group_pods(pods, reasons), "requests": requests, "requestsProblem": problem}
        return build_json_response(answer)

    async def _list_requests(self) -> tuple[list[dict[str, Any]], str]:
        try:
            found = await self._client.list(ProvisioningRequest)
        except NotFound:
            return [], "the cluster does not define ProvisioningRequests"
        except ApiCallFailed as error:
            return [], str(error)
        return [_describe_request(request) for request in found.items], ""


def _index_unbound(pod: Pod) -> Iterable[bool]:
    return [True] if not pod.spec.node_name and pod.status.phase in {"", "Pending"} else ()


def _find_reasons(entries: Sequence[Entry]) -> dict[Ref, Reason]:
    """The newest reason why each object is left as it is."""
    reasons: dict[Ref, Reason] = {}
    for entry in entries:
        for not_done in entry.plan.not_done:
            for ref in not_done.about:
                reasons.setdefault(ref, not_done.reason)
    return reasons


def _group_pods(pods: Iterable[Pod], reasons: dict[Ref, Reason]) -> list[dict[str, Any]]:
    """Pods by the reason why they wait, the largest group first."""
    groups: dict[tuple[str, str], list[Pod]] = {}
    for pod in pods:
        reason = reasons.get(Ref(kind="pod", namespace=pod.metadata.namespace, name=pod.metadata.name))
        key = (reason.code, str(reason)) if reason is not None else ("", _describe_without_decision(pod))
        groups.setdefault(key, []).append(pod)
    ordered = sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))
    return [
        {
            "code": code,
            "reason": message,
            "count": len(same),
            "pods": [f"pod/{pod.metadata.namespace}/{pod.metadata.name}" for pod in same[:_NAMED]],
            "since": min((_get_creation(pod) for pod in same), default=""),
        }
        for (code, message), same in ordered
    ]


def _describe_without_decision(pod: Pod) -> str:
    if pod.spec.scheduling_gates:
        return "they have scheduling gates"
    messages = (condition.message for condition in pod.status.conditions if condition.type == "PodScheduled")
    return next((message for message in messages if message), _UNDECIDED)


def _get_creation(pod: Pod) -> str:
    created = pod.metadata.creation_timestamp
    return "" if created is None else created.isoformat()


def _describe_request(request: ProvisioningRequest) -> dict[str, Any]:
    conditions = [
        {"type": condition.type, "status": condition.status, "reason": condition.reason, "message": condition.message}
        for condition in request.status.conditions
    ]
    return {
        "ref": f"request/{request.metadata.namespace}/{request.metadata.name}",
        "class": request.spec.provisioning_class_name,
        "state": find_state(request.status.conditions)[0].value,
        "pods": sum(max(pod_set.count, 0) for pod_set in request.spec.pod_sets),
        "created": request.metadata.creation_timestamp,
        "conditions": conditions,
        "details": dict(request.status.provisioning_class_details),
    }
