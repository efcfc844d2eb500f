"""Node selectors: terms are ORed; within a term, expressions over labels and over fields are ANDed.

The form of required node affinity, of a volume's node affinity and of a storage class's allowed topologies. An empty
term matches nothing, and so does a selector without terms. Ten thousand terms match as quickly as one where each names
values: a term is evaluated only on nodes that carry a value of one of its In conditions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.core.errors import InvalidSelector
from plimsoll.core.selectors import LabelSelector, Operator, Requirement, build_requirement

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

NODE_NAME_FIELD: Final = "metadata.name"

_OPERATORS: Final = {
    "In": Operator.IN,
    "NotIn": Operator.NOT_IN,
    "Exists": Operator.EXISTS,
    "DoesNotExist": Operator.DOES_NOT_EXIST,
    "Gt": Operator.GREATER_THAN,
    "Lt": Operator.LESS_THAN,
}


def build_node_requirement(key: str, operator: str, values: Collection[str] = (), *, path: str = "") -> Requirement:
    """An entry of a term's matchExpressions; Gt and Lt take one integer."""
    known = _OPERATORS.get(operator)
    if known is None:
        raise InvalidSelector(f'"{operator}" is not a valid node selector operator', path=path)
    return build_requirement(key, known, values, path=path)


def build_field_requirement(key: str, operator: str, values: Collection[str] = (), *, path: str = "") -> Requirement:
    """An entry of matchFields: In or NotIn, with exactly one value, on any field (only metadata.name exists)."""
    if operator not in {"In", "NotIn"}:
        raise InvalidSelector(f'"{operator}" is not a valid node field selector operator', path=path)
    if len(values) != 1:
        raise InvalidSelector("must have one element", path=f"{path}.values" if path else "values")
    return Requirement(key=key, operator=_OPERATORS[operator], values=frozenset(values))


class NodeSelectorTerm:
    """All its conditions must hold; without conditions it matches nothing."""

    __slots__ = ("expressions", "fields", "is_empty")

    def __init__(self, expressions: Iterable[Requirement] = (), fields: Iterable[Requirement] = ()) -> None:
        self.expressions = LabelSelector(expressions)
        self.fields = LabelSelector(fields)
        self.is_empty = self.expressions.is_empty and self.fields.is_empty

    def matches(self, labels: Mapping[str, str], fields: Mapping[str, str]) -> bool:
        return not self.is_empty and self.expressions.matches(labels) and self.fields.matches(fields)

    def get_named_nodes(self) -> frozenset[str] | None:
        """The only nodes this term can match, if its fields name them; none when it does not name any."""
        named: frozenset[str] | None = None
        for field in self.fields:
            if field.key == NODE_NAME_FIELD and field.operator is Operator.IN:
                named = field.values if named is None else named & field.values
        return named


class NodeSelector:
    """Matches where any of its terms does."""

    __slots__ = ("_by_value", "_others", "terms")

    def __init__(self, terms: Iterable[NodeSelectorTerm]) -> None:
        self.terms = tuple(terms)
        self._by_value: dict[str, dict[str, list[NodeSelectorTerm]]] = {}
        self._others: list[NodeSelectorTerm] = []
        for term in self.terms:
            self._index_term(term)

    def _index_term(self, term: NodeSelectorTerm) -> None:
        """Under the values of its first In condition on a label, where it has one."""
        listed = next((expression for expression in term.expressions if expression.operator is Operator.IN), None)
        if listed is None:
            self._others.append(term)
            return
        by_value = self._by_value.setdefault(listed.key, {})
        for value in listed.values:
            by_value.setdefault(value, []).append(term)

    def matches(self, labels: Mapping[str, str], *, name: str = "") -> bool:
        fields = {NODE_NAME_FIELD: name}
        for key, by_value in self._by_value.items():
            value = labels.get(key)
            if value is not None and any(term.matches(labels, fields) for term in by_value.get(value, ())):
                return True
        return any(term.matches(labels, fields) for term in self._others)

    def get_named_nodes(self) -> frozenset[str] | None:
        """The only nodes any term can match, if every term names nodes; none when some term does not."""
        named: set[str] = set()
        for term in self.terms:
            names = term.get_named_nodes()
            if names is None:
                return None
            named |= names
        return frozenset(named) if self.terms else None
