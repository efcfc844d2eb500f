"""Every function begins with a verb of `verbs.txt`: `build_snapshot`, `is_ready`, `to_json`.

Properties, special methods and the functions below have other names for a reason. `other_function_names.txt` lists the
functions that still have to be renamed; the list only shrinks.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.architecture.source_tree import SOURCE

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE: Final = Path(__file__).parent
VERBS: Final = frozenset((HERE / "verbs.txt").read_text(encoding="utf-8").split())
REMAINING: Final = frozenset((HERE / "other_function_names.txt").read_text(encoding="utf-8").splitlines())
MOST_REMAINING: Final = 298
PROPERTIES: Final = frozenset({"property", "cached_property", "setter", "overload"})
# Names that others give: the clocks of Python and asyncio, mappings, and Cluster Autoscaler's CloudProvider and
# NodeGroup.
GIVEN: Final = frozenset(
    {
        *("now", "monotonic_s", "time", "when", "cancelled", "items", "keys"),
        *("connection_made", "connection_lost", "data_received", "pipe_data_received", "process_exited"),
        *("node_groups", "node_group_for_node", "target_size", "nodes", "template_node_info", "atomic_increase_size"),
        *("node_price", "pod_price", "new_node_group", "gpu_label"),
    }
)
# Declarations in a table: flags of the node autoscaler, and the decorator of compiled functions.
DECLARATIONS: Final = frozenset({"plimsoll/nodes/config/flags.py", "plimsoll/solver/kernels.py"})


def iterate_functions(node: ast.AST, outer: str = "") -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield f"{outer}{child.name}", child
        inner = (
            f"{outer}{child.name}."
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
            else outer
        )
        yield from iterate_functions(child, inner)


def has_given_name(function: ast.FunctionDef | ast.AsyncFunctionDef, path: str) -> bool:
    decorators = {ast.unparse(decorator).split("(")[0].split(".")[-1] for decorator in function.decorator_list}
    is_command = path.startswith("plimsoll/cli/") and bool({"command", "callback"} & decorators)
    return (
        function.name.startswith("__")
        or bool(PROPERTIES & decorators)
        or is_command
        or function.name in GIVEN
        or path in DECLARATIONS
    )


def find_other_names() -> set[str]:
    found = set()
    for file in sorted(SOURCE.rglob("*.py")):
        path = file.relative_to(SOURCE).as_posix()
        if "/generated/" in path:
            continue
        for name, function in iterate_functions(ast.parse(file.read_text(encoding="utf-8"))):
            if not has_given_name(function, path) and function.name.strip("_").split("_")[0] not in VERBS:
                found.add(f"{path} {name}")
    return found


def test_functions_begin_with_a_verb():
    assert sorted(find_other_names() - REMAINING) == []


def test_the_list_of_other_names_only_shrinks():
    assert len(REMAINING) <= MOST_REMAINING


def test_the_verbs_are_sorted():
    words = (HERE / "verbs.txt").read_text(encoding="utf-8").split()
    assert words == sorted(set(words))
