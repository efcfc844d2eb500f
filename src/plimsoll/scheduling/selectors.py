"""Parses selectors of objects, once per prepared rule.

A selector Kubernetes would refuse raises `InvalidSelector` with its path; rules turn that into a refusal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.core.errors import InvalidSelector
from plimsoll.core.node_selectors import NodeSelector, NodeSelectorTerm, build_field_requirement, build_node_requirement
from plimsoll.core.selectors import (
    NOTHING,
    LabelSelector,
    Operator,
    Requirement,
    build_requirement,
    parse_requirement,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from plimsoll.objects.api import affinity, meta, storage


def parse_label_selector(wire: meta.LabelSelector | None, *, path: str = "") -> LabelSelector:
    """Absent selects nothing, empty selects everything: what pod affinity, spread and namespace selectors mean."""
    if wire is None:
        return NOTHING
    try:
        expressions = [
            parse_requirement(
                selector_requirement.key,
                selector_requirement.operator,
                selector_requirement.values,
                path=f"matchExpressions[{index}]",
            )
            for index, selector_requirement in enumerate(wire.match_expressions)
        ]
        return LabelSelector.from_parts(wire.match_labels, expressions)
    except InvalidSelector as error:
        raise InvalidSelector(str(error), path=path) from None


def with_label_keys(
    selector: LabelSelector,
    labels: Mapping[str, str],
    *,
    match: Iterable[str] = (),
    mismatch: Iterable[str] = (),
) -> LabelSelector:
    """Narrowed by matchLabelKeys and mismatchLabelKeys: the pod's own values of these keys, where it has them."""
    more = [
        Requirement(key=key, operator=Operator.IN, values=frozenset({labels[key]})) for key in match if key in labels
    ]
    more += [
        Requirement(key=key, operator=Operator.NOT_IN, values=frozenset({labels[key]}))
        for key in mismatch
        if key in labels
    ]
    return selector.with_requirements(*more) if more else selector


def parse_node_selector(wire: affinity.NodeSelector, *, path: str = "") -> NodeSelector:
    return NodeSelector(
        _parse_term(term, f"{path}.nodeSelectorTerms[{index}]") for index, term in enumerate(wire.node_selector_terms)
    )


def _parse_term(term: affinity.NodeSelectorTerm, path: str) -> NodeSelectorTerm:
    return NodeSelectorTerm(
        expressions=[
            build_node_requirement(
                selector_requirement.key,
                selector_requirement.operator,
                selector_requirement.values,
                path=f"{path}.matchExpressions[{index}]",
            )
            for index, selector_requirement in enumerate(term.match_expressions)
        ],
        fields=[
            build_field_requirement(
                selector_requirement.key,
                selector_requirement.operator,
                selector_requirement.values,
                path=f"{path}.matchFields[{index}]",
            )
            for index, selector_requirement in enumerate(term.match_fields)
        ],
    )


def parse_topology_selector(terms: Iterable[storage.TopologySelectorTerm], *, path: str = "") -> NodeSelector:
    """A storage class's allowedTopologies, as the node selector it amounts to (a term without expressions: nothing)."""
    return NodeSelector(
        NodeSelectorTerm(
            build_requirement(
                label_requirement.key,
                Operator.IN,
                label_requirement.values,
                path=f"{path}[{index}].matchLabelExpressions[{position}]",
            )
            for position, label_requirement in enumerate(term.match_label_expressions)
        )
        for index, term in enumerate(terms)
    )
