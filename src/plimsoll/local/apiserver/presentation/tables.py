"""Objects and lists as a `meta.k8s.io` Table, which `kubectl get` prints.

Rows carry the object beside their cells as far as the client requests (`includeObject`).
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Protocol

from plimsoll.local.apiserver.presentation.builtin_printers import BuiltinPrinter
from plimsoll.local.apiserver.presentation.custom_printers import CustomPrinter
from plimsoll.local.apiserver.presentation.field_access import Json, get_text

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from plimsoll.local.apiserver.presentation.negotiation import MediaForm
    from plimsoll.local.apiserver.resources.registry import ServedResource

META_GROUP: Final = "meta.k8s.io"


class Printer(Protocol):
    """The port that gives the columns and rows of a resource."""

    rows_when_empty: list[Any] | None

    @property
    def columns(self) -> list[Json]: ...

    def build_cells(self, obj: Json, now: datetime) -> list[Any]: ...

    def build_conditions(self, obj: Json) -> list[dict[str, str]]: ...


def find_printer(resource: ServedResource) -> Printer:
    if resource.definition is not None:
        return CustomPrinter(resource.definition, resource.version)
    return _build_builtin_printer(resource.group, resource.kind)


@lru_cache(maxsize=512)
def _build_builtin_printer(group: str, kind: str) -> BuiltinPrinter:
    return BuiltinPrinter(group, kind)


def build_table(
    form: MediaForm,
    objects: Iterable[Json],
    metadata: Json,
    printer: Printer,
    *,
    now: datetime,
    with_columns: bool = True,
) -> Json:
    """The Table of some objects. Later events of a watch go without the columns."""
    rows = [_build_row(form, object_, printer, now) for object_ in objects]
    return {
        "kind": "Table",
        "apiVersion": f"{META_GROUP}/{form.version}",
        "metadata": metadata,
        "columnDefinitions": printer.columns if with_columns else None,
        "rows": rows or printer.rows_when_empty,
    }


def build_partial(form: MediaForm, obj: Json) -> Json:
    """An object with nothing but its metadata."""
    metadata = obj.get("metadata")
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": f"{META_GROUP}/{form.version}",
        "metadata": metadata if isinstance(metadata, dict) else {},
    }


def build_version_metadata(obj: Json) -> Json:
    """The metadata of a table that holds one object."""
    version = get_text(obj, "metadata", "resourceVersion")
    return {"resourceVersion": version} if version else {}


def _build_row(form: MediaForm, obj: Json, printer: Printer, now: datetime) -> Json:
    row: Json = {"cells": printer.build_cells(obj, now)}
    if conditions := printer.build_conditions(obj):
        row["conditions"] = conditions
    if form.include_object == "Object":
        row["object"] = obj
    else:
        row["object"] = None if form.include_object == "None" else build_partial(form, obj)
    return row
