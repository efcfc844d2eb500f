"""Times on the command line."""

from __future__ import annotations

from datetime import UTC, datetime

from plimsoll.core.errors import InvalidInput


def read_time(written: str, *, path: str) -> datetime:
    """`2026-01-01T00:00:00Z`, with a time zone. Raises `InvalidInput` under the name `path`."""
    import msgspec

    try:
        moment = msgspec.convert(written, datetime)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"{written!r} is not a time such as 2026-01-01T00:00:00Z", path=path) from error
    if moment.tzinfo is None:
        raise InvalidInput(f"{written!r} has no time zone; add Z if it is UTC", path=path)
    return moment.astimezone(UTC)
