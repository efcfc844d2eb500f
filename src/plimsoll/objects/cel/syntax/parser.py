"""Tokens into a syntax tree, macros expanded: CEL's whole grammar, optional syntax included, message literals refused.

Precedence climbing, so that a chain of operators costs no recursion; brackets do, and `MAX_NESTING` bounds them.
`&&` and `||` chains become balanced trees, as in cel-go, so that a rule with a thousand alternatives is not deep.
Wrong grammar stops at the first place (`Malformed`); wrong literals, reserved words and macro arguments are collected.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.objects.cel.names import RESERVED_PROPERTIES
from plimsoll.objects.cel.syntax import literals
from plimsoll.objects.cel.syntax.ast import AstNode, Call, Ident, ListLiteral, Literal, MapEntry, MapLiteral, Select
from plimsoll.objects.cel.syntax.lexer import END, Token, tokenize
from plimsoll.objects.cel.syntax.macros import MacroError, expand
from plimsoll.objects.cel.syntax.source import NOWHERE, Issue

if TYPE_CHECKING:
    from collections.abc import Callable

    from plimsoll.objects.cel.syntax.source import Source

MAX_CODE_POINTS = 100_000
MAX_DEPTH = 250
MAX_NESTING = 50

_OR, _AND, _RELATION, _SUM, _PRODUCT = 1, 2, 3, 4, 5
_BINDING = {
    "||": _OR,
    "&&": _AND,
    **dict.fromkeys(("<", "<=", ">", ">=", "==", "!=", "in"), _RELATION),
    **dict.fromkeys(("+", "-"), _SUM),
    **dict.fromkeys(("*", "/", "%"), _PRODUCT),
}
_FUNCTION = {sign: f"_{sign}_" for sign in _BINDING} | {"in": "@in"}
_LITERALS: dict[str, Callable[[str], object]] = {
    "int": literals.parse_int,
    "uint": literals.parse_uint,
    "float": literals.parse_double,
    "string": literals.parse_string,
    "bytes": literals.parse_bytes,
    "true": lambda _: True,
    "false": lambda _: False,
    "null": lambda _: None,
}


class Malformed(Exception):  # internal: leaves nested brackets, never reaches callers
    """A syntax error; the text after it was not parsed."""

    def __init__(self, issue: Issue, *, wording_known: bool = False) -> None:
        super().__init__(issue.problem)
        self.issue = issue
        self.wording_known = wording_known


def parse(source: Source) -> tuple[AstNode, list[Issue]]:
    """The tree and what is wrong with its parts; raises Malformed where there is no tree."""
    if len(source.text) > MAX_CODE_POINTS:
        problem = f"expression code point size exceeds limit: size: {len(source.text)}, limit {MAX_CODE_POINTS}"
        raise Malformed(Issue(NOWHERE, problem), wording_known=True)
    tokens, issues = tokenize(source)
    if issues:
        raise Malformed(issues[0])
    parser = _Parser(tokens)
    return parser.parse_whole(), parser.issues


class _Parser:
    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._position = 0
        self._nesting = 0
        self.issues: list[Issue] = []

    def parse_whole(self) -> AstNode:
        root = self._parse_expression()
        self._expect(END)
        return root

    # -- tokens

    @property
    def _next(self) -> Token:
        return self._tokens[self._position]

    def _take(self) -> Token:
        token = self._tokens[self._position]
        self._position += 1
        return token

    def _accept(self, kind: str) -> Token | None:
        return self._take() if self._next.kind == kind else None

    def _expect(self, kind: str) -> Token:
        token = self._accept(kind)
        if token is None:
            raise self._unexpected_token_error(f"'{kind}'" if kind != END else "<EOF>")
        return token

    def _unexpected_token_error(self, wanted: str) -> Malformed:
        found = self._next
        return Malformed(Issue(found.offset, f"Syntax error: mismatched input '{found.text}' expecting {wanted}"))

    def _check_depth(self, node: AstNode) -> AstNode:
        if node.depth > MAX_DEPTH:
            raise Malformed(Issue(NOWHERE, f"expression recursion limit exceeded: {MAX_DEPTH}"), wording_known=True)
        return node

    def _enter(self) -> None:
        self._nesting += 1
        if self._nesting > MAX_NESTING:
            raise Malformed(Issue(NOWHERE, f"expression recursion limit exceeded: {MAX_NESTING}"), wording_known=True)

    # -- expressions

    def _parse_expression(self) -> AstNode:
        self._enter()
        condition = self._parse_binary()
        question = self._accept("?")
        if question is not None:
            chosen = self._parse_binary()
            self._expect(":")
            otherwise = self._parse_expression()
            condition = self._check_depth(Call(question.offset, "_?_:_", (condition, chosen, otherwise)))
        self._nesting -= 1
        return condition

    def _parse_binary(self) -> AstNode:
        """Parse binary operators with two stacks: an operator waits for the next that does not bind more strongly."""
        operands: list[AstNode] = [self._parse_operand()]
        waiting: list[Token] = []
        while True:
            coming = _BINDING.get(self._next.kind, 0)
            while waiting and _must_go_first(waiting[-1].kind, coming):
                self._join(operands, waiting)
            if not coming:
                return operands[0]
            waiting.append(self._take())
            operands.append(self._parse_operand())

    def _join(self, operands: list[AstNode], waiting: list[Token]) -> None:
        """Make one node of the last operands: of two, or of a whole chain of && or ||."""
        sign = waiting[-1].kind
        width = 1
        if _BINDING[sign] <= _AND:
            while width < len(waiting) and waiting[-width - 1].kind == sign:
                width += 1
        signs, terms = waiting[-width:], operands[-width - 1 :]
        del waiting[-width:], operands[-width - 1 :]
        operands.append(self._check_depth(_balance(_FUNCTION[sign], signs, terms)))

    def _parse_operand(self) -> AstNode:
        """Signs in front, then a primary, then everything that hangs on it: fields, indexes, calls."""
        signs: list[Token] = []
        first = self._next.kind
        while first in {"!", "-"} and self._next.kind == first and not self._is_at_negative_number():
            signs.append(self._take())
        node = self._parse_primary()
        while True:
            if self._next.kind == ".":
                node = self._check_depth(self._parse_after_dot(node, self._take()))
            elif self._next.kind == "[":
                node = self._check_depth(self._parse_after_bracket(node, self._take()))
            elif self._next.kind == "{" and _is_qualified_name(node):
                node = self._parse_message(node, self._take())
            else:
                break
        if len(signs) % 2 == 0:
            return node
        return self._check_depth(Call(signs[0].offset, "!_" if first == "!" else "-_", (node,)))

    def _is_at_negative_number(self) -> bool:
        return self._next.kind == "-" and self._tokens[self._position + 1].kind in {"int", "float"}

    def _parse_primary(self) -> AstNode:
        token = self._take()
        if token.kind in _LITERALS:
            return self._parse_literal(token, token.text)
        if token.kind == "-" and self._next.kind in {"int", "float"}:
            return self._parse_literal(token, "-" + self._take().text)
        if token.kind == "(":
            node = self._parse_expression()
            self._expect(")")
            return node
        if token.kind == "[":
            elements, optional = self._parse_items("]")
            return self._check_depth(ListLiteral(token.offset, tuple(elements), frozenset(optional)))
        if token.kind == "{":
            return self._check_depth(MapLiteral(token.offset, tuple(self._parse_entries())))
        if token.kind == "word" or (token.kind == "." and self._next.kind == "word"):
            return self._parse_name(token)
        self._position -= 1
        raise self._unexpected_token_error(_START_OF_EXPRESSION)

    def _parse_literal(self, token: Token, text: str) -> AstNode:
        kind = token.kind if token.kind != "-" else ("int" if text[1:].isdigit() or "x" in text else "float")
        try:
            return Literal(token.offset, _LITERALS[kind](text))
        except literals.BadLiteral as bad:
            self.issues.append(Issue(token.offset, str(bad)))
            return Literal(token.offset, None)

    def _parse_name(self, token: Token) -> AstNode:
        name = token.text if token.kind == "word" else "." + self._take().text
        if name in RESERVED_PROPERTIES:
            self.issues.append(Issue(token.offset, f"reserved identifier: {name}"))
        opening = self._accept("(")
        if opening is None:
            return Ident(token.offset, name)
        arguments, _ = self._parse_items(")")
        return self._check_depth(self._call(Call(opening.offset, name, tuple(arguments))))

    def _parse_after_dot(self, operand: AstNode, dot: Token) -> AstNode:
        optional = self._accept("?")
        if self._next.kind != "word":
            raise Malformed(
                Issue(self._next.offset, f"Syntax error: no viable alternative at input '.{self._get_next_text()}'")
            )
        name = self._take()
        if optional is not None:
            return Call(dot.offset, "_?._", (operand, Literal(name.offset, name.text)))
        opening = self._accept("(")
        if opening is None:
            return Select(dot.offset, operand, name.text)
        arguments, _ = self._parse_items(")")
        return self._call(Call(opening.offset, name.text, tuple(arguments), operand))

    def _get_next_text(self) -> str:
        return "" if self._next.kind == END else self._next.text

    def _parse_after_bracket(self, operand: AstNode, bracket: Token) -> AstNode:
        function = "_[?_]" if self._accept("?") else "_[_]"
        index = self._parse_expression()
        self._expect("]")
        return Call(bracket.offset, function, (operand, index))

    def _call(self, call: Call) -> AstNode:
        try:
            return expand(call)
        except MacroError as error:
            self.issues.append(error.issue)
            return call

    def _parse_items(self, closing: str) -> tuple[list[AstNode], list[int]]:
        """Expressions up to the closing bracket; in a list some may be optional, and a comma may come last."""
        items: list[AstNode] = []
        optional: list[int] = []
        while self._accept(closing) is None:
            if items:
                self._expect_comma(closing)
                if closing == "]" and self._accept(closing):
                    break
            if closing == "]" and self._accept("?"):
                optional.append(len(items))
            items.append(self._parse_expression())
        return items, optional

    def _parse_entries(self) -> list[MapEntry]:
        entries: list[MapEntry] = []
        while self._accept("}") is None:
            if entries:
                self._expect_comma("}")
                if self._accept("}"):
                    break
            optional = self._accept("?") is not None
            key = self._parse_expression()
            colon = self._expect(":")
            entries.append(MapEntry(colon.offset, key, self._parse_expression(), optional))
        return entries

    def _expect_comma(self, closing: str) -> None:
        if self._accept(",") is None:
            raise self._unexpected_token_error(f"{{'{closing}', ','}}")

    def _parse_message(self, name: AstNode, brace: Token) -> AstNode:
        """Kubernetes declares no message types, so a message literal is a name that does not exist."""
        self._parse_message_entries()
        problem = f"undeclared reference to '{find_qualified_name(name)}' (in container '')"
        self.issues.append(Issue(brace.offset, problem))
        return name

    def _parse_message_entries(self) -> None:
        while self._accept("}") is None:
            self._accept("?")
            self._expect("word")
            self._expect(":")
            self._parse_expression()
            if self._next.kind != "}":
                self._expect_comma("}")


_START_OF_EXPRESSION = (
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
)


def _must_go_first(waiting: str, coming: int) -> bool:
    """Whether the waiting operator is applied before the coming one; chains of && and || are joined as a whole."""
    strength = _BINDING[waiting]
    return coming < strength or (coming == strength and strength > _AND)


def _balance(function: str, signs: list[Token], terms: list[AstNode]) -> AstNode:
    """A chain as a tree of least depth, the operator in the middle on top."""
    middle = len(signs) // 2
    left = terms[0] if middle == 0 else _balance(function, signs[:middle], terms[: middle + 1])
    right = terms[-1] if middle == len(signs) - 1 else _balance(function, signs[middle + 1 :], terms[middle + 1 :])
    return Call(signs[middle].offset, function, (left, right))


def _is_qualified_name(node: AstNode) -> bool:
    return find_qualified_name(node) is not None


def find_qualified_name(node: AstNode) -> str | None:
    """`a.b.c` for fields of fields of a name; None for anything else."""
    fields: list[str] = []
    while isinstance(node, Select) and not node.test_only:
        fields.append(node.name)
        node = node.operand
    return ".".join([node.name, *reversed(fields)]) if isinstance(node, Ident) else None
