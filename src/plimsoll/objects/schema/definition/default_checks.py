"""Validates the defaults of a schema: no unknown fields, valid values, and valid metadata.

It runs once per definition, and only for structural schemas.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plimsoll.objects.schema import field_errors as fields
from plimsoll.objects.schema.admission.embedded_resources import check_embedded_resources
from plimsoll.objects.schema.admission.pruning import RESOURCE_FIELDS, prune
from plimsoll.objects.schema.admission.validation import ValueValidator
from plimsoll.objects.schema.field_errors import FieldError, child, key
from plimsoll.objects.schema.json_values import copy, is_same
from plimsoll.objects.schema.structural import StructuralSchema, has_rules

if TYPE_CHECKING:
    from collections.abc import Iterator


def validate_default(schema: StructuralSchema, path: str, *, require_pruned: bool) -> list[FieldError]:
    """The errors of all defaults of a schema."""
    errors: list[FieldError] = []
    for node, place, inside_metadata in _find_nodes_with_default(schema, path, is_resource=True):
        where = child(place, "default")
        if require_pruned and not inside_metadata and is_unpruned(node):
            errors.append(fields.invalid(where, node.default, "must not have unknown fields"))
        found = [] if inside_metadata else check_embedded_resources(node.default, node, where)
        found = found or ValueValidator(node).validate(node.default, path=where)
        errors += found or _validate_rules(node, where)
    return errors


def is_unpruned(node: StructuralSchema) -> bool:
    """Whether pruning would take something away from the node's default."""
    pruned = copy(node.default)
    prune(pruned, node, is_resource=node.embedded_resource)
    return not is_same(pruned, node.default)


def _find_nodes_with_default(
    node: StructuralSchema, path: str, *, is_resource: bool = False, inside_metadata: bool = False
) -> Iterator[tuple[StructuralSchema, str, bool]]:
    """Defaults below additionalProperties are not followed: nothing is ever defaulted from them."""
    is_resource = is_resource or node.embedded_resource
    inside_metadata = inside_metadata and not is_resource
    if node.default is not None:
        yield node, path, inside_metadata
    if node.items is not None:
        yield from _find_nodes_with_default(node.items, child(path, "items"), inside_metadata=inside_metadata)
    for name, property_ in node.properties.items():
        of_metadata = inside_metadata or (is_resource and name in RESOURCE_FIELDS)
        place = key(child(path, "properties"), name)
        yield from _find_nodes_with_default(property_, place, inside_metadata=of_metadata)


def _validate_rules(node: StructuralSchema, path: str) -> list[FieldError]:
    if not has_rules(node):
        return []
    from plimsoll.objects.schema.rules.rules import build_rule_tree  # noqa: PLC0415 - most schemas need no CEL

    tree = build_rule_tree(node, is_resource=False)
    default: Any = node.default
    return tree.validate(default, default, path=path).errors if tree else []
