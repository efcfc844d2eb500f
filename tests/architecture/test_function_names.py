"""Every function begins with a verb of `verbs.txt`: `build_snapshot`, `is_ready`, `to_json`.

Properties, special methods and the functions below have other names for a reason. `other_function_names.txt` lists
single functions that have the names of an outside API; the list only shrinks.
"""

from __future__ import annotations

import ast
import builtins
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

import pytest

from tests.architecture.source_tree import SOURCE, iterate_statements, parse_file, python_files, walk_statements

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef

CLI: Final = "plimsoll/cli/"
HERE: Final = Path(__file__).parent
VERBS: Final = frozenset((HERE / "verbs.txt").read_text(encoding="utf-8").split())
REMAINING: Final = frozenset(
    line
    for line in (HERE / "other_function_names.txt").read_text(encoding="utf-8").splitlines()
    if not line.startswith("#")
)
MOST_REMAINING: Final = 7
PROPERTIES: Final = frozenset({"property", "cached_property", "setter", "overload"})
# Names that others give: the clocks of Python and asyncio, mappings, and Cluster Autoscaler's CloudProvider and
# NodeGroup.
GIVEN: Final = frozenset(
    {
        *("now", "monotonic_s", "time", "when", "cancelled", "items", "keys"),
        *("connection_made", "connection_lost", "data_received", "pipe_data_received", "process_exited"),
        *("node_groups", "node_group_for_node", "target_size", "nodes", "template_node_info", "atomic_increase_size"),
        *("node_price", "pod_price", "new_node_group", "gpu_label"),
        *("process_bind_param", "process_result_value"),
    }
)
# Values that describe an error, next to the exceptions: a function that returns one is named after the error, as in
# Kubernetes (`NewNotFound`, `field.Invalid`).
ERROR_VALUES: Final = frozenset({"FieldError", "ApplyRefused", "PatchRefused"})
# Declarations in a table: flags of the node autoscaler, and the decorator of compiled functions.
DECLARATIONS: Final = frozenset({"plimsoll/nodes/config/flags.py", "plimsoll/solver/kernels.py"})
_NOUN_VERBS = """
    attempt bootstrap call claim count create default drain end exec fence fit group index init label limit list lower
    map match mount order overlay own patch pause probe provision resize restart scale schedule sleep spread step store
    update watch
"""
NOUN_VERBS: Final = frozenset(_NOUN_VERBS.split())
"""Verbs that are nouns too: `claim_errors` and `drain_rules` are named after a value, `list_nodes` after an action."""
TAKE_OBJECTS: Final = frozenset({"count", "create", "list", "update"})
"""Those of the noun-verbs that stand before any plural: to list rules is an action."""
_VALUES = "bound cost decoder document error errors info media options reference refusal response schema text"
VALUES: Final = frozenset(_VALUES.split())
"""A function that begins with a noun-verb and ends in one of these words is named after the value that it returns."""
THINGS: Final = frozenset(
    {"bodies", "cells", "number", "objects", "of", "posts", "problem", "problems", "rules", "tiers"}
)
PREPOSITIONS: Final = frozenset({"by", "in", "into", "with"})


class Exceptions:
    """The functions whose names say something other than an action: errors, commands, CEL's functions, constructors."""

    def __init__(self, trees: Mapping[str, ast.Module]) -> None:
        self._errors = ERROR_VALUES | find_exception_classes(trees.values())
        self._commands = find_registered_commands(tree for path, tree in trees.items() if path.startswith(CLI))

    def include(self, name: str, function: Function, path: str) -> bool:
        decorators = {ast.unparse(decorator).split("(")[0] for decorator in function.decorator_list}
        returned = ast.unparse(function.returns).split(".")[-1] if function.returns else ""
        owner = name.split(".")[-2] if "." in name else ""
        return (
            returned in self._errors
            or (path.startswith(CLI) and name in self._commands)
            or bool({"LIBRARY.function", "LIBRARY.declare_function"} & decorators)
            or ("classmethod" in decorators and returned in {"Self", owner})
        )


def find_exception_classes(trees: Iterable[ast.Module]) -> set[str]:
    """The exceptions of Python and the classes of the tree that derive from them."""
    found = {name for name, value in vars(builtins).items() if isinstance(value, type) and issubclass(value, Exception)}
    statements = [statement for tree in trees for statement in walk_statements(tree)]
    classes = [statement for statement in statements if isinstance(statement, ast.ClassDef)]
    bases = {node.name: {ast.unparse(base).split(".")[-1] for base in node.bases} for node in classes}
    while more := {name for name, parents in bases.items() if parents & found} - found:
        found |= more
    return found


def find_registered_commands(trees: Iterable[ast.Module]) -> set[str]:
    """The functions that `app.command(...)(function)` registers."""
    return {
        ast.unparse(node.args[0]).split(".")[-1]
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Call)
        and ast.unparse(node.func.func).endswith(".command")
        and node.args
    }


def iterate_functions(node: ast.AST, outer: str = "") -> Iterator[tuple[str, Function]]:
    for child in iterate_statements(node):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield f"{outer}{child.name}", child
        inner = (
            f"{outer}{child.name}."
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
            else outer
        )
        yield from iterate_functions(child, inner)


def has_given_name(function: Function, path: str) -> bool:
    decorators = {ast.unparse(decorator).split("(")[0].split(".")[-1] for decorator in function.decorator_list}
    is_command = path.startswith(CLI) and bool({"command", "callback"} & decorators)
    return (
        function.name.startswith("__")
        or bool(PROPERTIES & decorators)
        or is_command
        or function.name in GIVEN
        or path in DECLARATIONS
    )


def begins_with_verb(name: str) -> bool:
    return name.strip("_").split("_")[0] in VERBS and not is_named_after_value(name)


def is_named_after_value(name: str) -> bool:
    first, *rest = name.strip("_").split("_")
    values = VALUES if first in TAKE_OBJECTS else VALUES | THINGS
    return first in NOUN_VERBS and bool(rest) and rest[-1] in values and not PREPOSITIONS.intersection(rest)


@cache
def find_other_names() -> set[str]:
    trees = {file.relative_to(SOURCE).as_posix(): parse_file(file) for file in python_files("src")}
    exceptions = Exceptions(trees)
    return {
        f"{path} {name}"
        for path, tree in trees.items()
        for name, function in iterate_functions(tree)
        if not begins_with_verb(function.name)
        and not has_given_name(function, path)
        and not exceptions.include(name, function, path)
    }


def test_functions_begin_with_a_verb():
    assert sorted(find_other_names() - REMAINING) == []


@pytest.mark.parametrize("name", ["claim_errors", "_list_errors", "drain_rules", "lower_bound", "list_response"])
def test_names_of_values_that_begin_with_a_noun_are_found(name: str):
    assert not begins_with_verb(name)


@pytest.mark.parametrize("name", ["list_rules", "_group_by_error", "update_status", "find_claim_errors", "drain"])
def test_noun_verbs_may_begin_the_name_of_an_action(name: str):
    assert begins_with_verb(name)


def test_the_list_of_other_names_only_shrinks():
    assert len(REMAINING) <= MOST_REMAINING
    assert sorted(REMAINING - find_other_names()) == []


def test_the_verbs_are_sorted():
    words = (HERE / "verbs.txt").read_text(encoding="utf-8").split()
    assert words == sorted(set(words))
