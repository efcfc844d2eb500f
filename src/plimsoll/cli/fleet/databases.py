"""The database of a fleet that a command reads or writes: its options, and the URL they give."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from plimsoll.core.errors import InvalidInput

DEFAULT_URL = "sqlite:///.plimsoll/fleet.sqlite3"

DatabaseUrlOption = Annotated[
    str,
    typer.Option("--database-url", help=f"sqlite:///FILE or postgresql://… Default: {DEFAULT_URL}.", metavar="URL"),
]
DatabaseUrlFileOption = Annotated[
    str, typer.Option("--database-url-file", help="File with the URL of the database.", metavar="FILE")
]


def find_local_database(data: str) -> str:
    """The URL of the database in a directory of data, by default the one of DEFAULT_URL; empty: there is none."""
    default = Path(DEFAULT_URL.removeprefix("sqlite:///"))
    file = Path(data, default.name) if data else default
    return f"sqlite:///{file}" if file.exists() else ""


def read_database_url(url: str, file: str) -> str:
    """The URL that was given or that a file holds, or the default. A file keeps a password out of the process list."""
    return find_database_url(url, file) or DEFAULT_URL


def find_database_url(url: str, file: str) -> str:
    """The URL that was given or that a file holds; empty: neither."""
    if not file:
        return url
    if url:
        raise InvalidInput("is given beside --database-url; give one of them", path="--database-url-file")
    try:
        return Path(file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise InvalidInput(f"{file} cannot be read: {reason}", path="--database-url-file") from error
