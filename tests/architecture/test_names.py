"""Names are the field's own words: one meaning per class name, loop variables that say what they hold."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.architecture.source_tree import REPOSITORY, modules, parse_file, python_files, read_file, subsystem

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__)
_WORDS = """
    acting adviser advisers answering asked asking ballot board boards brake brakes companions company departing
    departure departures desk draft drafts expanding fate fates gathering gatherings growing growth guests hands
    hindrance homes hosting housed kin last_words ledger ledgers levelling lodgers lump lumps meeting meetings
    memories neighbours occasion offers one_by_one party placing played promise promises questions roster rosters
    sayings scene scenes seen session sessions shrinking sighting sightings sitting sorting standing steering
    surroundings survivors teller telling tellings told turn turns upkeep verdict want wants wish wishes
"""
PRIVATE_WORDS = frozenset(_WORDS.split())
"""Module names of this project's former vocabulary. docs/glossary.md has the words that replace them."""
_IDENTIFIERS = """
    alike amnesty asked asking asks brake brakes breath condemned dearest dearness dwellers gist gists goodbye goodbyes
    greeted hasty home homeless homes hopeless household households immortal inhabited kin kins manners namesake
    namesakes oddities played promise promises salvage shaken sighting spot spots steering stranger strangers strays
    stubborn surroundings tally telling timetable unasked upkeep witness witnesses youth
"""
PRIVATE_IDENTIFIERS = frozenset(_IDENTIFIERS.split())
"""Words of the former vocabulary that stay out of all names in the source: classes, functions, variables."""
OTHERS_WORDS = frozenset({"SPOT", "is_spot", "accepts_spot", "spot_taints", "_SPOT_WORDS", "is_condemned", "condemned"})
"""Spot is a capacity type; Kubernetes calls the pods beyond the replicas of a StatefulSet condemned."""
_PARTICIPLES = """
    told written shown kept held taken given made said seen found lost built sent gone known grown heard met
"""
PARTICIPLES = frozenset(_PARTICIPLES.split())
_NO_PARTICIPLES = """
    allowed cancelled elapsed feed heed named need required seed unauthorized unexpected unfinished
"""
NO_PARTICIPLES = frozenset(_NO_PARTICIPLES.split())
"""First words that end in -ed and are verbs, adjectives, or names that asyncio and Go have given."""
_SPOKEN = "told tell tells teller telling said nobody nobodys somebody somebodys"
SPOKEN_WORDS = frozenset(_SPOKEN.split())
"""Machines report, send and answer. Where no person is meant, the sentence names the server, the client or the pod."""
PERSONS = SPOKEN_WORDS | frozenset({"anybody", "everybody", "hears", "heard", "someone", "speaks", "who", "whom"})
"""Words for persons that stay out of the names of tests."""
SPOKEN = re.compile(rf"\b(?:{'|'.join(sorted(SPOKEN_WORDS))})\b", re.IGNORECASE)
TEST = re.compile(r"^ *(?:async )?def (test_\w+)", re.MULTILINE)
FRAGMENT = re.compile(r'^ *("""Of .*)', re.MULTILINE)
NAME_PART = re.compile(r"[A-Z]?[a-z]+")
BARE_VARIABLE = re.compile(r"\bfor\b(?:(?!\bin\b)[^:])*?\b(?:one|each)\b|\blambda\b[^:]*\b(?:one|each)\b")
"""What the text of a file has that loops over `one` or `each`. Prose may have it too."""
IDENTIFIER_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
ALLOWED = frozenset({"plimsoll.scheduling.verdicts"})
"""Scheduling verdicts are values: `Fits | DoesNotFit`."""


def test_modules_have_names_of_the_field():
    private = [name for name in modules() if name.rsplit(".", 1)[-1] in PRIVATE_WORDS and name not in ALLOWED]
    assert not private, f"rename by docs/glossary.md: {private}"


def test_identifiers_are_names_of_the_field():
    found = [
        f"{path.relative_to(REPOSITORY)}:{token.start[0]}: {token.string}"
        for path in python_files("src")
        if _is_private(text := _read_without_home(path))  # else no name of the file is, and it needs no tokens
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.NAME and _is_private(token.string)
    ]
    assert not found, "rename by docs/glossary.md:\n" + "\n".join(found)


def _read_without_home(path: Path) -> str:
    """The text of a module without the name of the function that finds the directory of a user."""
    return read_file(path).replace("Path.home()", "Path()")


@pytest.mark.parametrize(
    "name", ["find_brake", "Kin", "_MANNERS", "_Spot", "_is_capacity_alike", "get_asked", "HomeKinds"]
)
def test_private_words_in_identifiers_are_found(name: str):
    assert _is_private(name)


@pytest.mark.parametrize("name", ["kind", "is_spot", "PodKinds", "SPOT"])
def test_other_identifiers_are_allowed(name: str):
    assert not _is_private(name)


def _is_private(name: str) -> bool:
    parts = {part.lower() for part in IDENTIFIER_PART.findall(name)}
    return name not in OTHERS_WORDS and not PRIVATE_IDENTIFIERS.isdisjoint(parts)


@pytest.mark.parametrize("folder", ["src", "tests", "benchmarks"])
def test_names_and_docstrings_do_not_speak_of_machines_as_of_people(folder: str):
    found = [
        f"{path.relative_to(REPOSITORY)}:{line}: {word}"
        for path in python_files(folder)
        if path != HERE
        for line, word in _spoken_words(read_file(path))
    ]
    assert not found, "\n".join(found)


def test_docstrings_name_their_subject():
    """A docstring that begins with "Of" makes its reader look for what it is about."""
    found = [
        f"{path.relative_to(REPOSITORY)}: {text}"
        for folder in ("src", "benchmarks", "deploy")
        for path in python_files(folder)
        for text in FRAGMENT.findall(read_file(path))
    ]
    assert not found, "\n".join(found)


def test_names_of_tests_do_not_speak_of_machines_as_of_people():
    found = [
        f"{path.relative_to(REPOSITORY)}: {name}"
        for path in python_files("tests")
        if path.name.startswith("test_")
        for name in TEST.findall(read_file(path))
        if not PERSONS.isdisjoint(name.split("_"))
    ]
    assert not found, "\n".join(found)


def _spoken_words(text: str) -> Iterator[tuple[int, str]]:
    """Spoken words in names, comments and docstrings, with their lines."""
    lowered = text.lower()
    if not any(word in lowered for word in SPOKEN_WORDS):
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NAME:
            words = {part.lower() for part in NAME_PART.findall(token.string)} & SPOKEN_WORDS
            yield from ((token.start[0], token.string) for _ in words)
        elif token.type == tokenize.COMMENT or (token.type == tokenize.STRING and token.string.startswith('"""')):
            yield from ((token.start[0], word) for word in SPOKEN.findall(token.string))


def test_a_public_class_name_has_one_meaning_within_a_subsystem():
    homes: dict[tuple[str, str], list[str]] = defaultdict(list)
    for module in modules().values():
        for definition in module.classes():
            if not definition.name.startswith("_"):
                homes[subsystem(module.name), definition.name].append(module.name)
    doubled = {f"{name} in {place}": found for (place, name), found in homes.items() if len(found) > 1}
    assert not doubled, "\n".join(f"{name}: {', '.join(found)}" for name, found in sorted(doubled.items()))


def test_functions_are_named_by_verbs_not_by_participles():
    found = [
        f"{module.name}: {function.name}"
        for module in modules().values()
        for function in _functions(module.tree)
        if _is_participle(function.name.lstrip("_").split("_")[0])
    ]
    assert not found, "\n".join(found)


def _functions(scope: ast.Module | ast.ClassDef) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """The functions of a module and of its classes; properties are named after values."""
    for statement in scope.body:
        if isinstance(statement, ast.ClassDef):
            yield from _functions(statement)
        elif isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            decorators = [ast.unparse(decorator) for decorator in statement.decorator_list]
            if not any("property" in decorator or "setter" in decorator for decorator in decorators):
                yield statement


def _is_participle(word: str) -> bool:
    return word in PARTICIPLES or (word.endswith("ed") and word not in NO_PARTICIPLES)


@pytest.mark.parametrize("folder", ["src", "tests", "benchmarks"])
def test_loop_variables_say_what_they_hold(folder: str):
    found = [
        f"{path.relative_to(REPOSITORY)}:{line}" for path in python_files(folder) for line in _loops_over_one(path)
    ]
    assert not found, "\n".join(found)


def _loops_over_one(path: Path) -> Iterator[int]:
    if not BARE_VARIABLE.search(read_file(path)):
        return
    for node in ast.walk(parse_file(path)):
        if isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
            names = (name for name in ast.walk(node.target) if isinstance(name, ast.Name))
            yield from (name.lineno for name in names if name.id in {"one", "each"})
        elif isinstance(node, ast.Lambda):
            yield from (argument.lineno for argument in node.args.args if argument.arg in {"one", "each"})
