"""Which nodes a ProvisioningRequest may be promised (docs/design/nodes.md 3.2, 4.3). Pure.

A request is never promised a node that is being removed, even if its pods tolerate the taints of the removal. A check
is promised nodes that exist, unless it asks for upcoming ones too. Both are node affinity that planning adds to the
pods; the pods of the user are compared with the unchanged template.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs

from plimsoll.nodes.model.node_labels import LEAVING
from plimsoll.nodes.model.node_templates import TEMPLATE_LABEL
from plimsoll.nodes.model.taints import REMOVAL_TAINTS
from plimsoll.objects.api.affinity import (
    Affinity,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
)

if TYPE_CHECKING:
    from plimsoll.objects.api.pods import Pod


def restrict_nodes(pod: Pod, *, counts_upcoming: bool) -> Pod:
    """The pod, kept off nodes that its request must not be promised."""
    avoided = [LEAVING] if _tolerates_removal(pod) else []
    avoided += [] if counts_upcoming else [TEMPLATE_LABEL]
    if not avoided:
        return pod
    added = tuple(NodeSelectorRequirement(key=key, operator="DoesNotExist") for key in avoided)
    affinity = pod.spec.affinity or Affinity()
    of_nodes = affinity.node_affinity or NodeAffinity()
    required = of_nodes.required_during_scheduling_ignored_during_execution
    terms: tuple[NodeSelectorTerm, ...] = (NodeSelectorTerm(match_expressions=added),)
    if required is not None:
        terms = tuple(_with_requirements(term, added) for term in required.node_selector_terms)
    of_nodes = structs.replace(
        of_nodes, required_during_scheduling_ignored_during_execution=NodeSelector(node_selector_terms=terms)
    )
    spec = structs.replace(pod.spec, affinity=structs.replace(affinity, node_affinity=of_nodes))
    return structs.replace(pod, spec=spec)


def _with_requirements(term: NodeSelectorTerm, added: tuple[NodeSelectorRequirement, ...]) -> NodeSelectorTerm:
    """A term without requirements matches no node, and must not begin to match some."""
    if not term.match_expressions and not term.match_fields:
        return term
    return structs.replace(term, match_expressions=(*term.match_expressions, *added))


def _tolerates_removal(pod: Pod) -> bool:
    """Whether a toleration names a taint of removals, or every taint."""
    return any(not toleration.key or toleration.key in REMOVAL_TAINTS for toleration in pod.spec.tolerations)
