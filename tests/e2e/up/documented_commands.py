"""The commands of a page and what the page shows below each, and whether a cluster answers so.

Names with random parts, times, ages and addresses differ at every run, and so does the order of lines. A line of a page
that ends in `…`, or is `…`, stands for what follows.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

_BLOCK = re.compile(r"```(\w*)\n(.*?)```", re.DOTALL)
_OF_COMMANDS = ("console", "sh", "")
_REPLACED = [
    (r"\b(web|big)-[0-9a-f]{8,10}-[a-z0-9]{5}\b", r"\1-POD"),
    (r"\bstore \d+\b", "STORE"),
    (r"is being removed: \d+\b", "is being removed: N"),
    (r"\b(leaders must move first|regions must move)\b", "THEY must move"),
    (r"\bnodeautoprovisioning-\S+-[a-z0-9]{8}(-\d+)?\b", "GROUP"),
    (r"\bworkers-\d+\b", "NODE"),
    (r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(Z| UTC)", "TIME"),
    (r"\(?\b\d+ (s|min) ago\)?", "AGO"),
    (r"\b(\d+m)?\d+s\b|\b\d+m\b", "AGE"),
    (r"\b\d+\.\d+\.\d+\.\d+\b", "ADDRESS"),
    (r" \(and \d+ more like it\)", ""),
    (r"entry \d+", "ENTRY"),
    (r"\s+", " "),
]
_VARIES = ("Waiting for", "error when evicting", "evicting pod")
"""How often these lines come depends on how fast the machine is."""


class DocumentedCommand(NamedTuple):
    command: str
    shown: list[str]
    """The lines of the page that the command must print."""

    def find_missing(self, printed: str, *, counts: bool = True) -> list[str]:
        """The lines of the page that were not printed. `counts`: numbers alone in a column must be the same."""
        found = {simplify(line, counts=counts) for line in printed.splitlines()}
        return [line for line in self.shown if not _is_among(simplify(line, counts=counts), found)]


def read_commands(page: str, *, heading: str = "") -> Iterator[DocumentedCommand]:
    """The commands of a page, or of one section: lines after `$ `, or all lines of a block without any."""
    text = page.split(f"\n{heading}\n")[1].split("\n## ", maxsplit=1)[0] if heading else page
    for language, block in _BLOCK.findall(text):
        if language not in _OF_COMMANDS:
            continue
        lines = block.replace("\\\n", " ").splitlines()
        if not any(line.startswith("$ ") for line in lines):
            yield from (DocumentedCommand(line.partition(" #")[0].strip(), []) for line in lines if line.strip())
            continue
        current: DocumentedCommand | None = None
        for line in lines:
            if line.startswith("$ "):
                if current is not None:
                    yield current
                current = DocumentedCommand(line.removeprefix("$ "), [])
            elif current is not None and line.strip() not in {"", "…"} and not line.startswith(_VARIES):
                current.shown.append(line)
        if current is not None:
            yield current


def simplify(line: str, *, counts: bool = True) -> str:
    for pattern, replacement in _REPLACED:
        line = re.sub(pattern, replacement, line)
    return (line if counts else re.sub(r" \d+(?= |$)", " N", line)).strip()


def _is_among(expected: str, found: set[str]) -> bool:
    if "…" not in expected:
        return expected in found
    return any(line.startswith(expected.partition("…")[0]) for line in found)
