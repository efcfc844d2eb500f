"""A checked tree into nested Python functions, so that evaluation costs one Python frame a level and no dispatch.

Used by `Program`; the functions themselves are in `closures` (the language) and `dispatch` (function libraries).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from plimsoll.objects.cel.errors import CelEvaluationError
from plimsoll.objects.cel.eval import closures
from plimsoll.objects.cel.eval.dispatch import build_caller
from plimsoll.objects.cel.eval.frames import Failed, Frame, Run
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
from plimsoll.objects.cel.values.values import raise_no_such_overload

if TYPE_CHECKING:
    from plimsoll.objects.cel.checker.checker import Checked


def compile_tree(checked: Checked) -> tuple[Run, int]:
    """The function of the root, and how many local variables its frame needs."""
    compiler = _Compiler(checked)
    return compiler.run(checked.root), compiler.locals_needed


class _Compiler:
    def __init__(self, checked: Checked) -> None:
        self._checked = checked
        self._done: dict[AstNode, Run] = {}
        self._slots: dict[str, list[int]] = {}
        self.locals_needed = 0

    def run(self, node: AstNode) -> Run:
        if node not in self._done:
            for link in reversed(list_leading_chain(node, self._checked.find_first_operand)):
                if link not in self._done:
                    self._done[link] = self._compile(link)
        return self._done[node]

    def _compile(self, node: AstNode) -> Run:
        if node in self._checked.constants:
            return closures.build_constant(self._checked.constants[node])
        match node:
            case Literal():
                return closures.build_constant(node.value)
            case Ident():
                return self._compile_ident(node)
            case Select():
                return closures.build_selection(self.run(node.operand), node.name, test_only=node.test_only)
            case Call():
                return self._call(node)
            case ListLiteral():
                return closures.build_list([self.run(element) for element in node.elements], node.optional)
            case MapLiteral():
                entries = [(self.run(entry.key), self.run(entry.value), entry.optional) for entry in node.entries]
                return closures.build_map(entries)
            case Comprehension():
                return self._compile_comprehension(node)
            case Bind():
                return self._bind(node)
        raise AssertionError(node)

    # -- names

    def _open(self, name: str) -> int:
        slot = self.locals_needed
        self.locals_needed += 1
        self._slots.setdefault(name, []).append(slot)
        return slot

    def _close(self, name: str) -> None:
        self._slots[name].pop()

    def _compile_ident(self, node: Ident) -> Run:
        slots = self._slots.get(node.name)
        return closures.build_local(slots[-1]) if slots else closures.build_variable(node.name.removeprefix("."))

    def _bind(self, node: Bind) -> Run:
        value = self.run(node.value)
        slot = self._open(node.variable)
        body = self.run(node.body)
        self._close(node.variable)

        def run(frame: Frame) -> object:
            frame.local[slot] = value(frame)
            return body(frame)

        return run

    # -- calls

    def _call(self, node: Call) -> Run:
        match node.function:
            case "_&&_" | "_||_":
                left, right = map(self.run, node.arguments)
                return closures.build_logical(left, right, decides=node.function == "_||_")
            case "_?_:_":
                return closures.build_conditional(*map(self.run, node.arguments))
            case "@not_strictly_false":
                return closures.build_not_strictly_false(self.run(node.arguments[0]))
            case "_?._":
                name = node.arguments[1]
                assert isinstance(name, Literal)
                return closures.build_optional_selection(self.run(node.arguments[0]), str(name.value))
            case "cel.@mapInsert":
                return self._compile_insertion(node)
            case "_==_" | "_!=_":
                left, right = map(self.run, node.arguments)
                return closures.build_equality_test(left, right, wanted=node.function == "_==_")
            case "@in":
                wanted, container = map(self.run, node.arguments)
                return closures.build_membership(wanted, container)
            case "_+_" if _is_accumulator(node.arguments[0]):
                return self._compile_append(node)
        return self._compile_function(node)

    def _compile_function(self, node: Call) -> Run:
        operands = [self.run(argument) for argument in node.arguments]
        if node.target is not None and self._checked.is_method(node):
            operands.insert(0, self.run(node.target))
        return build_caller(self._checked.overloads[node], operands)

    def _compile_append(self, node: Call) -> Run:
        """`accumulator + [x]` appends to the fold's own list; copying it each time would be quadratic."""
        added = node.arguments[1]
        if not isinstance(added, ListLiteral):
            return self._compile_function(node)
        accumulator, element = self.run(node.arguments[0]), self.run(added.elements[0])

        def run(frame: Frame) -> object:
            items = accumulator(frame)
            value = element(frame)
            frame.charge(12)
            assert isinstance(items, list)
            items.append(value)
            return items

        return run

    def _compile_insertion(self, node: Call) -> Run:
        accumulator, *rest = map(self.run, node.arguments)

        def run(frame: Frame) -> object:
            entries = accumulator(frame)
            assert isinstance(entries, dict)
            added = {rest[0](frame): rest[1](frame)} if len(rest) == 2 else rest[0](frame)
            if not isinstance(added, Mapping):
                return raise_no_such_overload("transformMapEntry")
            frame.charge(1 + len(added))
            for key in added:
                closures.insert(entries, key, added[key])
            return entries

        return run

    # -- folds

    def _compile_comprehension(self, node: Comprehension) -> Run:
        items, initial = self.run(node.items), self.run(node.initial)
        accumulator = self._open(ACCUMULATOR)
        first = self._open(node.variable)
        second = self._open(node.variable2) if node.variable2 is not None else None
        condition, step = self.run(node.condition), self.run(node.step)
        if node.variable2 is not None:
            self._close(node.variable2)
        self._close(node.variable)
        result = self.run(node.result)
        self._close(ACCUMULATOR)
        always = isinstance(node.condition, Literal)
        iterate = closures.iterate_pairs if second is not None else closures.iterate_singles

        def run(frame: Frame) -> object:
            local = frame.local
            source = items(frame)
            local[accumulator] = initial(frame)
            for element, other in iterate(source):
                local[first] = element
                if second is not None:
                    local[second] = other
                if not always and not condition(frame):
                    break
                try:
                    local[accumulator] = step(frame)
                except CelEvaluationError as error:
                    if always:
                        raise
                    local[accumulator] = Failed(error)
            return result(frame)

        return run


def _is_accumulator(node: AstNode) -> bool:
    return isinstance(node, Ident) and node.name == ACCUMULATOR
