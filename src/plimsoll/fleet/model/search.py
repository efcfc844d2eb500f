"""A search expression over Kafka requests, parsed. The API parses it, the store compiles it to SQL."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from plimsoll.core.values import Value

COLUMNS: Final = ("region", "name", "cloud_provider", "status", "owner", "cluster_id", "instance_type")
"""Columns that a search may name."""
ORDER_COLUMNS: Final = (*COLUMNS, "id", "created_at", "updated_at", "bootstrap_server_host", "multi_az", "size_id")
"""Columns that a list may be ordered by."""


class Operator(StrEnum):
    """Comparison operators."""

    EQUAL = "="
    NOT_EQUAL = "<>"
    LIKE = "like"
    ILIKE = "ilike"
    IN = "in"
    NOT_IN = "not in"
    NOT_LIKE = "not like"
    NOT_ILIKE = "not ilike"


class Comparison(Value, tag="comparison"):
    """One column compared with one value, or with several by `in`."""

    column: str
    operator: Operator
    values: tuple[str, ...]


class Conjunction(Value, tag="and"):
    """All parts hold."""

    parts: tuple[Search, ...]


class Disjunction(Value, tag="or"):
    """At least one part holds."""

    parts: tuple[Search, ...]


Search = Comparison | Conjunction | Disjunction
