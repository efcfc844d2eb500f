"""Seconds that come from objects are added to times in one place, which ends at the years 1 and 9999."""

from __future__ import annotations

import ast

from tests.architecture.source_tree import modules

HOME = "plimsoll.core.durations"
PACKAGES = ("plimsoll.nodes.", "plimsoll.tidb.", "plimsoll.local.", "plimsoll.operator.", "plimsoll.scheduling.")
BOUNDED = {
    "plimsoll.nodes.autoscaler",  # between two readings of a clock
    "plimsoll.nodes.providers.externalgrpc.mapping",  # of a flag, which is bounded when it is parsed
    "plimsoll.local.apiserver.presentation.durations",  # a constant
}


def find_computed_durations(tree: ast.Module) -> list[int]:
    """Lines that make a timedelta of anything but constants."""
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "timedelta"
        and not all(isinstance(value, ast.Constant) for value in (*node.args, *(word.value for word in node.keywords)))
    ]


def test_no_module_but_one_makes_durations_of_variables():
    found = {
        f"{name}:{line}"
        for name, module in modules().items()
        if name.startswith(PACKAGES) and name not in BOUNDED
        for line in find_computed_durations(module.tree)
    }
    assert not found, f"use {HOME}.add_seconds: a timedelta overflows"


def test_the_check_sees_a_computed_duration():
    assert find_computed_durations(ast.parse("now + timedelta(seconds=pod.spec.grace)")) == [1]
    assert find_computed_durations(ast.parse("timedelta(seconds=5)")) == []
