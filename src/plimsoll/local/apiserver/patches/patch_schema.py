"""What strategic merge needs to know about a kind: how each list and map is merged.

A view on the shipped OpenAPI schemas (`x-kubernetes-patch-merge-key`, `x-kubernetes-patch-strategy`), walked beside the
patch by `strategic_merge`. Custom resources have none: the real server refuses strategic patches for them (415).
"""

from __future__ import annotations

from functools import cache
from typing import Final

from plimsoll.core.values import Value
from plimsoll.objects.builtin.decoding.openapi import Schema, find_reference, find_schema_name, load_component


class FieldRule(Value):
    """How a field is merged; `below` describes its value (of a list: one element)."""

    below: PatchSchema
    merge_key: str = ""
    is_merged: bool = False
    is_replaced: bool = False


class PatchSchema:
    """One node of the schema. Where nothing is known, maps are merged and lists replaced."""

    __slots__ = ("_rules", "_schema")

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._rules: dict[str, FieldRule] = {}

    @classmethod
    def from_kind(cls, api_version: str, kind: str) -> PatchSchema | None:
        """None for kinds without a recorded schema."""
        name = find_schema_name(api_version, kind)
        return None if name is None else _load_schema(name)

    def get_field_rule(self, name: str) -> FieldRule:
        known = self._rules.get(name)
        if known is None:
            known = self._build_rule(name)
            # Only declared names are kept: clients may think of any number of others.
            if name in self._schema.get("properties", {}):
                self._rules[name] = known
        return known

    def _build_rule(self, name: str) -> FieldRule:
        declared = self._schema.get("properties", {}).get(name) or self._schema.get("additionalProperties")
        if not isinstance(declared, dict):
            return FieldRule(below=UNKNOWN)
        strategies = declared.get("x-kubernetes-patch-strategy", "").split(",")
        return FieldRule(
            merge_key=declared.get("x-kubernetes-patch-merge-key", ""),
            is_merged="merge" in strategies,
            is_replaced="replace" in strategies,
            below=_build_schema(declared.get("items", declared)),
        )


def _build_schema(schema: Schema) -> PatchSchema:
    name = find_reference(schema)
    return PatchSchema(schema) if name is None else _load_schema(name)


@cache
def _load_schema(name: str) -> PatchSchema:
    return PatchSchema(load_component(name))


UNKNOWN: Final = PatchSchema({})
