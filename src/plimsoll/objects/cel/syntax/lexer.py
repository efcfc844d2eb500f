"""Splits text into tokens. An invalid token is an issue, and lexing continues after it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from plimsoll.objects.cel.syntax.source import Issue

if TYPE_CHECKING:
    from plimsoll.objects.cel.syntax.source import Source

END = "end"

_ESCAPE = r"""\\(?:[abfnrtv\\?"'`]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7]{2})"""
_QUOTED = "|".join(
    [
        rf'"""(?:[^\\]|{_ESCAPE})*?"""',
        rf"'''(?:[^\\]|{_ESCAPE})*?'''",
        rf'"(?:[^\\"\r\n]|{_ESCAPE})*"',
        rf"'(?:[^\\'\r\n]|{_ESCAPE})*'",
    ]
)
_RAW = r'''"""[\s\S]*?"""|''' + r"""'''[\s\S]*?'''|"[^"\r\n]*"|'[^'\r\n]*'"""

_TOKEN = re.compile(
    rf"""
      (?P<blank>[ \t\r\n\f]+|//[^\n]*)
    | (?P<bytes>[bB](?:[rR](?:{_RAW})|{_QUOTED}))
    | (?P<string>[rR](?:{_RAW})|{_QUOTED})
    | (?P<float>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)
    | (?P<uint>(?:0x[0-9a-fA-F]+|[0-9]+)[uU])
    | (?P<int>0x[0-9a-fA-F]+|[0-9]+)
    | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<sign>==|!=|<=|>=|&&|\|\||[<>\[\]{{}}().,\-!?:+*/%])
    """,
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Token:
    """`kind` is a group of the grammar, or for signs and words of the language the text itself."""

    kind: str
    text: str
    offset: int


_KEYWORDS = frozenset({"true", "false", "null", "in"})


def tokenize(source: Source) -> tuple[list[Token], list[Issue]]:
    """The tokens, the last of kind END, and what could not be one."""
    tokens: list[Token] = []
    issues: list[Issue] = []
    text, position = source.text, 0
    while position < len(text):
        found = _TOKEN.match(text, position)
        if found is None:
            issues.append(Issue(position, f"Syntax error: token recognition error at: '{text[position]}'"))
            position += 1
            continue
        kind, token = str(found.lastgroup), found.group()
        if kind == "sign" or token in _KEYWORDS:
            kind = token
        if kind != "blank":
            tokens.append(Token(kind, token, position))
        position = found.end()
    tokens.append(Token(END, "<EOF>", len(text)))
    return tokens, issues
