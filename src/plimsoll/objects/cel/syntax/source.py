"""The text of an expression, and errors with their positions, printed like in cel-go.

Columns count code points.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

MAX_REPORTED = 100
NOWHERE = -1
_DOT, _WIDE_DOT, _CARET, _WIDE_CARET = ".", "\uff0e", "^", "\uff3e"


@dataclass(frozen=True, slots=True, order=True)
class Issue:
    """One complaint: where (offset in code points from the start, or NOWHERE) and what."""

    offset: int
    problem: str = field(compare=False)


class Source:
    """An expression's text with its line starts."""

    __slots__ = ("_starts", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._starts = [0] + [index + 1 for index, char in enumerate(text) if char == "\n"]

    def find_offset(self, line: int, column: int) -> int:
        """The offset of a position, counted from line 1 and column 0."""
        return self._starts[min(line, len(self._starts)) - 1] + column

    def render(self, issues: list[Issue]) -> str:
        """All complaints, in the order of their places, each with its line and a caret below."""
        ordered = sorted(issues)
        shown = [self._render_one(issue) for issue in ordered[:MAX_REPORTED]]
        if len(ordered) > MAX_REPORTED:
            shown.append(f"{len(ordered) - MAX_REPORTED} more errors were truncated")
        return "\n".join(shown)

    def _render_one(self, issue: Issue) -> str:
        if issue.offset == NOWHERE:
            return f"ERROR: <input>:-1:0: {issue.problem}"
        line = bisect_right(self._starts, issue.offset)
        start = self._starts[line - 1]
        column = issue.offset - start
        headline = f"ERROR: <input>:{line}:{column + 1}: {issue.problem}"
        if not self.text:
            return headline
        end = self._starts[line] - 1 if line < len(self._starts) else len(self.text)
        snippet = self.text[start:end].replace("\t", " ")
        padding = "".join(_WIDE_DOT if ord(char) > 0x7F else _DOT for char in snippet[:column])
        pointed_at = snippet[column : column + 1]
        caret = _WIDE_CARET if pointed_at and ord(pointed_at) > 0x7F else _CARET
        return f"{headline}\n | {snippet}\n | {padding}{caret}"
