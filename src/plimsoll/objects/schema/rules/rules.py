"""Runs the CEL rules of a schema on an object.

A `RuleTree` mirrors the schema where it has rules, compiles each rule when it first runs and caches the program. It
decides which rules run (transition rules need an old value), the message and path of a failed rule, and which failures
an update may have (ratcheting: they become warnings). `objects.cel` evaluates the expressions; `rule_checks` decides
whether the rules of a definition are acceptable.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from plimsoll.objects import cel
from plimsoll.objects.schema import field_errors as fields
from plimsoll.objects.schema.field_errors import ErrorType, FieldError, child, index, key
from plimsoll.objects.schema.field_paths import FoundField, find_field
from plimsoll.objects.schema.rules.correlation import MISSING, Correlation, ListMap
from plimsoll.objects.schema.rules.declarations import Declared, declare
from plimsoll.objects.schema.structural import has_rules

if TYPE_CHECKING:
    from plimsoll.objects.schema.structural import StructuralSchema, ValidationRule

BLOCKING = frozenset(
    {ErrorType.NOT_SUPPORTED, ErrorType.REQUIRED, ErrorType.TOO_LONG, ErrorType.TOO_MANY, ErrorType.TYPE_INVALID}
)
NOT_CHECKED = fields.invalid(
    "",
    None,
    "some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation",
)
MAX_MESSAGE_BYTES = 5 * 1024

_OUT_OF_BUDGET = "validation failed due to running out of cost budget, no further validation rules will be run"


class _BudgetUsedUp(Exception):
    """The budget is spent: no further rule runs, and the errors so far are the result."""


class CompiledRule:
    """A rule with its programs."""

    def __init__(self, rule: ValidationRule, declared: Declared, schema: StructuralSchema) -> None:
        self.rule = rule
        self.is_optional = bool(rule.optional_old_self)
        old_type = cel.OptionalType(declared.type) if self.is_optional else declared.type
        variables = {"self": declared.type, "oldSelf": old_type}
        self.program = cel.compile_expression(rule.rule, variables=variables, result=cel.BOOL)
        self.message: cel.Program | None = None
        if rule.message_expression:
            self.message = cel.compile_expression(rule.message_expression, variables=variables, result=cel.STRING)
        self.uses_old_self = self.program.uses("oldSelf")
        found = find_field(rule.field_path, schema) if rule.field_path else None
        self.field_path = found.path if isinstance(found, FoundField) else ""

    @property
    def name(self) -> str:
        """The name of the rule in messages."""
        return (self.rule.message or self.rule.rule).strip()

    @property
    def default_message(self) -> str:
        return self.rule.message.strip() if self.rule.message else f"failed rule: {self.rule.rule.strip()}"


class RuleResults:
    """The result of the rules of one object: errors, tolerated failures, and the remaining budget."""

    def __init__(self) -> None:
        self.errors: list[FieldError] = []
        self.warnings: list[str] = []
        self.budget = cel.CostBudget()


class _Ratchet:
    """Whether the place where a rule failed is as it was before the update."""

    __slots__ = ("current", "nearest")

    def __init__(self, current: Correlation | None, nearest: Correlation | None) -> None:
        self.current = current
        self.nearest = nearest

    def is_unchanged(self) -> bool:
        correlation = self.current or self.nearest
        return correlation is not None and correlation.is_unchanged()

    def key(self, name: str) -> _Ratchet:
        if self.current is None:
            return self
        if self.nearest is None and name in {"apiVersion", "kind"}:
            return _Ratchet(None, None)
        return _Ratchet(self.current.key(name), self.current)

    def index(self, position: int) -> _Ratchet:
        return self if self.current is None else _Ratchet(self.current.index(position), self.current)


class RuleTree:
    """The rules of a schema node and of the nodes below it."""

    def __init__(self, schema: StructuralSchema, declared: Declared, name: str) -> None:
        self._schema = schema
        self._declared = declared
        self._compiled: list[CompiledRule | FieldError] | None = None
        self._properties: dict[str, RuleTree] = {}
        for property_, described in schema.properties.items():
            below = _build_tree(described, f"{name}.{property_}")
            if below is not None:
                self._properties[property_] = below
        self._items = _build_tree(schema.items, f"{name}.@idx")
        self._additional = _build_tree(schema.additional_properties, f"{name}.@elem")

    def validate(
        self, value: Any, old: Any = None, *, correlation: Correlation | None = None, path: str = ""
    ) -> RuleResults:
        """Run every rule; `old` is the object before an update, None on create."""
        results = RuleResults()
        with suppress(_BudgetUsedUp):
            self.run(path, value, old, ratchet=_Ratchet(correlation, None), results=results)
        return results

    def run(self, path: str, value: Any, old: Any, *, ratchet: _Ratchet, results: RuleResults) -> None:
        if value is None:
            return
        if self._schema.rules:
            for rule in self._compile_rules():
                self._run_rule(rule, path, value, old, ratchet=ratchet, results=results)
        if isinstance(value, list) and self._items is not None:
            before = ListMap(old if isinstance(old, list) else [], self._schema)
            for position, item in enumerate(value):
                old_item = before.find(item)
                self._items.run(
                    index(path, position),
                    item,
                    None if old_item is MISSING else old_item,
                    ratchet=ratchet.index(position),
                    results=results,
                )
        elif isinstance(value, dict):
            self._run_below(path, value, old if isinstance(old, dict) else {}, ratchet=ratchet, results=results)

    def _run_below(
        self, path: str, value: dict[str, Any], old: dict[str, Any], *, ratchet: _Ratchet, results: RuleResults
    ) -> None:
        for name, item in value.items():
            below = self._properties.get(name)
            place = child(path, name)
            if below is None and self._additional is not None:
                below, place = self._additional, key(path, name)
            if below is not None:
                below.run(place, item, old.get(name), ratchet=ratchet.key(name), results=results)

    def _compile_rules(self) -> list[CompiledRule | FieldError]:
        if self._compiled is None:
            self._compiled = [self._compile(rule) for rule in self._schema.rules]
        return self._compiled

    def _compile(self, rule: ValidationRule) -> CompiledRule | FieldError:
        try:
            return CompiledRule(rule, self._declared, self._schema)
        except cel.CelCompileError as error:
            # The rules of a stored definition compile; only a definition without validation reaches this.
            return fields.invalid("", self._schema.type, f"rule compile error: {error.message}")

    def _run_rule(
        self,
        rule: CompiledRule | FieldError,
        path: str,
        value: Any,
        old: Any,
        *,
        ratchet: _Ratchet,
        results: RuleResults,
    ) -> None:
        if isinstance(rule, FieldError):
            results.errors.append(fields.invalid(path, rule.value, rule.detail))
            return
        if rule.uses_old_self and old is None and not rule.is_optional:
            return
        variables = {"self": value, "oldSelf": old}
        if rule.is_optional:
            variables["oldSelf"] = cel.CelOptional.none() if old is None else cel.CelOptional.of(old)
        if self._holds(rule, path, variables, results):
            return
        detail = self._evaluate_message(rule, path, variables, results)
        error = _failure(rule, child(path, rule.field_path) if rule.field_path else path, self._schema.type, detail)
        if not rule.uses_old_self and ratchet.is_unchanged():
            results.warnings.append(error.text)
        else:
            results.errors.append(error)

    def _holds(self, rule: CompiledRule, path: str, variables: dict[str, Any], results: RuleResults) -> bool:
        """Whether the rule is satisfied; a rule that fails to evaluate is reported here and counts as done."""
        type_ = self._schema.type
        try:
            return rule.program.evaluate(variables, budget=results.budget) is True
        except cel.CelEvaluationError as error:
            if error.message.startswith("no such overload"):
                detail = (
                    f"'{error.message}': call arguments did not match a supported operator, function or macro "
                    f"signature for rule: {rule.name}"
                )
            else:
                detail = f"{error.message} evaluating rule: {rule.name}"
            results.errors.append(fields.invalid(path, type_, detail))
            return True
        except cel.CelBudgetExceeded as error:
            detail = _OUT_OF_BUDGET
            if results.budget.remaining >= 0:
                detail = (
                    f"'{error.message}': no further validation rules will be run due to call cost exceeds limit "
                    f"for rule: {rule.name}"
                )
            results.errors.append(fields.invalid(path, type_, detail))
            raise _BudgetUsedUp from error

    def _evaluate_message(self, rule: CompiledRule, path: str, variables: dict[str, Any], results: RuleResults) -> str:
        if rule.message is None:
            return rule.default_message
        try:
            text = rule.message.evaluate(variables, budget=results.budget)
        except cel.CelEvaluationError:
            return rule.default_message
        except cel.CelBudgetExceeded as error:
            detail = "messageExpression evaluation failed due to running out of cost budget, "
            detail += "no further validation rules will be run"
            results.errors.append(fields.invalid(path, self._schema.type, detail))
            raise _BudgetUsedUp from error
        text = text.strip() if isinstance(text, str) else ""
        usable = text and "\n" not in text and len(text.encode()) <= MAX_MESSAGE_BYTES
        return text if usable else rule.default_message


def build_rule_tree(schema: StructuralSchema, *, is_resource: bool = True) -> RuleTree | None:
    """The rules of a schema, or nothing if it has none."""
    return _build_tree(schema, "self", is_resource=is_resource)


def _build_tree(schema: StructuralSchema | None, name: str, *, is_resource: bool = False) -> RuleTree | None:
    if schema is None or not has_rules(schema):
        return None
    declared = declare(schema, name, is_resource=is_resource or schema.embedded_resource)
    return None if declared is None else RuleTree(schema, declared, name)


def _failure(rule: CompiledRule, path: str, type_: str, detail: str) -> FieldError:
    match rule.rule.reason:
        case ErrorType.FORBIDDEN:
            return fields.forbidden(path, detail)
        case ErrorType.REQUIRED:
            return fields.required(path, detail)
        case ErrorType.DUPLICATE:
            return fields.duplicate(path, type_)
        case _:
            return fields.invalid(path, type_, detail)
