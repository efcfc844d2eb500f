"""What strategic merge needs to know about a kind: how each list and map is merged.

A view on the shipped OpenAPI schemas (`x-kubernetes-patch-merge-key`, `x-kubernetes-patch-strategy`), walked beside the
patch by `strategic_merge`. Custom resources have none: the real server refuses strategic patches for them (415).
"""

from __future__ import annotations

from typing import Final

from plimsoll.core.values import Value
from plimsoll.objects.builtin.openapi import Schema, component, reference, schema_name


class FieldRule(Value):
    """How a field is merged; `below` describes its value (of a list: one element)."""

    below: PatchSchema
    merge_key: str = ""
    is_merged: bool = False
    is_replaced: bool = False


class PatchSchema:
    """One node of the schema. Where nothing is known, maps are merged and lists replaced."""

    __slots__ = ("_schema",)

    def __init__(self, schema: Schema) -> None:
        self._schema = schema

    @classmethod
    def of_kind(cls, api_version: str, kind: str) -> PatchSchema | None:
        """None for kinds without a recorded schema."""
        name = schema_name(api_version, kind)
        return None if name is None else cls(component(name))

    def field(self, name: str) -> FieldRule:
        declared = self._schema.get("properties", {}).get(name) or self._schema.get("additionalProperties")
        if not isinstance(declared, dict):
            return FieldRule(below=UNKNOWN)
        strategies = declared.get("x-kubernetes-patch-strategy", "").split(",")
        return FieldRule(
            merge_key=declared.get("x-kubernetes-patch-merge-key", ""),
            is_merged="merge" in strategies,
            is_replaced="replace" in strategies,
            below=PatchSchema(_described(declared.get("items", declared))),
        )


def _described(schema: Schema) -> Schema:
    name = reference(schema)
    return schema if name is None else component(name)


UNKNOWN: Final = PatchSchema({})
