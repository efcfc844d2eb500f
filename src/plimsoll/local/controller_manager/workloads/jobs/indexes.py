"""Sets of completion indexes as Kubernetes writes them, `1,3-5,7`, and the index of a pod. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.objects.api.pods import Pod


INDEX_KEY: Final = "batch.kubernetes.io/job-completion-index"
"""Annotation and label of a pod of an indexed job."""


_MOST_DIGITS: Final = 19


def format_indexes(indexes: Iterable[int]) -> str:
    """Runs of three and more are written as ranges."""
    runs: list[list[int]] = []
    for index in sorted(set(indexes)):
        if runs and runs[-1][1] == index - 1:
            runs[-1][1] = index
        else:
            runs.append([index, index])
    return ",".join(_format_run(first, last) for first, last in runs)


def _format_run(first: int, last: int) -> str:
    if first == last:
        return str(first)
    return f"{first},{last}" if last == first + 1 else f"{first}-{last}"


def read_indexes(text: str, *, below: int) -> frozenset[int]:
    """Those of them that are below the number of completions. What cannot be read is left out."""
    indexes: set[int] = set()
    for part in text.split(",") if text else ():
        first, _, last = part.partition("-")
        start, end = _parse_number(first), _parse_number(last or first)
        if start is not None and end is not None:
            indexes.update(range(start, min(end, below - 1) + 1))
    return frozenset(indexes)


def read_completion_index(pod: Pod, *, below: int) -> int | None:
    """The pod's completion index, if it has one and the job still wants it."""
    index = _parse_number(pod.metadata.annotations.get(INDEX_KEY, ""))
    return index if index is not None and index < below else None


def _parse_number(text: str) -> int | None:
    """Users may write these texts: one too long for a number is none."""
    return int(text) if len(text) <= _MOST_DIGITS and text.isascii() and text.isdigit() else None
