"""Macros: calls that the parser expands, because their arguments are expressions and not values.

`has`, the quantifiers and transformations over one variable, those over two (index or key, and value), and optMap and
optFlatMap. Every fold becomes a `Comprehension` of the same shape as cel-go's, so that its cost is the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

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
)
from plimsoll.objects.cel.syntax.source import Issue

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class MacroError(Exception):  # internal: caught by the parser, which collects the issue
    """The arguments do not have the form the macro needs."""

    def __init__(self, issue: Issue) -> None:
        super().__init__(issue.problem)
        self.issue = issue


def expand(call: Call) -> AstNode:
    """The expansion of the call if it is a macro, else the call itself."""
    if call.target is None:
        return _has(call) if call.function == "has" and len(call.arguments) == 1 else call
    expander = _MACROS.get((call.function, len(call.arguments)))
    return expander(call) if expander is not None else call


def _has(call: Call) -> AstNode:
    (argument,) = call.arguments
    if not isinstance(argument, Select) or argument.test_only:
        raise MacroError(Issue(argument.offset, "invalid argument to has() macro"))
    return Select(call.offset, argument.operand, argument.name, test_only=True)


def _read_variable(node: AstNode) -> str:
    if not isinstance(node, Ident):
        raise MacroError(Issue(node.offset, "argument must be a simple name"))
    return node.name


def _read_variables(arguments: Sequence[AstNode], count: int) -> tuple[str, str | None]:
    first = _read_variable(arguments[0])
    if count == 1:
        return first, None
    second = _read_variable(arguments[1])
    if first == second:
        raise MacroError(Issue(arguments[1].offset, f"duplicate variable name: {second}"))
    return first, second


class _Fold:
    """Builds a comprehension for one call; all nodes it adds complain at the call's parenthesis, as in cel-go."""

    def __init__(self, call: Call, variables: int) -> None:
        assert call.target is not None
        self.at = call.offset
        self.items = call.target
        self.variable, self.variable2 = _read_variables(call.arguments, variables)

    def build_accumulator(self) -> AstNode:
        return Ident(self.at, ACCUMULATOR)

    def build_literal(self, value: object) -> AstNode:
        return Literal(self.at, value)

    def call(self, function: str, *arguments: AstNode) -> AstNode:
        return Call(self.at, function, arguments)

    def build(
        self, *, initial: AstNode, step: AstNode, condition: AstNode | None = None, result: AstNode | None = None
    ) -> AstNode:
        return Comprehension(
            self.at,
            self.items,
            self.variable,
            self.variable2,
            initial,
            condition or self.build_literal(value=True),
            step,
            result or self.build_accumulator(),
        )


def _build_all(variables: int) -> Callable[[Call], AstNode]:
    def expand_call(call: Call) -> AstNode:
        fold = _Fold(call, variables)
        return fold.build(
            initial=fold.build_literal(value=True),
            condition=fold.call("@not_strictly_false", fold.build_accumulator()),
            step=fold.call("_&&_", fold.build_accumulator(), call.arguments[-1]),
        )

    return expand_call


def _build_exists(variables: int) -> Callable[[Call], AstNode]:
    def expand_call(call: Call) -> AstNode:
        fold = _Fold(call, variables)
        return fold.build(
            initial=fold.build_literal(value=False),
            condition=fold.call("@not_strictly_false", fold.call("!_", fold.build_accumulator())),
            step=fold.call("_||_", fold.build_accumulator(), call.arguments[-1]),
        )

    return expand_call


def _build_exists_one(variables: int) -> Callable[[Call], AstNode]:
    def expand_call(call: Call) -> AstNode:
        fold = _Fold(call, variables)
        counted = fold.call("_+_", fold.build_accumulator(), fold.build_literal(1))
        return fold.build(
            initial=fold.build_literal(0),
            step=fold.call("_?_:_", call.arguments[-1], counted, fold.build_accumulator()),
            result=fold.call("_==_", fold.build_accumulator(), fold.build_literal(1)),
        )

    return expand_call


def _build_transform_list(variables: int) -> Callable[[Call], AstNode]:
    """`map` and `transformList`: the last argument is the new element, one before it a condition."""

    def expand_call(call: Call) -> AstNode:
        fold = _Fold(call, variables)
        element = ListLiteral(fold.at, (call.arguments[-1],))
        step = fold.call("_+_", fold.build_accumulator(), element)
        if len(call.arguments) == variables + 2:
            step = fold.call("_?_:_", call.arguments[-2], step, fold.build_accumulator())
        return fold.build(initial=ListLiteral(fold.at, ()), step=step)

    return expand_call


def _filter(call: Call) -> AstNode:
    fold = _Fold(call, 1)
    kept = fold.call("_+_", fold.build_accumulator(), ListLiteral(fold.at, (call.arguments[0],)))
    step = fold.call("_?_:_", call.arguments[1], kept, fold.build_accumulator())
    return fold.build(initial=ListLiteral(fold.at, ()), step=step)


def _build_transform_map(*, entries: bool) -> Callable[[Call], AstNode]:
    """Expand `transformMap`, which preserves the keys, or `transformMapEntry`, which merges maps."""

    def expand_call(call: Call) -> AstNode:
        fold = _Fold(call, 2)
        key = () if entries else (call.arguments[0],)
        step = fold.call("cel.@mapInsert", fold.build_accumulator(), *key, call.arguments[-1])
        if len(call.arguments) == 4:
            step = fold.call("_?_:_", call.arguments[2], step, fold.build_accumulator())
        return fold.build(initial=MapLiteral(fold.at, ()), step=step)

    return expand_call


def _build_opt_map(*, flat: bool) -> Callable[[Call], AstNode]:
    def expand_call(call: Call) -> AstNode:
        assert call.target is not None
        at, variable = call.offset, _read_variable(call.arguments[0])
        body: AstNode = Bind(at, variable, Call(at, "value", (), call.target), call.arguments[1])
        if not flat:
            body = Call(at, "optional.of", (body,))
        return Call(at, "_?_:_", (Call(at, "hasValue", (), call.target), body, Call(at, "optional.none", ())))

    return expand_call


_MACROS: dict[tuple[str, int], Callable[[Call], AstNode]] = {
    ("all", 2): _build_all(1),
    ("exists", 2): _build_exists(1),
    ("exists_one", 2): _build_exists_one(1),
    ("existsOne", 2): _build_exists_one(1),
    ("map", 2): _build_transform_list(1),
    ("map", 3): _build_transform_list(1),
    ("filter", 2): _filter,
    ("all", 3): _build_all(2),
    ("exists", 3): _build_exists(2),
    ("exists_one", 3): _build_exists_one(2),
    ("existsOne", 3): _build_exists_one(2),
    ("transformList", 3): _build_transform_list(2),
    ("transformList", 4): _build_transform_list(2),
    ("transformMap", 3): _build_transform_map(entries=False),
    ("transformMap", 4): _build_transform_map(entries=False),
    ("transformMapEntry", 3): _build_transform_map(entries=True),
    ("transformMapEntry", 4): _build_transform_map(entries=True),
    ("optMap", 2): _build_opt_map(flat=False),
    ("optFlatMap", 2): _build_opt_map(flat=True),
}
