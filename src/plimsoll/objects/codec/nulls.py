"""Removes nulls from plain JSON, guided by the target type: null equals absent.

The type guides it, because null has a meaning in JSON of unknown shape (the `default: null` of an OpenAPI schema), and
because the depth of a type bounds the recursion, whatever the depth of the data.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import inspect

Shape = inspect.Type
_CONTAINERS: Final = (inspect.StructType, inspect.DictType, inspect.VarTupleType)


def strip_nulls(value: Any, shape: Shape) -> Any:
    """The value without null fields and map values, and without fields that the type does not declare."""
    shape = _get_container(shape)
    if isinstance(shape, inspect.StructType) and isinstance(value, dict):
        known = ((field.encode_name, field.type) for field in shape.fields)
        return {name: strip_nulls(value[name], of) for name, of in known if value.get(name) is not None}
    if isinstance(shape, inspect.DictType) and isinstance(value, dict):
        of = _get_container(shape.value_type)
        if isinstance(of, inspect.AnyType):
            return value
        present = {key: member for key, member in value.items() if member is not None}
        # Labels and the like may be many: a map of scalars is not walked twice.
        return (
            {key: strip_nulls(member, of) for key, member in present.items()}
            if isinstance(of, _CONTAINERS)
            else present
        )
    if isinstance(shape, inspect.VarTupleType) and isinstance(value, list):
        return [strip_nulls(item, shape.item_type) for item in value]
    return value


def _get_container(shape: Shape) -> Shape:
    """The X of `X | None`; no wire type has two containers in one union."""
    if not isinstance(shape, inspect.UnionType):
        return shape
    return next((type_ for type_ in shape.types if isinstance(type_, _CONTAINERS)), shape)
