"""The schema model: `openAPIV3Schema` as a tree of values, for definitions and for the data they describe.

One class represents every node, also below allOf, anyOf, oneOf and not, where most fields are forbidden
(`definition.structural_checks`). Parsing rejects only wrong JSON types, which a real API server could not decode.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import msgspec

from plimsoll.core.errors import InvalidInput
from plimsoll.core.values import Value
from plimsoll.objects.schema import field_errors as fields

if TYPE_CHECKING:
    from collections.abc import Iterator

Number = int | float

# Fields of JSON Schema that a CRD may not use at all, in the order in which the real server complains.
UNSUPPORTED_FIELDS = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")

_CACHED_SCHEMAS: Final = 64
_CACHED_BYTES: Final = 64 * 1024
"""A larger schema is parsed each time: the cache must not grow with what users define."""

_JSON_NAMES = {str: "string", bool: "boolean", int: "integer", float: "number", list: "array", dict: "object"}


class ValidationRule(Value):
    """One entry of x-kubernetes-validations."""

    rule: str = ""
    message: str = ""
    message_expression: str = ""
    reason: str | None = None
    field_path: str = ""
    optional_old_self: bool | None = None


class StructuralSchema(Value):
    """A node of a schema. `None` and empty mean "not given"; a default of null counts as none, as in Go."""

    type: str = ""
    format: str = ""
    title: str = ""
    description: str = ""
    has_external_docs: bool = False
    nullable: bool = False
    default: Any = None

    properties: dict[str, StructuralSchema] = {}
    items: StructuralSchema | None = None
    items_list: tuple[StructuralSchema, ...] = ()
    additional_properties: StructuralSchema | None = None
    additional_properties_allowed: bool | None = None

    required: tuple[str, ...] = ()
    enum: tuple[Any, ...] | None = None
    pattern: str = ""
    minimum: Number | None = None
    maximum: Number | None = None
    exclusive_minimum: bool = False
    exclusive_maximum: bool = False
    multiple_of: Number | None = None
    min_length: int | None = None
    max_length: int | None = None
    min_items: int | None = None
    max_items: int | None = None
    unique_items: bool = False
    min_properties: int | None = None
    max_properties: int | None = None
    all_of: tuple[StructuralSchema, ...] = ()
    any_of: tuple[StructuralSchema, ...] = ()
    one_of: tuple[StructuralSchema, ...] = ()
    not_: StructuralSchema | None = None

    preserve_unknown_fields: bool | None = None
    embedded_resource: bool = False
    int_or_string: bool = False
    list_type: str | None = None
    list_map_keys: tuple[str, ...] = ()
    map_type: str | None = None
    rules: tuple[ValidationRule, ...] = ()

    unsupported: tuple[str, ...] = ()

    @property
    def has_additional_properties(self) -> bool:
        return self.additional_properties is not None or self.additional_properties_allowed is not None

    def walk(self) -> Iterator[StructuralSchema]:
        """This node and every node below it, in no particular order."""
        pending = [self]
        while pending:
            node = pending.pop()
            yield node
            pending += node.properties.values()
            pending += (*node.items_list, *node.all_of, *node.any_of, *node.one_of)
            pending += [schema for schema in (node.items, node.additional_properties, node.not_) if schema is not None]


def parse_schema(schema: Any, path: str) -> StructuralSchema:
    """Parse an openAPIV3Schema that was taken over. Raises InvalidInput for a field of the wrong JSON type.

    A definition is parsed when it is checked, when it is served and at every start: equal schemas are parsed once.
    """
    encoded = msgspec.json.encode(schema)
    if len(encoded) > _CACHED_BYTES:
        return _parse_node(schema, path)
    return _parse_encoded(encoded, path)


@lru_cache(maxsize=_CACHED_SCHEMAS)
def _parse_encoded(encoded: bytes, path: str) -> StructuralSchema:
    return _parse_node(msgspec.json.decode(encoded), path)


def _parse_node(schema: Any, path: str) -> StructuralSchema:
    node = _Node(schema, path)
    additional, allowed = node.read_additional_properties()
    items, items_list = node.read_items()
    return StructuralSchema(
        type=node.read_text("type"),
        format=node.read_text("format"),
        title=node.read_text("title"),
        description=node.read_text("description"),
        has_external_docs=node.get("externalDocs") is not None,
        nullable=node.read_flag("nullable"),
        default=node.get("default"),
        properties=node.read_schemas_by_name("properties"),
        items=items,
        items_list=items_list,
        additional_properties=additional,
        additional_properties_allowed=allowed,
        required=node.read_texts("required"),
        enum=node.read_values("enum"),
        pattern=node.read_text("pattern"),
        minimum=node.read_number("minimum"),
        maximum=node.read_number("maximum"),
        exclusive_minimum=node.read_flag("exclusiveMinimum"),
        exclusive_maximum=node.read_flag("exclusiveMaximum"),
        multiple_of=node.read_number("multipleOf"),
        min_length=node.read_integer("minLength"),
        max_length=node.read_integer("maxLength"),
        min_items=node.read_integer("minItems"),
        max_items=node.read_integer("maxItems"),
        unique_items=node.read_flag("uniqueItems"),
        min_properties=node.read_integer("minProperties"),
        max_properties=node.read_integer("maxProperties"),
        all_of=node.read_schemas("allOf"),
        any_of=node.read_schemas("anyOf"),
        one_of=node.read_schemas("oneOf"),
        not_=node.read_schema("not"),
        preserve_unknown_fields=node.read_optional("x-kubernetes-preserve-unknown-fields", bool),
        embedded_resource=node.read_flag("x-kubernetes-embedded-resource"),
        int_or_string=node.read_flag("x-kubernetes-int-or-string"),
        list_type=node.read_optional("x-kubernetes-list-type", str),
        list_map_keys=node.read_texts("x-kubernetes-list-map-keys"),
        map_type=node.read_optional("x-kubernetes-map-type", str),
        rules=node.read_rules(),
        unsupported=tuple(name for name in UNSUPPORTED_FIELDS if node.get(name)),
    )


class _Node:
    """Reads the fields of one JSON schema object, each with its type checked."""

    def __init__(self, schema: Any, path: str) -> None:
        if not isinstance(schema, dict):
            raise InvalidInput("must be an object", path=path)
        self._schema = schema
        self._path = path

    def get(self, name: str) -> Any:
        return self._schema.get(name)

    def read_optional(self, name: str, type_: type[Any]) -> Any:
        value = self._schema.get(name)
        if value is None:
            return None
        if not isinstance(value, type_) or (isinstance(value, bool) and type_ is not bool):
            raise InvalidInput(f"must be of type {_JSON_NAMES[type_]}", path=fields.child(self._path, name))
        return value

    def read_text(self, name: str) -> str:
        return self.read_optional(name, str) or ""

    def read_flag(self, name: str) -> bool:
        return self.read_optional(name, bool) or False

    def read_integer(self, name: str) -> int | None:
        number: int | None = self.read_optional(name, int)
        return number

    def read_number(self, name: str) -> Number | None:
        value = self._schema.get(name)
        if value is None or (isinstance(value, (int, float)) and not isinstance(value, bool)):
            return value
        raise InvalidInput("must be a number", path=fields.child(self._path, name))

    def read_values(self, name: str) -> tuple[Any, ...] | None:
        listed = self.read_optional(name, list)
        return None if listed is None else tuple(listed)

    def read_texts(self, name: str) -> tuple[str, ...]:
        listed = self.read_values(name) or ()
        for position, text in enumerate(listed):
            if not isinstance(text, str):
                raise InvalidInput("must be a string", path=fields.index(fields.child(self._path, name), position))
        return listed

    def read_schema(self, name: str) -> StructuralSchema | None:
        value = self._schema.get(name)
        return None if value is None else _parse_node(value, fields.child(self._path, name))

    def read_schemas(self, name: str) -> tuple[StructuralSchema, ...]:
        path = fields.child(self._path, name)
        return tuple(
            _parse_node(schema, fields.index(path, position))
            for position, schema in enumerate(self.read_values(name) or ())
        )

    def read_schemas_by_name(self, name: str) -> dict[str, StructuralSchema]:
        path = fields.child(self._path, name)
        named = self.read_optional(name, dict) or {}
        return {property_: _parse_node(named[property_], fields.key(path, property_)) for property_ in sorted(named)}

    def read_items(self) -> tuple[StructuralSchema | None, tuple[StructuralSchema, ...]]:
        return (
            (None, self.read_schemas("items"))
            if isinstance(self.get("items"), list)
            else (self.read_schema("items"), ())
        )

    def read_additional_properties(self) -> tuple[StructuralSchema | None, bool | None]:
        value = self.get("additionalProperties")
        return (None, value) if isinstance(value, bool) else (self.read_schema("additionalProperties"), None)

    def read_rules(self) -> tuple[ValidationRule, ...]:
        path = fields.child(self._path, "x-kubernetes-validations")
        listed = self.read_values("x-kubernetes-validations") or ()
        return tuple(_read_rule(_Node(rule, fields.index(path, position))) for position, rule in enumerate(listed))


def _read_rule(node: _Node) -> ValidationRule:
    return ValidationRule(
        rule=node.read_text("rule"),
        message=node.read_text("message"),
        message_expression=node.read_text("messageExpression"),
        reason=node.read_optional("reason", str),
        field_path=node.read_text("fieldPath"),
        optional_old_self=node.read_optional("optionalOldSelf", bool),
    )


def has_rules(schema: StructuralSchema) -> bool:
    """Whether any rule can ever run: those below anyOf, oneOf, allOf and not are forbidden and never do."""
    pending = [schema]
    while pending:
        node = pending.pop()
        if node.rules:
            return True
        pending += node.properties.values()
        pending += [
            structural_schema
            for structural_schema in (node.items, node.additional_properties)
            if structural_schema is not None
        ]
    return False
