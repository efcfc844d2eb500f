"""The one index upkeep adds to the shared informer of pods: by node. Several of its parts ask for it."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from plimsoll.core.errors import InvalidInput

if TYPE_CHECKING:
    from plimsoll.kube.informer import Informer
    from plimsoll.objects.pods import Pod

_BY_NODE: Final = "upkeep: pods by node"


def pods_by_node(pods: Informer[Pod]) -> None:
    """Have pods found by `pods_on`; asked for again, it is there already."""
    with suppress(InvalidInput):
        pods.add_index(_BY_NODE, lambda pod: [pod.spec.node_name] if pod.spec.node_name else [])


def pods_on(pods: Informer[Pod], node_name: str) -> list[Pod]:
    """The pods bound to a node, in the order of their names."""
    found = pods.cache.by_index(_BY_NODE, node_name)
    return sorted(found, key=lambda pod: (pod.metadata.namespace, pod.metadata.name))
