"""The ConfigMap of the priority expander: numbers and patterns of node group ids (docs/design/nodes.md 6.7, 8.4)."""

from __future__ import annotations

from typing import Any, Final, Protocol

from plimsoll.core.errors import InvalidInput

CONFIG_MAP: Final = "cluster-autoscaler-priority-expander"


KEY: Final = "priorities"


def read_priorities(document: Any) -> dict[int, tuple[str, ...]]:
    """The parsed YAML of the ConfigMap's key; raises `InvalidInput` with the path of the mistake."""
    if not isinstance(document, dict):
        raise InvalidInput("must map numbers to lists of patterns", path=KEY)
    found: dict[int, tuple[str, ...]] = {}
    for written, patterns in document.items():
        # A YAML reader may have turned keys into strings, as JSON has them.
        if isinstance(written, bool) or not str(written).lstrip("-").isdecimal():
            raise InvalidInput(f"{written!r} is not a whole number", path=KEY)
        number = int(written)
        if not isinstance(patterns, list) or not all(isinstance(pattern, str) for pattern in patterns):
            raise InvalidInput("must be a list of patterns", path=f"{KEY}[{number}]")
        for pattern in patterns:
            compile_pattern(pattern)
        found[number] = tuple(patterns)
    return found


class CompiledPattern(Protocol):
    """A compiled regular expression."""

    def search(self, text: str) -> object | None: ...


def compile_pattern(text: str) -> CompiledPattern:
    """Patterns come from users, so they are compiled by RE2, whose matching time is linear."""
    import re2  # noqa: PLC0415 -- a tenth of a second that only the priority expander needs

    try:
        pattern: CompiledPattern = re2.compile(text)
    except re2.error as error:
        raise InvalidInput(f"{text!r} is not a pattern: {error}") from error
    return pattern
