"""Parses the text form of a label selector: `app=web,tier in (a,b),!canary,replicas>2`.

The grammar and every error message are those of Kubernetes; the position of the offending token is in
`UnparsableSelector.position`, outside the text.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from plimsoll.core.errors import InvalidInput, InvalidSelector
from plimsoll.core.selectors import (
    BINARY_OPERATORS,
    LabelSelector,
    Operator,
    Requirement,
    build_requirement,
    find_key_problem,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

# The two-character signs stand first; a word is whatever is neither a sign nor white space.
_TOKEN: Final = re.compile(r"[ \t\r\n]*(==|!=|[=!(),<>]|[^=!(),<> \t\r\n]+|\Z)")
_SIGNS: Final = frozenset({"==", "!=", "=", "!", "(", ")", ",", "<", ">"})
_SIGN_OPERATORS: Final = {
    "in": Operator.IN,
    "notin": Operator.NOT_IN,
    "=": Operator.EQUALS,
    "==": Operator.DOUBLE_EQUALS,
    "!=": Operator.NOT_EQUALS,
    ">": Operator.GREATER_THAN,
    "<": Operator.LESS_THAN,
}


class UnparsableSelector(InvalidSelector):
    """Text that is not a selector; `position` counts characters from the start of the text to the offending token."""

    def __init__(self, problem: str, *, path: str = "", position: int | None = None) -> None:
        super().__init__(problem, path=path)
        self.position = position

    def with_parent(self, parent: str) -> InvalidInput:
        path = f"{parent}.{self.path}" if self.path else parent
        return UnparsableSelector(self.problem, path=path, position=self.position)


class _Token(NamedTuple):
    text: str
    position: int

    @property
    def is_word(self) -> bool:
        """`in` and `notin` are words where a key or a value is expected."""
        return bool(self.text) and self.text not in _SIGNS


def parse_label_selector(text: str) -> LabelSelector:
    """The selector of the text; raises `UnparsableSelector` with the message of Kubernetes."""
    return LabelSelector(_Parser(text).parse_requirements())


class _Parser:
    """One pass over the tokens, with one token of lookahead."""

    def __init__(self, text: str) -> None:
        self._tokens = [_Token(found.group(1), found.start(1)) for found in _TOKEN.finditer(text)]
        self._next = 0

    def parse_requirements(self) -> Iterator[Requirement]:
        token = self._peek()
        while token.text:
            if not token.is_word and token.text != "!":
                raise _build_unexpected_token_error(token, "!, identifier, or 'end of string'")
            yield self._parse_requirement()
            separator = self._take()
            if not separator.text:
                return
            if separator.text != ",":
                raise _build_unexpected_token_error(separator, "',' or 'end of string'")
            token = self._peek()
            if not token.is_word and token.text != "!":
                raise _build_unexpected_token_error(token, "identifier after ','")

    def _parse_requirement(self) -> Requirement:
        start = self._peek().position
        try:
            return self._read_requirement()
        except UnparsableSelector as error:
            raise UnparsableSelector(f"unable to parse requirement: {error.problem}", position=error.position) from None
        except InvalidSelector as error:
            raise UnparsableSelector(f"unable to parse requirement: {error.problem}", position=start) from None

    def _read_requirement(self) -> Requirement:
        token = self._take()
        negated = token.text == "!"
        if negated:
            token = self._take()
        if not token.is_word:
            raise _build_unexpected_token_error(token, "identifier")
        # Kubernetes has no path here and prints Go's nil for it.
        if problem := find_key_problem(token.text, path="<nil>"):
            raise UnparsableSelector(problem, position=token.position)
        key = token.text
        following = self._peek()
        if negated:
            return build_requirement(key, Operator.DOES_NOT_EXIST)
        if following.text in {"", ","}:
            return build_requirement(key, Operator.EXISTS)
        operator = _SIGN_OPERATORS.get(self._take().text)
        if operator is None:
            raise _build_unexpected_token_error(
                following, ", ".join(binary_operator.value for binary_operator in BINARY_OPERATORS)
            )
        values = self._parse_value_set() if operator in {Operator.IN, Operator.NOT_IN} else {self._parse_exact_value()}
        return build_requirement(key, operator, sorted(values))

    def _parse_exact_value(self) -> str:
        if self._peek().text in {"", ","}:
            return ""
        token = self._take()
        if not token.is_word:
            raise _build_unexpected_token_error(token, "identifier")
        return token.text

    def _parse_value_set(self) -> set[str]:
        opening = self._take()
        if opening.text != "(":
            raise UnparsableSelector(f"found '{opening.text}' expected: '('", position=opening.position)
        first = self._peek()
        if first.text == ")":
            self._take()
            return {""}
        if not first.is_word and first.text != ",":
            raise _build_unexpected_token_error(first, "',', ')' or identifier")
        return self._parse_values_until_closed()

    def _parse_values_until_closed(self) -> set[str]:
        """Values between the parentheses; nothing between two commas is the empty value."""
        values: set[str] = set()
        value_expected = True
        while True:
            token = self._take()
            if token.text in {")", ","}:
                if value_expected:
                    values.add("")
                if token.text == ")":
                    return values
                value_expected = True
            elif token.is_word and value_expected:
                values.add(token.text)
                value_expected = False
            elif value_expected:
                raise _build_unexpected_token_error(token, "',', or identifier")
            else:
                raise _build_unexpected_token_error(token, "',' or ')'")

    def _peek(self) -> _Token:
        return self._tokens[min(self._next, len(self._tokens) - 1)]

    def _take(self) -> _Token:
        token = self._peek()
        self._next += 1
        return token


def _build_unexpected_token_error(token: _Token, expected: str) -> UnparsableSelector:
    return UnparsableSelector(f"found '{token.text}', expected: {expected}", position=token.position)
