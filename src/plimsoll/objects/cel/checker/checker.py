"""The type checker: a type for every node of an expression, or all errors, with the messages of cel-go.

The result (`Checked`) has the type of each node and the candidate overloads of each call; the estimator and the
evaluator read both. A node with an error gets the error type, which is assignable to every type, so that a mistake is
reported once.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from plimsoll.objects.cel.library.environment import FUNCTIONS, TYPES
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
from plimsoll.objects.cel.syntax.parser import find_qualified_name
from plimsoll.objects.cel.syntax.source import Issue
from plimsoll.objects.cel.types import types as t
from plimsoll.objects.cel.types.unification import Bindings, choose_more_general, is_dynamic
from plimsoll.objects.cel.values.numbers import UInt

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from plimsoll.objects.cel.types.signatures import Overload
    from plimsoll.objects.cel.values.values import TypeValue

_LITERAL_TYPES: dict[type, t.CelType] = {
    bool: t.BOOL,
    int: t.INT,
    UInt: t.UINT,
    float: t.DOUBLE,
    str: t.STRING,
    bytes: t.BYTES,
    type(None): t.NULL,
}


@dataclass(slots=True)
class Checked:
    """The types of the nodes of a tree; `used` are the declared variables that it refers to."""

    root: AstNode
    types: dict[AstNode, t.CelType] = field(default_factory=dict)
    overloads: dict[AstNode, list[Overload]] = field(default_factory=dict)
    constants: dict[AstNode, TypeValue] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    issues: list[Issue] = field(default_factory=list)

    def find_first_operand(self, node: AstNode) -> AstNode | None:
        """The first part of the node that is a value."""
        return next((child for child in node.iterate_children() if child in self.types), None)

    def is_method(self, node: Call) -> bool:
        """Whether the call's target is a value; else it is a part of the function's name."""
        return node.target is not None and node.target in self.types


def check(root: AstNode, variables: Mapping[str, t.CelType]) -> Checked:
    checker = _Checker(root, variables)
    checker.find_type(root)
    checked = checker.checked
    checked.types = {node: checker.bindings.resolve(of, free_as_dyn=True) for node, of in checked.types.items()}
    return checked


class _Checker:
    def __init__(self, root: AstNode, variables: Mapping[str, t.CelType]) -> None:
        self.checked = Checked(root)
        self.bindings = Bindings()
        self._variables = variables
        self._scopes: list[dict[str, t.CelType]] = []

    def find_type(self, node: AstNode) -> t.CelType:
        """The node's type; checked once, even where a macro uses a node twice."""
        types = self.checked.types
        if node not in types:
            for link in reversed(list_leading_chain(node, self._find_first_operand)):
                if link not in types:
                    types[link] = self._infer(link)
        return types[node]

    def _find_first_operand(self, node: AstNode) -> AstNode | None:
        """The first part of the node that is a value; `optional` in `optional.of(1)` is not."""
        if isinstance(node, Select) and self._read_type_name(node) is not None:
            return None
        children = node.iterate_children()
        if isinstance(node, Call) and self._find_namespaced_name(node) is not None:
            next(children)
        return next(children, None)

    def _infer(self, node: AstNode) -> t.CelType:
        match node:
            case Literal():
                return _LITERAL_TYPES[type(node.value)]
            case Ident():
                return self._check_ident(node, node.name)
            case Select():
                return self._select(node)
            case Call():
                return self._check_optional_select(node) if node.function == "_?._" else self._call(node)
            case ListLiteral():
                return self._list(node)
            case MapLiteral():
                return self._map(node)
            case Comprehension():
                return self._check_comprehension(node)
            case Bind():
                with self._enter_scope({node.variable: self.find_type(node.value)}):
                    return self.find_type(node.body)
        raise AssertionError(node)

    def _add_issue(self, node: AstNode, problem: str) -> t.CelType:
        self.checked.issues.append(Issue(node.offset, problem))
        return t.ERROR

    @contextmanager
    def _enter_scope(self, names: dict[str, t.CelType]) -> Iterator[None]:
        self._scopes.append(names)
        yield
        self._scopes.pop()

    def _find_local(self, name: str) -> t.CelType | None:
        """A variable of an enclosing comprehension; a leading dot refers to a declared variable."""
        return next((scope[name] for scope in reversed(self._scopes) if name in scope), None)

    def _check_ident(self, node: AstNode, name: str) -> t.CelType:
        local = self._find_local(name)
        if local is not None:
            return local
        declared = self._variables.get(name.removeprefix("."))
        if declared is not None:
            self.checked.used.add(name.removeprefix("."))
            return declared
        if name.removeprefix(".") in TYPES:
            of, value = TYPES[name.removeprefix(".")]
            self.checked.constants[node] = value
            return of
        return self._add_issue(node, f"undeclared reference to '{name}' (in container '')")

    # -- fields

    def _select(self, node: Select) -> t.CelType:
        name = self._read_type_name(node)
        if name is not None:
            return self._check_ident(node, name)
        result = self._check_field(node, self.find_type(node.operand), node.name)
        return t.BOOL if node.test_only else result

    def _read_type_name(self, node: Select) -> str | None:
        """`google.protobuf.Timestamp` and its like, unless a variable hides the first part."""
        name = find_qualified_name(node)
        if name is None or name not in TYPES:
            return None
        first = name.partition(".")[0]
        return None if self._find_local(first) is not None or first in self._variables else name

    def _check_field(self, node: AstNode, operand: t.CelType, name: str) -> t.CelType:
        operand = self.bindings.resolve(operand)
        if isinstance(operand, t.OptionalType):
            of = self._check_field(node, operand.of, name)
            return of if isinstance(of, t.OptionalType) else t.OptionalType(of)
        if isinstance(operand, t.MapType):
            return operand.value
        if isinstance(operand, t.ObjectType):
            actual = unescape_field(name)
            if actual is None or actual not in operand.fields:
                return self._add_issue(node, f"undefined field '{name}'")
            return operand.fields[actual]
        if isinstance(operand, t.TypeVariable):
            self.bindings.try_assign([t.DYN], [operand])
        elif not is_dynamic(operand):
            return self._add_issue(node, f"type '{self._format_type(operand)}' does not support field selection")
        return t.DYN

    def _check_optional_select(self, node: Call) -> t.CelType:
        operand, name = node.arguments
        assert isinstance(name, Literal)
        self.find_type(name)
        of = self._check_field(node, self.find_type(operand), str(name.value))
        return of if isinstance(of, t.OptionalType) else t.OptionalType(of)

    # -- calls

    def _call(self, node: Call) -> t.CelType:
        arguments = [self.find_type(argument) for argument in node.arguments]
        if node.target is None:
            return self._resolve(node, node.function.removeprefix("."), arguments, is_method=False)
        function = self._find_namespaced_name(node)
        if function is not None:
            return self._resolve(node, function, arguments, is_method=False)
        return self._resolve(node, node.function, [self.find_type(node.target), *arguments], is_method=True)

    def _find_namespaced_name(self, node: Call) -> str | None:
        """The qualified name of a function, if the text before the last dot is a part of it: `optional.of`."""
        namespace = find_qualified_name(node.target) if node.target is not None else None
        function = f"{namespace}.{node.function}".removeprefix(".")
        return function if namespace is not None and function in FUNCTIONS else None

    def _resolve(self, node: Call, name: str, arguments: list[t.CelType], *, is_method: bool) -> t.CelType:
        overloads = FUNCTIONS.get(name)
        if overloads is None:
            return self._add_issue(node, f"undeclared reference to '{name}' (in container '')")
        result: t.CelType | None = None
        meant: list[Overload] = []
        for overload in overloads:
            if overload.is_method is not is_method or len(overload.parameters) != len(arguments):
                continue
            parameters, returned = self._instantiate(overload)
            if not self.bindings.try_assign(parameters, arguments):
                continue
            meant.append(overload)
            returned = self.bindings.resolve(returned)
            result = returned if result is None or result == returned else t.DYN
        if result is None:
            signature = self._format_signature(arguments, is_method=is_method)
            return self._add_issue(node, f"found no matching overload for '{name}' applied to '{signature}'")
        self.checked.overloads[node] = meant
        return result

    def _instantiate(self, overload: Overload) -> tuple[list[t.CelType], t.CelType]:
        """Parameters and result with type variables of their own."""
        fresh: dict[str, t.TypeVariable] = {}

        def rename_variables(of: t.CelType) -> t.CelType:
            match of:
                case t.TypeVariable():
                    return fresh.setdefault(of.name, fresh.get(of.name) or self.bindings.create_type_variable())
                case t.ListType():
                    return t.ListType(rename_variables(of.element))
                case t.MapType():
                    return t.MapType(rename_variables(of.key), rename_variables(of.value))
                case t.OptionalType():
                    return t.OptionalType(rename_variables(of.of))
                case t.TypeType():
                    return t.TypeType(rename_variables(of.of))
            return of

        return [rename_variables(parameter) for parameter in overload.parameters], rename_variables(overload.result)

    def _format_signature(self, arguments: list[t.CelType], *, is_method: bool) -> str:
        shown = [self._format_type(argument) for argument in arguments]
        if is_method:
            return f"{shown[0]}.({', '.join(shown[1:])})"
        return f"({', '.join(shown)})"

    def _format_type(self, of: t.CelType) -> str:
        return str(self.bindings.resolve(of, free_as_dyn=True))

    # -- literals and folds

    def _list(self, node: ListLiteral) -> t.CelType:
        element: t.CelType | None = None
        for place, item in enumerate(node.elements):
            of = self.find_type(item)
            if place in node.optional:
                of = self._get_content_type(item, of)
            element = self._join_types(item, element, of)
        return t.ListType(element or self.bindings.create_type_variable())

    def _map(self, node: MapLiteral) -> t.CelType:
        key: t.CelType | None = None
        value: t.CelType | None = None
        for entry in node.entries:
            key = self._join_types(entry.key, key, self.find_type(entry.key))
            of = self.find_type(entry.value)
            if entry.optional:
                of = self._get_content_type(entry.value, of)
            value = self._join_types(entry.value, value, of)
        return t.MapType(key or self.bindings.create_type_variable(), value or self.bindings.create_type_variable())

    def _get_content_type(self, node: AstNode, of: t.CelType) -> t.CelType:
        of = self.bindings.resolve(of)
        if isinstance(of, t.OptionalType):
            return of.of
        if not is_dynamic(of):
            wanted = t.OptionalType(of)
            self._add_issue(node, f"expected type '{self._format_type(wanted)}' but found '{self._format_type(of)}'")
        return of

    def _join_types(self, node: AstNode, previous: t.CelType | None, current: t.CelType) -> t.CelType:
        """Kubernetes requires literals of one type."""
        if previous is None:
            return current
        if self.bindings.try_assign([previous], [current]):
            return choose_more_general(previous, current)
        self._add_issue(node, f"expected type '{self._format_type(previous)}' but found '{self._format_type(current)}'")
        return previous

    def _check_comprehension(self, node: Comprehension) -> t.CelType:
        first, second = self._find_range_types(node, self.bindings.resolve(self.find_type(node.items)))
        initial = self.find_type(node.initial)
        with self._enter_scope({ACCUMULATOR: initial}):
            names = {node.variable: first} if node.variable2 is None else {node.variable: first, node.variable2: second}
            with self._enter_scope(names):
                self._expect(node.condition, t.BOOL)
                self._expect(node.step, initial)
            return self.find_type(node.result)

    def _find_range_types(self, node: Comprehension, over: t.CelType) -> tuple[t.CelType, t.CelType]:
        """The types of the variables: element; or index and element; or key and value."""
        two = node.variable2 is not None
        if isinstance(over, t.ListType):
            return (t.INT, over.element) if two else (over.element, t.ERROR)
        if isinstance(over, t.MapType):
            return over.key, over.value
        if isinstance(over, t.TypeVariable):
            self.bindings.try_assign([t.DYN], [over])
        elif not is_dynamic(over):
            self._add_issue(
                node.items,
                f"expression of type '{self._format_type(over)}' cannot be range of a comprehension "
                "(must be list, map, or dynamic)",
            )
            return t.ERROR, t.ERROR
        return t.DYN, t.DYN

    def _expect(self, node: AstNode, wanted: t.CelType) -> None:
        found = self.find_type(node)
        if not self.bindings.try_assign([wanted], [found]):
            self._add_issue(node, f"expected type '{self._format_type(wanted)}' but found '{self._format_type(found)}'")
