"""Stacks as text; sampling live: tests/e2e/test_stack_sampler.py."""

from __future__ import annotations

import inspect

from plimsoll.operator.profiler import format_stack


def test_a_stack_begins_with_its_thread_and_the_outermost_function():
    frame = inspect.currentframe()
    assert frame is not None
    stack = format_stack(frame, "planner 1")
    assert stack.startswith("planner_1;")
    assert stack.endswith(";test_profiler.test_a_stack_begins_with_its_thread_and_the_outermost_function")
