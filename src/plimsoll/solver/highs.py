"""HiGHS instances that are deterministic, and runs of them that never raise.

One thread and a fixed seed; limits are counted, never timed. HiGHS proposes and integers decide, so a run that fails
inside the library is a run without a proposal: the plan already in hand stays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import highspy

if TYPE_CHECKING:
    from collections.abc import Mapping

_FAILURES: Final = (ValueError, IndexError, ArithmeticError, MemoryError, RuntimeError)
"""The exceptions that C++ exceptions of the library become, such as `ValueError: vector::reserve`."""


def build_solver(limits: Mapping[str, float]) -> Any:
    highs: Any = highspy.Highs()  # type: ignore[no-untyped-call]  # highspy ships no types
    for option, value in {"output_flag": False, "threads": 1, "random_seed": 0, **limits}.items():
        highs.setOptionValue(option, value)
    return highs


def run_solver(highs: Any) -> bool:
    """Whether the run ended; after a failure inside HiGHS the instance has no solution to read."""
    try:
        highs.run()
    except _FAILURES:
        return False
    return True
