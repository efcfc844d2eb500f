"""The source tree as facts: modules, their imports, their classes. Nothing is imported; files are parsed."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

REPOSITORY = Path(__file__).parents[2]
SOURCE = REPOSITORY / "src"
STATEMENTS = (ast.stmt, ast.ExceptHandler, ast.match_case)


@cache
def python_files(folder: str) -> tuple[Path, ...]:
    """The Python files below a folder of the repository, without generated code."""
    return tuple(path for path in sorted((REPOSITORY / folder).rglob("*.py")) if "generated" not in path.parts)


@cache
def read_file(path: Path) -> str:
    """The text of a file, read once for all tests."""
    return path.read_text(encoding="utf-8")


@cache
def parse_file(path: Path) -> ast.Module:
    """The syntax tree of a file, parsed once for all tests."""
    return ast.parse(read_file(path))


def iterate_statements(node: ast.AST) -> Iterator[ast.AST]:
    """The statements directly below a node. Expressions, most of a tree, are passed over: they define nothing."""
    return (child for child in ast.iter_child_nodes(node) if isinstance(child, STATEMENTS))


def walk_statements(node: ast.AST) -> Iterator[ast.AST]:
    """All statements below a node."""
    pending = [node]
    while pending:
        for statement in iterate_statements(pending.pop()):
            yield statement
            pending.append(statement)


@dataclass(frozen=True)
class Module:
    """A Python file of the package."""

    name: str
    path: Path

    @property
    def is_package(self) -> bool:
        return self.path.name == "__init__.py"

    @cached_property
    def tree(self) -> ast.Module:
        return parse_file(self.path)

    def classes(self) -> Iterator[ast.ClassDef]:
        return (statement for statement in self.tree.body if isinstance(statement, ast.ClassDef))

    def imports(self) -> Iterator[tuple[str, str]]:
        """Module and name of each import at the top of the file, those for type checkers included."""
        pending: list[ast.stmt] = list(self.tree.body)
        while pending:
            statement = pending.pop()
            if isinstance(statement, ast.ImportFrom) and statement.module:
                yield from ((statement.module, alias.name) for alias in statement.names)
            elif isinstance(statement, ast.If | ast.Try):
                pending.extend(statement.body)


@cache
def modules() -> dict[str, Module]:
    """All modules by dotted name, without generated code."""
    found = {}
    for path in python_files("src"):
        name = ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
        found[name] = Module(name, path)
    return found


def imported_modules(module: Module) -> set[str]:
    """The modules of this package that a module imports."""
    known = modules()
    found = {f"{origin}.{name}" if f"{origin}.{name}" in known else origin for origin, name in module.imports()}
    return {name for name in found if name in known and name != module.name}


def subsystem(name: str) -> str:
    """`nodes` for plimsoll.nodes.planning.state."""
    parts = name.split(".")
    return parts[1] if len(parts) > 1 else ""
