"""The base of rows: their JSON has the column names, in snake case."""

from __future__ import annotations

from typing import Final

from msgspec import structs

from plimsoll.core.values import Value

SECRETS: Final = frozenset({"client_secret", "canary_service_account_client_secret"})
"""Fields that no text, log, answer or export shows."""


def keep_name(field: str) -> str:
    """For documents whose names are in snake case."""
    return field


class Record(Value, rename=keep_name):
    """A row, or a part of one that is stored as JSON. Export and import use the same names."""

    def __repr__(self) -> str:
        values = structs.asdict(self)
        shown = (f"{name}={'***' if name in SECRETS and value else repr(value)}" for name, value in values.items())
        return f"{type(self).__name__}({', '.join(shown)})"
