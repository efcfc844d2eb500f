"""The types of columns. Every value is checked here, once, before it reaches a driver.

A type knows the name of its column, so that the error about a NUL byte, an unpaired surrogate or a number beyond 64
bits names it. SQLAlchemy wraps errors of types; `transactions.py` unwraps them.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import msgspec
from sqlalchemy import BigInteger, DateTime, Text
from sqlalchemy.types import TypeDecorator

from plimsoll.core.durations import to_utc
from plimsoll.core.errors import InvalidInput

if TYPE_CHECKING:
    from sqlalchemy import Dialect
    from sqlalchemy.types import TypeEngine

_MOST: Final = 2**63 - 1


def check_text(value: str, column: str) -> str:
    """The text as a plain string. An enum of strings would be written by its name."""
    if "\0" in value:
        raise InvalidInput("has a NUL byte", path=column)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidInput("has an unpaired surrogate", path=column) from None
    return str(value)


class CheckedText(TypeDecorator[str]):
    """Text that every database can store."""

    impl = Text
    cache_ok = True

    def __init__(self, column: str) -> None:
        super().__init__()
        self.column = column

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002
        return None if value is None else check_text(value, self.column)


class WholeNumber(TypeDecorator[int]):
    """A whole number of 64 bits."""

    impl = BigInteger
    cache_ok = True

    def __init__(self, column: str) -> None:
        super().__init__()
        self.column = column

    def process_bind_param(self, value: int | None, dialect: Dialect) -> int | None:  # noqa: ARG002
        if value is not None and not -_MOST - 1 <= value <= _MOST:
            raise InvalidInput("is beyond 64 bits", path=self.column)
        return value


class UtcTime(TypeDecorator[datetime]):
    """A moment with its zone. SQLite stores it as text of fixed width, which has the order of time."""

    impl = DateTime
    cache_ok = True

    def __init__(self, column: str) -> None:
        super().__init__()
        self.column = column

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return dialect.type_descriptor(DateTime(timezone=True) if dialect.name == "postgresql" else Text())

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> Any:
        if value is None:
            return None
        if value.tzinfo is None:
            raise InvalidInput("has no time zone", path=self.column)
        moment = to_utc(value)
        return moment if dialect.name == "postgresql" else moment.isoformat(timespec="microseconds")

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:  # noqa: ARG002
        if isinstance(value, str):
            try:
                return to_utc(datetime.fromisoformat(value))
            except ValueError:
                return value  # The row is unreadable, but not the whole list: `rows.py` refuses it.
        return None if value is None else to_utc(value)


class JsonText(TypeDecorator[Any]):
    """A value as JSON text, the same bytes in every database. It comes back as text; `rows.py` decodes it."""

    impl = Text
    cache_ok = True

    def __init__(self, column: str) -> None:
        super().__init__()
        self.column = column

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:  # noqa: ARG002
        try:
            return msgspec.json.encode(value).decode()
        except (UnicodeError, OverflowError, TypeError, RecursionError) as error:
            raise InvalidInput(f"cannot be stored as JSON: {error}", path=self.column) from None
