"""An expression from text to answer: what `objects.schema` compiles once per rule and runs per object."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.objects.cel.checker.checker import Checked, check
from plimsoll.objects.cel.checker.literal_checks import find_literal_issues, find_unusable_pattern
from plimsoll.objects.cel.cost.estimator import estimate
from plimsoll.objects.cel.errors import CelCompileError
from plimsoll.objects.cel.eval.evaluator import compile_tree
from plimsoll.objects.cel.eval.frames import Frame
from plimsoll.objects.cel.syntax.errors import build_issues
from plimsoll.objects.cel.syntax.parser import Malformed, parse
from plimsoll.objects.cel.syntax.source import Issue, Source
from plimsoll.objects.cel.types.types import BOOL, STRING, CelType
from plimsoll.objects.cel.values.views import find_adapter

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.objects.cel.cost.budget import CostBudget


class Program:
    """A compiled expression. Immutable; may be evaluated any number of times."""

    __slots__ = ("_adapters", "_checked", "_locals_needed", "_run", "_variables", "result_type", "source")

    def __init__(self, source: str, checked: Checked, variables: Mapping[str, CelType]) -> None:
        self.source = source
        self.result_type = checked.types[checked.root]
        self._checked = checked
        self._variables = variables
        self._run, self._locals_needed = compile_tree(checked)
        self._adapters = {name: find_adapter(declared) for name, declared in variables.items() if name in checked.used}

    def uses(self, name: str) -> bool:
        """Whether the expression refers to the declared variable."""
        return name in self._checked.used

    def estimate_cost(self) -> int:
        """The worst case over all values the declared types allow, at most 2^64 - 1."""
        return estimate(self._checked, self._variables)

    def evaluate(self, variables: Mapping[str, object], *, budget: CostBudget) -> object:
        """The value of the expression; raises CelEvaluationError or CelBudgetExceeded."""
        budget.start_call()
        frame = Frame(variables, adapters=self._adapters, budget=budget, locals_needed=self._locals_needed)
        return self._run(frame)


def compile_expression(source: str, *, variables: Mapping[str, CelType], result: CelType | None) -> Program:
    """Parse and check. Raises CelCompileError with the message that Kubernetes prints.

    `result` is BOOL for a rule, STRING for a messageExpression, None for any type.
    """
    text = Source(source)
    whose = "messageExpression " if result == STRING else ""
    checked, issues = _check(text, variables)
    if checked is None or issues:
        raise CelCompileError(f"{whose}compilation failed: {text.render(issues)}")
    if result is not None and checked.types[checked.root] != result:
        raise CelCompileError(_WRONG_RESULT.get(result, f"expression must evaluate to {result}"))
    pattern_problem = find_unusable_pattern(checked.root)
    if pattern_problem is not None:
        raise CelCompileError(f"{whose or 'program '}instantiation failed: {pattern_problem}")
    return Program(source, checked, variables)


_WRONG_RESULT: dict[CelType, str] = {
    BOOL: "cel expression must evaluate to a bool",
    STRING: "messageExpression must evaluate to a string",
}


def _check(text: Source, variables: Mapping[str, CelType]) -> tuple[Checked | None, list[Issue]]:
    """Each stage reports all it finds, and the next begins only if it found nothing."""
    try:
        root, issues = parse(text)
    except Malformed as malformed:
        return None, [malformed.issue] if malformed.wording_known else build_issues(text, malformed.issue)
    if issues:
        return None, issues
    checked = check(root, variables)
    return checked, checked.issues or find_literal_issues(root)
