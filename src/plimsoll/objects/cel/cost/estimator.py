"""The worst case of an expression, before it ever runs: cel-go's estimator over the sizes the schema allows.

Every node costs a step (constants none), text and lists cost by their length, a fold costs its body as often as its
range may be long. Sizes come from the schema where a value is reached from a variable by fields, elements and keys
(`_reached`), from the expression where it builds the value, and are unknown, that is as large as can be, elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from plimsoll.objects.cel.cost.library_costs import Operand, Price, estimate_library_price, find_declared_size
from plimsoll.objects.cel.cost.ranges import NOTHING, ONE, TRAVERSAL, UNKNOWN, Range, build_exact, sum_ranges
from plimsoll.objects.cel.names import unescape_field
from plimsoll.objects.cel.syntax.ast import (
    ACCUMULATOR,
    AstNode,
    Bind,
    Call,
    Comprehension,
    Ident,
    ListLiteral,
    Literal,
    MapLiteral,
    Select,
    list_leading_chain,
)
from plimsoll.objects.cel.types import types as t
from plimsoll.objects.cel.values.numbers import UINT_MAX

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.objects.cel.checker.checker import Checked

_NEW_LIST = build_exact(10)
_NEW_MAP = build_exact(30)
_EMPTY = Range(UINT_MAX, 0)
# No schema limits the length of a map's keys, and Kubernetes counts them as empty.
_KEY = t.StringType(0)
_ORDERINGS = frozenset({"_<_", "_<=_", "_>_", "_>=_"})


@dataclass(frozen=True, slots=True)
class _Entry:
    """The sizes of what a list or map built in the expression holds."""

    of_list: bool
    key: Range
    value: Range

    def union(self, other: _Entry | None) -> _Entry | None:
        if other is None:
            return None
        return _Entry(self.of_list, self.key.union(other.key), self.value.union(other.value))


@dataclass(frozen=True, slots=True)
class _Local:
    """A variable of a fold or a binding."""

    reached: t.CelType | None
    size: Range | None
    entry: _Entry | None = None


def estimate(checked: Checked, variables: Mapping[str, t.CelType]) -> int:
    """The most the expression can cost; never more than the largest 64-bit number."""
    return _Estimator(checked, variables).estimate_cost(checked.root).most


class _Estimator:
    def __init__(self, checked: Checked, variables: Mapping[str, t.CelType]) -> None:
        self._checked = checked
        self._variables = variables
        self._costs: dict[AstNode, Range] = {}
        self._sizes: dict[AstNode, Range] = {}
        self._entries: dict[AstNode, _Entry] = {}
        self._reached: dict[AstNode, t.CelType | None] = {}
        self._locals: dict[str, list[_Local]] = {}

    def estimate_cost(self, node: AstNode) -> Range:
        """The cost of evaluating the node; computed once, even if a macro uses the node twice."""
        if node not in self._costs:
            for link in reversed(list_leading_chain(node, self._checked.find_first_operand)):
                if link not in self._costs:
                    self._costs[link] = self._compute_cost(link)
        return self._costs[node]

    def _compute_cost(self, node: AstNode) -> Range:
        match node:
            case Ident():
                self._reached[node] = self._find_type_by_name(node.name)
                return ONE
            case Select():
                return self._select(node)
            case Call():
                return self._call(node)
            case ListLiteral():
                return self._list(node)
            case MapLiteral():
                return self._map(node)
            case Comprehension():
                return self._estimate_comprehension(node)
            case Bind():
                return self._bind(node)
        return NOTHING

    # -- sizes

    def _find_local(self, name: str) -> _Local | None:
        stack = self._locals.get(name)
        return stack[-1] if stack else None

    def _find_type_by_name(self, name: str) -> t.CelType | None:
        local = self._find_local(name)
        if local is not None:
            return local.reached
        declared = self._variables.get(name.removeprefix("."))
        return declared.of if isinstance(declared, t.OptionalType) else declared

    def _find_reached_type(self, node: AstNode) -> t.CelType | None:
        if isinstance(node, Ident):
            return self._find_type_by_name(node.name)
        return self._reached.get(node)

    def _estimate_size(self, node: AstNode) -> Range | None:
        """The size of a node, in the order of cel-go: computed, literal, from the schema, from the type."""
        if node in self._sizes:
            return self._sizes[node]
        written = _find_literal_size(node)
        if written is not None:
            return written
        reached = self._find_reached_type(node)
        if reached is not None:
            return find_declared_size(reached)
        if _is_scalar(self._checked.types[node]):
            return ONE
        local = self._find_local(node.name) if isinstance(node, Ident) else None
        return local.size if local is not None else None

    def _estimate_size_or_unknown(self, node: AstNode) -> Range:
        size = self._estimate_size(node)
        return UNKNOWN if size is None else size

    def _find_entry(self, node: AstNode) -> _Entry | None:
        if node in self._entries:
            return self._entries[node]
        local = self._find_local(node.name) if isinstance(node, Ident) else None
        return local.entry if local is not None else None

    def _build_operand(self, node: AstNode) -> Operand:
        return Operand(
            node, self._checked.types[node], self._estimate_size_or_unknown(node), self._find_reached_type(node)
        )

    # -- nodes

    def _select(self, node: Select) -> Range:
        if node not in self._checked.types or node in self._checked.constants:
            return ONE
        cost = self.estimate_cost(node.operand)
        if node.test_only:
            return cost
        operand = self._checked.types[node.operand]
        reached = self._find_reached_type(node.operand)
        if isinstance(reached, t.ObjectType):
            self._reached[node] = reached.fields.get(unescape_field(node.name) or "")
        return cost.add(ONE) if isinstance(operand, t.MapType | t.ObjectType) else cost

    def _list(self, node: ListLiteral) -> Range:
        cost = sum_ranges([self.estimate_cost(element) for element in node.elements])
        size = _EMPTY if node.elements else NOTHING
        for element in node.elements:
            size = size.union(self._estimate_size_or_unknown(element))
        self._entries[node] = _Entry(of_list=True, key=ONE, value=size)
        return cost.add(_NEW_LIST)

    def _map(self, node: MapLiteral) -> Range:
        cost = sum_ranges([self.estimate_cost(part) for part in node.iterate_children()])
        key = value = _EMPTY if node.entries else NOTHING
        for entry in node.entries:
            key = key.union(self._estimate_size_or_unknown(entry.key))
            value = value.union(self._estimate_size_or_unknown(entry.value))
        self._entries[node] = _Entry(of_list=False, key=key, value=value)
        return cost.add(_NEW_MAP)

    def _bind(self, node: Bind) -> Range:
        cost = _NEW_LIST.add(self.estimate_cost(node.value))
        local = _Local(
            self._find_reached_type(node.value), self._estimate_size(node.value), self._find_entry(node.value)
        )
        self._locals.setdefault(node.variable, []).append(local)
        cost = cost.add(self.estimate_cost(node.body))
        size, entry = self._estimate_size(node.body), self._find_entry(node.body)
        self._locals[node.variable].pop()
        self._remember(node, size, entry)
        return cost

    def _remember(self, node: AstNode, size: Range | None, entry: _Entry | None) -> None:
        if size is not None:
            self._sizes[node] = size
        if entry is not None:
            self._entries[node] = entry

    def _estimate_comprehension(self, node: Comprehension) -> Range:
        cost = self.estimate_cost(node.items).add(self.estimate_cost(node.initial))
        accumulator = _Local(
            self._find_reached_type(node.initial), self._estimate_size(node.initial), self._find_entry(node.initial)
        )
        self._locals.setdefault(ACCUMULATOR, []).append(accumulator)
        variables = self._build_loop_variables(node)
        for name, local in variables.items():
            self._locals.setdefault(name, []).append(local)
        per_element = self.estimate_cost(node.condition).add(self.estimate_cost(node.step))
        step_entry = self._find_entry(node.step)
        for name in variables:
            self._locals[name].pop()
        cost = cost.add(self.estimate_cost(node.result))
        self._locals[ACCUMULATOR].pop()
        times = self._estimate_size_or_unknown(node.items)
        if isinstance(node.initial, Literal):
            self._remember(node, self._estimate_size(node.initial), None)
        elif isinstance(node.initial, ListLiteral | MapLiteral):
            self._remember(node, times, step_entry)
        return cost.add(times.multiply(per_element))

    def _build_loop_variables(self, node: Comprehension) -> dict[str, _Local]:
        entry, reached = self._find_entry(node.items), self._find_reached_type(node.items)
        over_list = entry.of_list if entry is not None else isinstance(self._checked.types[node.items], t.ListType)
        key = _Local(_KEY if isinstance(reached, t.MapType) else None, entry.key if entry else None)
        value = _Local(_get_content_type(reached), entry.value if entry else None)
        if node.variable2 is not None:
            return {node.variable: key, node.variable2: value}
        return {node.variable: value if over_list else key}

    # -- calls

    def _call(self, node: Call) -> Range:
        if node.function == "dyn":
            (argument,) = node.arguments
            cost = ONE.add(self.estimate_cost(argument))
            self._remember(node, self._estimate_size(argument), self._find_entry(argument))
            return cost
        costs = [self.estimate_cost(argument) for argument in node.arguments]
        arguments = [self._build_operand(argument) for argument in node.arguments]
        target, cost, function = None, NOTHING, node.function
        if node.target is not None and self._checked.is_method(node):
            cost, target = self.estimate_cost(node.target), self._build_operand(node.target)
        elif node in self._checked.overloads:
            function = self._checked.overloads[node][0].name
        price = self._estimate_price(node, function, target, arguments)
        size = price.size
        if function == "_[_]":
            size = self._index(node)
        self._remember(node, size if size is not None else self._estimate_size(node), None)
        return cost.add(self._sum_arguments_cost(function, costs)).add(price.cost)

    def _sum_arguments_cost(self, function: str, costs: list[Range]) -> Range:
        if function in {"_&&_", "_||_"}:
            return Range(costs[0].least, costs[0].add(costs[1]).most)
        if function == "_?_:_":
            return costs[0].add(costs[1].union(costs[2]))
        return sum_ranges(costs)

    def _index(self, node: Call) -> Range | None:
        container = node.arguments[0]
        reached, entry = self._find_reached_type(container), self._find_entry(container)
        self._reached[node] = _get_content_type(reached)
        return entry.value if entry is not None else None

    def _estimate_price(self, node: Call, function: str, target: Operand | None, arguments: list[Operand]) -> Price:
        price = estimate_library_price(function, target, arguments)
        if price is not None:
            return price
        return self._estimate_standard_price(node, function, [argument.size for argument in arguments])

    def _estimate_standard_price(self, node: Call, function: str, sizes: list[Range]) -> Price:
        """The cost of operators that do not evaluate all operands, or whose cost depends on the overload."""
        match function:
            case "_&&_" | "_||_":
                return Price(NOTHING)
            case "_?_:_":
                entry = self._find_entry(node.arguments[1])
                self._remember(node, None, entry.union(self._find_entry(node.arguments[2])) if entry else None)
                return Price(NOTHING, sizes[1].union(sizes[2]))
            case "_+_" if self._is_concatenation(node):
                return self._join(node, sizes)
            case "_==_" | "_!=_":
                return Price(_compute_comparison(sizes))
            case _ if function in _ORDERINGS and self._compares_text(node):
                return Price(_compute_comparison(sizes))
        return Price(ONE)

    def _list_parameters(self, node: Call) -> list[t.CelType]:
        return [overload.parameters[0] for overload in self._checked.overloads.get(node, ())]

    def _is_concatenation(self, node: Call) -> bool:
        return any(isinstance(of, t.StringType | t.BytesType | t.ListType) for of in self._list_parameters(node))

    def _compares_text(self, node: Call) -> bool:
        return any(isinstance(of, t.StringType | t.BytesType) for of in self._list_parameters(node))

    def _join(self, node: Call, sizes: list[Range]) -> Price:
        size = sizes[0].add(sizes[1])
        entry = self._find_entry(node.arguments[0])
        self._remember(node, None, entry.union(self._find_entry(node.arguments[1])) if entry is not None else None)
        only_lists = all(isinstance(of, t.ListType) for of in self._list_parameters(node))
        return Price(ONE if only_lists else size.scale(TRAVERSAL), size)


def _get_content_type(reached: t.CelType | None) -> t.CelType | None:
    if isinstance(reached, t.ListType):
        return reached.element
    return reached.value if isinstance(reached, t.MapType) else None


def _compute_comparison(sizes: list[Range]) -> Range:
    shorter = min(sizes[0].most, sizes[1].most)
    return Range(1 if shorter else 0, shorter).scale(TRAVERSAL)


def _find_literal_size(node: AstNode) -> Range | None:
    match node:
        case Literal():
            return build_exact(len(node.value)) if isinstance(node.value, str | bytes) else ONE
        case ListLiteral():
            return build_exact(len(node.elements))
        case MapLiteral():
            return build_exact(len(node.entries))
    return None


def _is_scalar(of: t.CelType) -> bool:
    if isinstance(of, t.OptionalType):
        return _is_scalar(of.of)
    return of in {t.BOOL, t.INT, t.UINT, t.DOUBLE, t.TIMESTAMP, t.DURATION}
