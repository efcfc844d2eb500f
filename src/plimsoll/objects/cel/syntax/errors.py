"""The wording of syntax errors: in Kubernetes that of a generated parser, here taken from one of the same grammar.

The PyPI package `common-expression-language` parses with a parser generated from CEL's own grammar, so that its
messages equal Kubernetes'. It is asked only for the words about an expression that our parser has already refused, and
only if the expression is small and flat: the package is native code, and an overflow of its stack ends the process.
"""

from __future__ import annotations

import re

from plimsoll.objects.cel.syntax.source import Issue, Source

_ERROR = re.compile(r"^(?:.*: )?ERROR: <input>:(\d+):(\d+): (Syntax error: .*)$")
_LONGEST = 4_000
_DEEPEST = 50


def worded(source: Source, own: Issue) -> list[Issue]:
    """The generated parser's complaints; ours where it has none."""
    if len(source.text) > _LONGEST or _nesting(source.text) > _DEEPEST:
        return [own]
    import cel  # noqa: PLC0415 - it brings a whole terminal toolkit along, and errors are rare

    try:
        cel.compile(source.text)
    except ValueError as refusal:
        return _issues(source, str(refusal)) or [own]
    return [own]


def _issues(source: Source, text: str) -> list[Issue]:
    prefix = f"Failed to parse expression '{source.text}': "
    issues: list[Issue] = []
    for line in text.removeprefix(prefix).split("\n"):
        found = _ERROR.match(line)
        if found is not None:
            offset = source.offset_of(int(found[1]), int(found[2]) - 1)
            issues.append(Issue(offset, found[3]))
    return issues


def _nesting(text: str) -> int:
    """How deep brackets, signs and conditionals may nest; strings are not told apart, which only errs upwards."""
    depth = deepest = 0
    for char in text:
        depth += (char in "([{") - (char in ")]}")
        deepest = max(deepest, depth)
    return deepest + text.count("?") + text.count("!") + text.count("-")
