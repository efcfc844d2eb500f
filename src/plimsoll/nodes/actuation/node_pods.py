"""The pods on a node now: read before a node is removed, and while its pods leave.

`ListedPods` lists them from the API server, which is always current. `CachedPods` reads an informer's cache: for
stepped scenarios, where the cache is current whenever a loop begins and lists of large clusters are expensive.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from plimsoll.core.field_selectors import FieldSelector, FieldTerm
from plimsoll.kube.errors import UnreadableAnswer
from plimsoll.kube.requests.options import Selection
from plimsoll.objects.api.pods import Pod

if TYPE_CHECKING:
    from plimsoll.kube.client import Client
    from plimsoll.kube.informer.informer import Informer

_BY_NODE: Final = "acting: pods by node"


@dataclass(frozen=True, slots=True, kw_only=True)
class PodsOfNode:
    """The pods of a node; `unreadable` counts pods that could not be decoded."""

    pods: tuple[Pod, ...] = ()
    unreadable: int = 0


class PodsOnNodes(Protocol):
    """Lists the pods of a node; raises what a call to the API server raises."""

    async def list_on(self, node: str) -> PodsOfNode: ...


class ListedPods:
    """Pods as the API server lists them."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def list_on(self, node: str) -> PodsOfNode:
        fields = FieldSelector(terms=(FieldTerm(field="spec.nodeName", value=node),))
        listed = await self._client.list(Pod, Selection(fields=fields))
        if listed.problem:
            raise UnreadableAnswer(f"pods of node {node}: {listed.problem}")
        return PodsOfNode(pods=listed.items, unreadable=len(listed.bad))


class CachedPods:
    """Pods in an informer's cache. Create it before the informer runs; pods that cannot be decoded are missing."""

    def __init__(self, informer: Informer[Pod]) -> None:
        self._cache = informer.cache
        informer.add_index(_BY_NODE, lambda pod: [pod.spec.node_name] if pod.spec.node_name else [])

    async def list_on(self, node: str) -> PodsOfNode:
        return PodsOfNode(pods=self._cache.by_index(_BY_NODE, node))
