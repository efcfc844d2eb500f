"""The pods on a node now: read before a node is removed, and while its pods leave.

`ListedPods` lists them from the API server, which is always current. Pods that the informer knows there and the list
misses are read one by one: a list that misses a pod which exists is an unreadable answer, and so is an old one.
`CachedPods` reads an informer's cache: for stepped scenarios, where the cache is current whenever a loop begins and
lists of large clusters are expensive.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from plimsoll.core.field_selectors import FieldSelector, FieldTerm
from plimsoll.kube.errors import NotFound, UnreadableAnswer
from plimsoll.kube.informer.store.cache_updater import is_restored
from plimsoll.kube.requests.options import Selection
from plimsoll.objects.api.pods import Pod

if TYPE_CHECKING:
    from plimsoll.kube.client import Client
    from plimsoll.kube.informer.informer import Informer
    from plimsoll.objects.codec.decoding import DecodedList

_BY_NODE: Final = "acting: pods by node"
_READ_ONE_BY_ONE: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class PodsOfNode:
    """The pods of a node; `unreadable` counts pods that could not be decoded."""

    pods: tuple[Pod, ...] = ()
    unreadable: int = 0


class PodsOnNodes(Protocol):
    """Lists the pods of a node; raises what a call to the API server raises."""

    async def list_on(self, node: str) -> PodsOfNode: ...


class ListedPods:
    """Pods as the API server lists them. Create it before the informer runs, whose cache the lists are checked with."""

    def __init__(self, client: Client, informer: Informer[Pod] | None = None) -> None:
        self._client = client
        self._informer = informer
        if informer is not None:
            informer.add_index(_BY_NODE, _get_node_of)

    async def list_on(self, node: str) -> PodsOfNode:
        fields = FieldSelector(terms=(FieldTerm(field="spec.nodeName", value=node),))
        listed = await self._client.list(Pod, Selection(fields=fields))
        if listed.problem:
            raise UnreadableAnswer(f"pods of node {node}: {listed.problem}")
        if self._informer is not None:
            await self._check(node, listed, self._informer)
        return PodsOfNode(pods=listed.items, unreadable=len(listed.bad))

    async def _check(self, node: str, listed: DecodedList[Pod], informer: Informer[Pod]) -> None:
        """Raise `UnreadableAnswer` if the list contradicts the informer and a second read."""
        if is_restored(listed.metadata.resource_version, informer.position):
            raise UnreadableAnswer(f"the list of pods of node {node} is older than what is known")
        there = {pod.metadata.uid for pod in listed.items} | {bad.uid for bad in listed.bad}
        missing = [
            pod.metadata for pod in informer.cache.list_by_index(_BY_NODE, node) if pod.metadata.uid not in there
        ]
        for metadata in missing[:_READ_ONE_BY_ONE]:
            try:
                pod = await self._client.get(Pod, metadata.name, namespace=metadata.namespace)
            except NotFound:
                continue
            if pod.metadata.uid == metadata.uid and pod.spec.node_name == node:
                name = f"{metadata.namespace}/{metadata.name}"
                raise UnreadableAnswer(f"the list of pods of node {node} misses pod {name}, which exists")


class CachedPods:
    """Pods in an informer's cache. Create it before the informer runs; pods that cannot be decoded are missing."""

    def __init__(self, informer: Informer[Pod]) -> None:
        self._cache = informer.cache
        informer.add_index(_BY_NODE, _get_node_of)

    async def list_on(self, node: str) -> PodsOfNode:
        return PodsOfNode(pods=self._cache.list_by_index(_BY_NODE, node))


def _get_node_of(pod: Pod) -> list[str]:
    return [pod.spec.node_name] if pod.spec.node_name else []
