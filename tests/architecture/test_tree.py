"""The tree: folders that can be overlooked, tests in the tree of the source, no import cycle across folders."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path

import pytest

from tests.architecture.source_tree import SOURCE, imported_modules, modules

MOST_MODULES = 15
TABLES_OF_KINDS = frozenset({"plimsoll.objects.api", "plimsoll.objects.builtin.validation"})
"""One module per kind of the Kubernetes API: these folders are tables."""

TESTS = Path(__file__).parents[1]
TABLES_OF_TESTS = frozenset({"conformance"})
"""One module per recorded area of the API server."""
NO_FOLDERS_OF_SOURCE = frozenset(
    {"architecture", "conformance", "deploy", "e2e", "faults", "field_fuzz", "fixtures", "golden", "scenarios"}
)
"""Tests of no one package: recordings, whole processes, rules of the tree, the manifests in `deploy/`."""


def packages() -> list[str]:
    return [name for name, module in modules().items() if module.is_package]


def test_no_folder_holds_more_than_fifteen_modules():
    sizes = Counter(name.rpartition(".")[0] for name, module in modules().items() if not module.is_package)
    crowded = {name: size for name, size in sizes.items() if size > MOST_MODULES and name not in TABLES_OF_KINDS}
    assert not crowded


def test_no_folder_of_tests_holds_more_than_fifteen_modules():
    sizes = Counter(path.parent.relative_to(TESTS).as_posix() for path in TESTS.rglob("*.py"))
    assert sizes["architecture"] > 1
    crowded = {name: size for name, size in sizes.items() if size > MOST_MODULES and name not in TABLES_OF_TESTS}
    assert not crowded


def test_folders_of_tests_are_folders_or_modules_of_the_source():
    folders = {path.parent.relative_to(TESTS) for path in TESTS.rglob("*.py")} - {Path()}
    assert Path("nodes/planning/scaleup") in folders
    assert not [str(folder) for folder in sorted(folders) if not _is_in_source(folder)]


@pytest.mark.parametrize("folder", ["kafka/definitions", "nodes/faults", "objects/wire", "nodes/e2e"])
def test_other_folders_of_tests_are_found(folder: str):
    assert not _is_in_source(Path(folder))


def _is_in_source(folder: Path) -> bool:
    """Tests that fill a folder may all test one module: `tests/nodes/autoscaler` tests `nodes/autoscaler.py`."""
    source = SOURCE / "plimsoll" / folder
    if folder.name == "scenarios":  # the acceptance scenarios of a whole subsystem
        return source.parent.is_dir()
    return folder.parts[0] in NO_FOLDERS_OF_SOURCE or source.is_dir() or source.with_suffix(".py").is_file()


@pytest.mark.parametrize("package", packages())
def test_folders_of_a_package_import_each_other_in_one_direction(package: str):
    cycles = [cycle for cycle in _cycles(_imports_among_children(package)) if _has_folder(cycle)]
    assert not cycles, "\n".join(" -> ".join(sorted(cycle)) for cycle in cycles)


def _imports_among_children(package: str) -> dict[str, set[str]]:
    """Each child of a package, a folder with all below it or a single module, and the children it imports."""
    depth = package.count(".") + 2
    graph: dict[str, set[str]] = defaultdict(set)
    for name, module in modules().items():
        if not name.startswith(f"{package}."):
            continue
        child = ".".join(name.split(".")[:depth])
        for imported in imported_modules(module):
            other = ".".join(imported.split(".")[:depth])
            if imported.startswith(f"{package}.") and other != child:
                graph[child].add(other)
    return graph


def _has_folder(cycle: set[str]) -> bool:
    return any(modules()[name].is_package for name in cycle)


def _cycles(graph: dict[str, set[str]]) -> list[set[str]]:
    """Groups of nodes that reach each other."""
    reach = {node: _reachable(graph, node) for node in graph}
    groups = {frozenset(other for other in reach[node] if node in reach.get(other, set())) for node in graph}
    return [set(group) for group in groups if group]


def _reachable(graph: dict[str, set[str]], start: str) -> set[str]:
    found: set[str] = set()
    pending = list(graph.get(start, ()))
    while pending:
        node = pending.pop()
        if node not in found:
            found.add(node)
            pending.extend(graph.get(node, ()))
    return found
