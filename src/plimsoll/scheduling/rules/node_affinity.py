"""Node affinity: nodeSelector and the required terms; preferences only rank nodes and are ignored.

Topology spread also uses `RequiredNodes`, to decide which nodes count as domains.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.core.errors import InvalidSelector
from plimsoll.scheduling.selectors import parse_node_selector
from plimsoll.scheduling.verdicts import Refusal, refuse_malformed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.core.node_selectors import NodeSelector
    from plimsoll.objects.api.pods import Pod
    from plimsoll.scheduling.cluster_view import ClusterView, NodeState

NODE_AFFINITY: Final = "NodeAffinity"

_PATH: Final = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
_MISMATCH: Final = Refusal(plugin=NODE_AFFINITY, messages=("node(s) didn't match Pod's node affinity/selector",))
_CONFLICT: Final = Refusal(plugin=NODE_AFFINITY, messages=("pod affinity terms conflict",))


class RequiredNodes:
    """Which nodes a pod's nodeSelector and required node affinity allow."""

    def __init__(self, selector: Mapping[str, str], affinity: NodeSelector | None) -> None:
        self._selector = tuple(selector.items())
        self._affinity = affinity
        self.named = None if affinity is None else affinity.get_named_nodes()

    @classmethod
    def from_pod(cls, pod: Pod) -> RequiredNodes | None:
        """None where the pod asks for nothing; raises `InvalidSelector` for terms that cannot be read."""
        affinity = pod.spec.affinity
        node_affinity = None if affinity is None else affinity.node_affinity
        required = None if node_affinity is None else node_affinity.required_during_scheduling_ignored_during_execution
        if required is None and not pod.spec.node_selector:
            return None
        return cls(pod.spec.node_selector, None if required is None else parse_node_selector(required, path=_PATH))

    def allows(self, place: NodeState) -> bool:
        labels = place.labels
        # An empty text is a value of its own: a node without the label does not have it.
        if any(labels.get(key) != value for key, value in self._selector):
            return False
        return self._affinity is None or self._affinity.matches(labels, name=place.name)

    def refuse(self, place: NodeState) -> Refusal | None:
        return None if self.allows(place) else _MISMATCH


def prepare_node_affinity(pod: Pod, _view: ClusterView) -> RequiredNodes | Refusal | None:
    try:
        required = RequiredNodes.from_pod(pod)
    except InvalidSelector as error:
        return refuse_malformed(NODE_AFFINITY, str(error))
    if required is not None and required.named is not None and not required.named:
        return _CONFLICT
    return required
