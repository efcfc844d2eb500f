"""Short ways to compile and evaluate an expression; defaults that no test is about."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from plimsoll.objects.cel import (
    DYN,
    CelCompileError,
    CelEvaluationError,
    CelType,
    CostBudget,
    Program,
    compile_expression,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

# Larger than any test needs: what a test is not about must not stop it.
PLENTY = 1_000_000_000


def program(source: str, declared: Mapping[str, CelType] | None = None, *, result: CelType | None = None) -> Program:
    return compile_expression(source, variables=declared or {}, result=result)


def evaluated(source: str, declared: Mapping[str, CelType] | None = None, **variables: object) -> object:
    """The value; variables without a declaration are dyn."""
    types = {name: (declared or {}).get(name, DYN) for name in {*variables, *(declared or {})}}
    return program(source, types).evaluate(variables, budget=CostBudget(PLENTY, PLENTY))


def failure(source: str, declared: Mapping[str, CelType] | None = None, **variables: object) -> str:
    """The message of the evaluation error."""
    with pytest.raises(CelEvaluationError) as caught:
        evaluated(source, declared, **variables)
    return caught.value.message


def refusal(source: str, declared: Mapping[str, CelType] | None = None, *, result: CelType | None = None) -> str:
    """The message of the compile error."""
    with pytest.raises(CelCompileError) as caught:
        program(source, declared, result=result)
    return caught.value.message


def cost(source: str, declared: Mapping[str, CelType]) -> int:
    return program(source, declared).estimate_cost()
