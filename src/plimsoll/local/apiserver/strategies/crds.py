"""The strategy of CustomResourceDefinition itself: a built-in kind whose rules are those of `objects.schema`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plimsoll.local.apiserver.strategies.builtin import BuiltinStrategy
from plimsoll.local.apiserver.strategies.go_serialization import as_go_writes
from plimsoll.local.apiserver.strategies.interface import Decoded, Undecodable, ValidationResult
from plimsoll.objects.builtin.decoding import decode
from plimsoll.objects.schema import field_errors as fields
from plimsoll.objects.schema.definition.checks import validate_definition
from plimsoll.objects.schema.definition.defaults import prepare

if TYPE_CHECKING:
    from plimsoll.local.apiserver.resources.registry import ServedResource
    from plimsoll.objects.schema.field_errors import FieldError

Json = dict[str, Any]


class CrdStrategy(BuiltinStrategy):
    """CustomResourceDefinition."""

    def __init__(self, resource: ServedResource) -> None:
        super().__init__(resource)
        self.allows_unconditional_update = False

    def decode(self, value: Json) -> Decoded | Undecodable:
        decoded = decode.decode(value, self._component)
        problem = decode.choose_go_error(decoded.problems)
        if problem is not None:
            return Undecodable(problem=problem)
        status = decoded.value.get("status")
        whole = {**prepare(decoded.value, None), "metadata": decoded.value.get("metadata", {})}
        if status is None:
            del whole["status"]
        else:
            whole["status"] = status
        return Decoded(value=as_go_writes(whole, self._component), unknown_fields=tuple(decoded.unknown_fields))

    def prepare_create(self, obj: Json) -> Json:
        whole = prepare(obj, None)
        whole["metadata"] = {**whole.get("metadata", {}), "generation": 1}
        return whole

    def prepare_update(self, new: Json, old: Json, *, subresource: str) -> Json:
        updated = super().prepare_update(new, old, subresource=subresource)
        if subresource != "status":
            updated["status"] = prepare(updated, old)["status"]
        return updated

    def validate_create(self, obj: Json) -> ValidationResult:
        return ValidationResult(errors=(*validate_definition(obj), *_validate_conversion(obj)))

    def validate_update(self, new: Json, old: Json, *, subresource: str) -> ValidationResult:
        if subresource:
            return ValidationResult()
        # A definition that an earlier version of this server let in can still be changed.
        refused = () if _validate_conversion(old) else _validate_conversion(new)
        return ValidationResult(errors=(*validate_definition(new, old), *refused))


def _validate_conversion(definition: Json) -> tuple[FieldError, ...]:
    """No webhook is called yet: without it objects would lose the fields that their versions do not share."""
    conversion = (definition.get("spec") or {}).get("conversion")
    strategy = conversion.get("strategy") if isinstance(conversion, dict) else None
    if strategy != "Webhook":
        return ()
    detail = 'this server does not call conversion webhooks, and objects would lose fields between versions; use "None"'
    return (fields.invalid("spec.conversion.strategy", strategy, detail),)
