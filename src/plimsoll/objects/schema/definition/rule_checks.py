"""Whether the CEL rules of a definition are acceptable: they compile, and their worst case is affordable.

Called by `schema_checks` for every node with rules. The cost of a rule is its worst case on one value times how often
the value can occur, which is the product of the limits of the lists and maps around it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.objects import cel
from plimsoll.objects.schema import field_errors as fields
from plimsoll.objects.schema.field_errors import FieldError, child, index
from plimsoll.objects.schema.go_text import GoStruct
from plimsoll.objects.schema.rules.declarations import Declared, compute_most_in_request, declare

if TYPE_CHECKING:
    from plimsoll.objects.schema.structural import StructuralSchema, ValidationRule

EXPRESSION_LIMIT = 10_000_000
DEFINITION_LIMIT = 100_000_000
_MAX_UINT64 = 2**64 - 1
_MOST_EXPENSIVE_SHOWN = 4


class TotalCost:
    """The total cost of the rules of one schema, and the most expensive of them."""

    def __init__(self, *, check_each: bool) -> None:
        self.check_each = check_each
        self._total = 0
        self._expensive: list[tuple[int, str]] = []

    def add(self, cost: int, path: str) -> None:
        self._total = min(self._total + cost, _MAX_UINT64)
        if cost >= DEFINITION_LIMIT // 100:
            self._expensive.append((cost, path))
            self._expensive.sort(key=lambda entry: -entry[0])
            del self._expensive[_MOST_EXPENSIVE_SHOWN:]

    def find_errors(self, path: str) -> list[FieldError]:
        """The complaint about the total, after those about the rules to blame."""
        if self._total <= DEFINITION_LIMIT:
            return []
        problem = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
        subject = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
        return [
            *(fields.forbidden(expensive, problem) for _, expensive in self._expensive),
            fields.forbidden(path, _format_over_budget(subject, self._total, DEFINITION_LIMIT)),
        ]


class NodeContext:
    """The position of a node, for rules: how often it occurs, and whether oldSelf is available."""

    __slots__ = ("is_resource", "occurrences", "uncorrelatable")

    def __init__(self, *, occurrences: int | None, uncorrelatable: str | None, is_resource: bool) -> None:
        self.occurrences = occurrences
        self.uncorrelatable = uncorrelatable
        self.is_resource = is_resource


def validate_rules(schema: StructuralSchema, path: str, *, context: NodeContext, total: TotalCost) -> list[FieldError]:
    """The errors of the rules of one node."""
    rules_path = child(path, "x-kubernetes-validations")
    declared = declare(schema, "self", is_resource=context.is_resource)
    if declared is None:
        detail = (
            "internal error: failed to construct type information for x-kubernetes-validations rules: "
            "unable to convert structural schema to CEL declarations"
        )
        return [fields.internal_error(rules_path, detail)]
    errors = []
    for position, rule in enumerate(schema.rules):
        errors += _validate_rule(rule, index(rules_path, position), declared=declared, context=context, total=total)
    return errors


def _validate_rule(
    rule: ValidationRule, path: str, *, declared: Declared, context: NodeContext, total: TotalCost
) -> list[FieldError]:
    old_type = cel.OptionalType(declared.type) if rule.optional_old_self else declared.type
    variables = {"self": declared.type, "oldSelf": old_type}
    errors = []
    program: cel.Program | None = None
    try:
        program = cel.compile_expression(rule.rule, variables=variables, result=cel.BOOL)
    except cel.CelCompileError as error:
        errors.append(fields.invalid(child(path, "rule"), _print_rule(rule), error.message))
    else:
        occurrences = context.occurrences
        if occurrences is None:
            occurrences = compute_most_in_request(declared.smallest_bytes)
        cost = min(program.estimate_cost() * occurrences, _MAX_UINT64)
        errors += _validate_cost("estimated rule cost", cost, child(path, "rule"), total)
        errors += _validate_message(rule, path, variables=variables, total=total)
    if program is not None and program.uses("oldSelf"):
        if context.uncorrelatable is not None:
            detail = (
                f"oldSelf cannot be used on the uncorrelatable portion of the schema within {context.uncorrelatable}"
            )
            errors.append(fields.invalid(child(path, "rule"), rule.rule, detail))
    elif rule.optional_old_self is not None:
        detail = "may not be set if oldSelf is not used in rule"
        errors.append(fields.invalid(child(path, "optionalOldSelf"), rule.optional_old_self, detail))
    return errors


def _validate_message(
    rule: ValidationRule, path: str, *, variables: dict[str, cel.CelType], total: TotalCost
) -> list[FieldError]:
    if not rule.message_expression:
        return []
    place = child(path, "messageExpression")
    try:
        message = cel.compile_expression(rule.message_expression, variables=variables, result=cel.STRING)
    except cel.CelCompileError as error:
        problem = error.message.removeprefix("messageExpression ").removeprefix("cel expression ")
        detail = f"messageExpression {problem}"
        return [fields.invalid(place, _print_rule(rule), detail)]
    return _validate_cost("estimated messageExpression cost", min(message.estimate_cost(), _MAX_UINT64), place, total)


def _validate_cost(subject: str, cost: int, path: str, total: TotalCost) -> list[FieldError]:
    total.add(cost, path)
    if not total.check_each or cost <= EXPRESSION_LIMIT:
        return []
    return [fields.forbidden(path, _format_over_budget(subject, cost, EXPRESSION_LIMIT))]


def _format_over_budget(subject: str, cost: int, limit: int) -> str:
    factor = cost / limit
    if factor > 100:
        shown = "more than 100x"
    elif factor < 1.5:
        shown = f"{factor:f}x"
    else:
        shown = f"{factor:.1f}x"
    advice = (
        "try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings "
        "are declared"
    )
    return f"{subject} exceeds budget by factor of {shown} ({advice})"


def _print_rule(rule: ValidationRule) -> GoStruct:
    return GoStruct(
        fields={
            "Rule": rule.rule,
            "Message": rule.message,
            "MessageExpression": rule.message_expression,
            "Reason": rule.reason,
            "FieldPath": rule.field_path,
            "OptionalOldSelf": rule.optional_old_self,
        }
    )
