"""Indexes on the shared informer of pods, by node and by label."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from plimsoll.core.errors import InvalidInput

if TYPE_CHECKING:
    from plimsoll.core.selectors import LabelSelector
    from plimsoll.kube.informer import Informer
    from plimsoll.objects.api.pods import Pod

_BY_NODE: Final = "upkeep: pods by node"
_BY_LABEL: Final = "upkeep: pods by label"


def index_pods_by_node(pods: Informer[Pod]) -> None:
    """Have pods found by `list_pods_on_node`; asked for again, it is there already."""
    with suppress(InvalidInput):
        pods.add_index(_BY_NODE, lambda pod: [pod.spec.node_name] if pod.spec.node_name else [])


def list_pods_on_node(pods: Informer[Pod], node_name: str) -> list[Pod]:
    """The pods bound to a node, in the order of their names."""
    found = pods.cache.list_by_index(_BY_NODE, node_name)
    return sorted(found, key=lambda pod: (pod.metadata.namespace, pod.metadata.name))


def index_pods_by_label(pods: Informer[Pod]) -> None:
    """Have pods found by `list_matching_pods`."""
    with suppress(InvalidInput):
        pods.add_index(_BY_LABEL, lambda pod: [(pod.metadata.namespace, *pair) for pair in pod.metadata.labels.items()])


def list_matching_pods(pods: Informer[Pod], namespace: str, selector: LabelSelector) -> list[Pod]:
    """The pods of a namespace with such labels, in the order of their names."""
    exact = ((requirement.key, selector.get_exact_value(requirement.key)) for requirement in selector)
    pair = next(((key, value) for key, value in exact if value is not None), None)
    found = pods.cache.list(namespace) if pair is None else pods.cache.list_by_index(_BY_LABEL, (namespace, *pair))
    return sorted((pod for pod in found if selector.matches(pod.metadata.labels)), key=lambda pod: pod.metadata.name)
