"""Options and rendering that all commands share: `-f`, `-o`, values, and tables with colour on a terminal.

Output to a pipe or a file is plain text. On a terminal, rich folds tables to its width and colours them unless
`NO_COLOR` is set; rich is imported only then.
"""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TextIO

import typer

from plimsoll.core.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from rich.table import Table as RichTable

STDIN = "-"
_PIPE_WIDTH: Final = 110
_LEAST_WIDTH: Final = 40
_GOOD: Final = "green"
_BAD: Final = "bold red"
_DOUBTFUL: Final = "yellow"
_STYLES: Final = {
    **dict.fromkeys(("Healthy", "Provisioned", "Consumed", "True", "ok", "fits", "done"), _GOOD),
    **dict.fromkeys(("Unhealthy", "Failed", "Revoked", "False", "fail", "failed"), _BAD),
    **dict.fromkeys(("Waiting", "Backoff", "BookingExpired", "InProgress", "Unknown", "held"), _DOUBTFUL),
}
"""Styles of table cells by their first word."""


class Output(Enum):
    """Output formats."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


OutputOption = Annotated[
    Output, typer.Option("-o", "--output", help="Output format.", show_choices=True, case_sensitive=True)
]
FilesOption = Annotated[
    list[str], typer.Option("-f", "--filename", help="File to read; may be repeated; - is stdin.", metavar="FILE")
]


def read_file(name: str) -> bytes:
    """The bytes of a file named on the command line."""
    if not name:
        raise InvalidInput("the file name is empty")
    if name == STDIN and sys.stdin is None:
        raise InvalidInput("stdin is closed", path=name)
    try:
        return sys.stdin.buffer.read() if name == STDIN else Path(name).read_bytes()
    except OSError as error:
        raise InvalidInput(f"cannot be read: {error.strerror}", path=name) from error


def echo_value(value: Any, output: Output) -> None:
    """Print data as JSON or YAML; the caller renders tables and names."""
    import msgspec

    if output is Output.JSON:
        typer.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())
    else:
        from plimsoll.objects.codec.yaml import dump

        typer.echo(dump(msgspec.to_builtins(value)), nl=False)


# ---- tables


@dataclass(frozen=True, slots=True)
class Table:
    """A table for people. Without rows it prints nothing; `is_spaced`: an empty line follows it."""

    head: tuple[str, ...]
    rows: Sequence[tuple[Any, ...]]
    is_spaced: bool = True

    def format_lines(self) -> Iterator[str]:
        """The table as aligned text."""
        if not self.rows:
            return
        texts = [self.head, *(tuple(map(str, row)) for row in self.rows)]
        widths = [max(len(row[column]) for row in texts) for column in range(len(self.head))]
        for row in texts:
            yield "   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        if self.is_spaced:
            yield ""


def uses_colour(stream: TextIO | None) -> bool:
    """Whether a stream is a terminal and colours are wanted."""
    return _is_terminal(stream) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _is_terminal(stream: TextIO | None) -> bool:
    return stream is not None and stream.isatty()


def find_text_width() -> int:
    """The width for lines of text: that of the terminal, within what is readable; a pipe has a fixed one."""
    if not _is_terminal(sys.stdout):
        return _PIPE_WIDTH
    return min(max(shutil.get_terminal_size().columns, _LEAST_WIDTH), _PIPE_WIDTH)


def echo_parts(parts: Iterable[str | Table], *, clean: Callable[[str], str] = str, title: str = "") -> None:
    """Print lines and tables, after a title if there is one. `clean` removes control characters from each text."""
    if _is_terminal(sys.stdout):
        _echo_on_terminal(parts, clean=clean, title=title)
        return
    if title:
        typer.echo(clean(title))
    for part in parts:
        for line in part.format_lines() if isinstance(part, Table) else (part,):
            typer.echo(clean(line))


def _echo_on_terminal(parts: Iterable[str | Table], *, clean: Callable[[str], str], title: str) -> None:
    from rich.console import Console
    from rich.text import Text

    # Text runs on, so that it can be copied; tables are folded to the width of the terminal.
    width, height = shutil.get_terminal_size()
    colours: Literal["auto"] | None = "auto" if uses_colour(sys.stdout) else None
    console = Console(
        file=sys.stdout, highlight=False, soft_wrap=True, width=width, height=height, color_system=colours
    )
    if title:
        console.print(Text(clean(title), style="bold cyan"))
    for part in parts:
        if not isinstance(part, Table):
            console.print(Text(clean(part)))
        elif part.rows:
            with console.capture() as drawn:
                console.print(_build_rich_table(part, clean))
            typer.echo("\n".join(line.rstrip() for line in drawn.get().splitlines()))
            if part.is_spaced:
                console.print()


def _build_rich_table(table: Table, clean: Callable[[str], str]) -> RichTable:
    from rich.table import Table as RichTable
    from rich.text import Text

    drawn = RichTable(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
    for name in table.head:
        drawn.add_column(Text(name), overflow="fold")
    for row in table.rows:
        drawn.add_row(*(Text(clean(str(cell)), style=_get_style(str(cell))) for cell in row))
    return drawn


def _get_style(cell: str) -> str:
    first = cell.split(maxsplit=1)[:1]
    return _STYLES.get(first[0].rstrip(":,"), "") if first else ""
