"""Which pods are on a node now: asked before a node goes, and while its pods leave.

Two ways. `ListedPods` asks the server, which is the truth. `CachedPods` looks into an informer: for stepped scenarios,
where a cache is up to date whenever a turn begins and lists of large worlds are dear.
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
class NodePods:
    """`unreadable` pods are there too, and nobody knows what they are."""

    pods: tuple[Pod, ...] = ()
    unreadable: int = 0


class PodsOnNodes(Protocol):
    """Raises what a call to the API server raises."""

    async def on(self, node: str) -> NodePods: ...


class ListedPods:
    """As the server has them."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def on(self, node: str) -> NodePods:
        fields = FieldSelector(terms=(FieldTerm(field="spec.nodeName", value=node),))
        listed = await self._client.list(Pod, Selection(fields=fields))
        if listed.problem:
            raise UnreadableAnswer(f"pods of node {node}: {listed.problem}")
        return NodePods(pods=listed.items, unreadable=len(listed.bad))


class CachedPods:
    """As an informer shows them. To be made before the informer runs; pods that it cannot read are in nobody's list."""

    def __init__(self, informer: Informer[Pod]) -> None:
        self._cache = informer.cache
        informer.add_index(_BY_NODE, lambda pod: [pod.spec.node_name] if pod.spec.node_name else [])

    async def on(self, node: str) -> NodePods:
        return NodePods(pods=self._cache.by_index(_BY_NODE, node))
