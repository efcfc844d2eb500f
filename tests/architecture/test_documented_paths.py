"""What the pages for contributors name exists: files, folders, functions, classes, commands of make.

docs/architecture.md also lists the files that a pod, a node, a request or a write passes, in call order and at most 25.
"""

from __future__ import annotations

import re
from functools import cache

import pytest

from tests.architecture.source_tree import REPOSITORY, SOURCE, modules

MOST_FILES = 25
PACKAGE = SOURCE / "plimsoll"
PAGES = ("CONTRIBUTING.md", "docs/architecture.md", "docs/glossary.md")
SECTIONS = (REPOSITORY / "docs" / "architecture.md").read_text(encoding="utf-8").split("\n## ")[1:]
PATHS = {section.splitlines()[0]: section for section in SECTIONS if section.startswith("The path of")}
ROW = re.compile(r"^\| `(?P<file>[\w/]+\.py)` \| (?P<step>.*) \|$", re.MULTILINE)
QUOTED = re.compile(r"`([^`\n]+)`")
FILE_NAME = re.compile(r"\w+\.py")
NAME = re.compile(r"[a-z]+(?:_[a-z0-9]+)+|[A-Z][A-Za-z]+|begin|optimize")
"""Names of functions and classes. One word in lower case is mostly a word of a command or of Kubernetes."""
DEFINED = re.compile(r'\b(?:def|class) (\w+)|"(\w+)"')
NOT_BUILT = frozenset({"console/", "fleet/"})
"""Layers that the table of layers announces."""


@pytest.mark.parametrize("title", PATHS)
def test_a_documented_path_names_at_most_25_files_that_exist(title: str):
    files = [row["file"] for row in ROW.finditer(PATHS[title])]
    assert 5 < len(files) <= MOST_FILES
    assert len(files) == len(set(files))
    assert not [file for file in files if not (PACKAGE / file).exists()]


def test_every_path_is_documented():
    assert len(PATHS) == 10


@pytest.mark.parametrize("title", PATHS)
def test_a_step_names_functions_and_neighbours_of_its_file(title: str):
    missing = []
    for row in ROW.finditer(PATHS[title]):
        file = PACKAGE / row["file"]
        for quoted in QUOTED.findall(row["step"]):
            if FILE_NAME.fullmatch(quoted):
                exists = (file.parent / quoted).exists()
            elif NAME.fullmatch(quoted):
                exists = bool(re.search(rf"\b{quoted}\b", file.read_text(encoding="utf-8")))
            else:
                continue
            missing += [] if exists else [f"{row['file']}: {quoted}"]
    assert not missing, "\n".join(missing)


@pytest.mark.parametrize("page", PAGES)
def test_files_and_folders_that_a_page_names_exist(page: str):
    text = (REPOSITORY / page).read_text(encoding="utf-8")
    paths = {quoted for quoted in QUOTED.findall(text) if re.fullmatch(r"[\w.-]+(?:/[\w.-]+)*/?", quoted)}
    paths = {path for path in paths if "/" in path or path.endswith((".py", ".md", ".toml", ".txt"))} - NOT_BUILT
    assert not [path for path in sorted(paths) if not _exists(path)]


def _exists(path: str) -> bool:
    if FILE_NAME.fullmatch(path):
        return any(module.path.name == path for module in modules().values())
    return (REPOSITORY / path).exists() or (PACKAGE / path).exists()


@pytest.mark.parametrize("page", PAGES)
def test_links_of_a_page_lead_to_files(page: str):
    file = REPOSITORY / page
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", file.read_text(encoding="utf-8"))
    assert not [link for link in links if "://" not in link and not (file.parent / link).exists()]


@pytest.mark.parametrize("page", PAGES)
def test_functions_and_classes_that_a_page_names_exist(page: str):
    text = (REPOSITORY / page).read_text(encoding="utf-8")
    names = {quoted for quoted in QUOTED.findall(text) if NAME.fullmatch(quoted)}
    names -= {folder.name for folder in PACKAGE.rglob("*") if folder.is_dir()}
    assert not sorted(names - find_defined_names())


@cache
def find_defined_names() -> set[str]:
    """The functions and classes of the package, and its quoted words: reason codes are constants."""
    sources = (file.read_text(encoding="utf-8") for file in PACKAGE.rglob("*.py"))
    pairs = [pair for source in sources for pair in DEFINED.findall(source)]
    return {name for pair in pairs for name in pair if name}


@pytest.mark.parametrize("page", PAGES)
def test_targets_of_make_exist(page: str):
    text = (REPOSITORY / page).read_text(encoding="utf-8")
    targets = set(re.findall(r"`make ([\w-]+)", text))
    assert targets <= set(
        re.findall(r"^([\w-]+):", (REPOSITORY / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    )
