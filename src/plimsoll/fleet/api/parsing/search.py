"""The language of `search`: comparisons of columns, joined by `and` and `or`, with parentheses.

    name like 'prod%' and (region = us-east-1 or status in ('ready', 'failed'))

It is read into the values of `fleet.model.search`, which the store compiles: no text of a caller becomes SQL.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from plimsoll.fleet.api.errors import Code, RequestRefused
from plimsoll.fleet.model.search import COLUMNS, Comparison, Conjunction, Disjunction, Operator, Search

MOST_JOINS: Final = 10
LONGEST_SEARCH: Final = 4_096
_DEEPEST: Final = 20
_LONGEST_VALUE: Final = 255
_MOST_VALUES: Final = 100
_JOINS: Final = frozenset({"and", "or"})
_WORD_OPERATORS: Final = {"like": Operator.LIKE, "ilike": Operator.ILIKE, "in": Operator.IN}
_NEGATED: Final = {
    Operator.LIKE: Operator.NOT_LIKE,
    Operator.ILIKE: Operator.NOT_ILIKE,
    Operator.IN: Operator.NOT_IN,
}
_RESERVED: Final = frozenset({*_JOINS, *_WORD_OPERATORS, "not"})
_TOKEN: Final = re.compile(
    r"""\s*(?:
        (?P<symbol><>|=|\(|\)|,)
        | '(?P<quoted>(?:[^']|'')*)'
        | (?P<word>[A-Za-z0-9_.%*@:+-]+)
    )""",
    re.VERBOSE,
)


class _Token(NamedTuple):
    kind: str
    text: str
    position: int


def parse_search(text: str) -> Search | None:
    """The search; None if it is empty. Raises `RequestRefused` with what is wrong and where."""
    if not text.strip():
        return None
    if len(text) > LONGEST_SEARCH:
        raise _refuse(f"the search is longer than {LONGEST_SEARCH} characters")
    tokens = _tokenize(text)
    joins = sum(token.kind == "word" and token.text.lower() in _JOINS for token in tokens)
    if joins > MOST_JOINS:
        raise _refuse(f"the search has {joins} joins, and at most {MOST_JOINS} are allowed")
    parser = _Parser(tokens, length=len(text))
    found = parser.parse_disjunction(depth=0)
    parser.expect_end()
    return found


def _tokenize(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    position, end = 0, len(text.rstrip())
    while position < end:
        match = _TOKEN.match(text, position)
        if match is None:
            start = position + len(text[position:]) - len(text[position:].lstrip())
            raise _refuse(f"unexpected {text[start]!r} at position {start + 1}")
        kind = match.lastgroup or ""
        tokens.append(_Token(kind, match[kind].replace("''", "'"), match.start(kind) + 1))
        position = match.end()
    return tokens


class _Parser:
    """Recursive descent. `and` binds stronger than `or`."""

    def __init__(self, tokens: list[_Token], *, length: int) -> None:
        self._tokens = tokens
        self._next = 0
        self._end = _Token("end", "the end", length + 1)

    def parse_disjunction(self, *, depth: int) -> Search:
        parts = [self._parse_conjunction(depth=depth)]
        while self._take_word("or"):
            parts.append(self._parse_conjunction(depth=depth))
        return parts[0] if len(parts) == 1 else Disjunction(parts=tuple(parts))

    def expect_end(self) -> None:
        if self._peek() is not self._end:
            raise self._refuse_token("'and', 'or' or the end")

    def _parse_conjunction(self, *, depth: int) -> Search:
        parts = [self._parse_term(depth=depth)]
        while self._take_word("and"):
            parts.append(self._parse_term(depth=depth))
        return parts[0] if len(parts) == 1 else Conjunction(parts=tuple(parts))

    def _parse_term(self, *, depth: int) -> Search:
        if not self._take_symbol("("):
            return self._parse_comparison()
        if depth >= _DEEPEST:
            raise _refuse(f"parentheses are nested deeper than {_DEEPEST}")
        inner = self.parse_disjunction(depth=depth + 1)
        self._expect_symbol(")")
        return inner

    def _parse_comparison(self) -> Comparison:
        column = self._peek()
        if column.kind != "word" or column.text.lower() in _RESERVED:
            raise self._refuse_token("a column")
        if column.text not in COLUMNS:
            raise _refuse(f"{column.text!r} cannot be searched; columns are {', '.join(COLUMNS)}")
        self._next += 1
        operator = self._parse_operator()
        if operator in {Operator.IN, Operator.NOT_IN}:
            return Comparison(column=column.text, operator=operator, values=self._parse_list())
        return Comparison(column=column.text, operator=operator, values=(self._parse_value(),))

    def _parse_operator(self) -> Operator:
        if self._take_symbol("="):
            return Operator.EQUAL
        if self._take_symbol("<>"):
            return Operator.NOT_EQUAL
        is_negated = self._take_word("not")
        for word, operator in _WORD_OPERATORS.items():
            if self._take_word(word):
                return _NEGATED[operator] if is_negated else operator
        raise self._refuse_token("an operator: = <> like ilike in, not like, not ilike, not in")

    def _parse_list(self) -> tuple[str, ...]:
        self._expect_symbol("(")
        values = [self._parse_value()]
        while self._take_symbol(","):
            values.append(self._parse_value())
        self._expect_symbol(")")
        if len(values) > _MOST_VALUES:
            raise _refuse(f"a list has at most {_MOST_VALUES} values")
        return tuple(values)

    def _parse_value(self) -> str:
        token = self._peek()
        is_value = token.kind == "quoted" or (token.kind == "word" and token.text.lower() not in _RESERVED)
        if not is_value:
            raise self._refuse_token("a value")
        if len(token.text) > _LONGEST_VALUE:
            raise _refuse(f"the value at position {token.position} is longer than {_LONGEST_VALUE} characters")
        self._next += 1
        return token.text

    def _peek(self) -> _Token:
        return self._tokens[self._next] if self._next < len(self._tokens) else self._end

    def _take_word(self, word: str) -> bool:
        token = self._peek()
        return self._take(token.kind == "word" and token.text.lower() == word)

    def _take_symbol(self, symbol: str) -> bool:
        token = self._peek()
        return self._take(token.kind == "symbol" and token.text == symbol)

    def _take(self, is_wanted: bool) -> bool:
        self._next += is_wanted
        return is_wanted

    def _expect_symbol(self, symbol: str) -> None:
        if not self._take_symbol(symbol):
            raise self._refuse_token(repr(symbol))

    def _refuse_token(self, expected: str) -> RequestRefused:
        token = self._peek()
        found = token.text if token is self._end else repr(token.text[:50])
        return _refuse(f"expected {expected} at position {token.position}, found {found}")


def _refuse(problem: str) -> RequestRefused:
    return RequestRefused(Code.BAD_SEARCH, f"Failed to parse search query: {problem}")
