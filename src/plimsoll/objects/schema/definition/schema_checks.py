"""Validates the openAPIV3Schema of a definition, once per version.

The order is the real server's: structure first (`structural_checks`), then defaults, then node by node the rules of the
extensions. CEL rules come last, and only if everything else is valid, because rules cannot be typed against an invalid
schema.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from plimsoll.core.values import Value
from plimsoll.objects.schema import field_errors as fields
from plimsoll.objects.schema.admission.pruning import RESOURCE_FIELDS
from plimsoll.objects.schema.definition import list_type_checks
from plimsoll.objects.schema.definition.default_checks import validate_default
from plimsoll.objects.schema.definition.structural_checks import validate_structural
from plimsoll.objects.schema.field_errors import FieldError, child, index, key
from plimsoll.objects.schema.field_paths import BadPath, find_field
from plimsoll.objects.schema.structural import StructuralSchema, has_rules

if TYPE_CHECKING:
    from plimsoll.objects.schema.definition.rule_checks import TotalCost

KNOWN_TYPES = ("array", "boolean", "integer", "number", "object", "string")
REASONS = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_LINE_BREAK = re.compile(r"[\n\r]")


class Strictness(Value):
    """The requirements of an update: newer requirements do not apply to definitions that are older than they are."""

    known_types: bool = True
    pruned_defaults: bool = True
    atomic_sets: bool = True
    list_keys: bool = True
    # Expressions of an unchanged schema were accepted before; only their total cost is checked.
    cost_per_expression: bool = True


class _Node(Value):
    """A node on the way down, with what it inherits from those above."""

    schema: StructuralSchema
    path: str
    is_root: bool = False
    no_defaults: str | None = None
    inside_metadata: bool = False
    uncorrelatable: str | None = None
    occurrences: int | None = 1
    rules_count: bool = True


def validate_schema(schema: StructuralSchema, path: str, *, strictness: Strictness) -> list[FieldError]:
    """All errors of a schema; `path` ends in openAPIV3Schema."""
    errors = []
    if schema.nullable:
        errors.append(fields.forbidden(child(path, "nullable"), "nullable cannot be true at the root"))
    structure = _validate_structure(schema, path, strictness)
    errors += structure or []
    check_rules = structure == [] and has_rules(schema)
    walk = _Walk(strictness, check_rules=check_rules)
    walk.visit(_Node(schema=schema, path=path, is_root=True))
    errors += walk.errors + walk.rule_errors
    if walk.total is not None:
        errors += walk.total.find_errors(path)
    return errors


def _validate_structure(schema: StructuralSchema, path: str, strictness: Strictness) -> list[FieldError] | None:
    """None where a schema cannot be read as a structural one; what hinders it is reported node by node."""
    if any(node.unsupported or node.items_list for node in schema.walk()):
        return None
    errors = validate_structural(schema, path)
    return errors or validate_default(schema, path, require_pruned=strictness.pruned_defaults)


class _Walk:
    """One pass over a schema."""

    def __init__(self, strictness: Strictness, *, check_rules: bool) -> None:
        self._strictness = strictness
        self.errors: list[FieldError] = []
        self.rule_errors: list[FieldError] = []
        self.total: TotalCost | None = None
        if check_rules:
            from plimsoll.objects.schema.definition.rule_checks import TotalCost  # noqa: PLC0415 - most schemas need no CEL

            self.total = TotalCost(check_each=strictness.cost_per_expression)

    def visit(self, node: _Node) -> None:
        clean_until = len(self.errors)
        self.errors += self._validate_own_fields(node)
        for below in self._list_children(node):
            self.visit(below)
        schema, path = node.schema, node.path
        if schema.preserve_unknown_fields is False:
            place = child(path, "x-kubernetes-preserve-unknown-fields")
            self.errors.append(fields.invalid(place, value=False, detail="must be true or undefined"))
        self.errors += list_type_checks.validate_map_type(schema, path)
        self.errors += list_type_checks.validate_list_type(schema, path, atomic_sets=self._strictness.atomic_sets)
        if self._strictness.list_keys:
            self.errors += list_type_checks.validate_list_keys(schema, path)
        self.errors += _validate_rule_texts(schema, path)
        is_clean = len(self.errors) == clean_until
        if schema.rules and is_clean and self.total is not None and node.rules_count:
            self._check_rules(node, self.total)

    def _check_rules(self, node: _Node, total: TotalCost) -> None:
        from plimsoll.objects.schema.definition.rule_checks import (  # noqa: PLC0415 - as above
            NodeContext,
            validate_rules,
        )

        context = NodeContext(
            occurrences=node.occurrences,
            uncorrelatable=node.uncorrelatable,
            is_resource=node.is_root or node.schema.embedded_resource,
        )
        self.rule_errors += validate_rules(node.schema, node.path, context=context, total=total)

    def _validate_own_fields(self, node: _Node) -> list[FieldError]:
        schema, path = node.schema, node.path
        errors = []
        if self._strictness.known_types and schema.type and schema.type not in KNOWN_TYPES:
            errors.append(fields.not_supported(child(path, "type"), schema.type, KNOWN_TYPES))
        if schema.default is not None and node.no_defaults is not None:
            errors.append(fields.forbidden(child(path, "default"), f"must not be set {node.no_defaults}"))
        errors += [fields.forbidden(child(path, name), f"{name} is not supported") for name in schema.unsupported]
        if schema.type == "null":
            detail = "type cannot be set to null, use nullable as an alternative"
            errors.append(fields.forbidden(child(path, "type"), detail))
        if schema.items_list:
            errors.append(fields.forbidden(child(path, "items"), "items must be a schema object and not an array"))
        if node.inside_metadata and schema.embedded_resource:
            place = child(path, "x-kubernetes-embedded-resource")
            errors.append(fields.forbidden(place, "must not be used inside of resource meta"))
        if schema.unique_items:
            detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
            errors.append(fields.forbidden(child(path, "uniqueItems"), detail))
        closed = schema.additional_properties is not None or schema.additional_properties_allowed is False
        if schema.properties and closed:
            detail = "additionalProperties and properties are mutual exclusive"
            errors.append(fields.forbidden(child(path, "additionalProperties"), detail))
        return errors

    def _list_children(self, node: _Node) -> list[_Node]:
        schema, path = node.schema, node.path
        inherit = partial(msgspec.structs.replace, node, is_root=False)
        occurrences = _multiply_occurrences(schema, node.occurrences)
        below = []
        if schema.additional_properties is not None:
            reason = "inside additionalProperties applying to object metadata"
            below.append(
                inherit(
                    schema=schema.additional_properties,
                    path=child(path, "additionalProperties"),
                    no_defaults=reason if node.inside_metadata else node.no_defaults,
                    occurrences=occurrences,
                )
            )
        for name, property_ in schema.properties.items():
            is_metadata = name in RESOURCE_FIELDS and (node.is_root or schema.embedded_resource)
            below.append(
                inherit(
                    schema=property_,
                    path=key(child(path, "properties"), name),
                    no_defaults=f"in top-level {name}" if is_metadata and node.is_root else node.no_defaults,
                    inside_metadata=node.inside_metadata or is_metadata,
                    occurrences=occurrences,
                )
            )
        below += [
            inherit(schema=structural_schema, path=place, rules_count=False)
            for structural_schema, place in _list_junctors(schema, path)
        ]
        if schema.items is not None:
            uncorrelatable = node.uncorrelatable or (path if schema.list_type != "map" else None)
            place = child(path, "items")
            below.append(
                inherit(schema=schema.items, path=place, uncorrelatable=uncorrelatable, occurrences=occurrences)
            )
        return below


def _list_junctors(schema: StructuralSchema, path: str) -> list[tuple[StructuralSchema, str]]:
    found = [(schema.not_, child(path, "not"))] if schema.not_ is not None else []
    for name, listed in (("allOf", schema.all_of), ("oneOf", schema.one_of), ("anyOf", schema.any_of)):
        found += [
            (structural_schema, index(child(path, name), position)) for position, structural_schema in enumerate(listed)
        ]
    return found


def _multiply_occurrences(schema: StructuralSchema, occurrences: int | None) -> int | None:
    """How often a child of a node can occur in an object; None: no limit is declared."""
    if schema.type == "array":
        limit = schema.max_items
    elif schema.type == "object" and schema.has_additional_properties:
        limit = schema.max_properties
    else:
        return occurrences
    return None if occurrences is None or limit is None else occurrences * max(limit, 0)


def _validate_rule_texts(schema: StructuralSchema, path: str) -> list[FieldError]:
    """The errors of rules that can be found without compiling them."""
    errors = []
    for position, rule in enumerate(schema.rules):
        place = index(child(path, "x-kubernetes-validations"), position)
        message, text = rule.message.strip(), rule.rule.strip()
        if not text:
            errors.append(fields.required(child(place, "rule"), "rule is not specified"))
        elif rule.message and not message:
            detail = "message must be non-empty if specified"
            errors.append(fields.invalid(child(place, "message"), rule.message, detail))
        elif _LINE_BREAK.search(message):
            errors.append(fields.invalid(child(place, "message"), rule.message, "message must not contain line breaks"))
        elif _LINE_BREAK.search(text) and not message:
            detail = "message must be specified if rule contains line breaks"
            errors.append(fields.required(child(place, "message"), detail))
        if rule.message_expression and not rule.message_expression.strip():
            detail = "messageExpression must be non-empty if specified"
            errors.append(fields.required(child(place, "messageExpression"), detail))
        if rule.reason is not None and rule.reason not in REASONS:
            errors.append(fields.not_supported(child(place, "reason"), rule.reason, REASONS))
        if rule.field_path:
            errors += _validate_field_path(rule.field_path, schema, child(place, "fieldPath"))
    return errors


def _validate_field_path(field_path: str, schema: StructuralSchema, place: str) -> list[FieldError]:
    errors = []
    if not field_path.strip():
        errors.append(fields.invalid(place, field_path, "fieldPath must be non-empty if specified"))
    if _LINE_BREAK.search(field_path):
        errors.append(fields.invalid(place, field_path, "fieldPath must not contain line breaks"))
    if isinstance(find_field(field_path, schema), BadPath):
        errors.append(fields.invalid(place, field_path, "fieldPath must be a valid path"))
    return errors
