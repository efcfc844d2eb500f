"""The syntax tree, which the parser builds and the checker, the estimator and the evaluator traverse.

Nodes are compared and hashed by identity, so that types and sizes of nodes are in dictionaries beside the tree, and the
tree itself never changes. `depth` bounds the recursion of every traversal.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# The name under which a comprehension collects its result; no expression can spell it.
ACCUMULATOR = "@result"


@dataclass(frozen=True, slots=True, eq=False)
class AstNode:
    """`offset` is where a complaint about this node points to: an operator's sign, a call's parenthesis."""

    offset: int
    depth: int = field(init=False, default=1)

    def __post_init__(self) -> None:
        object.__setattr__(self, "depth", 1 + max((child.depth for child in self.iterate_children()), default=0))

    def iterate_children(self) -> Iterator[AstNode]:
        yield from ()


@dataclass(frozen=True, slots=True, eq=False)
class Literal(AstNode):
    """A constant."""

    value: object


@dataclass(frozen=True, slots=True, eq=False)
class Ident(AstNode):
    """A name."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Select(AstNode):
    """`operand.name`, or with `test_only` the `has(operand.name)` of it."""

    operand: AstNode
    name: str
    test_only: bool = False

    def iterate_children(self) -> Iterator[AstNode]:
        yield self.operand


@dataclass(frozen=True, slots=True, eq=False)
class Call(AstNode):
    """A function, method or operator; operators have cel-go's names (`_+_`, `_?_:_`, `_[_]`)."""

    function: str
    arguments: tuple[AstNode, ...]
    target: AstNode | None = None

    def iterate_children(self) -> Iterator[AstNode]:
        if self.target is not None:
            yield self.target
        yield from self.arguments


@dataclass(frozen=True, slots=True, eq=False)
class ListLiteral(AstNode):
    """`optional` are the positions written `?e`: left out if the optional is empty."""

    elements: tuple[AstNode, ...]
    optional: frozenset[int] = frozenset()

    def iterate_children(self) -> Iterator[AstNode]:
        yield from self.elements


@dataclass(frozen=True, slots=True, eq=False)
class MapEntry:
    """`key: value`, or with `optional` `?key: value`."""

    offset: int
    key: AstNode
    value: AstNode
    optional: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class MapLiteral(AstNode):
    """`{key: value, …}`."""

    entries: tuple[MapEntry, ...]

    def iterate_children(self) -> Iterator[AstNode]:
        for entry in self.entries:
            yield entry.key
            yield entry.value


@dataclass(frozen=True, slots=True, eq=False)
class Comprehension(AstNode):
    """The expansion of every macro over a list or map: a fold that ends early when `condition` is false.

    With `variable2` the first variable is the index or key and the second the value.
    """

    items: AstNode
    variable: str
    variable2: str | None
    initial: AstNode
    condition: AstNode
    step: AstNode
    result: AstNode

    def iterate_children(self) -> Iterator[AstNode]:
        yield from (self.items, self.initial, self.condition, self.step, self.result)


@dataclass(frozen=True, slots=True, eq=False)
class Bind(AstNode):
    """A name for a value within `body`; optMap and optFlatMap expand to it."""

    variable: str
    value: AstNode
    body: AstNode

    def iterate_children(self) -> Iterator[AstNode]:
        yield self.value
        yield self.body


def list_leading_chain(node: AstNode, first_operand: Callable[[AstNode], AstNode | None]) -> list[AstNode]:
    """The node, its first operand, the first operand of that, and so on.

    A walker that visits the chain from its end finds the first operand of each node already done: so a long chain of
    operators or fields costs no recursion, and what is left is bounded by the nesting of brackets.
    """
    chain = [node]
    while (first := first_operand(chain[-1])) is not None:
        chain.append(first)
    return chain


def walk(root: AstNode) -> Iterator[AstNode]:
    """Every node once, without recursion."""
    seen: set[AstNode] = set()
    pending = [root]
    while pending:
        node = pending.pop()
        if node not in seen:
            seen.add(node)
            yield node
            pending.extend(node.iterate_children())
