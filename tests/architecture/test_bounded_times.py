"""Seconds that come from objects are added to times in one place, which ends at the years 1 and 9999."""

from __future__ import annotations

import ast

from tests.architecture.source_tree import modules

HOME = "plimsoll.core.durations"
PACKAGES = tuple(f"plimsoll.{name}." for name in ("kafka", "local", "nodes", "operator", "scheduling", "tidb"))
BOUNDED = {
    "plimsoll.nodes.autoscaler",  # between two readings of a clock
    "plimsoll.nodes.providers.externalgrpc.mapping",  # of a flag, which is bounded when it is parsed
    "plimsoll.local.apiserver.presentation.durations",  # a constant
    "plimsoll.kafka.planning.scaling.retrying",  # of a back-off, which has a cap
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


def find_shifted_times(tree: ast.Module) -> list[int]:
    """Lines that add a constant duration to anything but the time of a clock: the year 9999 has no next minute."""
    constants = {
        node.target.id
        for node in tree.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and _is_duration(node.value)
    }
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.BinOp)
        and isinstance(node.op, (ast.Add, ast.Sub))
        and (_is_duration(node.right) or (isinstance(node.right, ast.Name) and node.right.id in constants))
        and "now" not in ast.unparse(node.left)
    ]


def _is_duration(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "timedelta"


def test_no_module_shifts_times_of_objects_by_itself():
    found = {
        f"{name}:{line}"
        for name, module in modules().items()
        if name.startswith(PACKAGES) and name not in BOUNDED
        for line in find_shifted_times(module.tree)
    }
    assert not found, f"use {HOME}.add_seconds: a time overflows"


def test_the_check_sees_a_shifted_time():
    source = "_LATER: Final = timedelta(minutes=1)\n{} + _LATER"
    assert find_shifted_times(ast.parse(source.format("condition.since"))) == [2]
    assert find_shifted_times(ast.parse(source.format("now"))) == []
