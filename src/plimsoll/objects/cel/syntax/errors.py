"""The messages of syntax errors, taken from a parser that is generated from the same grammar as cel-go's.

The PyPI package `common-expression-language` parses with a parser generated from CEL's own grammar, so that its
messages equal Kubernetes'. It parses only expressions that this parser has already rejected, and only if they are
small and flat: the package is native code, and a stack overflow in it ends the process.
"""

from __future__ import annotations

import re

from plimsoll.objects.cel.syntax.source import Issue, Source

_ERROR = re.compile(r"^(?:.*: )?ERROR: <input>:(\d+):(\d+): (Syntax error: .*)$")
_LONGEST = 4_000
_DEEPEST = 50


def build_issues(source: Source, own: Issue) -> list[Issue]:
    """The messages of the generated parser, or the given ones if it has none."""
    if len(source.text) > _LONGEST or _measure_nesting(source.text) > _DEEPEST:
        return [own]
    import cel  # noqa: PLC0415 - it brings a whole terminal toolkit along, and errors are rare

    try:
        cel.compile(source.text)
    except ValueError as refusal:
        return _parse_issues(source, str(refusal)) or [own]
    return [own]


def _parse_issues(source: Source, text: str) -> list[Issue]:
    prefix = f"Failed to parse expression '{source.text}': "
    issues: list[Issue] = []
    for line in text.removeprefix(prefix).split("\n"):
        found = _ERROR.match(line)
        if found is not None:
            offset = source.find_offset(int(found[1]), int(found[2]) - 1)
            issues.append(Issue(offset, found[3]))
    return issues


def _measure_nesting(text: str) -> int:
    """An upper bound of the nesting of brackets, signs and conditionals; the text of strings is counted too."""
    depth = deepest = 0
    for char in text:
        depth += (char in "([{") - (char in ")]}")
        deepest = max(deepest, depth)
    return deepest + text.count("?") + text.count("!") + text.count("-")
