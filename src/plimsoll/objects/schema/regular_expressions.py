"""Patterns of schemas, compiled by RE2, with Go's messages for invalid patterns.

RE2 and not `re`: patterns come from users, and some make `re` run for ever. google-re2 is imported with the first
pattern, because it is not cheap to load.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

# RE2 in C++ and in Go are the same engine with different sentences.
_GO_SENTENCES = {
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "trailing \\": "trailing backslash at end of expression",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid repetition size": "invalid repeat count",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
}


class BadPattern(ValueError):
    """A pattern that does not compile; the message is Go's."""


@lru_cache(maxsize=4096)
def compile_pattern(pattern: str) -> Any:
    """Something with a `search` method; raises BadPattern."""
    import re2  # noqa: PLC0415 - see the module's docstring

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options=options)
    except re2.error as error:
        raise BadPattern(_format_go_message(error)) from error


def find_problem(pattern: str) -> str | None:
    """Why a pattern cannot be used, or nothing."""
    try:
        compile_pattern(pattern)
    except BadPattern as error:
        return str(error)
    return None


def _format_go_message(error: Exception) -> str:
    text = error.args[0] if error.args else ""
    text = text.decode(errors="replace") if isinstance(text, bytes) else str(text)
    for sentence, of_go in _GO_SENTENCES.items():
        if text == sentence or text.startswith(f"{sentence}: "):
            return f"error parsing regexp: {of_go}: `{text[len(sentence) + 2 :]}`"
    sentence, _, argument = text.rpartition(": ")
    return f"error parsing regexp: {sentence}: `{argument}`" if sentence else f"error parsing regexp: {text}"
