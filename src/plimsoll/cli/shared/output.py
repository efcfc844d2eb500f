"""What every command shares in how it speaks: `-f`, `-o`, and rendering of values."""

from __future__ import annotations

import sys
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from plimsoll.core.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterator

STDIN = "-"


class Output(Enum):
    """Forms of an answer."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


OutputOption = Annotated[
    Output, typer.Option("-o", "--output", help="Form of the answer.", show_choices=True, case_sensitive=True)
]
FilesOption = Annotated[
    list[str], typer.Option("-f", "--filename", help="File to read; may be repeated; - is stdin.", metavar="FILE")
]


def read_file(name: str) -> bytes:
    """The bytes of a file named on the command line."""
    if not name:
        raise InvalidInput("the name of a file is empty")
    if name == STDIN and sys.stdin is None:
        raise InvalidInput("stdin is closed", path=name)
    try:
        return sys.stdin.buffer.read() if name == STDIN else Path(name).read_bytes()
    except OSError as error:
        raise InvalidInput(f"cannot be read: {error.strerror}", path=name) from error


def echo_value(value: Any, output: Output) -> None:
    """Print plain data as JSON or YAML; the caller renders tables and names."""
    if output is Output.JSON:
        import msgspec

        typer.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())
    else:
        from plimsoll.objects.codec.yaml import dump

        typer.echo(dump(value), nl=False)


def format_table(head: tuple[str, ...], rows: list[tuple[Any, ...]]) -> Iterator[str]:
    """Lines of a table, and an empty one after it; nothing without rows."""
    if not rows:
        return
    texts = [head, *(tuple(map(str, row)) for row in rows)]
    widths = [max(len(row[column]) for row in texts) for column in range(len(head))]
    for row in texts:
        yield "   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
    yield ""
