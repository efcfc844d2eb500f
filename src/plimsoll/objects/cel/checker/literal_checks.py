"""Checks of constant arguments that always fail: Kubernetes rejects such an expression at compile time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.objects.cel.errors import CelEvaluationError
from plimsoll.objects.cel.library.strings import compile_pattern
from plimsoll.objects.cel.syntax.ast import AstNode, Call, Literal, walk
from plimsoll.objects.cel.syntax.source import Issue
from plimsoll.objects.cel.values.times import parse_duration, parse_timestamp

if TYPE_CHECKING:
    from collections.abc import Callable

_CHECKS: dict[str, Callable[[str], object]] = {
    "duration": parse_duration,
    "timestamp": parse_timestamp,
    "matches": compile_pattern,
}


def find_unusable_pattern(root: AstNode) -> str | None:
    """The error of a constant pattern of find or findAll: Kubernetes finds it one stage later than the others."""
    for node in walk(root):
        if isinstance(node, Call) and node.function in {"find", "findAll"} and node.arguments:
            pattern = node.arguments[0]
            if isinstance(pattern, Literal) and isinstance(pattern.value, str):
                try:
                    compile_pattern(pattern.value)
                except CelEvaluationError as error:
                    return error.message
    return None


def find_literal_issues(root: AstNode) -> list[Issue]:
    """Durations, timestamps and patterns that are none."""
    calls = (node for node in walk(root) if isinstance(node, Call) and node.function in _CHECKS and node.arguments)
    issues: list[Issue] = []
    for call in calls:
        argument = call.arguments[-1]
        if isinstance(argument, Literal) and isinstance(argument.value, str):
            try:
                _CHECKS[call.function](argument.value)
            except CelEvaluationError:
                issues.append(Issue(argument.offset, f"invalid {call.function} argument"))
    return issues
