"""The address of a database: `sqlite:///DIR/fleet.sqlite3`, `sqlite://` (in memory), or `postgresql://…`.

Its text never shows a password, nor does any error about it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from plimsoll.core.errors import InvalidInput

if TYPE_CHECKING:
    from sqlalchemy.engine import URL

EXAMPLES: Final = "sqlite:///DIR/fleet.sqlite3 or postgresql://USER@HOST/DATABASE"
_POSTGRESQL: Final = frozenset({"postgresql", "postgres", "postgresql+psycopg"})
_MEMORY: Final = frozenset({None, "", ":memory:"})


@dataclass(frozen=True, slots=True, repr=False)
class DatabaseAddress:
    """A parsed URL. `file` None: PostgreSQL, or SQLite in memory."""

    url: URL
    is_postgresql: bool
    file: Path | None = None

    @property
    def is_memory(self) -> bool:
        return not self.is_postgresql and self.file is None

    def __str__(self) -> str:
        if not self.is_postgresql:
            return f"sqlite:///{self.file}" if self.file else "sqlite://"
        user = f"{self.url.username}@" if self.url.username else ""
        port = f":{self.url.port}" if self.url.port else ""
        return f"postgresql://{user}{self.url.host or ''}{port}/{self.url.database or ''}"

    __repr__ = __str__

    def hide_password(self, text: str) -> str:
        """The text of a driver without the password, however the password came into it."""
        given = (self.url.password, self.url.query.get("password"))
        for password in given:
            if isinstance(password, str) and password:
                text = text.replace(password, "***")
        return text


def parse_url(text: str) -> DatabaseAddress:
    """The address that a URL names. Errors say what is wrong without repeating the URL."""
    try:
        url = make_url(text.strip())
    except (ArgumentError, ValueError):
        raise InvalidInput(f"is not the URL of a database; give {EXAMPLES}", path="database-url") from None
    if url.drivername in _POSTGRESQL:
        if not url.database:
            raise InvalidInput("names no database; give postgresql://USER@HOST/DATABASE", path="database-url")
        return DatabaseAddress(url.set(drivername="postgresql+psycopg"), is_postgresql=True)
    if url.drivername == "sqlite":
        if url.host or url.query:
            problem = "a SQLite URL has three slashes and a path, and nothing else"
            raise InvalidInput(f"{problem}; give sqlite:///DIR/fleet.sqlite3", path="database-url")
        file = None if url.database in _MEMORY else Path(str(url.database))
        return DatabaseAddress(url.set(drivername="sqlite+pysqlite"), is_postgresql=False, file=file)
    raise InvalidInput(f"no driver for this kind of database; give {EXAMPLES}", path="database-url")
