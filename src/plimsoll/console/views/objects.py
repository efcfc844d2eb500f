"""The page of an object: what it is, what was decided about it and why, its Events, and its pods or nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.console.cluster_map.cells import NodeState, build_node_cell, build_pod_cell, find_node_state
from plimsoll.console.views.decisions import describe_parts
from plimsoll.console.views.parameters import BadParameter, Parameters
from plimsoll.core.errors import InvalidInput
from plimsoll.core.field_selectors import FieldSelector, FieldTerm
from plimsoll.core.formatting import format_amount
from plimsoll.core.resources import CPU, MEMORY
from plimsoll.kube.errors import ApiCallFailed
from plimsoll.kube.requests.options import Selection
from plimsoll.objects.api.events import Event
from plimsoll.objects.owners import find_controller
from plimsoll.web.responses import build_json_response

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from starlette.requests import Request
    from starlette.responses import Response

    from plimsoll.console.views.ports import ClusterInformers, DecisionSource
    from plimsoll.core.plans import Ref
    from plimsoll.journal.decisions import ObjectDecision
    from plimsoll.kube.client import Client
    from plimsoll.objects.api.nodes import Node
    from plimsoll.objects.api.pods import Pod

    ReadRef = Callable[[str], Ref]
    """Reads KIND/[NAMESPACE/]NAME as the command line does. Raises `InvalidInput`."""

_DECISIONS: Final = 20
_MOST_EVENTS: Final = 50
_MOST_PODS: Final = 1_000
_MIB: Final = 1 << 20
BY_NODE: Final = "console/node"


class ObjectView:
    """`/api/things/KIND/[NAMESPACE/]NAME`."""

    def __init__(
        self,
        source: DecisionSource,
        client: Client,
        *,
        informers: ClusterInformers,
        read_ref: ReadRef,
    ) -> None:
        self._source = source
        self._client = client
        self._nodes, self._pods = informers
        self._read_ref = read_ref
        self._pods.add_index(BY_NODE, lambda pod: [pod.spec.node_name])

    async def show_object(self, request: Request) -> Response:
        """Facts, pods, decisions and Events. An object that nothing is known about has empty lists."""
        try:
            ref = self._read_ref(request.path_params["thing"])
        except InvalidInput as error:
            raise BadParameter(str(error)) from error
        limit = Parameters(request).get_number("limit", _DECISIONS, most=_MOST_EVENTS)
        decisions = await self._source.explain(ref, limit)
        events, problem = await self._list_events(ref)
        exists, facts = self._describe(ref)
        answer = {
            "ref": str(ref),
            "kind": ref.kind,
            "exists": exists,
            "facts": facts,
            "pods": self._list_pods(ref),
            "nodes": self._list_nodes(ref),
            "decisions": [_describe_decision(decision) for decision in decisions],
            "events": events,
            "eventsProblem": problem,
        }
        return build_json_response(answer)

    def _describe(self, ref: Ref) -> tuple[bool | None, list[dict[str, str]]]:
        """Whether the object exists, and its facts; None: the console does not follow objects of its kind."""
        if ref.kind == "node":
            node = self._nodes.cache.get(ref.name)
            return node is not None, [] if node is None else list(_describe_node(node))
        if ref.kind == "pod":
            pod = self._pods.cache.get(ref.name, ref.namespace)
            return pod is not None, [] if pod is None else list(_describe_pod(pod))
        return None, []

    def _list_pods(self, ref: Ref) -> list[dict[str, Any]]:
        if ref.kind != "node":
            return []
        pods = self._pods.cache.list_by_index(BY_NODE, ref.name)[:_MOST_PODS]
        return [_summarize_pod(pod) for pod in sorted(pods, key=_get_pod_key)]

    def _list_nodes(self, ref: Ref) -> list[dict[str, Any]]:
        if ref.kind != "nodegroup":
            return []
        rows = [(build_node_cell(node), node) for node in self._nodes.cache.list()]
        return [
            {"ref": f"node/{cell[0]}", "state": NodeState(find_node_state(node)).name.lower()}
            for cell, node in rows
            if cell[1] == ref.name
        ]

    async def _list_events(self, ref: Ref) -> tuple[list[dict[str, Any]], str]:
        """The newest Events about the object, and why they cannot be shown."""
        fields = FieldSelector(terms=(FieldTerm(field="involvedObject.name", value=ref.name),))
        try:
            found = await self._client.list(Event, Selection(namespace=ref.namespace, fields=fields))
        except ApiCallFailed as error:
            return [], str(error)
        of_kind = [event for event in found.items if event.involved_object.kind.lower() == ref.kind]
        newest = sorted(of_kind, key=_get_event_time, reverse=True)[:_MOST_EVENTS]
        return [_describe_event(event) for event in newest], ""


def _describe_decision(decision: ObjectDecision) -> dict[str, Any]:
    return {
        "number": decision.number,
        "at": decision.at,
        "subsystem": decision.subsystem,
        **describe_parts(decision.actions, decision.not_done, decision.outcomes),
    }


def _describe_node(node: Node) -> Iterable[dict[str, str]]:
    _, group, zone, machine_type, cpu, memory, pods, _ = build_node_cell(node)
    yield _build_fact("state", find_node_state(node).name.lower())
    if group:
        yield _build_fact("node group", str(group), f"nodegroup/{group}")
    yield _build_fact("machine type", str(machine_type))
    yield _build_fact("zone", str(zone))
    yield _build_fact("cpu", format_amount(CPU, _to_int(cpu)))
    yield _build_fact("memory", format_amount(MEMORY, _to_int(memory) * _MIB))
    yield _build_fact("pods at most", str(pods))
    for taint in node.spec.taints:
        yield _build_fact("taint", f"{taint.key}={taint.value}:{taint.effect}")


def _describe_pod(pod: Pod) -> Iterable[dict[str, str]]:
    _, _, _, node, cpu, memory, _ = build_pod_cell(pod)
    yield _build_fact("phase", pod.status.phase)
    yield _build_fact("node", str(node) or "none yet", f"node/{node}" if node else "")
    controller = find_controller(pod.metadata)
    if controller is not None:
        yield _build_fact("owner", f"{controller.kind} {controller.name}")
    yield _build_fact("requested cpu", format_amount(CPU, _to_int(cpu)))
    yield _build_fact("requested memory", format_amount(MEMORY, _to_int(memory) * _MIB))
    for condition in pod.status.conditions:
        if condition.type == "PodScheduled" and condition.status == "False":
            yield _build_fact("scheduler", condition.message)


def _summarize_pod(pod: Pod) -> dict[str, Any]:
    _, _, owner, _, cpu, memory, _ = build_pod_cell(pod)
    return {
        "ref": f"pod/{pod.metadata.namespace}/{pod.metadata.name}",
        "owner": owner,
        "cpu": format_amount(CPU, _to_int(cpu)),
        "memory": format_amount(MEMORY, _to_int(memory) * _MIB),
        "phase": pod.status.phase,
    }


def _describe_event(event: Event) -> dict[str, Any]:
    return {
        "at": _get_event_time(event) or None,
        "type": event.type,
        "reason": event.reason,
        "message": event.message,
        "count": max(event.count, 1),
        "from": event.source.component or event.reporting_component,
    }


def _build_fact(name: str, value: str, ref: str = "") -> dict[str, str]:
    return {"name": name, "value": value, "ref": ref}


def _to_int(value: object) -> int:
    return value if isinstance(value, int) else 0


def _get_pod_key(pod: Pod) -> tuple[str, str]:
    return pod.metadata.namespace, pod.metadata.name


def _get_event_time(event: Event) -> str:
    moment = event.last_timestamp or event.event_time
    return "" if moment is None else moment.isoformat()
