"""Checks at the API server, just before an instance is deleted, that nothing runs on it.

A cache can miss a node or a pod: a list was cut short, an object could not be decoded, a watch is behind. So the Node
is read live, by its name and by the id of its instance, and the pods bound to that name are listed live. An instance
may be deleted if

* no Node stands for it and no pod is bound to it, as for an instance that never registered; or
* its Node has the deletion taint, as a drained node has, and only daemon pods, mirror pods and ended pods are left.

Several Nodes may state the id of one instance: a kubelet registers again when its machine gets another host name. All
of them must be drained.

A Node counts as existing even if it cannot be decoded. What cannot be read is not deleted.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

import msgspec

from plimsoll.core.names import find_subdomain_problems
from plimsoll.core.plans import Reason
from plimsoll.kube.errors import ApiCallFailed, NotFound
from plimsoll.nodes.model.pod_traits import is_daemon_pod, is_mirror_pod
from plimsoll.nodes.model.taints import BEING_DELETED
from plimsoll.nodes.planning.scaledown.drainability import is_overdue
from plimsoll.objects.api.nodes import Node, is_node_ready

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from plimsoll.core.clock import Clock
    from plimsoll.kube.client import Client
    from plimsoll.kube.informer.informer import Informer
    from plimsoll.nodes.actuation.node_pods import PodsOfNode, PodsOnNodes
    from plimsoll.nodes.providers.values import NodeRef
    from plimsoll.objects.api.pods import Pod

NODE_EXISTS: Final = "NodeExists"
NODE_IN_USE: Final = "NodeInUse"
NOT_VERIFIED: Final = "NotVerified"
_ENDED: Final = ("Succeeded", "Failed")
_BY_PROVIDER_ID: Final = "acting: nodes by provider id"


def is_in_use_by(pod: Pod, now: datetime) -> bool:
    """Whether the pod would be lost with its node: no daemon pod, no mirror pod, and neither ended nor overdue."""
    if is_daemon_pod(pod) or is_mirror_pod(pod) or pod.status.phase in _ENDED:
        return False
    return not is_overdue(pod, now)


def find_use(found: PodsOfNode, node: str, now: datetime) -> Reason | None:
    """Why the pods of a node keep it; None if none of them does."""
    if found.unreadable:
        message = f"{found.unreadable} pods on node {node} cannot be read"
        return Reason(code=NODE_IN_USE, message=message, facts={"node": node})
    using = [pod for pod in found.pods if is_in_use_by(pod, now)]
    if not using:
        return None
    first = using[0].metadata
    more = f" and {len(using) - 1} more" if len(using) > 1 else ""
    message = f"pod {first.namespace}/{first.name}{more} runs on node {node}"
    return Reason(code=NODE_IN_USE, message=message, facts={"node": node, "pods": len(using)})


class DeletionGuard:
    """Reads nodes and their pods live. `nodes_of_groups` names the nodes that each group is known to have.

    Create it before the informer runs, whose cache names further Nodes of an instance. Without it, all are listed.
    """

    def __init__(
        self, client: Client, pods: PodsOnNodes, *, clock: Clock, informer: Informer[Node] | None = None
    ) -> None:
        self._client = client
        self._pods = pods
        self._clock = clock
        self._informer = informer
        if informer is not None:
            informer.add_index(_BY_PROVIDER_ID, _get_provider_ids)
        self.nodes_of_groups: Mapping[str, frozenset[str]] = {}

    async def find_doubt(self) -> Reason | None:
        """Why this process must delete nothing: its lease, read again, is not known to be its own."""
        try:
            await self._client.confirm_guard()
        except ApiCallFailed as error:
            return Reason(code=NOT_VERIFIED, message=f"the lease could not be confirmed: {error}")
        return None

    async def find_in_use(self, refs: Sequence[NodeRef]) -> dict[str, Reason]:
        """Instances that must not be deleted now, by node name, each with the reason."""
        try:
            nodes = await self._find_nodes(refs)
        except ApiCallFailed as error:
            reason = Reason(code=NOT_VERIFIED, message=f"its Node could not be read: {error}")
            return {ref.name: reason for ref in refs}
        checked = {ref.name: await self._check(ref, nodes[ref.name]) for ref in refs}
        return {name: reason for name, reason in checked.items() if reason is not None}

    async def count_ready(self, group: str, *, more_than: int) -> int:
        """The number of nodes of a group that exist and are Ready; counting stops above `more_than`.

        Raises what a call to the API server raises.
        """
        known = sorted(self.nodes_of_groups.get(group, ()))
        if len(known) <= more_than:
            return len(known)
        ready = 0
        for name in known:
            node = await self._get_node(name)
            ready += node is not None and _is_ready(node)
            if ready > more_than:
                break
        return ready

    async def _check(self, ref: NodeRef, nodes: Sequence[dict[str, Any]]) -> Reason | None:
        for node in nodes:
            if not _has_deletion_taint(node):
                name = _format_name(node) or ref.name
                message = f"node {name} of instance {ref.provider_id or ref.name} exists and was not drained"
                return Reason(code=NODE_EXISTS, message=message, facts={"node": name, "ready": _is_ready(node)})
        names = [_format_name(node) or ref.name for node in nodes]
        for bound_to in dict.fromkeys((*names, ref.name)):
            try:
                found = await self._pods.list_on(bound_to)
            except ApiCallFailed as error:
                return Reason(code=NOT_VERIFIED, message=f"the pods of node {bound_to} could not be read: {error}")
            if (use := find_use(found, bound_to, self._clock.now())) is not None:
                return use
        return None

    async def _find_nodes(self, refs: Sequence[NodeRef]) -> dict[str, list[dict[str, Any]]]:
        """The Nodes of instances by the name of the reference: that of this name, and those of the provider id."""
        found = {ref.name: await self._get_nodes(ref) for ref in refs}
        if self._informer is not None and all(found.values()):
            return found
        by_id = await self._list_by_provider_id()
        for ref in refs:
            names = {_format_name(node) for node in found[ref.name]}
            found[ref.name] += [node for node in by_id[ref.provider_id] if _format_name(node) not in names]
        return found

    async def _get_nodes(self, ref: NodeRef) -> list[dict[str, Any]]:
        """The Node of the reference's name, and cached names of its provider id that still have it."""
        node = await self._get_node(ref.name)
        found = [] if node is None else [node]
        for name in self._list_cached_names(ref):
            other = await self._get_node(name)
            if other is not None and _get_mapping(other.get("spec")).get("providerID", "") in ("", ref.provider_id):
                found.append(other)
        return found

    def _list_cached_names(self, ref: NodeRef) -> list[str]:
        """Names of other Nodes that the cache has with the provider id, also of those that cannot be decoded."""
        if self._informer is None or not ref.provider_id:
            return []
        cache = self._informer.cache
        readable = {node.metadata.name for node in cache.list_by_index(_BY_PROVIDER_ID, ref.provider_id)}
        unreadable = {bad.name for bad in cache.bad.values() if bad.provider_id == ref.provider_id}
        return sorted((readable | unreadable) - {ref.name})

    async def _get_node(self, name: str) -> dict[str, Any] | None:
        """The Node as the API server has it, undecoded; None if there is none."""
        if find_subdomain_problems(name):
            return None
        try:
            answer = await self._client.get_raw(Node, name)
        except NotFound:
            return None
        return _parse(answer)

    async def _list_by_provider_id(self) -> defaultdict[str, list[dict[str, Any]]]:
        """All nodes that state a provider id. The API server selects nodes by no such field, so all are listed."""
        listed = await self._client.list(Node)
        found: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
        for node in listed.items:
            taints = [{"key": taint.key} for taint in node.spec.taints]
            for provider_id in _get_provider_ids(node):
                found[provider_id].append(_as_json(node.metadata.name, taints, ready=is_node_ready(node)))
        for bad in listed.bad:
            if bad.provider_id:
                found[bad.provider_id].append(_as_json(bad.name, [], ready=False))
        return found


def _get_provider_ids(node: Node) -> list[str]:
    return [node.spec.provider_id] if node.spec.provider_id else []


def _parse(answer: bytes) -> dict[str, Any]:
    """A Node as JSON. What is no JSON object is still a Node that exists."""
    try:
        parsed = msgspec.json.decode(answer)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    return parsed if isinstance(parsed, dict) else {}


def _as_json(name: str, taints: list[dict[str, str]], *, ready: bool) -> dict[str, Any]:
    conditions = [{"type": "Ready", "status": "True"}] if ready else []
    return {"metadata": {"name": name}, "spec": {"taints": taints}, "status": {"conditions": conditions}}


def _format_name(node: dict[str, Any]) -> str:
    name = _get_mapping(node.get("metadata")).get("name")
    return name if isinstance(name, str) else ""


def _has_deletion_taint(node: dict[str, Any]) -> bool:
    return any(
        taint.get("key") == BEING_DELETED for taint in _get_mappings(_get_mapping(node.get("spec")).get("taints"))
    )


def _is_ready(node: dict[str, Any]) -> bool:
    conditions = _get_mappings(_get_mapping(node.get("status")).get("conditions"))
    return any(condition.get("type") == "Ready" and condition.get("status") == "True" for condition in conditions)


def _get_mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _get_mappings(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
