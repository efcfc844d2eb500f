"""The columns and rows of custom resources, from the `additionalPrinterColumns` of their definition.

A path that finds nothing, and a value of another type than the column's, is an empty cell. Of several values the first
is printed, as in Kubernetes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from plimsoll.local.apiserver.presentation.builtin_printers import describe_column
from plimsoll.local.apiserver.presentation.durations import format_since, parse_timestamp
from plimsoll.local.apiserver.presentation.field_access import UNKNOWN, Json, get_int, get_items, get_text
from plimsoll.local.apiserver.presentation.json_paths import InvalidJsonPath, JsonPath, parse
from plimsoll.objects.schema import go_text

if TYPE_CHECKING:
    from datetime import datetime

_CREATED: Final = ".metadata.creationTimestamp"
_LARGEST: Final = 2**63


class _Column(NamedTuple):
    type: str
    path: JsonPath | InvalidJsonPath


class CustomPrinter:
    """Columns and rows of one version of a custom resource."""

    rows_when_empty: list[Any] | None = None

    def __init__(self, definition: Json, version: str) -> None:
        named = (item for item in get_items(definition, "spec", "versions") if item.get("name") == version)
        written = get_items(next(named, {}), "additionalPrinterColumns")
        if not written:
            age = {
                "name": "Age",
                "type": "date",
                "jsonPath": _CREATED,
                "description": describe_column("creationTimestamp"),
            }
            written = [age]
        self._columns = [_Column(get_text(item, "type"), parse(get_text(item, "jsonPath"))) for item in written]
        name = {
            "name": "Name",
            "type": "string",
            "format": "name",
            "description": describe_column("name"),
            "priority": 0,
        }
        self.columns: list[Json] = [name, *(_build_definition(item) for item in written)]

    def build_cells(self, obj: Json, now: datetime) -> list[Any]:
        return [get_text(obj, "metadata", "name"), *(_build_cell(column, obj, now) for column in self._columns)]

    def build_conditions(self, _obj: Json) -> list[dict[str, str]]:
        return []


def _build_definition(written: Json) -> Json:
    path = get_text(written, "jsonPath")
    return {
        "name": get_text(written, "name"),
        "type": get_text(written, "type"),
        "format": get_text(written, "format"),
        "description": get_text(written, "description")
        or f"Custom resource definition column (in JSONPath format): {path}",
        "priority": get_int(written, "priority"),
    }


def _build_cell(column: _Column, obj: Json, now: datetime) -> Any:
    found = [] if isinstance(column.path, InvalidJsonPath) else column.path.find(obj)
    if not found:
        return None
    value = found[0]
    if column.type == "string":
        return _as_text(value)
    if column.type == "date":
        return _as_age(value, now)
    if column.type == "boolean":
        return value if isinstance(value, bool) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < _LARGEST:
        return None
    return int(value) if column.type == "integer" else value


def _as_text(value: Any) -> str | None:
    if value is None:
        return "<no value>"
    if isinstance(value, dict | list):
        try:
            return go_text.as_json(value)
        except RecursionError:
            return None
    return go_text.format_plain(value)


def _as_age(value: Any, now: datetime) -> str | None:
    if not isinstance(value, str):
        return None
    if value in {"", "null"}:
        return UNKNOWN
    return "<invalid>" if parse_timestamp(value) is None else format_since(value, now)
