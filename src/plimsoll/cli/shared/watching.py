"""`--watch`: a command that prints again what changed, until Ctrl-C, as `kubectl get --watch` does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from plimsoll.cli.shared.output import Table

T = TypeVar("T")
WatchOption = Annotated[
    bool, typer.Option("-w", "--watch", help="After the first output, print what changes, until Ctrl-C.")
]
INTERVAL_S = 2.0


def watch_changes(
    read: Callable[[], T],
    show: Callable[[T], None],
    *,
    select: Callable[[T], object] = lambda found: found,
    sleep: Callable[[float], None] | None = None,
) -> None:
    """Show what `read` returns, and again whenever what `select` takes of it differs.

    Ends with the exception of `read` or Ctrl-C.
    """
    import time

    pause = sleep or time.sleep
    found = read()
    show(found)
    shown = select(found)
    while True:
        pause(INTERVAL_S)
        found = read()
        if select(found) != shown:
            show(found)
            shown = select(found)


class ChangedRows:
    """A table that is printed whole at first, and then only its new and changed rows; an age is no change."""

    def __init__(self) -> None:
        self._before: Sequence[tuple[Any, ...]] = ()

    def select(self, table: Table) -> Iterator[Table]:
        from dataclasses import replace

        lasting = [
            tuple(cell for name, cell in zip(table.head, row, strict=True) if name != "AGE") for row in table.rows
        ]
        before, self._before = self._before, lasting
        rows = [row for row, kept in zip(table.rows, lasting, strict=True) if kept not in before]
        if rows:
            yield replace(table, rows=rows, is_spaced=False)
