"""Only one module asks a provider to shrink, so that every deletion passes the guard."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from tests.architecture.source_tree import modules

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.architecture.source_tree import Module

HOME = "plimsoll.nodes.actuation.instance_deleter"
PROVIDERS = "plimsoll.nodes.providers."
SHRINKING = frozenset({"delete_nodes", "force_delete_nodes", "decrease_target_size"})


def test_only_the_instance_deleter_calls_the_shrinking_methods_of_a_provider():
    callers = {
        name: sorted(set(_find_calls(module)))
        for name, module in modules().items()
        if name.startswith("plimsoll.nodes.") and not name.startswith(PROVIDERS) and name != HOME
    }
    assert {name: calls for name, calls in callers.items() if calls} == {}
    assert set(_find_calls(modules()[HOME])) >= SHRINKING, "the check sees calls"


def _find_calls(module: Module) -> Iterator[str]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in SHRINKING:
            yield node.func.attr
