"""Escapes JSON property names for expressions: CEL identifiers cannot contain every property name.

Keys of maps are never escaped.
"""

from __future__ import annotations

import re
from functools import lru_cache

# Keywords and reserved words of CEL; Kubernetes escapes a property of such a name.
RESERVED_PROPERTIES = frozenset(
    {
        *("true", "false", "null", "in"),
        *("as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop"),
        *("package", "namespace", "return", "var", "void", "while"),
    }
)

_REACHABLE = re.compile(r"[a-zA-Z_.\-/][a-zA-Z0-9_.\-/]*")
_SEPARATOR = re.compile(r"__|[.\-/]")
_ESCAPES = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_ESCAPED = re.compile(r"__(?:underscores|dot|dash|slash)__")
_UNESCAPES = {escaped: plain for plain, escaped in _ESCAPES.items()}


def escape_field(name: str) -> str | None:
    """`x-y` → `x__dash__y`, `namespace` → `__namespace__`; None where no expression can name the property."""
    if name in RESERVED_PROPERTIES:
        return f"__{name}__"
    if not _REACHABLE.fullmatch(name):
        return None
    return _SEPARATOR.sub(lambda found: _ESCAPES[found.group()], name)


@lru_cache(maxsize=4096)
def unescape_field(escaped: str) -> str | None:
    """The property an expression means by this name; None where no property is spelled so."""
    reserved = escaped[2:-2]
    if escaped == f"__{reserved}__" and reserved in RESERVED_PROPERTIES:
        return reserved
    name = _ESCAPED.sub(lambda found: _UNESCAPES[found.group()], escaped)
    return name if escape_field(name) == escaped else None
