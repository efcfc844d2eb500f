"""Times as scenarios and outcomes write them."""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime


def format_time(moment: datetime) -> str:
    """RFC 3339 in UTC; fractions of a second only where there are some."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
